//! Compiles the kernels for the CPU if the feature `emulator` is on.
//!
//! The emulator shares the headers of the GPU kernels, so the flags keep their semantics: no strict
//! aliasing, no fused multiply-add. Undefined behavior traps.

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    #[cfg(feature = "emulator")]
    compile_emulator();
}

#[cfg(feature = "emulator")]
fn compile_emulator() {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).file("kernels/emulate.cpp");
    // the same memory holds elements of different types over time
    build.flag_if_supported("-fno-strict-aliasing");
    // no fused multiply-add: floats are rounded after each operation
    build.flag_if_supported("-ffp-contract=off");
    // undefined behavior traps: shifts, overflows, array indices, alignment
    let sanitizer = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];
    if sanitizer.iter().all(|flag| build.is_flag_supported(flag).unwrap_or(false)) {
        build.flags(sanitizer);
    }
    build.compile("tensilo_emulator");
}
