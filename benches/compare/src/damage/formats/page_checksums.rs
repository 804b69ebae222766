//! Adds page checksums to a Parquet file.
//!
//! Other writers can write them; parquet-rs checks them, but cannot write them. This module copies
//! a file without checksums and inserts the missing field into each page header. The offset index
//! states where pages begin and end.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::Write;
use std::sync::Arc;

/// Copies a file of one column.
pub fn write(file: Vec<u8>, out: impl Write + Send) -> Result<()> {
    let file = Bytes::from(file);
    let metadata =
        ParquetMetaDataReader::new().with_offset_index_policy(PageIndexPolicy::Required).parse_and_finish(&file)?;
    let schema = metadata.file_metadata().schema_descr().root_schema_ptr();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(WriterProperties::default()))?;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let column = group.column(0);
        let (start, bytes) = column.byte_range();
        let index = metadata.page_index_for_row_group(number);
        let pages = index.page_locations(0).context("no offset index")?;
        let mut bounds = vec![start as usize]; // of the dictionary page, if any
        bounds.extend(pages.iter().map(|page| page.offset as usize));
        bounds.push((start + bytes) as usize);
        bounds.dedup();
        let (mut sealed, mut first_data) = (Vec::new(), 0);
        for page in bounds.windows(2) {
            if page[0] as i64 == column.data_page_offset() {
                first_data = sealed.len() as i64;
            }
            seal(&file[page[0]..page[1]], &mut sealed)?;
        }
        let rows = group.num_rows() as u64;
        let builder = column.clone().into_builder().set_total_compressed_size(sealed.len() as i64);
        let dictionary = column.dictionary_page_offset().map(|_| 0);
        let close = ColumnCloseResult {
            bytes_written: sealed.len() as u64,
            rows_written: rows,
            metadata: builder.set_dictionary_page_offset(dictionary).set_data_page_offset(first_data).build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        let mut group = writer.next_row_group()?;
        group.append_column(&Bytes::from(sealed), close)?;
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

/// Appends a page with its checksum. A page header is a Thrift struct in the compact protocol. Its
/// first three fields are 32-bit integers; the third is the number of bytes after the header. The
/// checksum is the fourth.
fn seal(page: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const NEXT_FIELD: u8 = 0x10;
    const INTEGER: u8 = NEXT_FIELD | 5;
    let (mut at, mut body_bytes) = (0, 0);
    for _ in 0..3 {
        ensure!(page[at] == INTEGER, "unexpected field in a page header");
        let end = at
            + 1
            + page[at + 1..].iter().position(|byte| *byte < 0x80).context("unterminated integer in a page header")?;
        // zigzag
        body_bytes = page[at + 1..=end].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f)) / 2;
        at = end + 1;
    }
    let body = page.len().checked_sub(body_bytes).context("a page is shorter than its header states")?;
    let checksum = crc32fast::hash(&page[body..]) as i32;
    out.extend(&page[..at]);
    out.push(INTEGER);
    let mut zigzag = (checksum << 1 ^ checksum >> 31) as u32;
    while zigzag >= 0x80 {
        out.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag as u8);
    ensure!(page[at] >> 4 > 1, "the page already has a checksum");
    out.push(page[at] - NEXT_FIELD); // field ids are relative to the preceding field
    out.extend(&page[at + 1..]);
    Ok(())
}
