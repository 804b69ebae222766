//! Megatron's indexed datasets: `x.idx` contains the lengths of sequences, and `x.bin` their
//! tokens.
//!
//! The index is a header followed by three lists. Numbers are little-endian.
//!
//! ```text
//! "MMIDIDX\0\0", version 1 (u64), type (u8), sequences (u64), documents + 1 (u64)
//! length of each sequence (i32), its offset in the .bin file (i64)
//! number of the first sequence of each document, then the number of sequences (i64)
//! ```
//!
//! Before the lists are read, their sizes are compared with the size of the file. Then all three
//! are read front to back, in one pass over the documents. A sample is a document: the tokens of
//! all its sequences.

use crate::element::{element_array, element_field, swap_bytes};
use crate::stream::read_error;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::Arc;
use tensilo::import::arrow::array::{ListArray, RecordBatch};
use tensilo::import::arrow::buffer::{MutableBuffer, OffsetBuffer, ScalarBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tensilo::import::{FormatFile, InputFormat, InputReader, RecordSource};
use tensilo::source::Source as _;
use tensilo::{DType, Error, Result};

/// The name of the only column.
const COLUMN: &str = "tokens";

/// Megatron's indexed datasets, named by the path of the index.
pub(crate) struct Megatron;

impl InputFormat for Megatron {
    fn name(&self) -> &str {
        "Megatron datasets (.idx)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut first = Vec::new();
        file.reader()?.take(9).read_to_end(&mut first).map_err(read_error)?;
        if first != MAGIC {
            return Ok(None);
        }
        let index = MegatronIndex::read(file.reader()?)?;
        let tokens = file.companion(&file.path().with_extension("bin"))?;
        let item = Arc::new(element_field("item", index.dtype, false));
        let schema = Arc::new(Schema::new(vec![Field::new(COLUMN, DataType::List(item), false)]));
        Ok(Some(Box::new(MegatronFiles { index, file: file.clone(), tokens, schema })))
    }
}

/// An index, its file, and the file of tokens.
struct MegatronFiles {
    index: MegatronIndex,
    file: FormatFile,
    tokens: FormatFile,
    schema: SchemaRef,
}

impl RecordSource for MegatronFiles {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.index.document_count)
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let documents = Documents::new(&self.index, &self.file, &self.tokens, self.schema())?;
        let fields = fields.to_vec();
        // `fields` can be empty
        Ok(Box::new(
            documents.map(move |batch| batch?.project(&fields).map_err(|error| Error::bad_input(error.to_string()))),
        ))
    }
}

/// The first bytes of an index.
pub(crate) const MAGIC: &[u8] = b"MMIDIDX\x00\x00";
/// The version of the layout, which follows [`MAGIC`].
pub(crate) const VERSION: u64 = 1;
/// The size of the header in bytes.
const HEADER_BYTES: u64 = 34;
const LENGTH_BYTES: u64 = 4;
const POINTER_BYTES: u64 = 8;

/// The header of an index. The sizes of its lists have been compared with the size of the file.
#[derive(Clone, Debug)]
struct MegatronIndex {
    dtype: DType,
    sequence_count: u64,
    document_count: u64,
}

impl MegatronIndex {
    /// Reads the header, and compares the sizes of the lists with the size of the file.
    fn read(mut file: InputReader) -> Result<Self> {
        let mut header = Vec::new();
        (&mut file).take(HEADER_BYTES).read_to_end(&mut header).map_err(read_error)?;
        let header: [u8; 34] =
            header.try_into().map_err(|_| Error::bad_input("the index is truncated in its header"))?;
        let [_, _, _, _, _, _, _, _, _, rest @ ..] = header;
        let [a, b, c, d, e, f, g, h, code, rest @ ..] = rest;
        let version = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if version != VERSION {
            return Err(Error::bad_input(format!("the index has version {version}, expected {VERSION}")));
        }
        let [a, b, c, d, e, f, g, h, rest @ ..] = rest;
        let sequence_count = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let bounds = u64::from_le_bytes(rest);
        let lists = (|| {
            let sequences = sequence_count.checked_mul(LENGTH_BYTES + POINTER_BYTES)?;
            sequences.checked_add(bounds.checked_mul(POINTER_BYTES)?)?.checked_add(HEADER_BYTES)
        })();
        let found = file.byte_count();
        if lists.and_then(|bytes| bytes.checked_add(sequence_count)) == Some(found) && sequence_count > 0 {
            return Err(Error::bad_input("the index has sequence modes (multimodal data), which are not supported"));
        }
        if lists != Some(found) {
            let expected = lists.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
            let message = format!(
                "the index has {sequence_count} sequences and {bounds} document bounds, which take {expected} bytes, \
                 but the file has {found}"
            );
            return Err(Error::bad_input(message));
        }
        let document_count =
            bounds.checked_sub(1).ok_or_else(|| Error::bad_input("the index has no document bounds"))?;
        if document_count == 0 && sequence_count > 0 {
            return Err(Error::bad_input(format!("the index has {sequence_count} sequences, but no documents")));
        }
        Ok(Self { dtype: element_type(code)?, sequence_count, document_count })
    }

    /// Returns readers of the lengths, the offsets and the document bounds.
    fn lists(&self, file: &FormatFile) -> Result<[IndexList; 3]> {
        // no overflow: the lists lie in the file
        let pointers = HEADER_BYTES + self.sequence_count * LENGTH_BYTES;
        let documents = pointers + self.sequence_count * POINTER_BYTES;
        Ok([IndexList::at(file, HEADER_BYTES)?, IndexList::at(file, pointers)?, IndexList::at(file, documents)?])
    }
}

/// The types of tokens, in the order of Megatron's type codes, which start at 1.
const TYPES: [DType; 8] =
    [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F64, DType::F32, DType::U16];

/// Returns the type of tokens with this Megatron type code.
fn element_type(code: u8) -> Result<DType> {
    let found = usize::from(code).checked_sub(1).and_then(|number| TYPES.get(number));
    let message = || format!("the index has token type {code}, expected 1 to {}", TYPES.len());
    found.copied().ok_or_else(|| Error::bad_input(message()))
}

/// Returns the Megatron type code of a type.
pub(crate) fn type_code(dtype: DType) -> Option<u8> {
    (1..).zip(TYPES).find(|(_, known)| *known == dtype).map(|(code, _)| code)
}

/// A list of the index, which is read front to back.
struct IndexList(BufReader<InputReader>);

impl IndexList {
    fn at(file: &FormatFile, offset: u64) -> Result<Self> {
        let mut reader = file.reader()?;
        reader.seek(SeekFrom::Start(offset)).map_err(read_error)?;
        Ok(Self(BufReader::new(reader)))
    }

    /// Returns the next entry of the list of lengths, a 32-bit number.
    fn next_length(&mut self) -> Result<u64> {
        let mut bytes = [0; 4];
        self.0.read_exact(&mut bytes).map_err(read_error)?;
        let length = i32::from_le_bytes(bytes);
        u64::try_from(length).map_err(|_| Error::bad_input(format!("the length {length} of a sequence is negative")))
    }

    /// Returns the next entry of one of the other lists, a 64-bit number.
    fn next_number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).map_err(read_error)?;
        let number = i64::from_le_bytes(bytes);
        u64::try_from(number).map_err(|_| {
            Error::bad_input(format!("the index contains the negative offset or sequence number {number}"))
        })
    }
}

/// The approximate size of the tokens in a batch, in bytes.
const BATCH_BYTES: usize = 2 << 20;
/// The maximum size of a document in bytes. Arrow's offsets have 32 bits.
const MAX_DOCUMENT_BYTES: usize = (1 << 31) - 1;
/// The maximum number of documents in a batch, regardless of their size.
const MAX_BATCH_DOCUMENTS: u64 = 1 << 16;

/// The documents of a dataset, in order.
struct Documents {
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
    fn new(index: &MegatronIndex, file: &FormatFile, tokens: &FormatFile, schema: SchemaRef) -> Result<Self> {
        let [lengths, pointers, mut bounds] = index.lists(file)?;
        let first = bounds.next_number()?;
        if first != 0 {
            return Err(Error::bad_input(format!("the first document begins with sequence {first}, expected 0")));
        }
        let tokens = tokens.reader()?;
        let index = index.clone();
        Ok(Self { index, schema, tokens, lengths, pointers, bounds, next_document: 0, next_sequence: 0 })
    }

    fn batch(&mut self) -> Result<RecordBatch> {
        let (mut bytes, mut ends) = (MutableBuffer::new(0), vec![0_i32]);
        let width = self.index.dtype.element_bytes();
        let last = self.index.document_count.min(self.next_document.saturating_add(MAX_BATCH_DOCUMENTS));
        while self.next_document < last && bytes.len() < BATCH_BYTES {
            self.document(&mut bytes).map_err(|error| self.in_document(error))?;
            let end = i32::try_from(bytes.len() / width);
            ends.push(end.map_err(|_| self.in_document(Error::bad_input("it has more than 2^31 - 1 tokens")))?);
            self.next_document = self.next_document.saturating_add(1);
        }
        if self.next_document == self.index.document_count && self.next_sequence != self.index.sequence_count {
            let (found, expected) = (self.next_sequence, self.index.sequence_count);
            return Err(Error::bad_input(format!(
                "the documents have {found} sequences in total, but the index has {expected}"
            )));
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

    fn in_document(&self, error: Error) -> Error {
        match error.kind() {
            tensilo::ErrorKind::BadInput => {
                Error::bad_input(format!("document {}: {}", self.next_document, error.message()))
            }
            _ => error,
        }
    }

    /// Appends the tokens of the next document to `bytes`, one sequence after another.
    fn document(&mut self, bytes: &mut MutableBuffer) -> Result<()> {
        let end = self.bounds.next_number()?;
        if end < self.next_sequence || end > self.index.sequence_count {
            let (next, count) = (self.next_sequence, self.index.sequence_count);
            return Err(Error::bad_input(format!(
                "its sequences are {next}..{end}, but the index has sequences 0..{count}"
            )));
        }
        while self.next_sequence < end {
            let (length, offset) = (self.lengths.next_length()?, self.pointers.next_number()?);
            let width = u64::try_from(self.index.dtype.element_bytes()).unwrap_or(8); // at most 8
            let byte_count = length.saturating_mul(width);
            let is_inside = offset.checked_add(byte_count).is_some_and(|end| end <= self.tokens.byte_count());
            let count = usize::try_from(byte_count).ok().filter(|_| is_inside).ok_or_else(|| {
                let (sequence, found) = (self.next_sequence, self.tokens.byte_count());
                Error::bad_input(format!(
                    "sequence {sequence} has {byte_count} bytes at offset {offset}, but the file of tokens has only \
                     {found} bytes"
                ))
            })?;
            let start = bytes.len();
            // sequences can share bytes, so the size of the file does not bound their total size
            if start.saturating_add(count) > MAX_DOCUMENT_BYTES {
                return Err(Error::bad_input(format!("it has more than {MAX_DOCUMENT_BYTES} bytes")));
            }
            bytes.extend_zeros(count);
            let destination = bytes.get_mut(start..).unwrap_or_default(); // `bytes` was extended
            self.tokens.read_exact_at(offset, destination).map_err(read_error)?;
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
