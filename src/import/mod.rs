//! Conversion of Parquet, Arrow and tensilo files to tensilo files.
//!
//! - [`convert`] makes one file of all inputs.
//! - [`append()`] appends inputs to a file that exists.
//! - `write_batches` and `write_reader` (feature `arrow`) take record batches: of a program's own,
//!   or through Arrow's C data interface. The module `arrow` re-exports the types of Arrow that are
//!   part of these signatures.
//!
//! # Inputs
//!
//! An input is one of these:
//!
//! - A Parquet file (feature `parquet`), an Arrow IPC file or stream (feature `arrow`), or a
//!   tensilo file. The first bytes tell which.
//! - A file of a format that the program adds (`ConvertOptions::formats`, feature `arrow`).
//! - A pipe with any of these, or the standard input, which is called `-`
//!   ([`ConvertOptions::dash_is_stdin`]). It is copied to an unnamed temporary file first, which
//!   takes as much space in [`std::env::temp_dir`].
//! - A folder. All `*.parquet` files in it and in the folders below are read, or all `*.arrow` and
//!   `*.feather` files. Both together are refused. If there are neither, all `*.tsl` files are
//!   read. The order is the byte order of paths, compared component by component. Names that begin
//!   with `.` or `_` are passed over, except folders `key=value`. Each folder is searched once,
//!   also if several symbolic links lead to it.
//! - A folder that the Python library `datasets` saved. Its shards are read in the order of
//!   `state.json`.
//! - A pattern such as `shards/*/part-?.parquet`, as in a shell. `**` matches any folders, and a
//!   folder that matches is searched. A name that is not UTF-8 matches as it is displayed.
//! - An address in a store that the program adds ([`ConvertOptions::store`]): one of these files, a
//!   prefix, which is searched as a folder is, or a pattern.
//!
//! A folder, prefix or pattern may not have files of a table of another library (Delta, Iceberg,
//! Hudi, Lance, Zarr), whose log says which rows are valid. A file of one that is given by its own
//! name is read. Named pipes, sockets and devices with the name of a data file are refused there,
//! too: opening a pipe without a writer waits for ever.
//!
//! All inputs must have the same columns, in any order. The file has the order of the first input.
//! The error about columns that differ lists all differences. Inputs may differ a little:
//!
//! - In Parquet and Arrow files, a column of the type null becomes one of the type that another
//!   input has, and a nullable column may be missing. Its samples are null.
//! - Formats that do not declare types find them over all inputs, as within one file
//!   (`TypeOrigin`). New columns are appended in the order in which they come first.
//! - An input without samples adds none, whatever its columns, unless it is a tensilo file.
//!
//! # Folders as columns
//!
//! Folders called `key=value` become columns, as in Hive: every such folder in the path of a file,
//! as the caller writes it and below. A file that is named alone has the same columns as in its
//! folder.
//!
//! - A column is `i64` if all its values, in all inputs, are canonical decimal integers of 64 bits,
//!   and `utf8` otherwise.
//! - Keys and values are percent-decoded. `__HIVE_DEFAULT_PARTITION__` is a null.
//! - If the file has a column of this name itself, that is kept. It must have the folder's value in
//!   every row.
//! - These columns follow those of the file. They can be left out, rounded or appended like others.
//!
//! # Tensilo files as inputs
//!
//! A tensilo file is converted to write it with another profile or with some of its columns, or to
//! put several files one after the other. Columns of different files are never joined.
//!
//! - Types, shapes, nulls and metadata are kept. A shape that varies is not looked at again, unless
//!   [`ConvertOptions::shapes`] declares it.
//! - Values that were rounded stay as they are, and the file keeps what that cast did: of all
//!   inputs together, if there are several. Rounding them again is refused. They cannot be appended
//!   to a file, because that would need the original values.
//! - With equal [`WriterOptions::file_id`](crate::WriterOptions::file_id), the bytes are those that
//!   the original input gives with the same options. Otherwise the id depends on ids and contents
//!   of the inputs.
//! - All inputs must be tensilo files, or none.
//!
//! # Inputs that change
//!
//! A file is opened once, and every pass reads it through the same handle. If another file takes
//! its name meanwhile, nothing changes. If its size or modification time changes, the conversion
//! ends in an error, without an output. The clock that gives modification times has ticks. So if a
//! file was changed less than 20 ms before it is opened (2 s on file systems that count seconds),
//! the conversion waits until the tick is over.
//!
//! [`default_open_files`](crate::source::default_open_files) inputs stay open: half of the files
//! that the process may have open, and at most 256. Others are closed after their schema was read,
//! and opened again for each pass. If another file has taken the name of one of these before a
//! pass, that is an error.
//!
//! # Arrow types and tensilo types
//!
//! | Arrow | tensilo |
//! |---|---|
//! | integers, floats (f16 too), bool | a scalar column of that type |
//! | utf8, binary (large, view, dictionary-encoded too) | `utf8`, `bytes` |
//! | integers of 128 bits (polars) | `bytes`, as fixed-size binary of 16 |
//! | fixed-size binary | `bytes`, metadata `arrow.type` = `fixed_size_binary[16]` |
//! | date, time, timestamp, duration | `i64`, metadata `arrow.type` such as `timestamp[us, UTC]` |
//! | decimal of at most 9, at most 18 digits | `i32`, `i64`: the unscaled value |
//! | decimal of at most 38, of at most 76 digits | 16, 32 bytes (`u8`): the same, little-endian |
//! | month interval | `i32` |
//! | day-time interval | 2 `i32`: days, milliseconds |
//! | month-day-nano interval | 3 `i64`: months, days, nanoseconds |
//! | interval of Parquet, without an Arrow schema | the same |
//! | null | `bool`, of which all samples are null |
//! | INT96 timestamps of Parquet | `i64`, `timestamp[ns]`, or `timestamp[us]` beyond its range |
//! | lists of numbers, nested to any depth | a tensor, or a nested column (see below) |
//! | lists of text, binary or structs; maps | nested columns, one for each field of a struct |
//! | `arrow.fixed_shape_tensor`, `arrow.variable_shape_tensor` | a tensor of that shape |
//! | struct | its fields, named `struct.field`; a null struct makes all of them null, see below |
//! | dictionary- or run-end-encoded | the type of the decoded values, structs too |
//! | union | refused; skip the column |
//! | `UInt8`, or pairs of `Float32`, marked by an export | small and complex numbers, see below |
//!
//! Decimals, intervals and nulls have a metadata `arrow.type` too: `decimal128[10, 2]`,
//! `month_interval`, `day_time_interval`, `month_day_nano_interval`, `null`. The number of digits
//! is the declared precision, whatever the width in Arrow. If an element is several values, these
//! are one more dimension, the innermost. Decimals are stored in two's complement. A decimal that
//! its storage cannot hold is refused.
//!
//! Arrow lacks numbers of 4 to 8 bits and complex numbers. An export writes the former as `UInt8`
//! and the latter as `Float32` with an innermost dimension of 2. It marks the field: the metadata
//! `tensilo.dtype` name the type. An import of a marked field restores it, see [`mark_dtype`]. bf16
//! is exported as `Float32`.
//!
//! A first pass over the list columns finds their shapes, in bounded memory. A dimension is *fixed*
//! if it has the same extent in every sample that is not null, and *varying* otherwise, or if no
//! sample tells it. An empty list says nothing about the dimensions inside it.
//! [`ConvertOptions::shapes`] declares shapes instead. The metadata keep what was found, see
//! [`InferredShape`].
//!
//! Lists of different lengths side by side are no tensor, and neither are lists with a null inside.
//! If any sample of any input is such, outer dimensions of the column become lists (see
//! [`nested`](crate::nested)): as few as possible, so that every item is a tensor. A declared shape
//! of fewer dimensions than the type has does the same. `write_reader`, which has no first pass,
//! refuses such samples unless a shape of fewer dimensions is declared.
//!
//! No value changes, unless a cast or [`ConvertOptions::null_elements`] asks for it: values that do
//! not fit are refused. INT96 timestamps get one unit for all inputs, the first of these that holds
//! all of them exactly: that of an embedded Arrow schema, nanoseconds, microseconds.
//!
//! A column is nullable if its field or a struct around it is. A null list is a null sample, and an
//! empty list is an extent of 0. A column with null elements becomes lists of elements, unless
//! [`ConvertOptions::null_elements`] says what to store instead.
//!
//! # Structs
//!
//! The columns of a struct's fields have their path as metadata, so that an export joins them. A
//! struct that is null somewhere has a column of its own name, for its nulls:
//! [`ColumnSchema::is_struct_nulls`](crate::ColumnSchema::is_struct_nulls). It is before its first
//! field, and is written if any field of the struct is.
//!
//! - A first pass over the structs that may be null finds out whether one is, in any input. It
//!   ends as soon as it has found one of each. [`convert`] leaves it out if the statistics of a
//!   Parquet file, or the counts of nulls in an Arrow file, say that a field of the struct is null
//!   nowhere. If they turn out to be wrong, it begins again and makes that pass; [`convert_into`]
//!   ends with an error then. `write_reader`, which has no first pass, writes the column of every
//!   struct that may be null.
//! - A struct without fields always has its column.
//! - Where inputs differ in whether a column is a field of a struct (`a.b` may also be a name), it
//!   is none in the file.
//! - [`append()`] refuses a null struct if the file has no column for its nulls.
//!
//! # Metadata
//!
//! The metadata of a field become those of its column, and those of the first input's schema become
//! those of the file, with these exceptions:
//!
//! - `PARQUET:field_id` is left out: it describes the layout of the source.
//! - A field of a struct, or of the schema, that has the name `a` of another one before it gets the
//!   name `a#2`, and one of the schema without a name `#1`. So does a column `a.b` if a struct `a`
//!   has a field `b`. An export gives them their own names.
//! - Logical types of Parquet that Arrow has as extension types (JSON, UUID, VARIANT) become these.
//!   `ARROW:schema` has the others (ENUM, BSON, GEOMETRY, GEOGRAPHY), and an export to Parquet
//!   writes all of them again.
//! - `ARROW:schema` has the schema of an Arrow or Parquet source, as Parquet files have it: the
//!   base64 of an IPC message. It has the fields whose columns are in the file, with the first
//!   values of dictionaries in their metadata, and without the metadata of the schema. It is absent
//!   if the columns imply the same fields. Of more than 8 MiB, values of dictionaries are left out
//!   first, and then fields, the longest first.
//! - Of nested columns, the metadata of the outermost list come first, and then those of the
//!   members. The fields of a struct have their own only.
//! - Tensor extensions are left out: the shape says the same. Names of dimensions are kept under
//!   `arrow.dim_names`.
//! - Entries over a limit of the format are left out: the longest if all take more than 16 MiB. So
//!   are those that are not UTF-8. `import.dropped_metadata` lists their keys, see
//!   [`dropped_metadata`]; an entry of that name of the source is left out.
//! - `tensilo.unconfirmed` of a column names samples by their numbers. If a conversion changes
//!   these, because the input is not the first or there are several outputs, it names all samples.
//! - `import.shape` has the shape that was found. An export leaves it out.
//!
//! # Memory and threads
//!
//! A Parquet file is decoded about 2 MiB at a time, whatever the size of its row groups: as many
//! rows as the rows before them suggest. If the sizes of rows differ much, it can be 16 MiB. An
//! Arrow file or stream is decoded one record batch at a time, and a tensilo file about 2 MiB at a
//! time.
//!
//! With more than one thread ([`WriterOptions::threads`](crate::WriterOptions::threads)), as many
//! other threads, at most 8, read the row groups of a Parquet file while these encode. Other inputs
//! are read by one thread. Of each row group, batches of at most about 6 MiB, or one batch, wait
//! for the encoders. The row groups with such batches are at most one more than the threads that
//! read. The bytes written do not depend on the number of threads.
//!
//! # Malformed input
//!
//! A malformed input gives an error that names the file, and nothing appears at the destination.
//! Checksums of Parquet pages are checked where the file has them. The lengths that pages and
//! messages claim are compared with the bytes that are there. A Brotli page can nevertheless become
//! longer than it says. If a decoder panics, that becomes an error, after the process's panic hook
//! was called.

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
