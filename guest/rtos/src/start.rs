//! From reset to Rust: stacks, vectors, zeroed memory; and how faults come back to Rust.

use core::arch::global_asm;

// The loader (the emulator, or remoteproc on a chip) has put every part of the image where it runs,
// so nothing is copied here. Only the memory that begins as zero is zeroed.
global_asm!(
    r#"
    .section .vectors, "ax"
    .arm
    .balign 32
sinew_vectors:
    ldr pc, =_start
    ldr pc, =sinew_undefined
    ldr pc, =FreeRTOS_SWI_Handler
    ldr pc, =sinew_prefetch_abort
    ldr pc, =sinew_data_abort
    nop
    ldr pc, =FreeRTOS_IRQ_Handler
    ldr pc, =sinew_fiq
    .ltorg

    .section .start, "ax"
    .arm
    .global _start
_start:
    cpsid aif
    // Off until memory is mapped: memory and caches of whoever ran before are not ours.
    mrc p15, 0, r0, c1, c0, 0
    bic r0, r0, #0x1000
    bic r0, r0, #0x0007
    bic r0, r0, #0x2000
    mcr p15, 0, r0, c1, c0, 0
    isb
    ldr r0, =sinew_vectors
    mcr p15, 0, r0, c12, c0, 0

    // Floating point: access to coprocessors 10 and 11, then on (vmsr fpexc, r0).
    mrc p15, 0, r0, c1, c0, 2
    orr r0, r0, #0x00f00000
    mcr p15, 0, r0, c1, c0, 2
    isb
    mov r0, #0x40000000
    .inst 0xeee80a10

    cps #0x11
    ldr sp, =__fiq_stack_end
    cps #0x12
    ldr sp, =__irq_stack_end
    cps #0x17
    ldr sp, =__abort_stack_end
    cps #0x1b
    ldr sp, =__undefined_stack_end
    cps #0x1f
    ldr sp, =__supervisor_stack_end
    cps #0x13
    ldr sp, =__supervisor_stack_end

    ldr r0, =__bss_start
    ldr r1, =__bss_end
    mov r2, #0
1:  cmp r0, r1
    strlo r2, [r0], #4
    blo 1b

    // Imprecise aborts from now on.
    cpsie a
    bl sinew_main
2:  wfi
    b 2b

    // The faulting instruction is at lr - 8, of the others at lr - 4 (all code is ARM code).
    // A data abort may be a probe's: then Rust says where to go on.
sinew_data_abort:
    sub lr, lr, #8
    push {{r0-r3, r12, lr}}
    mov r0, lr
    bl sinew_on_data_abort
    str r0, [sp, #20]
    pop {{r0-r3, r12, lr}}
    movs pc, lr

sinew_prefetch_abort:
    sub r0, lr, #4
    b sinew_on_prefetch_abort

sinew_undefined:
    sub r0, lr, #4
    b sinew_on_undefined

sinew_fiq:
    sub r0, lr, #4
    b sinew_on_fiq

    // fn sinew_probe_load(address) -> 0 to 255, or u32::MAX if the load aborted.
    .global sinew_probe_load
    .global sinew_probe_load_at
    .global sinew_probe_store
    .global sinew_probe_store_at
    .global sinew_probe_failed
sinew_probe_load:
sinew_probe_load_at:
    ldrb r0, [r0]
    bx lr
    // fn sinew_probe_store(address, byte) -> 0, or u32::MAX if the store aborted.
sinew_probe_store:
sinew_probe_store_at:
    strb r1, [r0]
    mov r0, #0
    bx lr
sinew_probe_failed:
    mvn r0, #0
    bx lr
"#
);
