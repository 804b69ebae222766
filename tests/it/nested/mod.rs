//! Nested columns: what is pushed is read back, by every path, from every kind of file.

pub mod check;
pub mod model;
mod reading;
mod writing;
