//! The arguments of `tensilo export`.

use crate::options::Names;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use tensilo::export::ExportFormat;

const EXPORT: &str = "\
Examples:
  tensilo export train.tsl -o train.parquet
  tensilo export train.tsl -o part.arrow --columns id,embedding
  tensilo export train.tsl -o - --format arrow | other-program

The extension selects the format: .parquet, or .arrow for an Arrow IPC file.
The export is lossless: values to the last bit (bf16 as float32), shapes, nulls
and metadata.";

/// The arguments of `tensilo export`.
#[derive(Args, Debug)]
#[command(after_help = EXPORT)]
pub(crate) struct ExportArgs {
    /// A tensilo file
    pub(crate) file: PathBuf,
    /// The file to write; - is the standard output
    #[arg(short, long, value_name = "OUT.parquet|OUT.arrow")]
    pub(crate) output: PathBuf,
    /// The format of the output [default: by the extension]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OnExport>,
    /// Only these columns, in this order; write "\," for a comma in a name
    #[arg(long, value_name = "a,b")]
    pub(crate) columns: Vec<Names>,
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
}

impl From<OnExport> for ExportFormat {
    fn from(format: OnExport) -> Self {
        match format {
            OnExport::Parquet => Self::Parquet,
            OnExport::Arrow => Self::Arrow,
        }
    }
}
