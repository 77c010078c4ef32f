/* FreeRTOS as a guest uses it: preemptive tasks, released at multiples of a tick of 1 ms. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#include <stdint.h>

#define configUSE_PREEMPTION 1
#define configUSE_TIME_SLICING 1
#define configTICK_RATE_HZ 1000
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configMAX_PRIORITIES 16
#define configMINIMAL_STACK_SIZE 512 /* words: the idle task */
#define configMAX_TASK_NAME_LEN 32
#define configIDLE_SHOULD_YIELD 1
#define configUSE_TASK_NOTIFICATIONS 1
#define configUSE_MUTEXES 0
#define configUSE_TIMERS 0
#define configUSE_IDLE_HOOK 1
#define configUSE_TICK_HOOK 0
#define configSUPPORT_STATIC_ALLOCATION 1
#define configKERNEL_PROVIDED_STATIC_MEMORY 1
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configTOTAL_HEAP_SIZE ( 12 * 1024 * 1024 )
#define configSTACK_DEPTH_TYPE uint32_t

/* What goes wrong ends in a fault record. */
#define configCHECK_FOR_STACK_OVERFLOW 2
#define configUSE_MALLOC_FAILED_HOOK 1
extern void sinew_assert_failed( const char * file, uint32_t line );
#define configASSERT( x ) \
    if( ( x ) == 0 ) sinew_assert_failed( __FILE__, __LINE__ )

#define INCLUDE_xTaskDelayUntil 1
#define INCLUDE_xTaskAbortDelay 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskPrioritySet 0
#define INCLUDE_vTaskDelete 0
#define INCLUDE_xTaskGetSchedulerState 1
#define INCLUDE_uxTaskGetStackHighWaterMark 1

/* Every task owns the registers of the floating point unit: C may use them, Rust does not. */
#define configUSE_TASK_FPU_SUPPORT 2

/* The interrupt controller; the board's file has the same addresses. */
#define configINTERRUPT_CONTROLLER_BASE_ADDRESS 0x08000000UL
#define configINTERRUPT_CONTROLLER_CPU_INTERFACE_OFFSET 0x10000UL
#define configUNIQUE_INTERRUPT_PRIORITIES 256
#define configMAX_API_CALL_INTERRUPT_PRIORITY 160
extern void sinew_tick_start( void );
extern void sinew_tick_clear( void );
#define configSETUP_TICK_INTERRUPT() sinew_tick_start()
#define configCLEAR_TICK_INTERRUPT() sinew_tick_clear()

#endif
