/* What Rust must know of FreeRTOS's structs: they depend on FreeRTOSConfig.h. */
#include "FreeRTOS.h"
#include "task.h"

const uint32_t sinew_task_bytes = sizeof( StaticTask_t );
