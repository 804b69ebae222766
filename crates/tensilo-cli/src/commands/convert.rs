//! `tensilo convert`: converts files of other formats to a tensilo file, or to a dataset of many
//! files.
//!
//! The library reads, infers shapes and encodes. This module passes the options to it, shows
//! progress, and prints a summary of columns, inferred shapes and casts. Notes report surprises:
//! samples whose shape differs from the shape of the other samples, and columns whose elements are
//! not the values themselves, such as the unscaled integers of decimals.
//!
//! If an input contradicts what was inferred earlier, the conversion restarts. This works for files
//! and objects, which are not visible until they are complete, but not for streams.

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
      round floats to bf16; the summary lists the rounding errors
  tensilo convert a.arrow b.arrow -o both.tsl --columns id,mel --cast mel=f16
      convert two columns of both files, and round one of the columns to f16
  zstdcat train.arrows.zst | tensilo convert - -o train.tsl
      an Arrow stream from standard input; this also works for other formats
  tensilo convert train.parquet -o train.tsl --profile raw --align 4096
      uncompressed: samples are read without decoding; the alignment also allows
      programs to read chunks with direct I/O (O_DIRECT)
  tensilo convert train.tsl -o small.tsl --profile small --columns id,mel
      rewrite a tensilo file with another profile and fewer columns
  tensilo convert 's3://b/raw/*.parquet' -o s3://b/train --shard-bytes 1GiB
      convert files in a bucket to a dataset in the same bucket; a dataset is a
      folder of files with a manifest
  tensilo convert 'layers/*.safetensors' -o layers.tsl --file-is-sample
      each file is one sample, with a column for each tensor
  tensilo convert day-1.parquet -o all.tsl --shape 'mel=*,80' --rename img=image
      declare that the first extent of mel varies, because files that are
      appended later can have other lengths than day-1; rename a column

Formats, recognized by content, or by extension if the content is ambiguous:
  .parquet                   Parquet
  .arrow, .arrows, .feather  Arrow IPC file or stream
  .npy, .npz                 NumPy: a column per array; samples along axis 0
  .safetensors               a column per tensor; samples along axis 0
  .tar, .tar.gz, .tgz        WebDataset: a column per suffix, and __key__
  .tfrecord, .tfrecord.gz    tf.train.Example: a column per feature
  .jsonl, .ndjson, .json     objects: a column per member; also .gz
  .idx                       Megatron: a column named \"tokens\", from the
                             .bin file next to it
  .tsl                       tensilo

Inputs must have the same columns, in any order; a nullable column may be
missing. Inputs are read in the order given; the files of a folder or glob, in
the order of their paths. A folder is searched for *.parquet files, or for
*.arrow and *.feather files; a folder with both is refused, and one with neither
is searched for *.tsl files. Files of other formats need a glob. The key of a
folder named key=value becomes a column, which --skip key omits. The same inputs
and options always give the same output, byte for byte.

Columns: a field of a struct becomes the column struct.field. The name of the
struct selects all its fields. A second column with the same name becomes
NAME#2. --rename renames a column; all other options use the old name.

Shapes: without --shape, a dimension of a list is fixed if all samples have the
same extent. The summary shows from how many samples this was inferred. The
shapes of a file never change, so declare * if later inputs can have other
lengths. A sample that contradicts --shape is refused.

--shard-bytes counts raw bytes, after casts and before encoding.
SOURCE_DATE_EPOCH sets the time that the manifest records.

The output appears when it is complete. If it is a symbolic link, the target
is replaced and the link stays. If it is a named pipe, a device or an open
descriptor (-, /dev/stdout, /dev/fd/3), the data is written into it. If the data
goes to standard output, the summary goes to standard error.";

#[derive(Args, Debug)]
#[command(after_help = CONVERT)]
pub(crate) struct ConvertArgs {
    /// Files of the formats below, folders or quoted globs; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// The file to write; - is standard output
    #[arg(short, long, value_name = "OUT.tsl")]
    output: PathBuf,
    /// Write a dataset instead: a folder OUT with a manifest and files of at most N raw bytes each,
    /// such as 1GiB
    #[arg(long, value_name = "N", value_parser = options::shard_bytes)]
    shard_bytes: Option<u64>,
    /// Round all float columns to bf16, except those that --cast names
    #[arg(long)]
    pub(super) bf16: bool,
    /// Convert the numbers or decimals of a column to another type, such as bf16, f32, f64 or i64;
    /// repeatable
    #[arg(long, value_name = "NAME=TYPE", value_parser = options::cast)]
    pub(super) cast: Vec<(String, DType)>,
    /// Convert only these columns, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    columns: Vec<Names>,
    /// Omit a column; repeatable
    #[arg(long, value_name = "NAME")]
    pub(super) skip: Vec<String>,
    /// Rename a column; repeatable. For the field b of the struct a, write both full names: a.b=a.c
    #[arg(long, value_name = "NAME=NEW", value_parser = options::rename)]
    rename: Vec<(String, String)>,
    /// Declare the shape of a list column, with * for a varying extent; repeatable [default:
    /// inferred]
    #[arg(long, value_name = "NAME=*,80", value_parser = options::shape)]
    shape: Vec<(String, Shape)>,
    /// Start every chunk at a multiple of BYTES; with 4096, programs can read chunks with direct
    /// I/O (O_DIRECT)
    #[arg(long, value_name = "BYTES", value_parser = options::alignments(), default_value = "64")]
    pub(super) align: u32,
    /// Ignore the null counts recorded in the inputs, and search structs and lists for nulls in an
    /// additional pass
    #[arg(long)]
    ignore_statistics: bool,
    /// Replace OUT.tsl if it exists; allow binary data on a terminal
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

/// Refuses an output path that does not fit the type of the output: a file, or the folder of a
/// dataset.
fn check_output(args: &ConvertArgs) -> Outcome {
    let path = shown(&args.output);
    let refused = |message: String| Err(Failure::Usage(message));
    let ends_in_slash = args.output.as_os_str().as_encoded_bytes().ends_with(b"/");
    match args.shard_bytes {
        None if args.output.is_dir() => refused(format!(
            "{path}: this is a folder; write to another path, or append to the dataset in it with \"tensilo append\""
        )),
        None if ends_in_slash => refused(format!(
            "{path}: a trailing slash means a folder; remove it to write a file, or use --shard-bytes 1GiB to write a \
             dataset"
        )),
        Some(_) if args.output.extension().is_some_and(|extension| extension == "tsl") && !args.output.is_dir() => {
            refused(format!("{path}: with --shard-bytes the output is a folder; omit .tsl or --shard-bytes"))
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
        return Err(Failure::Usage("the inputs have no samples, and a dataset needs at least one".to_owned()));
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

/// Prints a warning about metadata that was left out, and notes about columns that might surprise
/// the user.
fn print_notes(schema: &Schema) {
    let dropped: Vec<String> =
        import::dropped_metadata(schema).iter().map(|key| key.escape_debug().to_string()).collect();
    if !dropped.is_empty() {
        warning(&format!("some metadata was left out because the format cannot store it: {}", dropped.join(", ")));
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

/// Writes a table of the columns with their raw and stored sizes, the inferred shapes, the casts,
/// and an empty line. Returns the raw size of all columns in bytes.
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

/// Returns a line about the size of the output. `destination` is a phrase such as "the file" or
/// "3 files".
fn sizes(args: &ConvertArgs, samples: u64, raw: u64, stored: u64, destination: &str) -> String {
    let (path, raw_text, stored_text) = (shown(&args.output), text::bytes(raw), text::bytes(stored));
    let ratio = text::ratio(raw, stored);
    format!("{path}: {samples} samples, {raw_text} raw, {stored_text} in {destination}, ratio {ratio}")
}
