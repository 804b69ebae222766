//! The arguments of `tensilo get`.

use super::indices::Indices;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const GET: &str = "\
Examples:
  tensilo get train.tsl -c caption -i 5
  tensilo get train.tsl -c embedding -i 1,2,9 --format npy -o some.npy
  tensilo get train.tsl -c embedding -i 100..200 --format raw | xxd | head
  tensilo get train.tsl -c label -i ..            every sample
  tensilo get train/ -c label -i 5,70000          of a dataset
  tensilo get 'train/*.tsl' -c label -i 5         of files in the order of names

Indices count from 0, in a dataset over all its files. A..B ends before B; A..,
..B and .. are open. Order and repetitions are kept. Samples of a file that does
not have a column of its dataset are null in it.

json  One index gives the sample itself, anything else an array with a line
      for each sample. Tensors are nested arrays. Floats are the shortest
      decimals that read back the same (bf16 and f16 as the equal f32);
      \"NaN\", \"Infinity\" and \"-Infinity\" are strings. Text is a string, bytes
      are a string of hexadecimal digits, a null is null. Decimals (arrow.type
      in the metadata) are strings such as \"-0.05\", unless --as bits is given.
      The name of a struct gives objects with all its fields.
npy   NumPy's format, little-endian, C order. One index gives an array of the
      sample's shape; anything else gives an array with one dimension more, the
      first. bf16 becomes float32, which is exact, or uint16 with --as bits.
      Decimals and timestamps are refused, unless --as bits is given.
      Ragged samples must have the same shape.
raw   The elements as they are stored, little-endian, sample after sample.

npy and raw have no nulls. These formats refuse null samples unless
--nulls zero is given.";

/// The arguments of `tensilo get`.
#[derive(Args, Debug)]
#[command(after_help = GET)]
pub(crate) struct GetArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(crate) file: PathBuf,
    /// The column, or the struct whose fields are columns
    #[arg(short, long, value_name = "COLUMN")]
    pub(crate) column: String,
    /// The samples, as numbers and ranges: 5 or 1,2,9 or 0..10,20
    #[arg(short, long, value_name = "I[,J,A..B]", allow_negative_numbers = true)]
    pub(crate) indices: Indices,
    /// The format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Elements as f32 (floats of at most 32 bits), or as unsigned integers with the same bits
    #[arg(long = "as", value_name = "TYPE", value_enum)]
    pub(crate) elements: Option<As>,
    /// Treatment of nulls in npy and raw
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(crate) nulls: OnNull,
    /// Write to a file, which appears when it is complete; - is the standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace OUT if it exists; write binary data to a terminal
    #[arg(short, long)]
    pub(crate) force: bool,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON
    #[default]
    Json,
    /// NumPy's array file
    Npy,
    /// Element bytes
    Raw,
}

/// The values of `--as`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum As {
    /// Single precision floats
    F32,
    /// Unsigned integers
    Bits,
}

/// The values of `--nulls`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnNull {
    /// Stop, and name the first null sample
    #[default]
    Refuse,
    /// Write zeros; nothing for text, bytes and ragged samples in raw
    Zero,
}
