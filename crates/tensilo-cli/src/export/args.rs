//! The arguments of `tensilo export`.

use crate::options::Names;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tensilo::export::TensorForm;

const EXPORT: &str = "\
Examples:
  tensilo export train.tsl -o train.parquet
  tensilo export train.tsl -o part.arrow --columns id,embedding
  tensilo export train.tsl -o - --format arrow | other-program
  tensilo export train.tsl -o mel.npy --columns mel    one column, for NumPy
  tensilo export train.tsl -o train.safetensors        columns of fixed shapes
  tensilo export train.tsl -o train.tar                files, for WebDataset
  tensilo export text.tsl -o text.idx --columns tokens   for Megatron
  tensilo export train/ -o train.parquet               one file of a dataset
  tensilo export train/ -o tables/ --format parquet    a file for each data file

The extension selects the format: .parquet, .arrow for an Arrow IPC file,
.arrows for an Arrow IPC stream (Dataset.from_file of the library datasets
reads it), or one of those at the end. An export to Parquet or Arrow loses no
value, null or metadata. If the file was made from Arrow or Parquet, it has the
Arrow types of that source, such as large strings, dictionaries and maps.
Rounded columns get the type that they had before they were rounded; other bf16
columns become float32. Declared shapes are kept by --tensors extension.

Of a dataset, all samples are exported in their order; those of files that do
not have a column are null in it. With -o OUT/, each group of samples becomes a
file, with all columns and the name of its first data file. Each file appears
when it is complete. Dictionaries are ordered only if all samples are of one
conversion.

Formats without all types of Arrow refuse what they cannot express:
.npy          one column of a fixed shape without nulls; the first axis of the
              array counts samples. bf16 becomes float32, which is exact.
.npz          several such columns, uncompressed
.safetensors  several such columns; bf16 stays bf16
.tar          WebDataset: texts as .txt, integers as .cls, tensors of any shape
              as .npy, bytes as they are; nulls are left out. The keys are those
              of the column __key__, or numbers.
.idx          Megatron: one column of lists of tokens without nulls. The tokens
              are written to the .bin file beside it.";

/// The arguments of `tensilo export`.
#[derive(Args, Debug)]
#[command(after_help = EXPORT)]
pub(crate) struct ExportArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(crate) file: PathBuf,
    /// The file to write; - is the standard output; of a dataset also a folder, which exists or
    /// ends in /, for one file for each data file
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The format of the output [default: by the extension]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OnExport>,
    /// Only these columns and structs, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    pub(crate) columns: Vec<Names>,
    /// How tensors are written [default: as they came from Arrow or Parquet, otherwise as extension
    /// types]
    #[arg(long, value_enum)]
    pub(crate) tensors: Option<OnTensors>,
    /// Write the types that the file states, not those of the source it was made from
    #[arg(long)]
    pub(crate) stored_types: bool,
    /// Replace the output if it exists; write binary data to a terminal
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnExport {
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
    /// A tar archive of WebDataset: a file for each sample and column
    Tar,
    /// Tokens as an indexed dataset of Megatron: OUT.idx, and OUT.bin beside it
    Megatron,
}

/// The values of `--tensors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnTensors {
    /// arrow.fixed_shape_tensor and arrow.variable_shape_tensor
    Extension,
    /// Lists in lists, one level for each dimension
    Lists,
}

impl From<OnTensors> for TensorForm {
    fn from(form: OnTensors) -> Self {
        match form {
            OnTensors::Extension => Self::Extension,
            OnTensors::Lists => Self::Lists,
        }
    }
}
