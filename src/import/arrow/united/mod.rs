//! One schema for several inputs.
//!
//! Formats such as JSON lines do not declare types: a member that is null in each line of one file
//! may be a text in the next one. Their types are found over all inputs, as within one file.
//! Parquet and Arrow files declare types, and still differ a little: pandas gives a column without
//! values the type null, and leaves out what a shard does not have.
//!
//! [`UnitedSchema`] joins the schemas of all inputs, and [`aligned`] says what one input becomes in
//! it: its own fields first and in their order, so that what a file states about them by position
//! stays right, and then those that it lacks. Both leave fields alone that contradict each other;
//! the plan of the conversion then reports these. [`adapted`] makes arrays of the aligned types. An
//! alternative was to let each format read with a given schema, which every format would have had
//! to do again.

mod arrays;
mod schemas;

pub(super) use arrays::{adapted, null_bytes};
pub use schemas::TypeOrigin;
pub(in crate::import) use schemas::{UnitedSchema, aligned, column_count, fields_of_file};
