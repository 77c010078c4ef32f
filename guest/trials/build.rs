//! Builds the C kinds of this image, and says how the image is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../examples/echo.c");
    println!("cargo:rerun-if-changed=../rtos/include/sinew_guest.h");
    // The build script of sinew-guest puts the script where the linker looks.
    println!("cargo:rustc-link-arg-bins=-Tguest.ld");
    let mut build = cc::Build::new();
    build.compiler("arm-none-eabi-gcc").archiver("arm-none-eabi-ar").no_default_flags(true);
    for flag in ["-O2", "-g1", "-ffreestanding", "-marm", "-march=armv7-a", "-mfloat-abi=soft"] {
        build.flag(flag);
    }
    build.include("../rtos/include").file("../examples/echo.c");
    // Needed because nothing refers to its tables by name.
    build.link_lib_modifier("+whole-archive");
    build.compile("echo");
}
