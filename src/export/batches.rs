//! The samples of a file as Arrow record batches, in memory.

use super::assembler::BatchAssembler;
use super::dictionary_order;
use super::exported_part::ExportedPart;
use super::field::Parts;
use super::options::TensorForm;
use super::restore::TypeChoice;
use super::selected;
use super::table::{Table, TablePart};
use crate::error::Advice;
use crate::{Error, Reader, Result};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

/// The samples of columns (all if `None`) as Arrow record batches, with the types that [the
/// module](super) lists. The name of a struct stands for all its fields. A field of a struct brings
/// the nulls of the struct with it.
///
/// Batches have at most 65,536 samples, and at most 16 MiB unless a single sample has more. Cost:
/// each chunk is decoded once and copied once. Columns that were ordered dictionaries are read once
/// before, to know whether samples have values that are not among them.
pub fn batches(reader: &Reader, columns: Option<&[String]>) -> Result<Batches> {
    let choice =
        TypeChoice { parts: Parts::Required, tensors: TensorForm::AsImported, stored_types: false, ordered: true };
    let (assembler, columns) = select(reader, columns, choice)?;
    let part = match Table::parts(reader, &columns).next() {
        Some(part) => ExportedPart::new(part?),
        None => return Err(Error::internal("a file has no samples to export")),
    };
    Ok(Batches { assembler, part, is_over: false })
}

/// Returns the assembler of batches of columns (all if `None`), and their numbers.
pub(super) fn select<T: Table>(
    table: &T,
    columns: Option<&[String]>,
    choice: TypeChoice,
) -> std::result::Result<(BatchAssembler, Vec<usize>), T::Error> {
    let columns = selected::columns(table.schema(), columns);
    let columns = columns.map_err(|error| match table.path() {
        Some(path) => error.with_path(path),
        None => error,
    })?;
    let ordered = choice.ordered && !choice.stored_types && order_holds(table, &columns, choice)?;
    let casts = table.cast_facts(&columns)?;
    let choice = TypeChoice { ordered, ..choice };
    Ok((BatchAssembler::new(table.schema(), table.path(), &columns, &casts, choice)?, columns))
}

/// Returns whether there are ordered dictionaries, and they have all values that the samples have:
/// the schema says which are ordered before any sample is exported.
fn order_holds<T: Table>(table: &T, columns: &[usize], choice: TypeChoice) -> std::result::Result<bool, T::Error> {
    let columns = dictionary_order::ordered(table.schema(), columns);
    if columns.is_empty() || !table.is_of_one_conversion()? {
        return Ok(false);
    }
    let choice = TypeChoice { ordered: true, ..choice };
    let mut assembler = BatchAssembler::new(table.schema(), table.path(), &columns, &[], choice)?;
    for part in table.parts(&columns) {
        let Ok(part) = part else { return Ok(true) }; // the error will occur again
        if let Err(error) = read_all(&mut assembler, part) {
            // other errors will occur again
            return Ok(!error.advice().contains(&Advice::StoredTypes));
        }
    }
    match assembler.rest() {
        Ok(_) => Ok(true),
        Err(error) => Ok(!error.advice().contains(&Advice::StoredTypes)),
    }
}

/// Reads a part, and forgets the batches that are full.
fn read_all(assembler: &mut BatchAssembler, part: TablePart) -> Result<()> {
    let mut part = ExportedPart::new(part);
    while assembler.next_full(&mut part)?.is_some() {}
    Ok(())
}

/// See [`batches`]. Its errors hold the crate's own [`Error`] as [`ArrowError::ExternalError`];
/// after one it ends.
pub struct Batches {
    assembler: BatchAssembler,
    part: ExportedPart,
    is_over: bool,
}

impl Batches {
    /// Sets the number of samples that a batch has at most, at least 1.
    pub fn with_batch_samples(mut self, samples: u64) -> Self {
        self.assembler.set_batch_samples(samples);
        self
    }

    /// Sets the bytes that a batch has at most, unless a single sample has more.
    pub fn with_batch_bytes(mut self, bytes: u64) -> Self {
        self.assembler.set_batch_bytes(bytes);
        self
    }

    /// Returns the number of samples that were returned so far.
    pub fn position(&self) -> u64 {
        self.assembler.position()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self.assembler.next_full(&mut self.part)? {
            Some(batch) => Ok(Some(batch)),
            None => self.assembler.rest(),
        }
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let batch = self.next_batch();
        self.is_over = !matches!(batch, Ok(Some(_)));
        batch.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.assembler.arrow_schema().clone()
    }
}
