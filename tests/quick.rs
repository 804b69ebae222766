//! Tests that are quick, as one program: `cargo mutants` builds it anew for each change, and code that is generic over its source is compiled
//! in each test program again.
#![allow(clippy::duplicate_mod, reason = "each of them is a program of its own, too")]

#[path = "append.rs"]
mod append;
#[path = "bytes_read.rs"]
mod bytes_read;
#[path = "casts.rs"]
mod casts;
#[path = "choices.rs"]
mod choices;
#[path = "golden.rs"]
mod golden;
#[path = "refusals.rs"]
mod refusals;
#[path = "roundtrip.rs"]
mod roundtrip;
#[path = "salvage.rs"]
mod salvage;
#[path = "vectors.rs"]
mod vectors;
