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
use std::iter;

/// The samples of columns (all if `None`) as Arrow record batches, with the types that [the
/// module](super) lists. The name of a struct stands for all its fields. A field of a struct brings
/// the nulls of the struct with it.
///
/// Batches have at most 65,536 samples, and at most 16 MiB unless a single sample has more. Cost:
/// each chunk is decoded once and copied once. Columns that were ordered dictionaries are read once
/// before, to know whether samples have values that are not among them.
pub fn batches(reader: &Reader, columns: Option<&[String]>) -> Result<Batches> {
    let (assembler, columns) = select(reader, columns, as_imported())?;
    let columns = columns.iter().map(|&number| reader.column_at(number)).collect();
    let part = TablePart::new(columns, reader.sample_count());
    Ok(Batches { assembler, parts: iter::once(part), part: None, is_over: false })
}

/// As [`batches`], of all parts of a table, which are opened one after the other. Batches go on
/// from part to part.
pub fn table_batches<'t, T: Table>(
    table: &'t T,
    columns: Option<&[String]>,
) -> std::result::Result<Batches<impl Iterator<Item = std::result::Result<TablePart, T::Error>> + 't>, T::Error> {
    let (assembler, columns) = select(table, columns, as_imported())?;
    Ok(Batches { assembler, parts: table.parts(columns), part: None, is_over: false })
}

fn as_imported() -> TypeChoice {
    TypeChoice { parts: Parts::Required, tensors: TensorForm::AsImported, stored_types: false, ordered: true }
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
    for part in table.parts(columns) {
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

/// See [`batches`] and [`table_batches`]. Their errors hold that of the table as
/// [`ArrowError::ExternalError`], which is the crate's own [`Error`] for a file; after one it ends.
pub struct Batches<P = iter::Once<Result<TablePart>>> {
    assembler: BatchAssembler,
    parts: P,
    part: Option<ExportedPart>,
    is_over: bool,
}

impl<P> Batches<P> {
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
}

impl<E: From<Error>, P: Iterator<Item = std::result::Result<TablePart, E>>> Batches<P> {
    fn next_batch(&mut self) -> std::result::Result<Option<RecordBatch>, E> {
        loop {
            if let Some(part) = &mut self.part
                && let Some(batch) = self.assembler.next_full(part)?
            {
                return Ok(Some(batch));
            }
            match self.parts.next() {
                Some(part) => self.part = Some(ExportedPart::new(part?)),
                None => return Ok(self.assembler.rest()?),
            }
        }
    }
}

impl<E, P> Iterator for Batches<P>
where
    E: From<Error> + std::error::Error + Send + Sync + 'static,
    P: Iterator<Item = std::result::Result<TablePart, E>>,
{
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

impl<E, P> RecordBatchReader for Batches<P>
where
    E: From<Error> + std::error::Error + Send + Sync + 'static,
    P: Iterator<Item = std::result::Result<TablePart, E>>,
{
    fn schema(&self) -> SchemaRef {
        self.assembler.arrow_schema().clone()
    }
}
