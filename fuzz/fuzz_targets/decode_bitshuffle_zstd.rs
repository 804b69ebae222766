#![no_main]
//! Any bytes as stored bytes of `bitshuffle-zstd`.

mod part;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some(parts) = part::Parts::new(2, input) {
        parts.read();
    }
});
