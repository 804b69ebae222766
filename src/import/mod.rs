//! Converts Parquet, Arrow and tensilo files to tensilo files.
//!
//! - [`convert`] writes all inputs to one file.
//! - [`append()`] appends inputs to an existing file.
//! - `write_batches` and `write_reader` (feature `arrow`) write record batches. These come from the
//!   program itself or through Arrow's C data interface. The module `arrow` re-exports the Arrow
//!   types in these signatures.
//!
//! A schema often does not state everything that a tensilo file must state: the extents of lists,
//! whether a struct is ever null, the unit of INT96 timestamps. So a conversion makes two passes.
//! The first pass reads only the columns in question, and mostly just their offsets and validity.
//! The second pass reads and writes all values. Both passes need bounded memory. If the schema
//! states everything, there is no first pass.
//!
//! `reference.md` says which inputs there are, and what becomes of each type and of metadata.
//!
#![doc = include_str!("reference.md")]
//!
//! [small]: crate::DType::is_small
//! [`ColumnSchema::is_struct_nulls`]: crate::ColumnSchema::is_struct_nulls
//! [`WriterOptions::file_id`]: crate::WriterOptions::file_id
//! [`WriterOptions::threads`]: crate::WriterOptions::threads
//! [`default_open_files`]: crate::source::default_open_files
//! [`nested`]: crate::nested

#[cfg(feature = "arrow")]
pub mod arrow;
#[cfg(feature = "arrow")]
mod custom_formats;
mod input;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod rows;
mod run;
mod source;
mod tensilo_file;

#[cfg(feature = "arrow")]
pub use arrow::unified::TypeOrigin;
#[cfg(feature = "arrow")]
pub use custom_formats::{FormatFile, InputFormat, RecordSource, mark_dtype, refused_field};
#[cfg(feature = "arrow")]
pub use input::file::InputReader;
pub use input::file::InputStore;
pub use options::{AppendOptions, ConvertOptions, PlannedInput, PlannedShard, Progress, ShardFiles, ShardPlan};
pub use rows::NullElements;
pub use run::append::{append, append_shards, convert_rows, plan_appended_shards};
pub use run::files::{convert, convert_into, convert_shards, convert_with, plan_shards};
pub use run::found::{InferredShape, OddSample, dropped_metadata};
#[cfg(feature = "arrow")]
pub use run::memory::{write_batches, write_reader};
