//! Everything that writes: the `Writer`, conversions, and distributed conversions.
//!
//! `samples` and `writer` write samples of a Python program. `inputs` and `convert` convert files
//! and Arrow data, and `job` does so in many processes. All share the writer options in `options`.

pub mod convert;
pub mod inputs;
pub mod job;
pub mod options;
pub mod samples;
pub mod writer;
