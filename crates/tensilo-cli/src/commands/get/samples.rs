//! Reads samples of a column by index, from a file or a dataset.
//!
//! A cursor reads one file. In a dataset, [`Samples`] finds the file that holds a sample and keeps
//! a cursor of that file, so reading in order opens each file only once. If a file of a dataset
//! lacks the column, its samples are [`SampleEntry::Absent`], which every format treats as null.

use crate::failure::{Failure, Outcome};
use crate::open;
use crate::output::Inputs;
use half::f16;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tensilo::nested::List;
use tensilo::{ColumnSchema, Cursor, DType, Reader, Sample, Schema};
use tensilo_data::Dataset;

/// A file, or a dataset.
pub(super) enum SampleSource {
    File(Reader),
    Dataset(Dataset),
}

impl SampleSource {
    pub(super) fn open(path: &Path, quiet: bool) -> Outcome<Self> {
        match open::dataset(path)? {
            Some(dataset) => Ok(Self::Dataset(dataset)),
            None => Ok(Self::File(open::open(path, quiet)?)),
        }
    }

    /// Returns the inputs, which the output must not overwrite. `path` is the file or the folder.
    pub(super) fn inputs<'a>(&'a self, path: &'a PathBuf) -> Inputs<'a> {
        match self {
            Self::File(_) => Inputs::file(path),
            Self::Dataset(dataset) => Inputs::Dataset(dataset),
        }
    }

    pub(super) fn schema(&self) -> &Schema {
        match self {
            Self::File(reader) => reader.schema(),
            Self::Dataset(dataset) => dataset.schema(),
        }
    }

    pub(super) fn sample_count(&self) -> u64 {
        match self {
            Self::File(reader) => reader.sample_count(),
            Self::Dataset(dataset) => dataset.sample_count(),
        }
    }

    pub(super) fn samples(&self, name: &str) -> Outcome<Samples> {
        match self {
            Self::File(reader) => {
                let column = reader.column(name)?;
                let (schema, has_nulls) = (column.schema().clone(), column.facts().null_count > 0);
                let cursor = Some(Box::new(column.cursor()));
                Ok(Samples { schema, has_nulls, range: 0..u64::MAX, cursor, dataset: None })
            }
            Self::Dataset(dataset) => {
                let (number, schema) = dataset.schema().find_column(name)?;
                let (schema, has_nulls) = (schema.clone(), schema.nullable);
                Ok(Samples { schema, has_nulls, range: 0..0, cursor: None, dataset: Some((dataset.clone(), number)) })
            }
        }
    }
}

/// The samples of a column. Memory is bounded by the largest chunk.
pub(super) struct Samples {
    pub(super) schema: ColumnSchema,
    /// Whether any sample can be null.
    pub(super) has_nulls: bool,
    /// The samples that the cursor covers. Without a cursor, these samples are null.
    range: Range<u64>,
    cursor: Option<Box<Cursor>>,
    /// The dataset that holds all other samples, and the number of the column in it. `None` for a
    /// file.
    dataset: Option<(Dataset, usize)>,
}

impl Samples {
    /// Reads sample `i`.
    pub(super) fn read(&mut self, i: u64) -> Outcome<SampleEntry<'_>> {
        if !self.range.contains(&i) {
            self.find(i)?;
        }
        let Some(cursor) = &mut self.cursor else { return Ok(SampleEntry::Absent) };
        let i = i.saturating_sub(self.range.start);
        Ok(if self.schema.levels.is_empty() {
            SampleEntry::Item(cursor.read(i)?)
        } else {
            SampleEntry::List(cursor.read_list(i)?)
        })
    }

    /// Moves to the file that has sample `i`.
    fn find(&mut self, i: u64) -> Outcome {
        if let Some((dataset, number)) = &self.dataset {
            let found = dataset.find(*number, i)?;
            self.cursor = found.column.map(|column| Box::new(column.cursor()));
            self.range = found.samples;
        }
        Ok(())
    }
}

/// A sample of a column, or an entry of a list.
#[derive(Clone)]
pub(super) enum SampleEntry<'a> {
    /// Null, because the file does not have the column.
    Absent,
    Item(Sample<'a>),
    List(List<'a>),
}

impl SampleEntry<'_> {
    pub(super) fn is_null(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Item(sample) => sample.is_null(),
            Self::List(list) => list.is_null(),
        }
    }

    /// Returns the number of members of a list.
    pub(super) fn list_len(&self) -> usize {
        if let Self::List(list) = self { list.len() } else { 0 }
    }

    /// Returns member `k` of a list.
    pub(super) fn member(&self, k: usize) -> Outcome<Self> {
        match self {
            Self::List(list) if list.has_lists() => Ok(Self::List(list.list(k)?)),
            Self::List(list) => Ok(Self::Item(list.item(k)?)),
            Self::Item(_) | Self::Absent => {
                let message = "the fields of the struct are nested in different numbers of lists";
                Err(Failure::Usage(format!("{message}; print each column individually")))
            }
        }
    }
}

/// Returns the bytes of one element as an array. Callers pass exactly `N` bytes; if there are
/// fewer, the array is zero.
pub(super) fn element<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().map_or([0; N], |bytes| *bytes)
}

/// Returns whether a type is a float of at most 32 bits.
pub(super) fn is_f32(dtype: DType) -> bool {
    let is_small_float = dtype.is_small() && !matches!(dtype, DType::I4 | DType::U4);
    is_small_float || matches!(dtype, DType::Bf16 | DType::F16 | DType::F32)
}

/// Converts an element of at most 32 bits to the f32 with the same value. A bf16 NaN keeps all its
/// bits.
pub(super) fn to_f32(dtype: DType, bytes: &[u8]) -> f32 {
    match dtype {
        DType::Bf16 => f32::from_bits(u32::from(u16::from_ne_bytes(element(bytes))) << 16),
        DType::F16 => f16::from_ne_bytes(element(bytes)).to_f32(),
        DType::F32 => f32::from_ne_bytes(element(bytes)),
        small => {
            let [byte] = element(bytes);
            small.small_value(byte).unwrap_or(f32::NAN) // callers pass no other type
        }
    }
}

/// Returns the failure for a column whose type `--as` cannot convert.
pub(super) fn unsupported_as(dtype: DType) -> Failure {
    Failure::Usage(format!(
        "the column has type {dtype}: --as f32 needs floats of at most 32 bits; --as bits accepts any type except \
         bytes and text"
    ))
}
