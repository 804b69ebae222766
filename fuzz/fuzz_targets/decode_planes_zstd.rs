#![no_main]
//! Any bytes as stored bytes of `planes-zstd`.

mod part;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some(parts) = part::Parts::new(6, input) {
        parts.read();
    }
});
