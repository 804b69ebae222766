//! Views: the samples of a job, numbered from 0 (chapter 5 of `ORDER.md`).
//!
//! An order permutes `0..n` and does not depend on datasets. A view defines which samples these
//! numbers stand for: all samples of a dataset, some of them ([`selection`]), or samples of several
//! datasets in fixed proportions ([`mixture`]).
//!
//! The identity of a view is a hash of its kind and parameters. A [`State`](crate::State) contains
//! the identity, so that a job does not resume with a different view.

mod datasets;
mod mixture;
mod selection;

pub use datasets::View;
pub use mixture::{Component, Mixture};
pub use selection::{SampleList, Split};
