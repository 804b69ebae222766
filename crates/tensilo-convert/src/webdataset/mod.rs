//! WebDataset: tar archives in which the files of a sample follow one another and share a key.

mod archive;
mod column;
mod members;
mod samples;
mod sparse;

pub(crate) use archive::WebDataset;
pub(crate) use column::{SuffixKind, kind_of};
pub(crate) use samples::{KEY, Keys, key_and_suffix};
