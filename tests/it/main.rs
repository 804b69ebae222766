//! Tests of the library as one program, because linking one is faster than linking a program for
//! each module. Tests that need a process or an allocator of their own are in `process`, `memory`
//! and `fork`.

#[path = "../support/mod.rs"]
mod support;

mod common;

mod adversarial;
mod append;
mod block_sizes;
mod bytes_read;
mod casts;
#[cfg(feature = "zstd")]
mod choices;
mod concurrency;
mod content_id;
#[cfg(all(feature = "zstd", feature = "parquet"))]
mod corpora;
mod damage;
#[cfg(feature = "zstd")]
mod dictionaries;
mod dtypes;
mod earlier_commits;
mod explain;
#[cfg(feature = "arrow")]
mod export;
mod first_damage;
#[cfg(feature = "zstd")]
mod golden;
#[cfg(feature = "arrow")]
mod import;
mod lost_samples;
mod nested;
mod owned;
mod ragged_ends;
mod reader_mutants;
mod reading_paths;
mod refusals;
mod roundtrip;
mod salvage;
mod second_reader;
mod stages;
mod values;
mod vectors;
#[cfg(feature = "zstd")]
mod verify;
mod verify_panics;
mod verify_requests;
mod verify_states;
