//! The fuzz targets, as functions of bytes.
//!
//! `fuzz_targets` hands them to libFuzzer, and `tests/it/corpora.rs` of the core replays all
//! corpora through them. A target panics if the library breaks a promise; an error is a legitimate
//! outcome.
//!
//! Random bytes hardly ever pass a checksum. The targets reach the code behind it in three ways:
//!
//! * `decode` builds an intact file around the input, which becomes the stored parts of two chunks.
//! * `resealed` and `salvage` correct all checksums of the input, and their mutator knows the
//!   regions of a file.
//! * `roundtrip`, `gather` and `writer_faults` draw a schema, samples and options from the input,
//!   and write the file themselves.
//!
//! `open` and the imports take the bytes unchanged.

mod blocked;
mod case;
pub mod decode;
#[path = "../../tests/support/faulty_sink.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "the tests use other faults, and replay the targets as a module")]
mod faulty_sink;
pub mod gather;
#[cfg(feature = "parquet")]
pub mod import;
// The kernels are private, so this crate includes their module. It must be at the root of a crate:
// the replay, where this crate is a module, decodes in one process per kernel instead.
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

/// The function of a target.
pub type Run = fn(&[u8]);

/// All targets by name. Each has a folder of that name in `corpus`.
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
