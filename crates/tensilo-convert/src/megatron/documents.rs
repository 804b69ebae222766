//! A pass over the documents.

use super::index::{IndexList, MegatronIndex};
use crate::element::{element_array, swap_bytes};
use crate::error::unreadable;
use std::sync::Arc;
use tensilo::import::arrow::array::{ListArray, RecordBatch};
use tensilo::import::arrow::buffer::{MutableBuffer, OffsetBuffer, ScalarBuffer};
use tensilo::import::arrow::datatypes::{DataType, SchemaRef};
use tensilo::import::{FormatFile, InputReader};
use tensilo::source::Source as _;
use tensilo::{Error, Result};

/// The bytes of tokens in a batch, about.
const BATCH_BYTES: usize = 2 << 20;
/// The most bytes of a document: Arrow's offsets have 32 bits.
const MOST_BYTES: usize = (1 << 31) - 1;
/// Documents in a batch, whatever their size.
const BATCH_DOCUMENTS: u64 = 1 << 16;

/// The documents of a dataset, in order.
pub(super) struct Documents {
    index: MegatronIndex,
    schema: SchemaRef,
    tokens: InputReader,
    lengths: IndexList,
    pointers: IndexList,
    bounds: IndexList,
    next_document: u64,
    next_sequence: u64,
}

impl Documents {
    pub(super) fn new(
        index: &MegatronIndex,
        file: &FormatFile,
        tokens: &FormatFile,
        schema: SchemaRef,
    ) -> Result<Self> {
        let [lengths, pointers, mut bounds] = index.lists(file)?;
        let first = bounds.next_number()?;
        if first != 0 {
            return Err(Error::bad_input(format!("the first document begins with sequence {first}, not 0")));
        }
        let tokens = tokens.reader()?;
        let index = index.clone();
        Ok(Self { index, schema, tokens, lengths, pointers, bounds, next_document: 0, next_sequence: 0 })
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        let (mut bytes, mut ends) = (MutableBuffer::new(0), vec![0_i32]);
        let width = self.index.dtype.element_bytes();
        let last = self.index.document_count.min(self.next_document.saturating_add(BATCH_DOCUMENTS));
        while self.next_document < last && bytes.len() < BATCH_BYTES {
            self.document(&mut bytes).map_err(|error| self.of_document(error))?;
            let end = i32::try_from(bytes.len() / width);
            ends.push(end.map_err(|_| self.of_document(Error::bad_input("it has more than 2^31 - 1 tokens")))?);
            self.next_document = self.next_document.saturating_add(1);
        }
        if self.next_document == self.index.document_count && self.next_sequence != self.index.sequence_count {
            let (found, due) = (self.next_sequence, self.index.sequence_count);
            return Err(Error::bad_input(format!("the documents have {found} sequences, and the index has {due}")));
        }
        if cfg!(target_endian = "big") {
            swap_bytes(width, &mut bytes);
        }
        let elements = element_array(self.index.dtype, bytes)?;
        let failed = |error: tensilo::import::arrow::error::ArrowError| Error::bad_input(error.to_string());
        let DataType::List(item) = self.schema.field(0).data_type() else {
            return Err(Error::bad_input("documents are lists"));
        };
        let lists = ListArray::try_new(Arc::clone(item), OffsetBuffer::new(ScalarBuffer::from(ends)), elements, None);
        RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::new(lists.map_err(failed)?)]).map_err(failed)
    }

    fn of_document(&self, error: Error) -> Error {
        match error.kind() {
            tensilo::ErrorKind::BadInput => {
                Error::bad_input(format!("document {}: {}", self.next_document, error.message()))
            }
            _ => error,
        }
    }

    /// Appends the tokens of the next document: of its sequences, one after the other.
    fn document(&mut self, bytes: &mut MutableBuffer) -> Result<()> {
        let end = self.bounds.next_number()?;
        if end < self.next_sequence || end > self.index.sequence_count {
            let (next, count) = (self.next_sequence, self.index.sequence_count);
            return Err(Error::bad_input(format!("its sequences are {next}..{end}, and the index has {count}")));
        }
        while self.next_sequence < end {
            let (length, offset) = (self.lengths.next_length()?, self.pointers.next_number()?);
            let width = u64::try_from(self.index.dtype.element_bytes()).unwrap_or(8); // at most 8
            let byte_count = length.saturating_mul(width);
            let is_inside = offset.checked_add(byte_count).is_some_and(|end| end <= self.tokens.byte_count());
            let count = usize::try_from(byte_count).ok().filter(|_| is_inside).ok_or_else(|| {
                let (sequence, found) = (self.next_sequence, self.tokens.byte_count());
                Error::bad_input(format!(
                    "sequence {sequence} has {byte_count} bytes at {offset}, and the file of tokens has {found}"
                ))
            })?;
            let start = bytes.len();
            // sequences may share bytes, so that the file does not bound their sum
            if start.saturating_add(count) > MOST_BYTES {
                return Err(Error::bad_input(format!("it has more than {MOST_BYTES} bytes")));
            }
            bytes.extend_zeros(count);
            let place = bytes.get_mut(start..).unwrap_or_default(); // as many were added
            self.tokens.read_exact_at(offset, place).map_err(unreadable)?;
            self.next_sequence = self.next_sequence.saturating_add(1);
        }
        Ok(())
    }
}

impl Iterator for Documents {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next_document >= self.index.document_count {
            return None;
        }
        let batch = self.batch();
        if batch.is_err() {
            self.next_document = self.index.document_count;
        }
        Some(batch)
    }
}
