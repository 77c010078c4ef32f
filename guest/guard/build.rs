//! Says how an image is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The build script of sinew-guest puts the script where the linker looks.
    println!("cargo:rustc-link-arg-bins=-Tguest.ld");
}
