//! Tests of nested columns: what is pushed is read back, by every path, from every kind of file.

pub mod check;
#[cfg(feature = "import")]
mod converting;
pub mod model;
mod reading;
mod refused;
mod writing;
