//! Chapter 5.15: options of bins, which change what elements are coded.
//!
//! `gaps.rs`, `outliers.rs` and `filters.rs` are the options, `fields.rs` what the tables state of
//! them, and `marks.rs` the positions of gaps and outliers. Writers find options in the files named
//! `*_writer.rs`, and fit filters in `filter_fit.rs`.

mod fields;
mod filter_fit;
mod filters;
mod filters_writer;
mod gaps;
mod gaps_writer;
mod marks;
mod outliers;
mod outliers_writer;

pub(in crate::codec) use fields::Options;
pub(in crate::codec) use filters::FilterBlock;
pub(in crate::codec) use filters_writer::FilterPlan;
pub(in crate::codec) use gaps::Gaps;
pub(in crate::codec) use gaps_writer::Present;
pub(in crate::codec) use marks::Marks;
pub(in crate::codec) use outliers_writer::{OutlierPlan, low_bytes_of};
