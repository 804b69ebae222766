//! WebDataset: tar archives in which the files of a sample follow one another, with one key.

mod archive;
mod cell;
mod keys;
mod members;
mod name;
mod samples;
mod sparse;
mod suffix;

pub(crate) use archive::WebDataset;
pub(crate) use keys::Keys;
pub(crate) use name::{KEY, key_and_suffix};
pub(crate) use suffix::{SuffixKind, kind_of};
