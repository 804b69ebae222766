//! The plan of a conversion: the columns of the new file, with their types and shapes.
//!
//! `input_column` describes a column of an input. `merge` combines the columns of all inputs into
//! the plan, `select` applies the caller's options, and `column` is the result, which the first
//! pass completes.

mod column;
pub(super) mod input_column;
mod merge;
mod select;
mod value_cast;

pub(super) use column::{Column, describe, in_unit};
pub(super) use merge::{Plan, of};
pub(super) use select::check_shape;
pub(super) use value_cast::ValueCaster;
