//! The public functions that convert files to one file or several.
//!
//! All of them open a [`Conversion`]. The first pass does not read columns that have no nulls
//! according to the statistics of an input. If such a column has nulls anyway, the plan can be
//! wrong. In that case, functions that can replace their sink start over without the statistics.
//! Other functions fail, and the error advises the caller to ignore the statistics.

use crate::error::Advice;
use crate::import::input::{self, OpenInput};
use crate::import::options::{ConvertOptions, Progress, ShardFiles, ShardPlan};
use crate::import::source::RowSource;
use crate::write::{AtomicFile, Sink};
use crate::{Error, ErrorKind, Result, Summary};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Converts files to one file at `output`, and returns the number of samples.
///
/// The inputs are files, folders, patterns and pipes; see [the module](crate::import#inputs). They
/// are read in the given order.
///
/// The output appears when it is complete ([`AtomicFile`]). After an error, nothing has changed at
/// `output`. If an input changes while it is read, the conversion fails
/// ([`ErrorKind::BadInput`](crate::ErrorKind)). If `progress` returns `Break`, the conversion ends
/// with an error of kind [`Cancelled`](crate::ErrorKind::Cancelled). An output that is one of the
/// inputs, under any path, is refused even if it may be overwritten.
pub fn convert(
    inputs: &[PathBuf],
    output: &Path,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64> {
    let begin = &mut || AtomicFile::create(output, options.overwrite);
    convert_with(inputs, begin, options, progress).map(|summary: Summary<AtomicFile>| summary.sample_count)
}

/// Converts files like [`convert`], but to a sink that `begin` creates, such as a file or an
/// object.
///
/// `begin` is called before the inputs are opened. If an input has nulls that contradict its
/// statistics, `begin` is called a second time: the conversion starts over with another sink, and
/// the first sink is dropped unfinished. An error of `begin` is returned unchanged.
/// [`ConvertOptions::overwrite`] has no effect.
pub fn convert_with<K: Sink, E: From<Error>>(
    inputs: &[PathBuf],
    begin: &mut dyn FnMut() -> std::result::Result<K, E>,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::result::Result<Summary<K>, E> {
    let sink = begin()?;
    let conversion = Conversion::open(inputs, options)?;
    match conversion.run(sink, progress) {
        Err(error) if conversion.may_be_due_to_statistics(&error) => {
            conversion.ignore_statistics();
            Ok(conversion.run(begin()?, progress)?)
        }
        converted => Ok(converted?),
    }
}

/// Converts files like [`convert`], but to any sink, such as a pipe or memory.
/// [`ConvertOptions::overwrite`] has no effect. An input with nulls that contradict its statistics
/// is refused, unless [`ConvertOptions::ignore_statistics`] is set. [`convert_with`] starts over
/// instead of refusing such an input.
pub fn convert_into<K: Sink>(
    inputs: &[PathBuf],
    sink: K,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let conversion = Conversion::open(inputs, options)?;
    // the sink cannot be replaced
    conversion.run(sink, progress).map_err(|error| conversion.with_statistics_advice(error))
}

/// Converts files like [`convert`], but to several consecutive files.
///
/// Each file has at most `shard_bytes` raw bytes, or only one sample. Raw bytes are the bytes of
/// the values after casts and before encoding. The boundaries depend on nothing else, so the same
/// inputs produce the same files for any number of threads. All files have the same columns. If the
/// inputs have no samples, no file is written.
///
/// An input that is already rounded is refused, because its cast facts describe all values
/// together. [`ConvertOptions::overwrite`] has no effect.
pub fn convert_shards<F: ShardFiles>(
    inputs: &[PathBuf],
    files: &mut F,
    shard_bytes: u64,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::result::Result<(), F::Error> {
    let conversion = Conversion::open(inputs, options)?;
    let complete = |error| conversion.with_statistics_advice(error);
    let check = |sink: &F::Sink| input::check_output(&conversion.inputs, sink.identity(), sink.path());
    let sources = conversion.sources();
    super::run_shards(&sources, files, &check, shard_bytes, &conversion.options, progress, &complete)
}

/// Plans the conversion of [`convert_shards`], so that other processes or machines can write its
/// files, each with [`convert_rows`](crate::import::convert_rows). Writes nothing.
///
/// The same inputs and options produce the same plan. The planned files equal the files that
/// [`convert_shards`] writes, byte for byte.
///
/// Cost: the first pass over columns whose type does not describe them completely, and a second
/// pass over columns whose samples differ in length. If all columns are scalars, or tensors whose
/// shape is declared or stated by their type, only the metadata of inputs is read.
pub fn plan_shards(
    inputs: &[PathBuf],
    shard_bytes: u64,
    options: &ConvertOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    let conversion = Conversion::open(inputs, options)?;
    super::plan_shards(&input::with_columns(&conversion.inputs), shard_bytes, &conversion.options, progress)
}

/// The open inputs of a conversion, and its options including the origin.
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
        if conversion.options.ignore_statistics {
            conversion.ignore_statistics();
        }
        Ok(conversion)
    }

    fn sources(&self) -> Vec<&dyn RowSource> {
        input::with_columns(&self.inputs).into_iter().map(OpenInput::source).collect()
    }

    fn ignore_statistics(&self) {
        self.inputs.iter().for_each(|input| input.source().ignore_statistics());
    }

    fn run<K: Sink>(&self, sink: K, progress: &mut dyn FnMut(Progress) -> ControlFlow<()>) -> Result<Summary<K>> {
        input::check_output(&self.inputs, sink.identity(), sink.path())?;
        super::run(&self.sources(), sink, &self.options, progress)
    }

    /// Returns whether nulls that contradict the statistics of an input can have caused an error.
    fn may_be_due_to_statistics(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::BadInput && self.inputs.iter().any(|input| input.source().contradicts_statistics())
    }

    /// Adds the advice to ignore statistics, if nulls that contradict them can have caused the
    /// error.
    fn with_statistics_advice(&self, error: Error) -> Error {
        if self.may_be_due_to_statistics(&error) { error.with_advice([Advice::IgnoreStatistics]) } else { error }
    }
}
