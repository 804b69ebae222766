//! The plan of a conversion: the columns of the new file, with their types and shapes.

mod column;
mod column_cast;
mod merge;
mod rename;
mod select;
mod shape;
mod structs;
mod unfolding;
mod units;
mod value_cast;
mod written_structs;

pub(super) use column::{Column, describe};
pub(super) use merge::{Plan, of};
pub(super) use select::check_shape;
pub(super) use shape::{ShapeFinder, sample_shape};
pub(super) use unfolding::UnfoldFinder;
pub(super) use units::{UnitFinder, exact, unit};
pub(super) use value_cast::{ValueCast, ValueCaster};
