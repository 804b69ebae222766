//! The model compared with real datasets.

pub mod datasets;
pub mod many_files;
pub mod reads;
pub mod source;

/// Any error. It ends the program.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
