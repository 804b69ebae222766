//! Options that several commands share, parsers of option values, and checks of inputs.
//!
//! If a parser refuses a value, its message shows the expected form. Column names can contain `=`,
//! so `NAME=VALUE` is split at the last `=`. Defaults that depend on the profile are left to the
//! library: such options are `None` unless the user sets them.

use crate::failure::{Failure, Outcome};
use crate::terminal;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::io::{self, IsTerminal};
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::thread::available_parallelism;
use tensilo::import::{InputFormat, InputStore, NullElements};
use tensilo::{DType, Extent, Profile, Shape, WriterOptions, limits, parse_byte_count};
use tensilo_convert::{FormatOptions, input_formats};
use tensilo_data::WindowSizes;
use tensilo_object::{ObjectInputs, ObjectOptions, UNREADABLE_KEY};

/// The encoding options of `convert`, `append` and `salvage`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Encoding")]
pub(crate) struct EncodingArgs {
    /// The trade-off between size and speed; "inspect --explain" compares the profiles
    #[arg(long, value_parser = profiles(), default_value = Profile::default().name())]
    pub(crate) profile: Profile,
    /// Use another profile for one column, such as mel=small; repeatable
    #[arg(long, value_name = "NAME=PROFILE", value_parser = column_profile)]
    pub(crate) column_profile: Vec<(String, Profile)>,
    /// The decoded size of a chunk, such as 65536, 64KiB or 1MiB. Without blocks, reading one
    /// random sample reads a whole chunk [default: 64KiB; with --profile small, 512KiB, or 256KiB
    /// for text]
    #[arg(long, value_name = "N", value_parser = chunk_bytes)]
    pub(crate) chunk_bytes: Option<usize>,
    /// The decoded size of a block, 1KiB to 512KiB, or "none". Each block of a chunk is read and
    /// checked individually: with smaller blocks, less is read for one sample, but the file is
    /// larger [default: 8KiB; with --profile small, 64KiB; with bitshuffle-zstd, none]
    #[arg(long, value_name = "N", value_parser = block_bytes)]
    pub(crate) block_bytes: Option<BlockBytes>,
    /// Skip the check that decodes each chunk and compares it with its input: slightly faster, but
    /// a memory or processor fault can corrupt the file unnoticed
    #[arg(long)]
    pub(crate) no_check: bool,
    /// The number of threads that encode. If N is above 1, up to N additional threads, but at
    /// most 8, read Parquet inputs. The output does not depend on the number
    /// [default: the number of CPUs]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
}

impl EncodingArgs {
    /// Converts the options to the library's `WriterOptions`.
    pub(crate) fn writer_options(&self) -> WriterOptions {
        let options = WriterOptions::new().profile(self.profile).threads(threads(self.threads));
        let mut options = options.check_chunks(!self.no_check);
        for (column, profile) in &self.column_profile {
            options = options.column_profile(column, *profile);
        }
        if let Some(bytes) = self.chunk_bytes {
            options = options.chunk_bytes(bytes);
        }
        if let Some(BlockBytes(bytes)) = self.block_bytes {
            options = options.block_bytes(bytes);
        }
        options
    }
}

/// The input options of `convert` and `append`.
#[derive(Args, Debug)]
pub(crate) struct InputArgs {
    /// What to do with null elements, which a tensor cannot hold (a whole tensor can be null)
    #[arg(long, value_name = "CHOICE", value_enum, default_value_t)]
    pub(crate) null_elements: OnNullElement,
    /// Read each .npz and .safetensors file as one sample, with a column for each tensor
    #[arg(long)]
    pub(crate) file_is_sample: bool,
}

impl InputArgs {
    /// Returns the accepted input formats.
    pub(crate) fn formats(&self) -> Vec<Arc<dyn InputFormat>> {
        input_formats(FormatOptions::new().file_is_sample(self.file_is_sample))
    }
}

/// The values of `--null-elements`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnNullElement {
    /// Store nullable lists instead of tensors
    #[default]
    Keep,
    /// Fail, and name the column and the row
    Refuse,
    /// Store NaN in float columns, and fail in other columns
    Nan,
    /// Store zero
    Zero,
}

impl From<OnNullElement> for NullElements {
    fn from(choice: OnNullElement) -> Self {
        match choice {
            OnNullElement::Keep => Self::Keep,
            OnNullElement::Refuse => Self::Refuse,
            OnNullElement::Nan => Self::Nan,
            OnNullElement::Zero => Self::Zero,
        }
    }
}

/// Returns the store that reads object inputs. Unreadable objects are skipped with a warning; if
/// `quiet`, they are errors, because nothing is skipped silently.
pub(crate) fn store(quiet: bool) -> Arc<dyn InputStore> {
    let warn = |address: &str| {
        terminal::warning(&format!("{address}: skipped: {UNREADABLE_KEY}"));
    };
    let inputs = ObjectInputs::new(ObjectOptions::new());
    Arc::new(if quiet { inputs } else { inputs.skip_unreadable(warn) })
}

/// Fails if an input is standard input, and standard input is a terminal.
pub(crate) fn check_inputs(inputs: &[PathBuf]) -> Outcome {
    if inputs.iter().any(|input| input == Path::new("-")) && io::stdin().is_terminal() {
        let message = "standard input: this is a terminal; redirect or pipe a file into it";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// The window sizes of the windowed order; by default, those that the dataset records.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WindowArgs {
    /// The number of samples in a run of the windowed order [default: as recorded in the manifest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    run_samples: Option<u32>,
    /// The number of runs in a window of a stream [default: as recorded in the manifest]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    window_runs: Option<u32>,
    /// The number of streams, a power of two up to 1024 [default: as recorded in the manifest]
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
}

impl WindowArgs {
    /// Returns whether any option is set.
    pub(crate) fn is_set(&self) -> bool {
        [self.run_samples, self.window_runs, self.streams].iter().any(Option::is_some)
    }

    /// Returns the window sizes. Fails if the number of streams is invalid.
    pub(crate) fn sizes(&self, recorded: WindowSizes) -> Outcome<WindowSizes> {
        let run_samples = self.run_samples.unwrap_or(recorded.run_samples());
        let sizes = WindowSizes::new(run_samples, self.window_runs.unwrap_or(recorded.window_runs()))?;
        Ok(sizes.with_streams(self.streams.unwrap_or(recorded.streams()))?)
    }
}

/// Column names: `a,b`, where `\,` stands for a comma and `\\` for a backslash in a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Returns all names of a repeatable option, or `None` if it is absent.
    pub(crate) fn all(options: &[Self]) -> Option<Vec<String>> {
        let names: Vec<String> = options.iter().flat_map(|names| names.0.iter().cloned()).collect();
        (!names.is_empty()).then_some(names)
    }
}

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = vec![];
        let mut name = String::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                ',' => names.push(std::mem::take(&mut name)),
                '\\' => name.push(characters.next().unwrap_or('\\')),
                _ => name.push(character),
            }
        }
        names.push(name);
        if names.iter().any(String::is_empty) {
            return Err("a name is empty; write a,b without leading, trailing or double commas".to_owned());
        }
        Ok(Self(names))
    }
}

/// Splits `NAME=VALUE` at the last `=`. Neither side may be empty. `how` is the error message.
fn assignment<'a>(text: &'a str, how: &str) -> Result<(String, &'a str), String> {
    let pair = text.rsplit_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value)).ok_or_else(|| how.to_owned())
}

/// Parses `NAME=TYPE`.
pub(crate) fn cast(text: &str) -> Result<(String, DType), String> {
    let (name, dtype) = assignment(text, "expected NAME=TYPE, such as mel=bf16")?;
    let dtype = dtype.parse().ok().filter(|dtype: &DType| dtype.is_number());
    let dtype = dtype.ok_or("expected a float type (bf16, f16, f32, f64) or an integer type (i8 to i64, u8 to u64)")?;
    Ok((name, dtype))
}

/// Parses `NAME=PROFILE`.
pub(crate) fn column_profile(text: &str) -> Result<(String, Profile), String> {
    let (name, profile) = assignment(text, "expected NAME=PROFILE, such as mel=small")?;
    Ok((name, profile.parse().map_err(|error: tensilo::Error| error.message().to_owned())?))
}

/// Parses `NAME=NEW`.
pub(crate) fn rename(text: &str) -> Result<(String, String), String> {
    assignment(text, "expected NAME=NEW, such as img=image").map(|(name, new)| (name, new.to_owned()))
}

/// Parses `NAME=*,80`.
pub(crate) fn shape(text: &str) -> Result<(String, Shape), String> {
    const HOW: &str = "expected NAME=EXTENTS, such as embedding=384 or mel=*,80, where * is a varying extent";
    let (name, extents) = assignment(text, HOW)?;
    let extent = |extent: &str| match extent.trim() {
        "*" => Ok(Extent::Varying),
        number => {
            let number = number.parse().ok().filter(|&number: &u32| number <= limits::EXTENT);
            number.map(Extent::Fixed).ok_or_else(|| HOW.to_owned())
        }
    };
    let extents = extents.split(',').map(extent).collect::<Result<Vec<_>, String>>()?;
    Ok((name, Shape::new(extents)))
}

/// The value of `--block-bytes`. `None` stands for one block per part, if the format allows a block
/// that long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockBytes(pub(crate) Option<usize>);

/// Parses `none` or a size of 1 KiB to 512 KiB.
pub(crate) fn block_bytes(text: &str) -> Result<BlockBytes, String> {
    if text == "none" {
        return Ok(BlockBytes(None));
    }
    let bytes = bytes_in(text, 1 << 10..=512 << 10)?;
    let bytes =
        bytes.ok_or_else(|| "expected 1KiB to 512KiB, or \"none\" for the longest possible blocks".to_owned())?;
    Ok(BlockBytes(Some(bytes)))
}

/// Parses a size of 1 byte to 32 MiB.
pub(crate) fn chunk_bytes(text: &str) -> Result<usize, String> {
    let bytes = bytes_in(text, 1..=32 << 20)?;
    bytes.ok_or_else(|| "expected 1 byte to 32MiB".to_owned())
}

/// Parses the maximum raw size of a dataset file: at least one byte.
pub(crate) fn shard_bytes(text: &str) -> Result<u64, String> {
    Some(bytes(text)?).filter(|&bytes| bytes > 0).ok_or_else(|| "expected at least 1 byte".to_owned())
}

/// Parses the number of versions to keep: at least one.
pub(crate) fn version_count(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "expected the number of versions to keep, at least 1".to_owned())
}

/// Parses a number of bytes. Returns `None` if it is out of range.
fn bytes_in(text: &str, range: RangeInclusive<usize>) -> Result<Option<usize>, String> {
    Ok(usize::try_from(bytes(text)?).ok().filter(|bytes| range.contains(bytes)))
}

/// Parses `65536`, `64KiB` or `1MiB`.
fn bytes(text: &str) -> Result<u64, String> {
    parse_byte_count(text).ok_or_else(|| "expected a number of bytes, such as 65536, 64KiB, 1MiB or 1GiB".to_owned())
}

/// Returns the parser of profile names.
pub(crate) fn profiles() -> impl TypedValueParser<Value = Profile> {
    let values = Profile::ALL.map(|profile| PossibleValue::new(profile.name()).help(help_of(profile)));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Profile>())
}

/// Returns the help of a profile: its purpose, and what it does.
fn help_of(profile: Profile) -> &'static str {
    match profile {
        Profile::Fast => "For training that waits for data: fastest to decode, no entropy coder",
        Profile::Balanced => "For nearly all uses: small, and fast to decode; Zstandard for text and repetitive data",
        Profile::Small => "For archives and slow networks: smallest file, several times slower to write",
        Profile::Raw => "For memory maps: no encoding, every sample is a zero-copy view of the file",
        Profile::BitshuffleZstd => "For comparisons: bit-shuffle and Zstandard level 9",
        _ => "", // a profile that is newer than this program; a test detects this
    }
}

/// Returns the parser of an alignment: 64 or 4096.
pub(crate) fn alignments() -> impl TypedValueParser<Value = u32> {
    PossibleValuesParser::new(["64", "4096"]).try_map(|text| text.parse::<u32>())
}

/// Returns the value of `--threads`, or the number of CPUs.
pub(crate) fn threads(requested: Option<NonZeroUsize>) -> usize {
    requested.or_else(|| available_parallelism().ok()).map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_escapes_and_sizes_have_units_and_bounds() {
        let names = |text: &str| text.parse::<Names>().map(|names| names.0);
        assert_eq!(names("a"), Ok(vec!["a".to_owned()]));
        assert_eq!(names(r"a,b\,c,d\\"), Ok(vec!["a".to_owned(), "b,c".to_owned(), r"d\".to_owned()]));
        assert!(names("a,").is_err() && names("").is_err() && names("a,,b").is_err());
        let options: Vec<Names> = ["a,b", "c"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(Names::all(&options), Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
        assert_eq!(Names::all(&[]), None);
        for (text, bytes) in [("65536", 65_536), ("64KiB", 65_536), ("1MiB", 1 << 20), ("1 mib", 1 << 20), ("7B", 7)] {
            assert_eq!(chunk_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "KiB", "64KB", "64K", "-1", "1.5MiB", "0", "33MiB", "99999999999999999999", "1MiB1"] {
            assert!(chunk_bytes(text).is_err(), "{text}");
        }
        for (text, bytes) in [("1KiB", Some(1024)), ("8192", Some(8192)), ("512KiB", Some(512 << 10)), ("none", None)] {
            assert_eq!(block_bytes(text), Ok(BlockBytes(bytes)), "{text}");
        }
        for text in ["", "0", "1023", "513KiB", "1MiB", "None", "8KB", "99999999999999999999", "17179869184MiB"] {
            assert!(block_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_assignment_has_a_name_and_a_value() {
        for (text, name, extents) in [("a=b=*,80", "a=b", "[*,80]"), ("x=384", "x", "[384]")] {
            let (column, shape) = shape(text).unwrap();
            assert_eq!((column.as_str(), shape.to_string().as_str()), (name, extents));
        }
        for (text, old, new) in [("img=image", "img", "image"), ("a=b=c", "a=b", "c")] {
            assert_eq!(rename(text), Ok((old.to_owned(), new.to_owned())));
        }
        for (text, dtype) in [("mel=bf16", DType::Bf16), ("mel=f64", DType::F64), ("mel=i8", DType::I8)] {
            assert_eq!(cast(text), Ok(("mel".to_owned(), dtype)));
        }
        let shapes = ["x", "x=", "=3", "x=3,", "x=-1", "x=a", "x=4294967295", "x=[3]"];
        assert!(shapes.into_iter().all(|text| shape(text).is_err()));
        assert!(["img", "img=", "=image", "a=b="].into_iter().all(|text| rename(text).is_err()));
        assert!(["mel", "mel=bool", "mel=utf8", "=f16", "mel="].into_iter().all(|text| cast(text).is_err()));
    }
}
