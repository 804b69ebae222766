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
//! A family has a trait `Kernel`, with a method for each job. The functions that callers use check
//! the lengths of their arguments and call it. `available()` returns the implementations that this
//! CPU can run, and `best()` the fastest. Each family has
//!
//! * the *scalar* implementation, which is the definition in code, and the oracle of the tests;
//! * the same loops in vectors, which give the same bytes for any input. They are written once, and
//!   either the compiler makes vectors of them, or they call the operations of a trait;
//! * if there is such a trait, a file for each instruction set with these operations.
//!
//! [`dispatch`] detects and chooses instruction sets and compiles code for them. [`vectors`] loads
//! and stores, and has the operations that several families need.
//!
//! This module uses nothing else of the crate, so that benchmarks can include it.

#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(unused, reason = "the scalar kernels need few of the loops in vectors")
)]

mod bytes;
mod dispatch;
mod elements;
mod vectors;

pub mod bins;
#[cfg_attr(not(feature = "zstd"), allow(dead_code, reason = "only the encodings with Zstandard call it"))]
pub mod bitshuffle;
pub mod byte_planes;
pub mod extra_bits;
pub mod palettes;
pub mod predict;
pub mod quotients;
pub mod tiers;

#[cfg(test)]
mod tests;

pub use elements::Width;
pub use vectors::prefetch;
