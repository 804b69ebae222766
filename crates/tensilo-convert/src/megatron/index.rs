//! The index: a header, and then three lists.
//!
//! ```text
//! "MMIDIDX\0\0", version 1 (u64), type (u8), sequences (u64), documents + 1 (u64)
//! length of each sequence (i32), its offset in the .bin file (i64)
//! number of the first sequence of each document (i64), and of sequences
//! ```
//!
//! Numbers are little-endian.

use crate::error::unreadable;
use std::io::{BufReader, Read, Seek, SeekFrom};
use tensilo::import::{FormatFile, InputReader};
use tensilo::{DType, Error, Result};

/// The first bytes of an index.
pub(crate) const MAGIC: &[u8] = b"MMIDIDX\x00\x00";
/// The version of the layout, which follows.
pub(crate) const VERSION: u64 = 1;
/// The bytes of a header.
const HEADER_BYTES: u64 = 34;
const LENGTH_BYTES: u64 = 4;
const POINTER_BYTES: u64 = 8;

/// The header of an index whose lists lie in the file.
#[derive(Clone, Debug)]
pub(super) struct MegatronIndex {
    pub dtype: DType,
    pub sequence_count: u64,
    pub document_count: u64,
}

impl MegatronIndex {
    /// Reads the header, and compares the sizes of the lists with that of the file.
    pub(super) fn read(mut file: InputReader) -> Result<Self> {
        let mut header = Vec::new();
        (&mut file).take(HEADER_BYTES).read_to_end(&mut header).map_err(unreadable)?;
        let header: [u8; 34] = header.try_into().map_err(|_| Error::bad_input("the index is cut off in its header"))?;
        let [_, _, _, _, _, _, _, _, _, rest @ ..] = header;
        let [a, b, c, d, e, f, g, h, code, rest @ ..] = rest;
        let version = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        if version != VERSION {
            return Err(Error::bad_input(format!("the index has version {version}, and version {VERSION} is read")));
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
            return Err(Error::bad_input(
                "the index has modes of sequences, as multimodal data have, which are not read",
            ));
        }
        if lists != Some(found) {
            let due = lists.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
            let message = format!(
                "the index has {sequence_count} sequences and {bounds} bounds of documents, which take {due} bytes, and there are {found}"
            );
            return Err(Error::bad_input(message));
        }
        let document_count =
            bounds.checked_sub(1).ok_or_else(|| Error::bad_input("the index has no bounds of documents"))?;
        Ok(Self { dtype: element_type(code)?, sequence_count, document_count })
    }

    /// Returns readers of the lengths, the offsets and the documents.
    pub(super) fn lists(&self, file: &FormatFile) -> Result<[IndexList; 3]> {
        // no overflow: the lists lie in the file
        let pointers = HEADER_BYTES + self.sequence_count * LENGTH_BYTES;
        let documents = pointers + self.sequence_count * POINTER_BYTES;
        Ok([IndexList::at(file, HEADER_BYTES)?, IndexList::at(file, pointers)?, IndexList::at(file, documents)?])
    }
}

/// The types of tokens, in the order of Megatron's numbers, which begin with 1.
const TYPES: [DType; 8] =
    [DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F64, DType::F32, DType::U16];

/// Returns the type of tokens, by Megatron's number for it.
fn element_type(code: u8) -> Result<DType> {
    let found = usize::from(code).checked_sub(1).and_then(|number| TYPES.get(number));
    let message = || format!("the index has the type {code} of tokens, and 1 to {} are known", TYPES.len());
    found.copied().ok_or_else(|| Error::bad_input(message()))
}

/// Returns Megatron's number for a type.
pub(crate) fn type_code(dtype: DType) -> Option<u8> {
    (1..).zip(TYPES).find(|(_, known)| *known == dtype).map(|(code, _)| code)
}

/// A list of an index, read from front to back.
pub(super) struct IndexList(BufReader<InputReader>);

impl IndexList {
    fn at(file: &FormatFile, offset: u64) -> Result<Self> {
        let mut reader = file.reader()?;
        reader.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
        Ok(Self(BufReader::new(reader)))
    }

    /// Returns the next number of 32 bits.
    pub(super) fn next_length(&mut self) -> Result<u64> {
        let mut bytes = [0; 4];
        self.0.read_exact(&mut bytes).map_err(unreadable)?;
        let length = i32::from_le_bytes(bytes);
        u64::try_from(length).map_err(|_| Error::bad_input(format!("a sequence of {length} tokens")))
    }

    /// Returns the next number of 64 bits.
    pub(super) fn next_number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact(&mut bytes).map_err(unreadable)?;
        let number = i64::from_le_bytes(bytes);
        u64::try_from(number).map_err(|_| Error::bad_input(format!("the offset or number {number}")))
    }
}
