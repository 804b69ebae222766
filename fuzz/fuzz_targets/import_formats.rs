#![no_main]

// Not in `tensilo_fuzz::TARGETS`: the core, which replays those, does not have these formats.
// Panics of decoders are errors, as in `import_parquet`.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| ())), |input: &[u8]| {
    let options = tensilo_convert::FormatOptions::new().file_is_sample(input.len().is_multiple_of(2));
    tensilo_fuzz::import::formats(input, tensilo_convert::input_formats(options));
});
