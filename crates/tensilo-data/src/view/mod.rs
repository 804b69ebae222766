//! Chapter 5 of `ORDER.md`: views that orders apply to.
//!
//! A view numbers the samples that a job takes from 0: all of a dataset, some ([`selection`]), or
//! those of several datasets with weights ([`mixture`]). Its identity is a hash of what it was made
//! from, which a state has, so that a job does not go on with another view.

mod datasets;
mod mixture;
mod selection;

pub use datasets::View;
pub use mixture::{Component, Mixture};
pub use selection::{SampleList, Split};
