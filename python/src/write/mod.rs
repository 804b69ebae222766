//! Everything that writes: samples of Python, conversions, and conversions by many processes.

pub mod convert;
pub mod inputs;
pub mod job;
pub mod options;
pub mod samples;
pub mod writer;
