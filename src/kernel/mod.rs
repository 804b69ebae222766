//! Loops over elements, compiled for each instruction set.
//!
//! A *family* is a module with the kernels of one job:
//!
//! | family | job | chapter of the specification |
//! |---|---|---|
//! | [`bitshuffle`] | elements to bit planes and back | 5.4 |
//! | [`byte_planes`] | elements to byte planes and back, and their rotation | 5.6, 5.8 |
//! | [`predict`] | elements to residuals of a prediction and back | 5.6 |
//! | [`tiers`] | symbols to escape-coded ranks and back | 5.7 |
//! | [`extra_bits`] | integers to bit lengths and extra bits and back | 5.9 |
//! | [`palettes`] | numbers to the values that they name | 5.14 |
//! | [`quotients`] | integers to the floats that they are divided to | 5.14 |
//! | [`bins`], [`bins::encode`] | windows coded by bins, decoded and encoded | 5.13 |
//! | [`bins::costs`] | costs of groups of bins in classes | 5.13 |
//!
//! All families have the same shape:
//!
//! * `mod.rs` has the functions that callers use. They check the lengths of their arguments.
//!   `available()` returns the implementations that this CPU can run, and `best()` the fastest.
//! * `scalar.rs` is the definition in code, and the oracle of the tests.
//! * `avx2.rs`, `avx512.rs` and `neon.rs` give the same bytes, faster.
//! * `generic.rs` has what these share.
//!
//! [`cpu`] detects the instruction sets, `compile` compiles kernels for them, and [`vectors`]
//! loads and stores their vectors.
//!
//! This module uses nothing else of the crate, so that benchmarks can include it.

mod bytes;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod compile;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod compress;
mod cpu;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod expand;
mod implementation;
mod vectors;
mod width;
mod word;

pub mod bins;
#[cfg_attr(not(feature = "zstd"), allow(dead_code, reason = "only the encodings with Zstandard call it"))]
pub mod bitshuffle;
pub mod byte_planes;
pub mod extra_bits;
pub mod palettes;
pub mod predict;
mod prefetch;
pub mod quotients;
pub mod tiers;

#[cfg(test)]
mod tests;

pub use prefetch::prefetch;
pub use width::Width;
