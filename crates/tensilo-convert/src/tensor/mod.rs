//! Tensors whose first axis counts samples, as columns.

mod batches;
mod column;
mod table;

pub(crate) use batches::in_c_order;
pub(crate) use column::{ArchiveStream, ColumnBytes, Order, TensorColumn};
pub use table::FormatOptions;
pub(crate) use table::TensorTable;
