//! Parsers of option values.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::thread::available_parallelism;
use tensilo::{DType, Extent, Profile, Shape, limits, parse_byte_count};

/// Column names: `a,b`, where `\,` means a comma and `\\` a backslash within a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Returns all names of an option that may be repeated; `None` if it is absent.
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
            return Err("a name is empty; write a,b without a comma at either end".to_owned());
        }
        Ok(Self(names))
    }
}

/// Parses `NAME=TYPE`; the name may contain `=`.
pub(crate) fn cast(text: &str) -> Result<(String, DType), String> {
    let (name, dtype) = text.rsplit_once('=').ok_or("write NAME=TYPE, such as mel=bf16")?;
    let dtype = dtype.parse().ok().filter(|dtype: &DType| dtype.is_number());
    let dtype = dtype.ok_or("the type is a float (bf16, f16, f32, f64) or an integer (i8 to i64, u8 to u64)")?;
    if name.is_empty() {
        return Err("the name is empty; write NAME=TYPE, such as mel=bf16".to_owned());
    }
    Ok((name.to_owned(), dtype))
}

/// Parses `NAME=PROFILE`; the name may contain `=`.
pub(crate) fn column_profile(text: &str) -> Result<(String, Profile), String> {
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let (name, profile) = parts.ok_or("write NAME=PROFILE, such as mel=small")?;
    Ok((name.to_owned(), profile.parse().map_err(|error: tensilo::Error| error.message().to_owned())?))
}

/// Parses `NAME=NEW`; the old name may contain `=`.
pub(crate) fn rename(text: &str) -> Result<(String, String), String> {
    let names = text.rsplit_once('=').filter(|(name, new)| !name.is_empty() && !new.is_empty());
    let (name, new) = names.ok_or("write NAME=NEW, such as img=image")?;
    Ok((name.to_owned(), new.to_owned()))
}

/// Parses `NAME=*,80`; the name may contain `=`.
pub(crate) fn shape(text: &str) -> Result<(String, Shape), String> {
    const HOW: &str = "write NAME=EXTENTS, such as embedding=384 or mel=*,80, where * varies";
    let (name, extents) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or(HOW)?;
    let extent = |extent: &str| match extent.trim() {
        "*" => Ok(Extent::Varying),
        number => {
            let number = number.parse().ok().filter(|&number: &u32| number <= limits::EXTENT);
            number.map(Extent::Fixed).ok_or_else(|| HOW.to_owned())
        }
    };
    let extents = extents.split(',').map(extent).collect::<Result<Vec<_>, String>>()?;
    Ok((name.to_owned(), Shape::new(extents)))
}

/// The value of `--block-bytes`; `None` for blocks as long as they can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockBytes(pub(crate) Option<usize>);

/// Parses `none` or a size of 1 KiB to 512 KiB.
pub(crate) fn block_bytes(text: &str) -> Result<BlockBytes, String> {
    if text == "none" {
        return Ok(BlockBytes(None));
    }
    let bytes = bytes_in(text, 1 << 10..=512 << 10)?;
    let bytes =
        bytes.ok_or_else(|| "a block has 1KiB to 512KiB; \"none\" writes blocks as long as they can be".to_owned())?;
    Ok(BlockBytes(Some(bytes)))
}

/// Parses a size of 1 byte to 32 MiB.
pub(crate) fn chunk_bytes(text: &str) -> Result<usize, String> {
    let bytes = bytes_in(text, 1..=32 << 20)?;
    bytes.ok_or_else(|| "a chunk has 1 byte to 32MiB".to_owned())
}

/// Parses the raw bytes of a file of a dataset: at least one.
pub(crate) fn shard_bytes(text: &str) -> Result<u64, String> {
    Some(bytes(text)?).filter(|&bytes| bytes > 0).ok_or_else(|| "a file of a dataset has at least 1 byte".to_owned())
}

/// Parses the number of versions that are kept: at least one.
pub(crate) fn kept_versions(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "keep at least 1 version, a number".to_owned())
}

/// Parses a number of bytes in a range, which a `usize` has.
fn bytes_in(text: &str, range: RangeInclusive<usize>) -> Result<Option<usize>, String> {
    Ok(usize::try_from(bytes(text)?).ok().filter(|bytes| range.contains(bytes)))
}

/// Parses `65536`, `64KiB` or `1MiB`.
fn bytes(text: &str) -> Result<u64, String> {
    parse_byte_count(text).ok_or_else(|| "write bytes, KiB, MiB or GiB: 65536, 64KiB, 1MiB".to_owned())
}

/// Returns the parser of a profile's name.
pub(crate) fn profiles() -> impl TypedValueParser<Value = Profile> {
    let values = Profile::ALL.map(|profile| PossibleValue::new(profile.name()).help(help_of(profile)));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Profile>())
}

/// Returns the purpose of a profile, and what it does.
fn help_of(profile: Profile) -> &'static str {
    match profile {
        Profile::Fast => "For training that waits for its data: the fastest to decode, no entropy coder",
        Profile::Balanced => "For nearly all uses: short codes; Zstandard for text, and if it saves a fifth more",
        Profile::Small => "For archives and slow networks: the smallest file, several times slower",
        Profile::Raw => "For memory maps: no encoding, every sample a zero-copy view of the file",
        Profile::BitshuffleZstd => "For comparisons: bit-shuffle and Zstandard 9",
        _ => "", // a profile newer than this program: a test finds it
    }
}

/// Returns the parser of an alignment: 64 or 4096.
pub(crate) fn alignments() -> impl TypedValueParser<Value = u32> {
    PossibleValuesParser::new(["64", "4096"]).try_map(|text| text.parse::<u32>())
}

/// Returns the value of `--threads`, or the number of cores.
pub(crate) fn threads(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| available_parallelism().ok()).map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_commas_that_are_not_escaped() {
        let names = |text: &str| text.parse::<Names>().map(|names| names.0);
        assert_eq!(names("a"), Ok(vec!["a".to_owned()]));
        assert_eq!(names(r"a,b\,c,d\\"), Ok(vec!["a".to_owned(), "b,c".to_owned(), r"d\".to_owned()]));
        assert!(names("a,").is_err() && names("").is_err() && names("a,,b").is_err());
    }

    #[test]
    fn names_of_repeated_options_add_up() {
        let options: Vec<Names> = ["a,b", "c"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(Names::all(&options), Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
        assert_eq!(Names::all(&[]), None);
    }

    #[test]
    fn chunk_sizes_have_binary_units() {
        for (text, bytes) in [("65536", 65_536), ("64KiB", 65_536), ("1MiB", 1 << 20), ("1 mib", 1 << 20), ("7B", 7)] {
            assert_eq!(chunk_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "KiB", "64KB", "64K", "-1", "1.5MiB", "0", "33MiB", "99999999999999999999", "1MiB1"] {
            assert!(chunk_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn block_sizes_have_bounds_or_are_none() {
        for (text, bytes) in [("1KiB", Some(1024)), ("8192", Some(8192)), ("512KiB", Some(512 << 10)), ("none", None)] {
            assert_eq!(block_bytes(text), Ok(BlockBytes(bytes)), "{text}");
        }
        for text in ["", "0", "1023", "513KiB", "1MiB", "None", "8KB", "99999999999999999999", "17179869184MiB"] {
            assert!(block_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shape_names_a_column_and_its_extents() {
        for (text, name, extents) in [("a=b=*,80", "a=b", "[*,80]"), ("x=384", "x", "[384]")] {
            let (column, shape) = shape(text).unwrap();
            assert_eq!((column.as_str(), shape.to_string().as_str()), (name, extents));
        }
        for text in ["x", "x=", "=3", "x=3,", "x=-1", "x=a", "x=4294967295", "x=[3]"] {
            assert!(shape(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_rename_names_a_column_and_its_new_name() {
        for (text, old, new) in [("img=image", "img", "image"), ("a=b=c", "a=b", "c")] {
            assert_eq!(rename(text), Ok((old.to_owned(), new.to_owned())));
        }
        for text in ["img", "img=", "=image", "a=b="] {
            assert!(rename(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_cast_names_a_column_and_a_type_of_numbers() {
        for (text, dtype) in [("mel=bf16", DType::Bf16), ("mel=f64", DType::F64), ("mel=i8", DType::I8)] {
            assert_eq!(cast(text), Ok(("mel".to_owned(), dtype)));
        }
        for text in ["mel", "mel=bool", "mel=utf8", "=f16", "mel="] {
            assert!(cast(text).is_err(), "{text}");
        }
    }
}
