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
//! # Inputs
//!
//! An input is one of these:
//!
//! - A Parquet file (feature `parquet`), an Arrow IPC file or stream (feature `arrow`), or a
//!   tensilo file, recognized by its first bytes.
//! - A file of a format that the program adds (`ConvertOptions::formats`, feature `arrow`).
//! - A pipe that carries any of these, or standard input, which is named `-`
//!   ([`ConvertOptions::dash_is_stdin`]). The data is first copied to an unnamed temporary file in
//!   [`std::env::temp_dir`], which must have enough space.
//! - A folder. It is searched recursively for all `*.parquet` files, or all `*.arrow` and
//!   `*.feather` files. A mix of both is refused. If it has neither, all `*.tsl` files are read.
//!   The order is the byte order of paths, compared component by component. Names that start with
//!   `.` or `_` are skipped, except for folders named `key=value`. Each folder is searched once,
//!   even if several symbolic links lead to it.
//! - A folder saved by the Python library `datasets`. Its shards are read in the order of
//!   `state.json`.
//! - A pattern such as `shards/*/part-?.parquet`, as in a shell. `**` matches any folders, and a
//!   folder that matches is searched. A name that is not UTF-8 is compared in its displayed form.
//! - An address in a store that the program adds ([`ConvertOptions::store`]). It can be the address
//!   of one of these files, a prefix (which is searched like a folder), or a pattern.
//!
//! A folder, prefix or pattern must not lead to a table of another library (Delta, Iceberg, Hudi,
//! Lance, Zarr), because only the table's log says which rows are valid. A single file of such a
//! table can be named explicitly. A named pipe, socket or device with the name of a data file is
//! also refused if it is found through a folder or a pattern, because opening a pipe without a
//! writer blocks forever.
//!
//! All inputs must have the same columns, in any order. The columns of the output have the order of
//! the first input. If columns differ, the error lists all differences. Small differences are
//! allowed:
//!
//! - In Parquet and Arrow files, a column of type null gets the type that it has in another input,
//!   and a nullable column may be missing. The samples of a missing column are null.
//! - For formats that do not declare types, types are inferred from all inputs together, as if they
//!   were one file (`TypeOrigin`). New columns are appended in order of first appearance.
//! - The columns of an input without samples do not matter, unless it is a tensilo file.
//!
//! # Folders as columns
//!
//! Folders named `key=value` become columns, as in Hive. This applies to every such folder in the
//! path of a file, both in the path that the caller gives and below it. So a file has the same
//! columns whether the caller gives the path of the file or the path of its folder.
//!
//! - A column is `i64` if all its values, in all inputs, are canonical decimal integers of 64 bits,
//!   and `utf8` otherwise.
//! - Keys and values are percent-decoded. `__HIVE_DEFAULT_PARTITION__` is a null.
//! - If the file itself has a column of the same name, that column is used. It must have the
//!   folder's value in every row.
//! - Folder columns follow the columns of the file. They can be skipped, rounded or appended like
//!   any other columns.
//!
//! # Tensilo files as inputs
//!
//! A tensilo file is converted to change its profile, to select columns, or to concatenate several
//! files. The samples of one file follow the samples of another; columns of different files are
//! never joined side by side.
//!
//! - Types, shapes, nulls and metadata are preserved. A varying shape is not examined again, unless
//!   [`ConvertOptions::shapes`] declares another shape.
//! - Rounded values are copied unchanged, together with the recorded rounding errors. If there are
//!   several inputs, these errors are combined. Rounding the values again is refused. Rounded
//!   values cannot be appended to a file, because that would require the original values.
//! - With the same [`WriterOptions::file_id`](crate::WriterOptions::file_id), the output has the
//!   same bytes as a conversion of the original input with the same options. By default, the id
//!   depends on the ids and contents of the inputs.
//! - Either all inputs are tensilo files, or none is.
//!
//! # Inputs that change
//!
//! A file is opened once, and every pass reads it through the same handle. Replacing the file at
//! its path in the meantime has no effect. If its size or modification time changes, the conversion
//! fails and leaves no output. Modification times have the resolution of a clock tick. So if a file
//! was changed less than 20 ms before it is opened (2 s on file systems that store only whole
//! seconds), the conversion waits until the tick is over.
//!
//! At most 256 inputs stay open, and fewer if the process's limit on open files is below 512; see
//! [`default_open_files`](crate::source::default_open_files). All further inputs are closed after
//! their schema has been read, and reopened for each pass. If a closed input is replaced before a
//! pass, the conversion fails.
//!
//! # Arrow types and tensilo types
//!
//! | Arrow | tensilo |
//! |---|---|
//! | integers, floats (including f16), bool | a scalar column of that type |
//! | utf8, binary (including large, view and dictionary-encoded) | `utf8`, `bytes` |
//! | integers of 128 bits (polars) | `bytes`, like fixed-size binary of 16 bytes |
//! | fixed-size binary | `bytes`, metadata `arrow.type` = `fixed_size_binary[16]` |
//! | date, time, timestamp, duration | `i64`, metadata `arrow.type` such as `timestamp[us, UTC]` |
//! | decimal of at most 9 or 18 digits | `i32` or `i64`: the unscaled value |
//! | decimal of at most 38 or 76 digits | 16 or 32 `u8`: the unscaled value, little-endian |
//! | month interval | `i32` |
//! | day-time interval | 2 `i32`: days, milliseconds |
//! | month-day-nano interval | 3 `i64`: months, days, nanoseconds |
//! | interval of Parquet, without an Arrow schema | 3 `i64`: months, days, nanoseconds |
//! | null | `bool`, all samples null |
//! | INT96 timestamps of Parquet | `i64`: `timestamp[ns]`, or `timestamp[us]` for a wider range |
//! | lists of numbers, nested to any depth | a tensor, or a nested column (see below) |
//! | lists of text, binary or structs; maps | nested columns, one for each field of a struct |
//! | `arrow.fixed_shape_tensor`, `arrow.variable_shape_tensor` | a tensor of that shape |
//! | struct | its fields, named `struct.field`; if it is null, so are all its fields (see below) |
//! | dictionary- or run-end-encoded | the type of the decoded values, including structs |
//! | union | refused; skip the column |
//! | `UInt8`, or pairs of `Float32`, marked by an export | small and complex numbers (see below) |
//!
//! Decimals, intervals and nulls also have the metadata `arrow.type`: `decimal128[10, 2]`,
//! `month_interval`, `day_time_interval`, `month_day_nano_interval`, `null`. The number of digits
//! is the declared precision, regardless of the width in Arrow. If an element consists of several
//! values, they form an additional, innermost dimension. Decimals are stored in two's complement. A
//! decimal that does not fit its storage is refused.
//!
//! Arrow has no type for [small](crate::DType::is_small) numbers (of 4 to 8 bits) or for complex
//! numbers. An export writes small numbers as `UInt8`, and complex numbers as `Float32` with an
//! innermost dimension of 2. It marks the field with the metadata `tensilo.dtype`, which names the
//! type. An import restores the type of a marked field; see [`mark_dtype`]. bf16 is exported as
//! `Float32`.
//!
//! The first pass finds the shapes of list columns. A dimension is *fixed* if it has the same
//! extent in every sample that is not null. Otherwise, or if no sample determines the extent, it is
//! *varying*. An empty list says nothing about the dimensions inside it. If
//! [`ConvertOptions::shapes`] declares the shape of a column, no shape is inferred. The metadata
//! records the shapes that were found; see [`InferredShape`].
//!
//! Sibling lists of different lengths, and lists with a null inside, do not form a tensor. If any
//! sample of any input has such lists, outer dimensions of the column become levels of lists (see
//! [`nested`](crate::nested)): as few as possible, but enough to make every item a tensor.
//! Declaring a shape with fewer dimensions than the type has the same effect. `write_reader`, which
//! has no first pass, refuses such samples unless a shape with fewer dimensions is declared.
//!
//! No value changes, unless a cast or [`ConvertOptions::null_elements`] requests it: values that do
//! not fit are refused. INT96 timestamps get the same unit in all inputs: the unit of an embedded
//! Arrow schema, nanoseconds, or microseconds. The first of these units that represents every value
//! exactly is used.
//!
//! A column is nullable if its field or an enclosing struct is nullable. A null list is a null
//! sample, and an empty list is an extent of 0. A column with null elements becomes lists of
//! elements, unless [`ConvertOptions::null_elements`] says what to store instead.
//!
//! # Structs
//!
//! Every field of a struct becomes a column. The metadata of the column has the path of the field,
//! and an export uses the paths to rebuild the struct. If any value of a struct is null, an
//! additional column with the name of the struct stores its nulls; see
//! [`ColumnSchema::is_struct_nulls`](crate::ColumnSchema::is_struct_nulls). This column precedes
//! the first field of the struct, and is written if any field of the struct is written.
//!
//! - A first pass over the nullable structs finds out which of them have nulls in any input. It
//!   stops as soon as it has found a null in each struct. [`convert`] skips this pass if the
//!   statistics of a Parquet file, or the null counts of an Arrow file, rule out null structs. If
//!   the statistics turn out to be wrong, [`convert`] starts over and makes that pass;
//!   [`convert_into`] fails instead. `write_reader`, which has no first pass, writes the column for
//!   every nullable struct.
//! - A struct without fields always has this column.
//! - Inputs can differ in whether a column is a field of a struct, because `a.b` can also be a
//!   plain name. In that case, the file has a plain column.
//! - [`append()`] refuses a null struct if the file has no column for its nulls.
//!
//! # Metadata
//!
//! The metadata of a field becomes the metadata of its column, and the metadata of the first
//! input's schema becomes the metadata of the file, with these exceptions:
//!
//! - `PARQUET:field_id` is omitted, because it describes the layout of the source.
//! - If fields of a struct or of the schema share the name `a`, later ones are renamed `a#2` and so
//!   on. A top-level field without a name becomes `#1`. A column `a.b` is renamed in the same way
//!   if a struct `a` has a field `b`. An export restores the original names.
//! - A logical type of Parquet for which Arrow has an extension type (JSON, UUID, VARIANT) becomes
//!   that extension type. `ARROW:schema` holds the other logical types (ENUM, BSON, GEOMETRY,
//!   GEOGRAPHY). An export to Parquet writes all logical types again.
//! - `ARROW:schema` holds the schema of an Arrow or Parquet source in the form that Parquet files
//!   use: the base64 of an IPC message. It has only the fields whose columns are in the file, with
//!   the dictionary values of the first batch in their metadata, and without the metadata of the
//!   schema. It is absent if the columns imply the same fields. If it exceeds 8 MiB, dictionary
//!   values are dropped first, and then fields, longest first.
//! - In a nested column, the metadata of the outermost list takes precedence over the metadata of
//!   the members. The fields of a struct have only their own metadata.
//! - The metadata of tensor extension types is omitted, because the shape of the column contains
//!   the same information. Dimension names are stored under `arrow.dim_names`.
//! - Entries that exceed a limit of the format are omitted. If all entries together exceed 16 MiB,
//!   the longest are omitted first. Entries that are not UTF-8 are also omitted. The entry
//!   `import.dropped_metadata` lists the omitted keys; see [`dropped_metadata`]. An entry of that
//!   name in the source is also omitted.
//! - The entry `tensilo.unconfirmed` of a column lists samples by number. A conversion renumbers
//!   samples if their input is not the first or if there are several outputs. In that case, the
//!   entry covers all samples.
//! - `import.shape` records the shape that was found. An export omits it.
//!
//! # Memory and threads
//!
//! A Parquet file is decoded about 2 MiB at a time, regardless of the size of its row groups. The
//! corresponding number of rows is estimated from previous rows. If row sizes vary widely, a batch
//! can reach 16 MiB. An Arrow file or stream is decoded one record batch at a time, and a tensilo
//! file about 2 MiB at a time.
//!
//! If a conversion has more than one thread
//! ([`WriterOptions::threads`](crate::WriterOptions::threads)), equally many additional threads,
//! but at most 8, read the row groups of a Parquet file while the other threads encode. All
//! other inputs are read by one thread. Per row group, at most about 6 MiB of batches, or one
//! larger batch, wait for the encoders. The number of row groups with waiting batches exceeds the
//! number of reading threads by at most one. The bytes written do not depend on the number of
//! threads.
//!
//! # Malformed input
//!
//! A malformed input causes an error that names the file, and nothing appears at the destination.
//! If a Parquet file has checksums of its pages, they are verified. The lengths that pages and
//! messages declare are checked against the size of the file. A Brotli page can nevertheless expand
//! beyond its declared length. If a decoder panics, the process's panic hook runs, and the panic
//! becomes an error.

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
