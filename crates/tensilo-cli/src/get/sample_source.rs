//! The samples of a file or of a dataset, by their numbers.

use super::entry::SampleEntry;
use crate::failure::Outcome;
use crate::open;
use crate::output::Inputs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tensilo::{ColumnSchema, Cursor, Reader, Schema};
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

    /// Returns the inputs, of which `path` is the only one or the folder.
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

    /// Returns the samples of a column.
    pub(super) fn samples(&self, name: &str) -> Outcome<Samples> {
        match self {
            Self::File(reader) => {
                let column = reader.column(name)?;
                let (schema, has_nulls) = (column.schema().clone(), column.facts().null_count > 0);
                Ok(Samples {
                    schema,
                    has_nulls,
                    range: 0..u64::MAX,
                    cursor: Some(Box::new(column.cursor())),
                    dataset: None,
                })
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
    schema: ColumnSchema,
    /// Whether a sample may be null.
    has_nulls: bool,
    /// The samples that the cursor has. If there is no cursor, they are null.
    range: Range<u64>,
    cursor: Option<Box<Cursor>>,
    /// The dataset that has other samples, and the number of the column.
    dataset: Option<(Dataset, usize)>,
}

impl Samples {
    pub(super) fn schema(&self) -> &ColumnSchema {
        &self.schema
    }

    /// Returns whether a sample may be null.
    pub(super) fn has_nulls(&self) -> bool {
        self.has_nulls
    }

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

    /// Goes to the file that has sample `i`.
    fn find(&mut self, i: u64) -> Outcome {
        if let Some((dataset, number)) = &self.dataset {
            let found = dataset.find(*number, i)?;
            self.cursor = found.column.map(|column| Box::new(column.cursor()));
            self.range = found.samples;
        }
        Ok(())
    }
}
