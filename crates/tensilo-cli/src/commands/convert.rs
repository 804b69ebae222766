//! `tensilo convert`: converts files of other formats to a tensilo file, or to a dataset of many.
//!
//! The library reads, infers shapes and encodes; this module maps the options, shows progress and
//! prints a summary of columns, inferred shapes and casts. Surprises are told as notes: samples
//! whose shape differs from all others, and columns whose elements are not their values.
//!
//! A file or an object can be begun again if an input turns out to differ from what was inferred,
//! because nothing of it is visible before it is complete. A stream cannot.

use super::dataset::{DatasetFacts, set_time};
use crate::failure::{Failure, Outcome, note_columns};
use crate::options::{self, EncodingArgs, InputArgs, Names, check_inputs, store};
use crate::output::{Data, Destination, Inputs, Output, shown};
use crate::terminal::{Progress, Unit, show_import, warning};
use crate::text::{self, Table, column_cells, write_casts, write_inferred_shapes};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use tensilo::facts::CastFacts;
use tensilo::import::{self, ConvertOptions};
use tensilo::{DType, Schema, Shape, Summary};
use tensilo_data::Dataset;

const CONVERT: &str = "\
Examples:
  tensilo convert train.parquet -o train.tsl
      lossless
  tensilo convert 'shards/*.parquet' -o train.tsl --bf16
      floats rounded to bf16; the summary lists the errors
  tensilo convert a.arrow b.arrow -o both.tsl --columns id,mel --cast mel=f16
      two columns of two files, one of them rounded
  zstdcat train.arrows.zst | tensilo convert - -o train.tsl
      an Arrow stream, or a file of any format, from the standard input
  tensilo convert train.parquet -o train.tsl --profile raw --align 4096
      uncompressed: samples are read without decoding, also with O_DIRECT
  tensilo convert train.tsl -o small.tsl --profile small --columns id,mel
      a tensilo file once more: another profile, selected columns
  tensilo convert 's3://b/raw/*.parquet' -o s3://b/train --shard-bytes 1GiB
      from a bucket to a dataset in it: a folder of files and their manifest
  tensilo convert 'layers/*.safetensors' -o layers.tsl --file-is-sample
      each file is one sample, with a column for each tensor
  tensilo convert day-1.parquet -o all.tsl --shape 'mel=*,80' --rename img=image
      mel varies in its first dimension, even if day-1 has only one length

Columns: a field of a struct becomes the column struct.field. The name of the
struct selects all its fields. A second column with the same name becomes
NAME#2. --rename renames a column; all other options use the old name.

Formats: Parquet, Arrow IPC, tensilo, and these, recognised by their content:
.npy, .npz      a column for each array: the first axis counts samples
.safetensors    a column for each tensor
.tar, .tar.gz   WebDataset: a column for each suffix, and __key__
.tfrecord       tf.train.Example: a column for each feature
.jsonl          a column for each member; .gz too
.idx            Megatron: a column, tokens; the .bin file is beside it

Shapes: a dimension of a list is fixed if all samples have the same extent,
unless --shape declares it. The summary shows how many samples that was
inferred from. The shapes of a file never change: if later inputs may have
other lengths, declare *. A sample that contradicts --shape is refused.

Inputs must have the same columns, in any order. A nullable column may be
missing. They are read in the order given; files of a folder or glob in the
order of their paths. In a folder, all *.parquet files are read; if there are
none, *.arrow and *.feather files; if there are none, *.tsl files. Folders
called key=value become columns; --skip key leaves such a column out. The same
inputs and options give the same bytes.

With --shard-bytes, raw bytes are the values after casts and before encoding.
SOURCE_DATE_EPOCH sets the time that the manifest records.

The output appears when it is complete. If it is a symbolic link, the target
is replaced and the link stays. Named pipes, devices and open descriptors
(-, /dev/stdout, /dev/fd/3) are written into. If the data goes to the standard
output, the summary goes to the standard error.";

/// The arguments of `tensilo convert`.
#[derive(Args, Debug)]
#[command(after_help = CONVERT)]
pub(crate) struct ConvertArgs {
    /// Files of the formats below, folders or quoted globs of them; - is the standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The file to write; - is the standard output
    #[arg(short, long, value_name = "OUT.tsl")]
    output: PathBuf,
    /// Write a dataset: a folder OUT of files of at most this many raw bytes each, such as 1GiB,
    /// with a manifest
    #[arg(long, value_name = "N", value_parser = options::shard_bytes)]
    shard_bytes: Option<u64>,
    /// Round all float columns to bf16, except those that --cast names
    #[arg(long)]
    pub(super) bf16: bool,
    /// Give the numbers or decimals of a column another type, such as bf16, f32, f64 or i64;
    /// repeatable
    #[arg(long, value_name = "NAME=TYPE", value_parser = options::cast)]
    pub(super) cast: Vec<(String, DType)>,
    /// Only these columns, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    columns: Vec<Names>,
    /// Leave a column out; repeatable
    #[arg(long, value_name = "NAME")]
    pub(super) skip: Vec<String>,
    /// Give a column another name; repeatable. A field stays in its struct: a.b=a.c
    #[arg(long, value_name = "NAME=NEW", value_parser = options::rename)]
    rename: Vec<(String, String)>,
    /// The shape of a list column, with * for an extent that varies; repeatable [default: inferred]
    #[arg(long, value_name = "NAME=*,80", value_parser = options::shape)]
    shape: Vec<(String, Shape)>,
    /// Every chunk begins at a multiple of this; 4096 allows O_DIRECT
    #[arg(long, value_name = "BYTES", value_parser = options::alignments(), default_value = "64")]
    pub(super) align: u32,
    /// Look for nulls also where the statistics of an input deny them, which takes a second pass
    #[arg(long)]
    ignore_statistics: bool,
    /// Replace OUT.tsl if it exists; write binary data to a terminal
    #[arg(short, long)]
    pub(super) force: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    pub(super) encoding: EncodingArgs,
}

/// Converts the inputs, and prints a summary.
pub(crate) fn run(args: &ConvertArgs, quiet: bool) -> Outcome {
    check_inputs(&args.inputs)?;
    check_output(args)?;
    if let Some(shard_bytes) = args.shard_bytes {
        return dataset(args, shard_bytes, quiet);
    }
    let destination = Destination::new(&args.output, args.force, Data::Binary, Inputs::Files(&args.inputs))?;
    if !quiet {
        destination.warn_of_leftover_files();
    }
    let written = convert(args, &destination, quiet)?;
    if quiet {
        return Ok(());
    }
    let mut output = written.sink.summary();
    let columns: Vec<_> =
        written.columns.iter().map(|facts| (facts.raw_bytes, facts.stored_bytes, facts.cast)).collect();
    let raw = write_columns(&written.schema, &columns, &mut output)?;
    writeln!(output, "{}", sizes(args, written.sample_count, raw, written.file_bytes, "the file"))?;
    output.flush()?;
    print_notes(&written.schema);
    Ok(())
}

/// Refuses an output whose name does not fit what would be written there.
fn check_output(args: &ConvertArgs) -> Outcome {
    let path = shown(&args.output);
    let refused = |message: String| Err(Failure::Usage(message));
    let ends_in_slash = args.output.as_os_str().as_encoded_bytes().ends_with(b"/");
    match args.shard_bytes {
        None if args.output.is_dir() => refused(format!(
            "{path}: a folder is there; write to another path, or add to the dataset in it with \"tensilo append\""
        )),
        None if ends_in_slash => refused(format!(
            "{path}: the name is that of a folder; --shard-bytes 1GiB writes a dataset there, and a file has a name \
             without a slash"
        )),
        Some(_) if args.output.extension().is_some_and(|extension| extension == "tsl") && !args.output.is_dir() => {
            refused(format!("{path}: with --shard-bytes the output is a folder; leave .tsl out, or --shard-bytes"))
        }
        _ => Ok(()),
    }
}

fn convert(args: &ConvertArgs, destination: &Destination, quiet: bool) -> Outcome<Summary<Output>> {
    let progress = Progress::new(Unit::Samples, quiet);
    let (options, mut show) = (options(args, quiet), |at| show_import(&progress, "converting", at));
    if destination.is_restartable() {
        return import::convert_with(&args.inputs, &mut || destination.create(), &options, &mut show);
    }
    Ok(import::convert_into(&args.inputs, destination.create()?, &options, &mut show)?)
}

/// Converts the inputs to a dataset, and prints a summary.
fn dataset(args: &ConvertArgs, shard_bytes: u64, quiet: bool) -> Outcome {
    let mut changes = Dataset::create(&args.output)?;
    set_time(&mut changes)?;
    let progress = Progress::new(Unit::Samples, quiet);
    changes
        .import(&args.inputs, shard_bytes, &options(args, quiet), &mut |at| show_import(&progress, "converting", at))?;
    drop(progress);
    if changes.sample_count() == 0 {
        return Err(Failure::Usage("the inputs have no samples to make a dataset of".to_owned()));
    }
    let dataset = changes.publish("convert")?;
    if quiet {
        return Ok(());
    }
    let mut output = Output::stdout();
    let facts = DatasetFacts::of(&dataset, true)?;
    let columns: Vec<_> = facts.columns.iter().map(|sums| (sums.raw_bytes, sums.stored_bytes, sums.cast)).collect();
    let (files, version) = (text::count(facts.size.files, "file"), dataset.version());
    let (samples, bytes) = (dataset.sample_count(), facts.size.bytes);
    let raw = write_columns(dataset.schema(), &columns, &mut output)?;
    writeln!(output, "{}; version {version}", sizes(args, samples, raw, bytes, &files))?;
    output.finish()?;
    print_notes(dataset.schema());
    Ok(())
}

/// Tells which metadata the file lacks, and what is surprising in its columns.
fn print_notes(schema: &Schema) {
    let dropped: Vec<String> =
        import::dropped_metadata(schema).iter().map(|key| key.escape_debug().to_string()).collect();
    if !dropped.is_empty() {
        warning(&format!("some metadata was left out because the format cannot keep it: {}", dropped.join(", ")));
    }
    note_columns(schema);
}

fn options(args: &ConvertArgs, quiet: bool) -> ConvertOptions {
    let options = ConvertOptions::new()
        .bf16(args.bf16)
        .casts(args.cast.clone())
        .skip(args.skip.clone())
        .renames(args.rename.clone())
        .shapes(args.shape.clone())
        .null_elements(args.input.null_elements.into())
        .ignore_statistics(args.ignore_statistics)
        .writer(args.encoding.writer_options().alignment(args.align))
        .dash_is_stdin(true)
        .formats(args.input.formats())
        .store(store(quiet));
    match Names::all(&args.columns) {
        Some(columns) => options.columns(columns),
        None => options,
    }
}

/// Writes a table of the columns with their raw and stored bytes, the shapes found, the casts, and
/// an empty line. Returns the raw bytes of all columns.
fn write_columns(schema: &Schema, columns: &[(u64, u64, Option<CastFacts>)], output: &mut impl Write) -> Outcome<u64> {
    let mut table = Table::new(&["column", "type", "shape", ">raw bytes", ">stored bytes", ">ratio"]);
    for (column, &(raw, stored, _)) in schema.columns.iter().zip(columns) {
        table.row(column_cells(column, raw, stored));
    }
    table.write(output)?;
    write_inferred_shapes(schema, output)?;
    write_casts(schema.columns.iter().zip(columns.iter().map(|(_, _, cast)| *cast)), output)?;
    writeln!(output)?;
    Ok(columns.iter().map(|(raw, _, _)| *raw).fold(0, u64::saturating_add))
}

/// Returns the size of the output, `destination` being the file or the number of files.
fn sizes(args: &ConvertArgs, samples: u64, raw: u64, stored: u64, destination: &str) -> String {
    let (path, raw_text, stored_text) = (shown(&args.output), text::bytes(raw), text::bytes(stored));
    let ratio = text::ratio(raw, stored);
    format!("{path}: {samples} samples, {raw_text} raw, {stored_text} in {destination}, ratio {ratio}")
}
