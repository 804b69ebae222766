//! Conversion of Arrow and Parquet data to tensilo files.
//!
//! [`convert`] takes files, and [`append()`] appends them to a file that exists; [`write_batches`] and [`write_reader`] take record batches that a program has in memory, or
//! gets through Arrow's C data interface
//! (`arrow::ffi_stream::RecordBatchStreamReader` is a record batch reader). The module [`arrow`] re-exports the types of
//! Arrow that are part of these signatures.
//!
//! # Inputs
//!
//! An input is
//!
//! - a Parquet file, an Arrow IPC file or an Arrow IPC stream, recognised by its first bytes;
//! - a pipe with any of these, or the standard input, which is called `-`
//!   ([`ConvertOptions::dash_is_stdin`]). It is copied to an unnamed temporary file first, which
//!   takes as much space in [`std::env::temp_dir`];
//! - a folder. All `*.parquet` files in it and in the folders below are read, in the byte order of
//!   their paths, compared component by component; or all `*.arrow` and `*.feather` files if there
//!   are no Parquet files (both together are refused). Names that begin with `.` or `_` are passed
//!   over, except folders `key=value`. Each folder is searched once, whatever symbolic links lead to
//!   it;
//! - a folder that the Python library `datasets` saved. Its shards are read in the order of
//!   `state.json`;
//! - a pattern such as `shards/*/part-?.parquet`, as a shell has it. `**` stands for any folders,
//!   and a folder that matches is searched.
//!
//! Folders called `key=value` become columns, as Hive has it. That goes for every such folder in
//! the path of a file, as the caller writes it and below it: a file that is named alone has the
//! same columns as in its folder. A key's column is `i64` if all its values, in all inputs, are
//! canonical decimal integers of 64 bits, else `utf8`. Keys and values are percent-decoded;
//! `__HIVE_DEFAULT_PARTITION__` is a null. If the file has a column of this name itself, it is
//! kept, and an error if it has another value anywhere. These columns follow those of the file, and
//! can be left out, rounded or appended like others.
//!
//! All inputs have the same columns, in any order; the order is that of the first. All that differs
//! is in the error.
//!
//! # Inputs that change
//!
//! A file is opened once, and every pass reads it through the same handle. If another file takes
//! its name meanwhile, nothing changes. If it is changed in place, its size or modification time
//! tells, and the conversion ends in an error, without an output. A file that was changed less than
//! 20 ms before it is opened (2 s on file systems that count seconds) is waited for, because the
//! clock that gives modification times has ticks.
//!
//! Of more than 256 inputs (macOS: 128) the others are closed after their schema was read and
//! opened again for each pass. If another file has taken the name of one of these before a pass,
//! that is an error, too.
//!
//! # What becomes what
//!
//! | Arrow | tensilo |
//! |---|---|
//! | integers, floats (f16 too), bool | a scalar column of that type |
//! | utf8, binary (large, view, dictionary-encoded too) | `utf8`, `bytes` |
//! | fixed-size binary | `bytes`, metadata `arrow.type` = `fixed_size_binary[16]` |
//! | date, time, timestamp, duration | `i64`, metadata `arrow.type` such as `timestamp[us, UTC]` |
//! | INT96 timestamps of Parquet | `i64`, `timestamp[ns]`; if one is beyond its range, `timestamp[us]` |
//! | list, large list, list view, fixed-size list, nested to any depth | a tensor, one dimension for each level |
//! | `arrow.fixed_shape_tensor`, `arrow.variable_shape_tensor` | a tensor of that shape |
//! | struct | its fields, named `struct.field`; a null struct makes all of them null |
//! | dictionary- or run-end-encoded | what the decoded values become |
//! | decimal, map, union, interval, null, lists of strings or structs, empty structs | refused; skip the column |
//!
//! A list's dimension is *fixed* if it has the same length in every sample that is not null (which
//! a first pass over the list columns finds, in bounded memory), else *varying*; where no sample
//! tells, it is varying. An empty list says nothing about the dimensions inside it. Within a sample
//! all rows of a dimension are of one length. [`ConvertOptions::shapes`] declares shapes instead.
//! What was found is kept in the metadata, see [`FoundShape`].
//!
//! No value changes, except where a cast or [`ConvertOptions::null_elements`] asks for it: what
//! does not fit is refused. INT96 timestamps get one unit for all inputs: that of an embedded Arrow
//! schema, else nanoseconds, else microseconds, whichever first holds all of them exactly.
//!
//! A column is nullable if its field or a struct around it is. A null list is a null sample, an empty list is an extent of 0, and a null
//! *inside* a tensor is refused unless [`ConvertOptions::null_elements`] says what to store.
//!
//! # Metadata
//!
//! A field's metadata becomes its column's, the schema's becomes the file's (the first input's, if there are several). Left out are
//! `ARROW:schema`, `PARQUET:field_id` and `pandas`, which describe the source's own layout, and the tensor extensions, which the shape
//! says; their dimension names are kept under `arrow.dim_names`. Entries over a limit of the format
//! are left out and their keys listed under `import.dropped_metadata`. What was found about a shape
//! stands under `import.shape`; an export leaves it out.
//!
//! # Memory
//!
//! A Parquet file is decoded about 16 MiB at a time, whatever the size of its row groups: as many rows as the rows
//! before them suggest. An Arrow file or stream is decoded one record batch at a time.
//!
//! # Malformed input
//!
//! It gives an error that names the file, and nothing at the destination. Checksums of Parquet pages are checked where the
//! file has them. A panic of a decoder becomes an error, too; the process's panic hook has its say before. What pages and messages claim
//! of their lengths is compared with the bytes that are there. What remains: a Brotli page can become longer than it says.

#[cfg(feature = "arrow")]
pub mod arrow;
mod batch;
mod files;
mod formats;
mod found;
mod input;
mod input_column;
mod input_file;
mod magic;
mod native;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod problem;
mod read_ahead;
mod run;
mod source;
mod stamp;

#[cfg(feature = "arrow")]
pub use arrow::memory::{write_batches, write_reader};
pub use files::{append, convert, convert_into};
pub use found::{FoundShape, OddSample};
pub use options::{AppendOptions, ConvertOptions, NullElements, Progress};
