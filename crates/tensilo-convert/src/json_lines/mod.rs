//! JSON: each sample is an object. Objects follow one another, usually one per line, or are in one
//! array.
//!
//! `arrow-json` reads the same files, but casts: it turns mixed types into strings, and rounds
//! integers beyond 64 bits to floats. Here no integer and no type changes. An integer that no
//! 64-bit type represents exactly is refused together with its member, and the other members are
//! read.

mod infer;
mod lines;
mod value;

pub(crate) use lines::JsonLines;
