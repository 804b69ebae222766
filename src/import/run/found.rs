//! Facts about a conversion in the metadata of the output file: inferred shapes, and the keys of
//! dropped metadata.
//!
//! Both are stored as text under separate keys, so a reader can report them later.

use crate::bytes::le::u64_of;
use crate::logical::arrow_type::INFERRED_SHAPE;
use crate::{ColumnSchema, Extent, Metadata, Schema, Shape};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fmt;

/// The metadata key of the list of dropped keys. A key is dropped if the format cannot store the
/// key or its value.
pub(in crate::import) const DROPPED: &str = "import.dropped_metadata";
/// The maximum size of this list in bytes.
const MAX_LISTED_BYTES: usize = 4096;
/// The last entry of an incomplete list.
const MORE: &str = "...";

/// Returns the keys of the metadata that a conversion dropped, because the format cannot store
/// them: they are too long or not UTF-8. Keys of a column have the form `key of column`.
///
/// The metadata of the file and of each column lists them under `import.dropped_metadata`, as a
/// JSON array of at most about 4,096 bytes. If keys are missing from the list, its last entry is
/// `...`.
pub fn dropped_metadata(schema: &Schema) -> Vec<String> {
    let of_columns = schema
        .columns
        .iter()
        .flat_map(|column| listed(&column.metadata).into_iter().map(|key| format!("{key} of {}", column.name)));
    listed(&schema.metadata).into_iter().chain(of_columns).collect()
}

/// Returns the keys that are listed as dropped.
fn listed(metadata: &Metadata) -> Vec<String> {
    metadata.get(DROPPED).and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default()
}

/// Adds keys to the list of dropped keys, without duplicates. If the list has no room for all keys,
/// it ends with `...`.
pub(in crate::import) fn add_dropped(metadata: &mut Metadata, keys: &[String]) {
    let before = listed(metadata);
    let mut known = HashSet::new();
    let (mut list, mut bytes, mut is_incomplete) = (Vec::new(), 2_usize, false);
    for key in before.iter().chain(keys).filter(|key| known.insert(*key)) {
        let text = Value::from(key.as_str());
        let with_key = bytes.saturating_add(text.to_string().len()).saturating_add(1); // plus the comma
        if key == MORE || with_key > MAX_LISTED_BYTES {
            is_incomplete = true;
        } else {
            bytes = with_key;
            list.push(text);
        }
    }
    list.extend(is_incomplete.then(|| Value::from(MORE)));
    if !keys.is_empty() {
        metadata.insert(DROPPED.to_owned(), Value::from(list).to_string());
    }
}

/// Returns which strings to retain, so that their total length is at most `limit` bytes. `bytes`
/// has the lengths of the strings. The longest strings are dropped first.
pub(in crate::import) fn fitting(limit: usize, bytes: &[usize]) -> Vec<bool> {
    let mut sum = bytes.iter().fold(0_usize, |sum, bytes| sum.saturating_add(*bytes));
    let mut retained = vec![true; bytes.len()];
    let mut longest_first: Vec<(usize, &mut bool)> = bytes.iter().copied().zip(&mut retained).collect();
    longest_first.sort_by_key(|(bytes, _)| Reverse(*bytes));
    for (bytes, retained) in longest_first {
        if sum <= limit {
            break;
        }
        (sum, *retained) = (sum.saturating_sub(bytes), false);
    }
    retained
}

/// The maximum number of listed samples with a different shape.
const MAX_LISTED: usize = 3;

/// The shape that a conversion found in a column whose type does not state it.
///
/// The column's metadata stores it under `import.shape`, in the format of its `Display`: `[384] in
/// 32000 samples`, or `[384] in 31999 of 32000 samples; [383] in sample 17`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InferredShape {
    /// The shape of all samples, or of nearly all samples.
    pub shape: Shape,
    /// The number of samples with a known shape. A null, for example, does not have one.
    pub sample_count: u64,
    /// The number of samples with a different shape. Unless it is 0, the column's shape varies.
    pub odd_count: u64,
    /// The first few of these samples.
    pub odd: Vec<OddSample>,
}

/// A sample whose shape differs from the shape of nearly all other samples.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OddSample {
    /// The index of the sample in the file.
    pub sample: u64,
    /// The shape of the sample. An unknown extent, such as an extent inside an empty list, is
    /// reported as varying.
    pub shape: Shape,
}

impl InferredShape {
    /// Reads the shape that the conversion found for this column. Returns `None` if it found no
    /// shape, or if the shape was declared.
    pub fn of(column: &ColumnSchema) -> Option<Self> {
        parse(column.metadata.get(INFERRED_SHAPE)?)
    }

    /// Creates the description of a shape. `odd` has all samples with a different shape.
    pub(in crate::import) fn new(shape: Shape, sample_count: u64, odd: impl IntoIterator<Item = (u64, Shape)>) -> Self {
        let mut odd: Vec<OddSample> = odd.into_iter().map(|(sample, shape)| OddSample { sample, shape }).collect();
        let odd_count = u64_of(odd.len());
        odd.truncate(MAX_LISTED);
        Self { shape, sample_count, odd_count, odd }
    }

    /// Returns the number of samples that have the shape.
    pub fn agreeing_count(&self) -> u64 {
        self.sample_count.saturating_sub(self.odd_count)
    }
}

impl fmt::Display for InferredShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in ", self.shape)?;
        if self.odd_count > 0 {
            write!(f, "{} of ", self.agreeing_count())?;
        }
        write!(f, "{} samples", self.sample_count)?;
        for odd in &self.odd {
            write!(f, "; {} in sample {}", odd.shape, odd.sample)?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Option<InferredShape> {
    let mut parts = text.split("; ");
    let (shape, counts) = parts.next()?.split_once(" in ")?;
    let counts = counts.strip_suffix(" samples")?;
    let (agreeing, count) = counts.split_once(" of ").unwrap_or((counts, counts));
    let (agreeing, sample_count): (u64, u64) = (agreeing.parse().ok()?, count.parse().ok()?);
    let odd = parts.map(|part| {
        let (shape, sample) = part.split_once(" in sample ")?;
        Some(OddSample { sample: sample.parse().ok()?, shape: parse_shape(shape)? })
    });
    Some(InferredShape {
        shape: parse_shape(shape)?,
        sample_count,
        odd_count: sample_count.checked_sub(agreeing)?,
        odd: odd.collect::<Option<_>>()?,
    })
}

/// Parses a shape in the format of its `Display`.
fn parse_shape(text: &str) -> Option<Shape> {
    let extents = text.strip_prefix('[')?.strip_suffix(']')?.split(',').map(|extent| match extent {
        "*" => Some(Extent::Varying),
        extent => extent.parse().ok().map(Extent::Fixed),
    });
    extents.collect::<Option<Vec<_>>>().map(Shape::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_keys_ends_at_a_key() {
        let mut metadata = Metadata::new();
        let key = |i: usize| format!("key-{i:04}");
        for keys in [0..3, 1..300, 300..600] {
            add_dropped(&mut metadata, &keys.map(key).collect::<Vec<_>>());
        }
        add_dropped(&mut metadata, &["x".repeat(10_000), "short".to_owned()]);
        let mut list = listed(&metadata);
        assert_eq!(list.pop().as_deref(), Some(MORE));
        assert!(metadata[DROPPED].len() <= MAX_LISTED_BYTES + 6 && list.len() > 350, "{list:?}");
        assert_eq!(list, (0..list.len()).map(key).collect::<Vec<_>>());
    }

    #[test]
    fn a_key_with_a_comma_stays_one_key() {
        let mut schema = Schema::default();
        add_dropped(&mut schema.metadata, &["a, b".to_owned(), "\"c\\".to_owned()]);
        add_dropped(&mut schema.metadata, &["a, b".to_owned()]);
        assert_eq!(dropped_metadata(&schema), ["a, b", "\"c\\"]);
    }

    #[test]
    fn what_was_found_survives_as_text() {
        let shape = |extents: &[Option<u32>]| {
            Shape::new(extents.iter().map(|extent| extent.map_or(Extent::Varying, Extent::Fixed)).collect::<Vec<_>>())
        };
        let all = InferredShape::new(shape(&[None, Some(80)]), 7, []);
        assert_eq!(all.to_string(), "[*,80] in 7 samples");
        let odd = (0..5).map(|sample| (sample, shape(&[Some(383)])));
        let some = InferredShape::new(shape(&[Some(384)]), 3_000, odd);
        assert_eq!(
            some.to_string(),
            "[384] in 2995 of 3000 samples; [383] in sample 0; [383] in sample 1; [383] in sample 2"
        );
        for found in [all, some] {
            assert_eq!(parse(&found.to_string()), Some(found));
        }
        for text in ["", "[3] in", "[3] in x samples", "3 in 4 samples", "[3] in 5 of 4 samples", "[3] in 4 samples; x"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
