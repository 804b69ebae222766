#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tensilo_fuzz::decode::run(7, input));
