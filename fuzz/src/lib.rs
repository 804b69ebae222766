//! The fuzz targets as functions of bytes. `fuzz_targets` hands them to libFuzzer,
//! `tests/it/corpora.rs` of the crate replays all corpora through them. Each panics if the library
//! breaks a promise.

mod blocked;
mod case;
pub mod decode;
#[path = "../../tests/support/faulty_sink.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "the tests use other faults, and replay the targets as a module")]
mod faulty_sink;
pub mod gather;
#[cfg(feature = "parquet")]
pub mod import;
// The kernels are no part of the interface, but the module can be included. It has to be at the
// root of a crate, where a replay does not have it: that has other processes decode with each.
#[cfg(fuzzing)]
#[path = "../../src/kernel/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub, reason = "only some kernels are compared")]
mod kernel;
#[cfg(fuzzing)]
mod kernels;
mod lists;
pub mod mutate;
pub mod open;
#[cfg(fuzzing)]
mod options;
mod regions;
pub mod resealed;
pub mod roundtrip;
pub mod salvage;
pub mod writer_faults;

/// A target.
pub type Run = fn(&[u8]);

/// All targets by name, each of which has a folder of that name in `corpus`.
pub const TARGETS: &[(&str, Run)] = &[
    ("decode_bins", |input| decode::run(6, input)),
    ("decode_bitshuffle_zstd", |input| decode::run(3, input)),
    ("decode_constant", |input| decode::run(1, input)),
    ("decode_exponent_tiers", |input| decode::run(4, input)),
    ("decode_planes_zstd", |input| decode::run(7, input)),
    ("decode_raw", |input| decode::run(0, input)),
    ("decode_residual_tiers", |input| decode::run(5, input)),
    ("decode_zstd", |input| decode::run(2, input)),
    ("gather", gather::run),
    #[cfg(feature = "parquet")]
    ("import_arrow", import::arrow),
    #[cfg(feature = "parquet")]
    ("import_parquet", import::parquet),
    ("open", open::run),
    ("resealed", resealed::run),
    ("roundtrip", roundtrip::run),
    ("salvage", salvage::run),
    ("writer_faults", writer_faults::run),
];
