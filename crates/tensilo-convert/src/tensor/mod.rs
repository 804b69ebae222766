//! Reads tensors as columns. The first axis of a tensor is the sample axis.

mod batches;
mod column;
mod table;

pub(crate) use batches::in_c_order;
pub(crate) use column::{ArchiveStream, ColumnBytes, Order, TensorColumn};
pub use table::FormatOptions;
pub(crate) use table::TensorTable;
