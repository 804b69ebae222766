//! Conversions of files: to one file, to several, or to a part of one.

use crate::error::Advice;
use crate::import::input::{self, OpenInput};
use crate::import::options::{AppendOptions, ConvertOptions, PlannedInput, Progress, ShardFiles, ShardPlan};
use crate::import::source::RowSource;
use crate::write::{AtomicFile, Sink};
use crate::{Error, ErrorKind, Result, Schema, Summary};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// Converts files to one file at `output`, and returns the number of samples.
///
/// The inputs are files, folders, patterns and pipes, see [the module](crate::import#inputs); they
/// are read in the order given.
///
/// The output appears when it is complete ([`AtomicFile`]); after an error nothing has changed at
/// `output`. An input that is changed while it is read is an error
/// ([`ErrorKind::BadInput`](crate::ErrorKind)). If `progress` breaks, the work ends with an error
/// of kind [`Cancelled`](crate::ErrorKind::Cancelled). An output that is one of the inputs, through
/// whatever path, is refused, also if it may be overwritten.
pub fn convert(
    inputs: &[PathBuf],
    output: &Path,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64> {
    let begin = &mut || AtomicFile::create(output, options.overwrite);
    convert_with(inputs, begin, options, progress).map(|summary: Summary<AtomicFile>| summary.sample_count)
}

/// Converts files as [`convert`] does, to a sink that `begin` makes, such as a file or an object.
///
/// `begin` is called before the inputs are opened, and once more if an input has nulls that its
/// statistics deny: then the conversion begins again with another sink, and the first one is
/// dropped unfinished. An error of `begin` is returned unchanged. [`ConvertOptions::overwrite`] has
/// no effect.
pub fn convert_with<K: Sink, E: From<Error>>(
    inputs: &[PathBuf],
    begin: &mut dyn FnMut() -> std::result::Result<K, E>,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::result::Result<Summary<K>, E> {
    let sink = begin()?;
    let conversion = Conversion::open(inputs, options)?;
    match conversion.run(sink, progress) {
        Err(error) if conversion.denies_nulls(&error) => {
            conversion.distrust();
            Ok(conversion.run(begin()?, progress)?)
        }
        converted => Ok(converted?),
    }
}

/// Converts files as [`convert`] does, to any sink, such as a pipe or memory.
/// [`ConvertOptions::overwrite`] has no effect. An input with nulls that its statistics deny is
/// refused, unless [`ConvertOptions::distrust_statistics`] is set; [`convert_with`] begins again.
pub fn convert_into<K: Sink>(
    inputs: &[PathBuf],
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let conversion = Conversion::open(inputs, options)?;
    // the sink cannot be begun again
    conversion.run(sink, progress).map_err(|error| conversion.advised(error))
}

/// Converts files as [`convert`] does, to several files one after the other.
///
/// Each has at most `shard_bytes` raw bytes, or one sample: those of the values as they are stored,
/// after casts and before encoding. The boundaries depend on nothing else, so that the same inputs
/// give the same files for any number of threads. All have the same columns. No input gives no
/// file.
///
/// An input that was rounded when it was written is refused: its cast facts are those of all values
/// together. [`ConvertOptions::overwrite`] has no effect.
pub fn convert_shards<F: ShardFiles>(
    inputs: &[PathBuf],
    files: &mut F,
    shard_bytes: u64,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::result::Result<(), F::Error> {
    let conversion = Conversion::open(inputs, options)?;
    let complete = |error| conversion.advised(error);
    let check = |sink: &F::Sink| input::check_output(&conversion.inputs, sink.identity(), sink.path());
    let sources = conversion.sources();
    super::run_shards(&sources, (files, &check), shard_bytes, &conversion.options, progress, &complete)
}

/// Plans the conversion of [`convert_shards`], so that other processes, or other machines, can
/// write its files: each by [`convert_rows`]. Writes nothing.
///
/// The same inputs and options give the same plan, and its files are those of [`convert_shards`]
/// byte for byte.
///
/// Cost: the first pass over columns whose type does not tell all, and a second one over columns
/// whose samples differ in length. If all are scalars, or tensors whose shape is declared or stated
/// by their type, only the metadata of inputs are read.
pub fn plan_shards(
    inputs: &[PathBuf],
    shard_bytes: u64,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    let conversion = Conversion::open(inputs, options)?;
    super::plan_shards(&input::with_columns(&conversion.inputs), shard_bytes, &conversion.options, progress)
}

/// Converts some rows of planned inputs to one file.
///
/// `rows` are counted from the first row of the first input; only inputs that have some of them are
/// opened. The file has the columns of `schema`; errors name `table` as its path. With the schema
/// and the rows of a [`ShardPlan`], and its file id in the options of the writer
/// ([`WriterOptions::file_id`](crate::WriterOptions::file_id)), the file is that of the plan.
/// Columns that the schema does not have are refused unless [`AppendOptions::skip_others`] is set.
///
/// Fails if an input is not the one that was planned.
///
/// Cost: reading these rows. Row groups of Parquet files before them are not read; of Arrow and
/// tensilo files the rows before them are read, and dropped.
pub fn convert_rows<K: Sink>(
    inputs: &[PlannedInput],
    rows: Range<u64>,
    schema: &Schema,
    table: &Path,
    sink: K,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    super::convert_rows(inputs, &rows, schema, table, sink, options, progress)
}

/// The open inputs of a conversion, and its options with their origin.
struct Conversion {
    inputs: Vec<OpenInput>,
    options: ConvertOptions,
}

impl Conversion {
    fn open(inputs: &[PathBuf], options: &ConvertOptions) -> Result<Self> {
        let mut options = options.clone();
        let inputs = input::open_all(inputs, &options.input, options.input.writer.thread_count())?;
        options.input.writer = options.input.writer.origin(input::origin(&inputs));
        let conversion = Self { inputs, options };
        if conversion.options.distrust_statistics {
            conversion.distrust();
        }
        Ok(conversion)
    }

    fn sources(&self) -> Vec<&dyn RowSource> {
        input::with_columns(&self.inputs).into_iter().map(OpenInput::source).collect()
    }

    fn distrust(&self) {
        self.inputs.iter().for_each(|input| input.source().distrust());
    }

    fn run<K: Sink>(&self, sink: K, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Summary<K>> {
        input::check_output(&self.inputs, sink.identity(), sink.path())?;
        super::run(&self.sources(), sink, &self.options, progress)
    }

    /// Returns whether an error may be due to nulls that the statistics of an input deny.
    fn denies_nulls(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::BadInput && self.inputs.iter().any(|input| input.source().is_belied())
    }

    /// Returns an error with the advice to distrust statistics, if nulls that they deny may be its
    /// cause.
    fn advised(&self, error: Error) -> Error {
        if self.denies_nulls(&error) { error.with_advice([Advice::DistrustStatistics]) } else { error }
    }
}

/// Appends files to the tensilo file `file`, and returns the number of samples that were appended.
///
/// Inputs are those of [`convert`]. Each has the columns of the file, in any order: the same names,
/// types and shapes. The values of a column that was rounded when the file was made are rounded
/// again, from the same type. An input may declare that a column could have nulls where the file's
/// has none, as long as there is no null. A nullable column may be missing, or have the type null;
/// formats that do not declare types get those of the file, see [the module](crate::import#inputs).
/// Of the metadata of the inputs, only the Arrow type of a column is compared. The error lists all
/// differences.
///
/// The samples appear together, when all are written; the file is finished then. After an error,
/// also of kind [`Cancelled`](crate::ErrorKind::Cancelled) because `progress` breaks, the file is
/// as it was, to the last byte. An input that is the file itself is refused. After a kill, the
/// bytes that were written follow the last commit, where readers ignore them, and the error of the
/// next [`append()`] says what to do. [`Writer::append`](crate::Writer::append) describes this, and
/// what else is refused.
pub fn append(
    inputs: &[PathBuf],
    file: &Path,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64> {
    super::append(inputs, file, options, progress)
}

/// Converts inputs to several files, one after the other, of the columns of a table that has more
/// files.
///
/// The table has the columns of `schema`, and `table` as its path in errors. Inputs are treated as
/// by [`append()`], and divided among files as by [`convert_shards`]. The files have the schema of
/// the table; each has the facts of its own casts.
pub fn append_shards<F: ShardFiles>(
    inputs: &[PathBuf],
    schema: &Schema,
    table: &Path,
    files: &mut F,
    shard_bytes: u64,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::result::Result<(), F::Error> {
    super::append_shards(inputs, schema, table, files, shard_bytes, options, progress)
}

/// Plans the conversion of [`append_shards`], as [`plan_shards`] does that of [`convert_shards`].
/// The schema of the plan is that of the table.
pub fn plan_appended_shards(
    inputs: &[PathBuf],
    schema: &Schema,
    table: &Path,
    shard_bytes: u64,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    super::plan_append(inputs, schema, table, shard_bytes, options, progress)
}
