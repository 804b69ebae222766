//! `tensilo export`: writes columns of a file or a dataset to a file of another format.
//!
//! The core writes Parquet and Arrow without loss. `tensilo-convert` writes the other formats, and
//! refuses what they cannot express. Both export a [`Table`]: a file, a whole dataset, or one group
//! of a dataset, in which missing columns are null. So a dataset can become a folder of files, one
//! for each group of samples.

use crate::failure::{Failure, Outcome};
use crate::open::{self, open};
use crate::options::Names;
use crate::output::{Data, Destination, Inputs, shown};
use crate::terminal::{Progress, Unit};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::iter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::error::display_path;
use tensilo::export::{ExportFormat, ExportOptions, Table, TableGroup, TensorForm, export_into};
use tensilo::facts::CastFacts;
use tensilo::source::FileIdentity;
use tensilo::{Column, Schema};
use tensilo_convert::{TargetFormat, TargetOptions, export_megatron, export_to};
use tensilo_data::{DataError, Dataset, SampleGroup};
use tensilo_object::Address;

const EXPORT: &str = "\
Examples:
  tensilo export train.tsl -o train.parquet
  tensilo export train.tsl -o part.arrow --columns id,embedding
  tensilo export train.tsl -o - --format arrows | other-program
  tensilo export train.tsl -o mel.npy --columns mel    one column, for NumPy
  tensilo export train/ -o train.parquet               a dataset as one file
  tensilo export train/ -o tables/ --format parquet    one file per group

The extension of OUT selects the format. These are lossless, and preserve nulls
and metadata:
  .parquet      Parquet
  .arrow        Arrow IPC file
  .arrows       Arrow IPC stream
These refuse what they cannot express:
  .npy          NumPy: one column of a fixed shape without nulls; bf16 becomes
                float32
  .npz          several such columns, uncompressed
  .safetensors  several such columns; bf16 stays bf16
  .tar          WebDataset: texts as .txt, integers as .cls, tensors as .npy,
                bytes unchanged; the column __key__ gives the keys
  .idx          Megatron: one column of lists of tokens without nulls; the
                tokens go to the .bin file next to it

Parquet and Arrow files have the Arrow types of the files that were originally
converted. Rounded columns get the type that they had before rounding; other
bf16 columns become float32.
--tensors extension preserves the shapes of tensors.

All samples of a dataset are exported in order; if a file lacks a column, its
samples are null in that column. With -o OUT/, each group of samples becomes one
file with all columns, named after the first data file of the group.";

#[derive(Args, Debug)]
#[command(after_help = EXPORT)]
pub(crate) struct ExportArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    file: PathBuf,
    /// The file to write; - is standard output. For a dataset, an existing folder or a path that
    /// ends in / receives one file per group of samples
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The output format [default: from the extension of OUT]
    #[arg(long, value_enum)]
    format: Option<FormatArg>,
    /// Export only these columns, in this order; write "\," for a comma in a name. For Parquet and
    /// Arrow, names of structs are also allowed
    #[arg(long, value_name = "a,b")]
    columns: Vec<Names>,
    /// The form of tensors [default: as in the Arrow or Parquet source, otherwise extension]
    #[arg(long, value_enum)]
    tensors: Option<TensorsArg>,
    /// Write the stored types instead of the types of the files that were converted
    #[arg(long)]
    stored_types: bool,
    /// Replace the output if it exists; allow binary data on a terminal
    #[arg(short, long)]
    force: bool,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A Parquet file
    Parquet,
    /// An Arrow IPC file
    Arrow,
    /// An Arrow IPC stream
    Arrows,
    /// One column as a NumPy array
    Npy,
    /// Columns as NumPy arrays in an archive
    Npz,
    /// Columns as named tensors
    Safetensors,
    /// A WebDataset archive: a file for each sample and column
    Tar,
    /// A Megatron indexed dataset of tokens: an .idx file, and a .bin file next to it
    Megatron,
}

/// The values of `--tensors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TensorsArg {
    /// The extension types arrow.fixed_shape_tensor and arrow.variable_shape_tensor
    Extension,
    /// Nested lists, one level for each dimension
    Lists,
}

impl From<TensorsArg> for TensorForm {
    fn from(form: TensorsArg) -> Self {
        match form {
            TensorsArg::Extension => Self::Extension,
            TensorsArg::Lists => Self::Lists,
        }
    }
}

/// Exports columns of a file or of a dataset to a file, or the groups of a dataset to files in a
/// folder.
pub(crate) fn run(args: &ExportArgs, quiet: bool) -> Outcome {
    let dataset = open::dataset(&args.file)?;
    let (format, extension) = AnyFormat::of(args)?;
    let progress = Progress::new(Unit::Samples, quiet);
    match &dataset {
        Some(dataset) if is_folder(&args.output) => export_groups(args, dataset, format, &extension, &progress),
        Some(dataset) => {
            let inputs = Inputs::Dataset(dataset);
            let destination = destination(args, inputs)?;
            let mut note = |samples| progress.set("exporting", samples, Some(dataset.sample_count()));
            write(args, dataset, (destination, inputs), format, &mut note)
        }
        None => {
            let inputs = Inputs::file(&args.file);
            let destination = destination(args, inputs)?;
            let reader = open(&args.file, quiet)?;
            let mut note = |samples| progress.set("exporting", samples, Some(reader.sample_count()));
            write(args, &reader, (destination, inputs), format, &mut note)
        }
    }
}

/// Returns whether an output is a folder for several files: an existing folder, or a path that ends
/// in a slash.
fn is_folder(output: &Path) -> bool {
    output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn destination(args: &ExportArgs, inputs: Inputs<'_>) -> Outcome<Destination> {
    Destination::new(&args.output, args.force, Data::Binary, inputs)
}

/// Exports a table to one file.
fn write<T: Table<Error: Into<Failure>>>(
    args: &ExportArgs,
    table: &T,
    (destination, inputs): (Destination, Inputs<'_>),
    format: AnyFormat,
    note: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Outcome {
    let columns = Names::all(&args.columns);
    let options = |note| {
        let options = TargetOptions::new().progress(note);
        if let Some(columns) = &columns { options.columns(columns) } else { options }
    };
    let written = match format {
        AnyFormat::Table(format) => {
            let tensors = args.tensors.map(TensorForm::from).unwrap_or_default();
            let options = ExportOptions::new().tensors(tensors).stored_types(args.stored_types).progress(note);
            let options = if let Some(columns) = &columns { options.columns(columns) } else { options };
            export_into(table, destination.create()?, format, options).map(|_| ())
        }
        AnyFormat::Other(format) => export_to(table, destination.create()?, format, options(note)).map(|_| ()),
        AnyFormat::Megatron => {
            let tokens = destination.beside("bin", inputs)?.create()?;
            export_megatron(table, (destination.create()?, tokens), options(note)).map(|_| ())
        }
    };
    written.map_err(|error| error.into().in_file(Path::new(&shown(&args.output))))
}

/// A format to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnyFormat {
    /// A format for tables, with all Arrow types.
    Table(ExportFormat),
    /// A format with fewer types.
    Other(TargetFormat),
    /// An indexed dataset: two files.
    Megatron,
}

impl AnyFormat {
    /// Returns the format that `--format` or the extension of the output selects, and the extension
    /// of files in that format.
    fn of(args: &ExportArgs) -> Outcome<(Self, OsString)> {
        let named = args.format.and_then(|format| Some(Path::new("x").with_extension(format.extension()?)));
        let path = named.as_deref().unwrap_or(&args.output);
        let extension = path.extension().unwrap_or_default();
        let table = ExportFormat::of(path).map(Self::Table);
        let format = table.or_else(|| TargetFormat::of(path).map(Self::Other));
        let format = format.or_else(|| (extension == "idx").then_some(Self::Megatron)).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: the extension does not name a format; use .parquet, .arrow, .arrows, .npy, .npz, .safetensors, \
                 .tar or .idx, or pass --format",
                shown(&args.output)
            ))
        })?;
        if !matches!(format, Self::Table(_)) && (args.tensors.is_some() || args.stored_types) {
            let message = "--tensors and --stored-types apply only to Parquet and Arrow";
            return Err(Failure::Usage(message.to_owned()));
        }
        // `-` is refused later, because two files are written
        let is_index = is_folder(&args.output) || args.output.extension() == Some(extension);
        if format == Self::Megatron && !is_index && args.output != Path::new("-") {
            let path = display_path(&args.output);
            let message = "the index needs the extension .idx; the tokens go to the .bin file next to it";
            return Err(Failure::Usage(format!("{path}: {message}")));
        }
        Ok((format, extension.to_os_string()))
    }
}

impl FormatArg {
    /// Returns the extension of files of the format.
    fn extension(self) -> Option<String> {
        let name = self.to_possible_value()?.get_name().to_owned();
        Some(if self == Self::Megatron { "idx".to_owned() } else { name })
    }
}

/// The samples of one group, with all columns of the dataset.
struct GroupTable<'a> {
    dataset: &'a Dataset,
    group: &'a SampleGroup,
}

/// Exports each group to a file that is named after the first data file of the group.
fn export_groups(
    args: &ExportArgs,
    dataset: &Dataset,
    format: AnyFormat,
    extension: &OsStr,
    progress: &Progress,
) -> Outcome {
    let is_object = Address::is_url_path(&args.output);
    // the operating system does not find a file if its path ends in a slash
    if args.output.components().as_path().is_file() {
        let path = display_path(&args.output);
        return Err(Failure::Usage(format!("{path}: this is a file; an export to several files needs a folder")));
    }
    let outputs = outputs(&args.output, dataset, extension)?;
    let inputs = Inputs::Dataset(dataset);
    let destinations = outputs.iter().map(|path| Destination::new(path, args.force, Data::Binary, inputs));
    let destinations = destinations.collect::<Outcome<Vec<_>>>()?;
    for ((group, path), destination) in dataset.groups().zip(&outputs).zip(destinations) {
        let group = &group?;
        let folder = path.parent().unwrap_or(Path::new(""));
        if !is_object {
            std::fs::create_dir_all(folder).map_err(|error| Failure::output(folder, error))?;
        }
        let mut note = |samples| {
            let done = group.samples.start.saturating_add(samples);
            progress.set("exporting", done, Some(dataset.sample_count()))
        };
        write(args, &GroupTable { dataset, group }, (destination, inputs), format, &mut note)?;
    }
    Ok(())
}

/// Returns the output path of each group. Within `folder`, it is the path of the first file of the
/// group, relative to the innermost folder that contains all of these files.
fn outputs(folder: &Path, dataset: &Dataset, extension: &OsStr) -> Outcome<Vec<PathBuf>> {
    let mut shared: Option<PathBuf> = None;
    for file in first_files(dataset) {
        let file = file?;
        let shared = shared.get_or_insert_with(|| file.parent().unwrap_or(Path::new("")).to_path_buf());
        while !file.starts_with(&*shared) && shared.pop() {}
    }
    let shared = shared.unwrap_or_default();
    let (mut outputs, mut seen) = (Vec::new(), BTreeSet::new());
    for file in first_files(dataset) {
        let file = file?;
        let output = folder.join(file.strip_prefix(&shared).unwrap_or(&file)).with_extension(extension);
        // refuse a duplicate before anything is written
        if !seen.insert(output.clone()) {
            let path = display_path(&output);
            let message =
                format!("{path}: two groups of the dataset would be exported to this file; export to a single file");
            return Err(Failure::Usage(message));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Returns the first file of each group.
fn first_files(dataset: &Dataset) -> impl Iterator<Item = Outcome<PathBuf>> {
    dataset.groups().filter_map(|group| match group {
        Ok(group) => Some(Ok(group.files.into_iter().next()?.path)),
        Err(error) => Some(Err(error.into())),
    })
}

impl GroupTable<'_> {
    fn columns(&self, columns: &[usize]) -> Result<Vec<Option<Column>>, DataError> {
        let find = |&number: &usize| Ok(self.dataset.find(number, self.group.samples.start)?.column);
        columns.iter().map(find).collect()
    }
}

impl Table for GroupTable<'_> {
    type Error = DataError;

    fn schema(&self) -> &Schema {
        self.dataset.schema()
    }

    fn path(&self) -> Option<&Path> {
        Table::path(self.dataset)
    }

    fn groups(&self, columns: Vec<usize>) -> impl Iterator<Item = Result<TableGroup, Self::Error>> {
        let samples = self.group.samples.end.saturating_sub(self.group.samples.start);
        iter::once(self.columns(&columns).and_then(|columns| Ok(TableGroup::new(columns, samples)?)))
    }

    fn cast_facts(&self, columns: &[usize]) -> Result<Vec<Option<CastFacts>>, Self::Error> {
        Ok(self.columns(columns)?.into_iter().map(|column| column?.facts().cast).collect())
    }

    fn is_from_one_conversion(&self) -> Result<bool, Self::Error> {
        self.dataset.is_from_one_conversion()
    }

    fn check_output(&self, _: Option<FileIdentity>, _: Option<&Path>) -> Result<(), Self::Error> {
        Ok(()) // `Destination::new` has checked it
    }
}
