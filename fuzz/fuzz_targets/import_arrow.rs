#![no_main]

// A decoder's panic is an error here; a panic that leaves the library ends the process even without
// the hook that libFuzzer sets.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |input: &[u8]| tensilo_fuzz::import::arrow(input));
