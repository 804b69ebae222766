//! The arguments of `tensilo get`, and the option `--indices`: `5`, `1,2,9`, `10..20`, and
//! combinations of these.
//!
//! Indices are parsed with the command line, and resolved once the number of samples is known. All
//! of them are checked before anything is written. Ranges are never expanded, so memory does not
//! grow with the number of requested samples. For a single index, the output is the sample itself;
//! otherwise, it is a list.

use crate::failure::{Failure, Outcome};
use clap::{Args, ValueEnum};
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

const GET: &str = "\
Examples:
  tensilo get train.tsl -c caption -i 5
  tensilo get train.tsl -c embedding -i 1,2,9 --format npy -o some.npy
  tensilo get train.tsl -c embedding -i 100..200 --format raw | xxd | head
  tensilo get train.tsl -c label -i ..            every sample
  tensilo get train/ -c label -i 5,70000          from a dataset
  tensilo get 'train/*.tsl' -c label -i 5         from files, sorted by name

Indices count from 0, across all files of a dataset. A..B excludes B; A.. ends
with the last sample, ..B starts with the first. Order and repetitions are
preserved. If a file of a dataset lacks the column, its samples are null.

json  For a single index, the sample itself; otherwise, an array with one
      sample per line. Tensors are nested arrays. Floats are the shortest
      decimals that round-trip (bf16 and f16 are first widened to f32);
      \"NaN\", \"Infinity\" and \"-Infinity\" are strings. Text is a string, bytes
      are a string of hexadecimal digits, a null is null. Values of a decimal
      type are strings such as \"-0.05\", unless --as bits is given.
      Samples of a struct are objects with all its fields.
npy   NumPy's format, little-endian, C order. For a single index, an array of
      the sample's shape; otherwise, an array with an additional first
      dimension. bf16 becomes float32, which is exact, or uint16 with --as bits.
      Decimals and timestamps are refused, unless --as bits is given.
      The requested samples must all have the same shape.
raw   The stored elements, little-endian, one sample after another.

npy and raw cannot express nulls, and refuse null samples unless --nulls zero is
given.";

#[derive(Args, Debug)]
#[command(after_help = GET)]
pub(crate) struct GetArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(super) file: PathBuf,
    /// A column, or a struct whose fields are columns
    #[arg(short, long, value_name = "COLUMN")]
    pub(super) column: String,
    /// The samples, as indices and ranges: 5 or 1,2,9 or 0..10,20
    #[arg(short, long, value_name = "I[,J,A..B]", allow_negative_numbers = true)]
    pub(super) indices: Indices,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
    /// Convert elements: floats of at most 32 bits to f32, or elements of any type to unsigned
    /// integers with the same bits
    #[arg(long = "as", value_name = "TYPE", value_enum)]
    pub(super) elements: Option<As>,
    /// What to do with nulls in npy and raw
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(super) nulls: OnNull,
    /// Write to a file, which appears when it is complete; - is standard output
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    /// Replace OUT if it exists; allow binary data on a terminal
    #[arg(short, long)]
    pub(super) force: bool,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// JSON
    #[default]
    Json,
    /// A NumPy array file
    Npy,
    /// The bytes of the elements
    Raw,
}

/// The values of `--as`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum As {
    /// Single-precision floats
    F32,
    /// Unsigned integers with the same bits
    Bits,
}

/// The values of `--nulls`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OnNull {
    /// Fail, and name the first null sample
    #[default]
    Refuse,
    /// Write zeros; with --format raw, write nothing for text, bytes and ragged samples
    Zero,
}

const FORMS: &str = "expected indices and ranges of samples, counted from 0, such as 5 or 1,2,9 or 10..20 or 0,100..";

/// The value of `--indices`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Indices(Vec<Term>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    One(u64),
    Range(Option<u64>, Option<u64>),
}

impl FromStr for Indices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(term).collect::<Result<_, _>>().map(Self)
    }
}

fn term(text: &str) -> Result<Term, String> {
    let text = text.trim();
    let Some((start, end)) = text.split_once("..") else { return Ok(Term::One(number(text)?)) };
    let bound = |text: &str| if text.is_empty() { Ok(None) } else { number(text).map(Some) };
    let (start, end) = (bound(start)?, bound(end)?);
    match (start, end) {
        (Some(start), Some(end)) if start > end => Err(format!("the range {start}..{end} ends before it starts")),
        _ => Ok(Term::Range(start, end)),
    }
}

fn number(text: &str) -> Result<u64, String> {
    // `parse` would accept a sign
    let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| FORMS.to_owned())
}

/// The requested samples, in order. All of them exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    ranges: Vec<Range<u64>>,
    single: bool,
}

impl Indices {
    /// Returns the requested samples. Fails if any index is not below `sample_count`.
    pub(super) fn resolve(&self, sample_count: u64) -> Outcome<Selection> {
        let ranges = self.0.iter().map(|term| term.resolve(sample_count)).collect::<Outcome<_>>()?;
        Ok(Selection { ranges, single: matches!(self.0.as_slice(), [Term::One(_)]) })
    }
}

impl Term {
    fn resolve(self, sample_count: u64) -> Outcome<Range<u64>> {
        let range = match self {
            Self::One(index) if index < sample_count => index..index.saturating_add(1),
            Self::One(index) => return Err(no_sample(index, sample_count)),
            Self::Range(start, end) => start.unwrap_or(0)..end.unwrap_or(sample_count),
        };
        match range.end.max(range.start) {
            end if end <= sample_count => Ok(range),
            _ => Err(no_sample(range.start.max(sample_count), sample_count)),
        }
    }
}

fn no_sample(index: u64, sample_count: u64) -> Failure {
    Failure::Usage(format!("there is no sample {index}: there are {sample_count} samples, counted from 0"))
}

impl Selection {
    /// Iterates over the samples.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.ranges.iter().flat_map(|range| range.clone())
    }

    pub(super) fn count(&self) -> u64 {
        let lengths = self.ranges.iter().map(|range| range.end.saturating_sub(range.start));
        lengths.fold(0, u64::saturating_add)
    }

    /// Returns whether the request is a single index. The output is then the sample, not a list.
    pub(super) fn is_single(&self) -> bool {
        self.single
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_mix_and_others_are_refused() {
        let resolved = |text: &str| text.parse::<Indices>().unwrap().resolve(10).unwrap();
        for (text, expected) in [
            ("5", &[5][..]),
            ("9,1, 1,2..5,3", &[9, 1, 1, 2, 3, 4, 3]),
            ("8..,..2", &[8, 9, 0, 1]),
            ("4..4,10..10", &[]),
        ] {
            let selection = resolved(text);
            assert_eq!(selection.iter().collect::<Vec<u64>>(), expected);
            assert_eq!(selection.count(), expected.len() as u64);
            assert_eq!(selection.is_single(), text == "5");
        }
        assert!(!resolved("5..6").is_single() && !resolved("5,5").is_single());
        for text in ["10", "0,10", "5..11", "11..", "18446744073709551615"] {
            let failure = text.parse::<Indices>().unwrap().resolve(10).unwrap_err();
            assert!(matches!(&failure, Failure::Usage(message) if message.contains("there are 10")), "{text}");
        }
        assert!(
            "0".parse::<Indices>().unwrap().resolve(0).is_err() && "..".parse::<Indices>().unwrap().resolve(0).is_ok()
        );
        for text in ["", "a", "1,", "+1", "-1", "1...3", "1..2..3", "5..3", "1;2", "18446744073709551616", "1.5"] {
            assert!(text.parse::<Indices>().is_err(), "{text}");
        }
    }
}
