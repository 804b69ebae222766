//! The samples that an export reads.

use crate::format::CastFacts;
use crate::open::FileIdentity;
use crate::{Column, Error, Reader, Result, Schema};
use std::iter;
use std::path::Path;

/// Samples that are exported as one table: those of a file, or of several files that follow each
/// other.
pub trait Table {
    /// The error of the table.
    type Error: From<Error>;

    /// Returns the columns and the metadata.
    fn schema(&self) -> &Schema;

    /// Returns the path, for errors.
    fn path(&self) -> Option<&Path>;

    /// Opens the parts of the table one after the other, with these columns, which are named by
    /// their numbers in the schema.
    fn parts(&self, columns: Vec<usize>) -> impl Iterator<Item = std::result::Result<TablePart, Self::Error>>;

    /// Returns the facts of the casts of these columns, of all parts together.
    fn cast_facts(&self, columns: &[usize]) -> std::result::Result<Vec<Option<CastFacts>>, Self::Error>;

    /// Returns whether all samples were written by one conversion, so that the metadata describe
    /// the order of the values in the dictionaries of all of them.
    fn is_of_one_conversion(&self) -> std::result::Result<bool, Self::Error>;

    /// Fails if an output, of which these are known, is a file of the table.
    fn check_output(&self, identity: Option<FileIdentity>, path: Option<&Path>)
    -> std::result::Result<(), Self::Error>;
}

/// Consecutive samples of a table.
pub struct TablePart {
    pub(super) columns: Vec<Option<Column>>,
    pub(super) sample_count: u64,
}

impl TablePart {
    /// Returns a part of so many samples, which are all samples of each of these columns. `None`
    /// stands for a column of which all are null.
    ///
    /// The columns have the types, shapes and levels of lists of the columns of the table, but
    /// their names and metadata can be others.
    pub fn new(columns: Vec<Option<Column>>, sample_count: u64) -> Result<Self> {
        match columns.iter().flatten().find(|column| column.sample_count() != sample_count) {
            None => Ok(Self { columns, sample_count }),
            Some(column) => {
                let message = format!("{} samples in a part of {sample_count}", column.sample_count());
                Err(column.in_file(Error::bad_argument(message).with_column(&column.schema().name)))
            }
        }
    }
}

impl TablePart {
    /// Returns the columns; `None` stands for one of which all samples are null.
    pub fn columns(&self) -> &[Option<Column>] {
        &self.columns
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }
}

impl Table for Reader {
    type Error = Error;

    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn path(&self) -> Option<&Path> {
        self.path()
    }

    fn parts(&self, columns: Vec<usize>) -> impl Iterator<Item = Result<TablePart>> {
        let columns = columns.iter().map(|&number| self.column_at(number)).collect();
        iter::once(TablePart::new(columns, self.sample_count()))
    }

    fn cast_facts(&self, columns: &[usize]) -> Result<Vec<Option<CastFacts>>> {
        Ok(columns.iter().map(|&number| self.column_at(number).and_then(|column| column.facts().cast)).collect())
    }

    fn is_of_one_conversion(&self) -> Result<bool> {
        Ok(self.commit_count() <= 1)
    }

    fn check_output(&self, identity: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        self.check_output(identity, path)
    }
}
