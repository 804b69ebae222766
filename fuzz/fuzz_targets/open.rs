#![no_main]
//! Any bytes: if they open, everything in them can be walked.

mod walk;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| walk::walk(file));
