//! JSON lines: an object in each line is a sample.
//!
//! `arrow-json` reads the same, but with casts: it makes texts of mixed types, and rounds integers
//! beyond 64 bits to floats. Here no value changes.

mod arrays;
mod kind;
mod lines;

pub(crate) use lines::JsonLines;
