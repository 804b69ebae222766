//! Everything that writes: samples of Python, conversions, and conversions by many processes.
//!
//! They share the options of writers and of targets. `samples` and `writer` write what a program of
//! Python has in hand; `inputs` and `convert` write what files or Arrow data have, `job` in many
//! processes.

pub mod convert;
pub mod inputs;
pub mod job;
pub mod options;
pub mod samples;
pub mod writer;
