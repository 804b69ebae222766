//! Importers: what becomes what, what is refused, and that malformed input harms nothing.
#![cfg(feature = "arrow")]

#[path = "import/append.rs"]
mod append;
#[path = "import/arrow_types.rs"]
mod arrow_types;
#[path = "import/changed.rs"]
mod changed;
#[path = "import/common.rs"]
mod common;
#[cfg(feature = "parquet")]
#[path = "import/folders.rs"]
mod folders;
#[cfg(feature = "parquet")]
#[path = "import/foreign.rs"]
mod foreign;
#[path = "import/ipc.rs"]
mod ipc;
#[cfg(feature = "parquet")]
#[path = "import/malformed.rs"]
mod malformed;
#[path = "import/outputs.rs"]
mod outputs;
#[cfg(feature = "parquet")]
#[path = "import/parquet.rs"]
mod parquet;
#[path = "import/refusals.rs"]
mod refusals;
#[path = "import/shapes.rs"]
mod shapes;
#[path = "import/tensors.rs"]
mod tensors;
#[cfg(feature = "parquet")]
#[path = "import/thrift.rs"]
mod thrift;
#[cfg(feature = "parquet")]
#[path = "import/values.rs"]
mod values;
