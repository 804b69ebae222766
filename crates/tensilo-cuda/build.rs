//! Compiles the kernels for the CPU, with the feature `emulator`.

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    #[cfg(feature = "emulator")]
    compile_emulator();
}

#[cfg(feature = "emulator")]
fn compile_emulator() {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(2).file("kernels/emulate.cpp");
    // the same memory holds elements of one type, and then of another
    build.flag_if_supported("-fno-strict-aliasing");
    // no multiplication and addition become one operation: floats are rounded after each
    build.flag_if_supported("-ffp-contract=off");
    // undefined behaviour ends the test: shifts, overflows, indices of arrays, alignment
    let sanitizer = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"];
    if sanitizer.iter().all(|flag| build.is_flag_supported(flag).unwrap_or(false)) {
        build.flags(sanitizer);
    }
    build.compile("tensilo_emulator");
}
