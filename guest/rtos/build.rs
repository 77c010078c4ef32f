//! Builds the FreeRTOS kernel and hands the linker script to the build of each guest.

use std::env;
use std::fs;
use std::path::PathBuf;

/// The kernel's files: what tasks, notifications and delays need.
const KERNEL: &[&str] = &[
    "tasks.c",
    "list.c",
    "queue.c",
    "portable/MemMang/heap_4.c",
    "portable/GCC/ARM_CA9/port.c",
    "portable/GCC/ARM_CA9/portASM.S",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=freertos");
    println!("cargo:rerun-if-changed=guest.ld");
    let kernel = PathBuf::from(env::var_os("DEP_FREERTOS_KERNEL").expect("links = \"freertos\""));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::copy("guest.ld", out.join("guest.ld")).expect("the linker script is copied");
    println!("cargo:rustc-link-search={}", out.display());

    let mut build = cc::Build::new();
    build.compiler("arm-none-eabi-gcc").archiver("arm-none-eabi-ar").no_default_flags(true);
    for flag in ["-O2", "-g1", "-ffreestanding", "-ffunction-sections", "-marm", "-Wall"] {
        build.flag(flag);
    }
    // Calls pass floats in integer registers, as the Rust target does. The FPU is named only for
    // the port's assembler, which saves its registers.
    for flag in ["-march=armv7-a", "-mfloat-abi=soft", "-mfpu=neon"] {
        build.flag(flag);
    }
    build.include("freertos").include(kernel.join("include"));
    build.include(kernel.join("portable/GCC/ARM_CA9"));
    build.file("freertos/sizes.c");
    build.files(KERNEL.iter().map(|file| kernel.join(file)));
    build.compile("freertos");
}
