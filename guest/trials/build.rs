//! Builds the kinds in C that this image has beside those in Rust, and says how it is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../examples/echo.c");
    println!("cargo:rerun-if-changed=../rtos/include/sinew_guest.h");
    // The build script of sinew-guest puts it where the linker looks.
    println!("cargo:rustc-link-arg-bins=-Tguest.ld");
    let mut build = cc::Build::new();
    build.compiler("arm-none-eabi-gcc").archiver("arm-none-eabi-ar").no_default_flags(true);
    for flag in ["-O2", "-g1", "-ffreestanding", "-marm", "-march=armv7-a", "-mfloat-abi=soft"] {
        build.flag(flag);
    }
    build.include("../rtos/include").file("../examples/echo.c");
    // Nothing refers to its tables by name.
    build.link_lib_modifier("+whole-archive");
    build.compile("echo");
}
