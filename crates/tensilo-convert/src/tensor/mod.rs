//! Tensors with a common first axis as columns of samples.

mod batches;
mod column;
mod table;

pub(crate) use column::{ArchivedStream, ColumnBytes, Order, TensorColumn};
pub(crate) use table::TensorTable;
