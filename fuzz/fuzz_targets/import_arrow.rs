#![no_main]

// The library turns a decoder's panic into an error, so libFuzzer's hook, which aborts, is removed.
// A panic that leaves the library still ends the process.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |input: &[u8]| tensilo_fuzz::import::arrow(input));
