//! Outputs: files, streams, and descriptors that are open when the program starts.

mod descriptor;
mod destination;
mod json;
mod writer;

pub(crate) use destination::{Data, Destination, Inputs, shown};
pub(crate) use json::write_json;
pub(crate) use writer::Output;
