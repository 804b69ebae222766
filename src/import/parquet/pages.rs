//! Checks the page headers of a Parquet column before the decoder uses them.
//!
//! The decoder allocates as much memory as a page claims to need, and the process aborts if the
//! allocation fails. So the claims of a page are checked against the size of the file. The headers
//! also bound the size of the texts in a batch; see [`TextBytes`].

use super::thrift::{BOOL, I32, STOP, STRUCT, Thrift};
use crate::bytes::le::u64_of;
use crate::import::input::file::InputReader;
use crate::{Error, Result};
use ::parquet::basic::{Compression, Encoding, Type};
use ::parquet::column::page::{Page, PageReader};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use ::parquet::file::serialized_reader::SerializedPageReader;
use std::io::{self, Read, Seek, SeekFrom};
use std::iter;
use std::sync::Arc;

/// The decompressed size that is always allowed for a page, regardless of its compression.
const UNCHECKED_PAGE_BYTES: u64 = 16 << 20;
/// The maximum number of decompressed bytes per compressed byte of a larger page. An RLE block of
/// Zstandard has 4 bytes and expands to at most 128 KiB.
const MAX_RATIO: u64 = 32 << 10;
/// How many bytes are read for a page header. Statistics can make a header long, so these sizes are
/// tried one after another until the header can be parsed.
const HEADER_READ_BYTES: [u64; 4] = [4 << 10, 64 << 10, 1 << 20, 16 << 20];
/// The maximum number of texts in a page with packed lengths, which the decoder unpacks all at
/// once.
const MAX_PACKED_LENGTHS: u64 = 1 << 24;

/// The encodings of texts, by their numbers in page headers.
const PLAIN_DICTIONARY: i32 = 2;
const DELTA_LENGTH_BYTE_ARRAY: i32 = 6;
const DELTA_BYTE_ARRAY: i32 = 7;
const RLE_DICTIONARY: i32 = 8;

/// The field types of a page header, a data page, a dictionary page and a data page of version 2.
const PAGE: [u8; 8] = [I32, I32, I32, I32, STRUCT, STRUCT, STRUCT, STRUCT];
const DATA: [u8; 5] = [I32, I32, I32, I32, STRUCT];
const DICTIONARY: [u8; 3] = [I32, I32, BOOL];
const DATA_V2: [u8; 8] = [I32, I32, I32, I32, I32, I32, BOOL, STRUCT];

/// Bounds for the size of texts in a column.
#[derive(Default)]
pub(super) struct TextBytes {
    /// The maximum size in bytes of a text that many rows can refer to with a few bytes each: an
    /// entry of a dictionary, or a text that is a prefix of other texts.
    pub repeated: u64,
    /// The total size in bytes of the pages whose texts are stored individually.
    pub plain: u64,
    pub largest_page: u64,
}

impl TextBytes {
    fn add(&mut self, page: &PageHeader) {
        let bytes = page.raw_bytes.max(page.stored_bytes);
        match page.encoding {
            Some(DELTA_BYTE_ARRAY) => self.repeated = self.repeated.max(bytes),
            None | Some(PLAIN_DICTIONARY | RLE_DICTIONARY) => {} // dictionaries are examined separately
            Some(_) => {
                self.plain = self.plain.saturating_add(bytes);
                self.largest_page = self.largest_page.max(bytes);
            }
        }
    }
}

/// Checks the pages of a column in a row group of `rows` rows. Returns bounds for its texts.
pub(super) fn check(
    file: &InputReader,
    column: &ColumnChunkMetaData,
    rows: usize,
    of: &ParquetMetaData,
) -> Result<TextBytes> {
    // Version 2 pages of early parquet-cpp are compressed but claim not to be (ARROW-10353). The
    // decoder relies on the claim, has no option to ignore it, and could decode compressed bytes as
    // values (ARROW-17100.parquet of Apache's arrow-testing).
    let is_early_cpp =
        of.file_metadata().created_by().is_some_and(|writer| writer.starts_with("parquet-cpp version 1."));
    let is_misleading = is_early_cpp && column.compression() != Compression::UNCOMPRESSED;
    let failed = |error| Error::io("reading a page header", error);
    let (file_bytes, mut reader) = (file.byte_count(), file.clone());
    let (mut at, bytes) = column.byte_range();
    let end = at.saturating_add(bytes);
    let (mut has_packed_lengths, mut has_dictionary, mut texts) = (false, false, TextBytes::default());
    while at < end {
        let page = read_header(&mut reader, at).map_err(failed)?;
        let page = page.ok_or_else(|| malformed(column, "a page header cannot be parsed"))?;
        at = page.end(at).filter(|&end| end <= file_bytes).ok_or_else(|| malformed(column, "a page is truncated"))?;
        if page.raw_bytes > UNCHECKED_PAGE_BYTES.max(page.stored_bytes.saturating_mul(MAX_RATIO)) {
            return Err(malformed(column, "a page cannot decompress to its declared size"));
        }
        // a text takes at least 4 bytes; values of other types are not allocated in advance
        if page.dictionary_values > page.raw_bytes {
            return Err(malformed(column, "a dictionary has more values than bytes"));
        }
        if page.is_version_2 && is_misleading {
            let message = "the data pages are compressed but claim to be uncompressed (version 2 pages of parquet-cpp \
                           before 2.0); rewrite the file with a program that reads it, such as pyarrow";
            return Err(Error::bad_input(message).with_column(&column.column_path().string()));
        }
        has_packed_lengths |= matches!(page.encoding, Some(DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY));
        has_dictionary |= page.dictionary_values > 0;
        texts.add(&page);
    }
    if has_packed_lengths {
        check_packed_lengths(file, column, rows)?;
    }
    if column.column_type() != Type::BYTE_ARRAY {
        return Ok(TextBytes::default());
    }
    if has_dictionary {
        texts.repeated = texts.repeated.max(longest_in_dictionary(file, column, rows)?);
    }
    Ok(texts)
}

/// Walks the pages of a column, and returns their total size in bytes, including headers.
pub(super) fn length(file: &InputReader, column: &ColumnChunkMetaData) -> Result<u64> {
    let failed = |error| Error::io("reading a page header", error);
    let (file_bytes, mut reader) = (file.byte_count(), file.clone());
    let (start, _) = column.byte_range();
    let (mut at, mut left) = (start, u64::try_from(column.num_values()).unwrap_or(0));
    while left > 0 {
        let page = read_header(&mut reader, at).map_err(failed)?;
        let page = page.ok_or_else(|| malformed(column, "a page header cannot be parsed"))?;
        at = page.end(at).filter(|&end| end <= file_bytes).ok_or_else(|| malformed(column, "a page is truncated"))?;
        left = left.saturating_sub(page.values);
    }
    Ok(at.saturating_sub(start))
}

fn malformed(column: &ColumnChunkMetaData, what: &str) -> Error {
    Error::bad_input(format!("the Parquet file is malformed: {what}")).with_column(&column.column_path().string())
}

/// A page header.
#[derive(Default)]
struct PageHeader {
    header_bytes: u64,
    stored_bytes: u64,
    raw_bytes: u64,
    dictionary_values: u64,
    /// The number of values in a data page.
    values: u64,
    /// The encoding of a data page, or `None` for a dictionary.
    encoding: Option<i32>,
    is_version_2: bool,
}

/// Reads the header of the page at `at`. Returns `None` if it cannot be parsed.
fn read_header(file: &mut InputReader, at: u64) -> io::Result<Option<PageHeader>> {
    for max in HEADER_READ_BYTES {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        file.take(max).read_to_end(&mut bytes)?;
        if let Some(header) = PageHeader::parse(&bytes) {
            return Ok(Some(header));
        }
    }
    Ok(None)
}

impl PageHeader {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Thrift::new(bytes);
        let (mut id, mut header) = (0, Self::default());
        loop {
            match (thrift.field(&mut id, &PAGE)?, id) {
                (STOP, _) => break,
                (_, 2) => header.raw_bytes = thrift.i32()?.try_into().ok()?,
                (_, 3) => header.stored_bytes = thrift.i32()?.try_into().ok()?,
                (_, 5) => {
                    let [values, encoding, ..] = numbers(&mut thrift, &DATA)?;
                    (header.values, header.encoding) = (values.try_into().ok()?, Some(encoding));
                }
                (_, 7) => {
                    let [values, ..] = numbers(&mut thrift, &DICTIONARY)?;
                    header.dictionary_values = values.try_into().ok()?;
                }
                (_, 8) => {
                    let [values, .., encoding] = numbers(&mut thrift, &DATA_V2)?;
                    (header.values, header.encoding) = (values.try_into().ok()?, Some(encoding));
                    header.is_version_2 = true;
                }
                (other, _) => thrift.skip(other)?,
            }
        }
        header.header_bytes = u64_of(bytes.len() - thrift.rest().len());
        Some(header)
    }

    /// Returns the end offset of a page that starts at `at`.
    fn end(&self, at: u64) -> Option<u64> {
        at.checked_add(self.header_bytes)?.checked_add(self.stored_bytes)
    }
}

/// Returns the numbers in fields 1 to 4 of a struct.
fn numbers(thrift: &mut Thrift, types: &[u8]) -> Option<[i32; 4]> {
    let (mut id, mut numbers) = (0_i16, [0; 4]);
    loop {
        let field_type = thrift.field(&mut id, types)?;
        let number = id.checked_sub(1).and_then(|at| numbers.get_mut(usize::try_from(at).ok()?));
        match (field_type, number) {
            (STOP, _) => return Some(numbers),
            (I32, Some(number)) => *number = thrift.i32()?,
            (other, _) => thrift.skip(other)?,
        }
    }
}

/// Returns the decompressed pages of a column.
fn pages_of<'a>(
    file: &InputReader,
    column: &'a ColumnChunkMetaData,
    rows: usize,
) -> Result<impl Iterator<Item = Result<Page>> + use<'a>> {
    let damaged = |error: ParquetError| malformed(column, &error.to_string());
    let mut pages = SerializedPageReader::new(Arc::new(file.clone()), column, rows, None).map_err(damaged)?;
    Ok(iter::from_fn(move || pages.get_next_page().map_err(damaged).transpose()))
}

/// Returns the size of the longest text in a dictionary, in bytes.
fn longest_in_dictionary(file: &InputReader, column: &ColumnChunkMetaData, rows: usize) -> Result<u64> {
    for page in pages_of(file, column, rows)? {
        let Page::DictionaryPage { buf, .. } = page? else { continue };
        let (mut texts, mut longest) = (Thrift::new(&buf), 0);
        while let Some(length) = texts.take(4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes) {
            longest = longest.max(u64::from(length));
            if texts.take(length.into()).is_none() {
                break; // the decoder refuses such a dictionary
            }
        }
        return Ok(longest);
    }
    Ok(0)
}

/// Checks pages of texts with packed lengths, because a few bytes can claim any number of lengths.
fn check_packed_lengths(file: &InputReader, column: &ColumnChunkMetaData, rows: usize) -> Result<()> {
    for page in pages_of(file, column, rows)? {
        let page = page?;
        let right = match lengths(&page, column) {
            Some((Encoding::DELTA_LENGTH_BYTE_ARRAY, lengths, values)) => are_packed(&mut Thrift::new(lengths), values),
            Some((Encoding::DELTA_BYTE_ARRAY, lengths, values)) => {
                let mut lengths = Thrift::new(lengths);
                are_packed(&mut lengths, values) && are_packed(&mut lengths, values)
            }
            Some(_) => true,
            None => false,
        };
        if !right {
            return Err(malformed(column, "a page has too many text lengths, or they cannot be parsed"));
        }
    }
    Ok(())
}

/// Returns the encoding, the encoded values and the number of values of a data page. The encoded
/// values do not include definition and repetition levels.
fn lengths<'a>(page: &'a Page, column: &ColumnChunkMetaData) -> Option<(Encoding, &'a [u8], u64)> {
    match page {
        Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
            let mut bytes = Thrift::new(buf);
            let column = column.column_descr();
            let levels = [(column.max_rep_level(), rep_level_encoding), (column.max_def_level(), def_level_encoding)];
            for (max, encoding) in levels {
                if max > 0 && *encoding == Encoding::RLE {
                    let length = bytes.take(4)?.try_into().map(u32::from_le_bytes).ok()?;
                    bytes.take(length.into())?;
                } else if max > 0 {
                    let bits = u64::from(i16::BITS - max.leading_zeros());
                    bytes.take(u64::from(*num_values).checked_mul(bits)?.div_ceil(8))?;
                }
            }
            Some((*encoding, bytes.rest(), (*num_values).into()))
        }
        Page::DataPageV2 { buf, num_values, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let mut bytes = Thrift::new(buf);
            bytes.take(u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))?;
            Some((*encoding, bytes.rest(), (*num_values).into()))
        }
        Page::DictionaryPage { .. } => Some((Encoding::PLAIN, &[], 0)),
    }
}

/// Skips packed numbers (DELTA_BINARY_PACKED). Returns whether there are at most `values` numbers,
/// and at most [`MAX_PACKED_LENGTHS`].
fn are_packed(bytes: &mut Thrift, values: u64) -> bool {
    let all_null = bytes.rest().is_empty(); // the decoder handles this case
    all_null || skip_packed(bytes, values.min(MAX_PACKED_LENGTHS)).is_some()
}

fn skip_packed(bytes: &mut Thrift, max: u64) -> Option<()> {
    let [block, miniblocks, count] = [bytes.varint()?, bytes.varint()?, bytes.varint()?];
    bytes.varint()?; // the first number
    let in_miniblock = block.checked_div(miniblocks)?;
    let mut left = if count <= max { count.saturating_sub(1) } else { return None };
    while left > 0 {
        bytes.varint()?; // the minimum difference
        for &width in bytes.take(miniblocks)? {
            if left > 0 {
                bytes.take(u64::from(width).checked_mul(in_miniblock)? / 8)?;
            }
            left = left.saturating_sub(in_miniblock);
        }
    }
    Some(())
}
