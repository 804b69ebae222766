//! WebDataset: tar archives in which the files of a sample follow one another, with one key.

mod archive;
mod cell;
mod name;
mod samples;
mod suffix;

pub(crate) use archive::WebDataset;
pub(crate) use name::KEY;
pub(crate) use suffix::{SuffixKind, kind_of};
