//! JSON: each sample is an object. Objects follow one another, usually one per line, or are the
//! entries of one array.
//!
//! `arrow-json` reads the same files, but casts: it turns mixed types into strings, and rounds
//! integers beyond 64 bits to floats. This module changes no integer and no type. If a member has
//! an integer that no 64-bit type represents exactly, the member is refused, and the other members
//! are read.

mod infer;
mod lines;
mod value;

pub(crate) use lines::JsonLines;
