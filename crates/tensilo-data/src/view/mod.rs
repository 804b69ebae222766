//! Chapter 5 of `ORDER.md`: views that orders apply to.

mod datasets;
mod identity;
mod mixture;
mod sample_list;
mod split;

pub use datasets::View;
pub use mixture::{Component, Mixture};
pub use sample_list::SampleList;
pub use split::Split;
