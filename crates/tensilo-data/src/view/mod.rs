//! Views: the samples of a job, numbered from 0 (chapter 5 of `ORDER.md`).
//!
//! An order permutes `0..n` and knows nothing about datasets. A view says what these numbers are:
//! all samples of a dataset, some of them ([`selection`]), or samples of several datasets in fixed
//! proportions ([`mixture`]).
//!
//! The identity of a view is a hash of what it was made from. A [`State`](crate::State) contains
//! it, so that a job does not resume with a different view.

mod datasets;
mod mixture;
mod selection;

pub use datasets::View;
pub use mixture::{Component, Mixture};
pub use selection::{SampleList, Split};
