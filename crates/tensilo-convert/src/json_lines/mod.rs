//! JSON: objects are samples. They follow one another, one in each line as a rule, or are in one
//! array.
//!
//! `arrow-json` reads the same, but with casts: it makes texts of mixed types, and rounds integers
//! beyond 64 bits to floats. Here no value changes.

mod infer;
mod lines;
mod value;

pub(crate) use lines::JsonLines;
