//! Tensilo files in object stores.

#![forbid(unsafe_code)]

mod address;
mod at_path;
mod aws_profile;
mod client;
mod error;
mod lines;
mod listing;
mod object_file;
mod objects;
mod options;
mod per_process;
mod pieces;
mod request;
mod runtime;
mod storage;
mod upload;

pub use address::Address;
pub use at_path::source_at;
pub use error::ObjectError;
pub use object_file::ObjectFile;
pub use options::ObjectOptions;
pub use storage::ObjectStorage;
pub use upload::ObjectUpload;
