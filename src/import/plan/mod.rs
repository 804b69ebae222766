//! The plan of a conversion: the columns of the new file, with their types and shapes.

mod column;
pub(super) mod input_column;
mod merge;
mod select;
mod value_cast;

pub(super) use column::{Column, describe, in_unit};
pub(super) use merge::{Plan, of};
pub(super) use select::check_shape;
pub(super) use value_cast::ValueCaster;
