#![no_main]

// Not one of `tensilo_fuzz::TARGETS`: the crate that these tests are of does not have the formats.
// As in `import_parquet`, a decoder's panic is an error.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |input: &[u8]| {
    let options = tensilo_convert::FormatOptions::new().file_is_sample(input.len().is_multiple_of(2));
    tensilo_fuzz::import::formats(input, tensilo_convert::input_formats(options));
});
