//! Finds and seals the regions of a file (chapter 2 of the specification).
//!
//! To *seal* is to make checksums, offsets and content ids match the bytes: a mutated file then
//! gets past the checks that would otherwise refuse it. The functions are written from the
//! specification, without the code of the library, and take any bytes: regions that do not fit the
//! file are skipped.

use sha2::{Digest, Sha256};
use std::ops::Range;

/// The size of a region header.
pub const HEADER_BYTES: usize = 64;
/// The size of an entry of an index page.
pub const ENTRY_BYTES: usize = 32;
/// The size of a table entry in a footer.
const TABLE_ENTRY_BYTES: usize = 24;
/// The size of the content id at the start of a footer's body.
pub const CONTENT_ID_BYTES: usize = 16;
/// The offset of the schema in a footer, from the start of its header.
pub const FOOTER_SCHEMA_OFFSET: usize = HEADER_BYTES + CONTENT_ID_BYTES + 4;

pub const FILE_HEADER: [u8; 4] = *b"\x89TSL";
pub const CHUNK: [u8; 4] = *b"TSLC";
pub const TABLE: [u8; 4] = *b"TSLT";
pub const PAGE: [u8; 4] = *b"TSLI";
pub const FOOTER: [u8; 4] = *b"TSLF";

/// Returns the offset and the magic number of everything that looks like a region header: multiples
/// of 64 bytes with a known start.
pub fn headers(file: &[u8]) -> impl Iterator<Item = (usize, [u8; 4])> {
    file.chunks_exact(HEADER_BYTES).enumerate().filter_map(|(i, header)| {
        let magic = *header.first_chunk()?;
        (magic == FILE_HEADER || magic.starts_with(b"TSL")).then_some((i * HEADER_BYTES, magic))
    })
}

/// Returns a little-endian number of at most 8 bytes.
pub fn number(file: &[u8], at: usize, bytes: usize) -> u64 {
    file[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Writes the lower bytes of a number, in little-endian order.
pub fn put(file: &mut [u8], at: usize, bytes: usize, number: u64) {
    file[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
}

/// Returns the body of the region at `at`, if it lies inside the file.
pub fn body(file: &[u8], at: usize) -> Option<&[u8]> {
    file.get(at + HEADER_BYTES..)?.get(..number(file, at + 44, 4) as usize)
}

/// Corrects the offset and the checksums of the region at `at`. `previous` is the `header_crc` of
/// the preceding region; it is replaced with the `header_crc` of this one.
pub fn seal(file: &mut [u8], at: usize, previous: &mut u32) {
    put(file, at + 20, 4, (*previous).into());
    put(file, at + 24, 8, at as u64);
    if let Some(crc) = body(file, at).map(crc32fast::hash) {
        put(file, at + 56, 4, crc.into());
    }
    *previous = crc32fast::hash(&file[at..at + 60]);
    put(file, at + 60, 4, (*previous).into());
}

/// The bit of an encoding id for parts in blocks (chapter 5 of the specification).
pub const BLOCKS: u16 = 1 << 8;

/// A block index whose entries fit it (chapter 5.12).
pub struct BlockIndex {
    pub bytes: usize,
    pub block_count: usize,
    /// The offset of the first entry.
    pub entries_start: usize,
}

/// The size of an entry of a block index.
pub const BLOCK_ENTRY_BYTES: usize = 12;
/// The size of the checksum at the end of a block index.
pub const INDEX_CRC_BYTES: usize = 4;

/// Parses the block index at the start of stored bytes. Returns `None` if the part is not in
/// blocks, or if the entries do not fit.
pub fn block_index(stored: &[u8], encoding: u16) -> Option<BlockIndex> {
    let table_bytes = match encoding.checked_sub(BLOCKS)? {
        0 | 3 => 0,
        2 => 4,
        4 | 5 => 48,
        6 => number(stored.get(8..12)?, 0, 4) as usize,
        7 => 24,
        _ => return None,
    };
    let entries_start = 8_usize.checked_add(table_bytes)?;
    let header = stored.get(..8)?;
    let (bytes, block_count) = (number(header, 0, 4) as usize, number(header, 4, 4) as usize);
    let end = block_count.checked_mul(BLOCK_ENTRY_BYTES)?.checked_add(entries_start + INDEX_CRC_BYTES)?;
    (end <= bytes && bytes <= stored.len()).then_some(BlockIndex { bytes, block_count, entries_start })
}

/// Returns the alignment of blocks, counted from the end of the block index.
pub fn block_align(encoding: u16) -> usize {
    if matches!(encoding & !BLOCKS, 4..=6) { 16 } else { 1 }
}

/// Returns the number of bytes that divides the length of a block index.
pub fn block_index_align(encoding: u16) -> usize {
    if encoding & !BLOCKS == 0 { 64 } else { block_align(encoding) }
}

/// Corrects the checksums of all blocks and of the block index. `values` is the offset of the
/// values in the body.
pub fn seal_block_index(body: &mut [u8], values: usize, encoding: u16) {
    let Some(stored) = body.get_mut(values..) else { return };
    let Some(block_index) = block_index(stored, encoding) else { return };
    let align = block_align(encoding);
    let mut start = block_index.bytes;
    for block in 0..block_index.block_count {
        let entry = block_index.entries_start + BLOCK_ENTRY_BYTES * block;
        let mut end = block_index.bytes.saturating_add(number(stored, entry + 4, 4) as usize);
        if block + 1 < block_index.block_count {
            end = block_index.bytes + (end - block_index.bytes).next_multiple_of(align); // with padding
        }
        if let Some(crc) = stored.get(start..end).map(crc32fast::hash) {
            put(stored, entry + 8, 4, crc.into());
        }
        start = end;
    }
    let end = values + block_index.bytes - INDEX_CRC_BYTES;
    let crc = crc32fast::hash(&body[..end]);
    put(body, end, INDEX_CRC_BYTES, crc.into());
}

/// Returns the offset of the values in the body of the chunk at `at`, from its part table.
pub fn values_at(file: &[u8], at: usize) -> Option<usize> {
    if number(file, at + 54, 2) & 1 == 0 {
        return Some(0);
    }
    let body = body(file, at)?.get(..64)?;
    let part = |part: usize| (number(body, 16 * part, 4) as usize).next_multiple_of(64);
    Some(64 + part(0) + part(1))
}

/// Corrects the checksums of the blocks and the block index of the chunk at `at`, if it has any.
fn seal_blocks(file: &mut [u8], at: usize) {
    let (Some(values), Some(length)) = (values_at(file, at), body(file, at).map(<[u8]>::len)) else { return };
    let encoding = number(file, at + 52, 2) as u16;
    seal_block_index(&mut file[at + HEADER_BYTES..at + HEADER_BYTES + length], values, encoding);
}

/// Corrects the content id of the footer at `at`, and returns it. `before` is the id of the
/// previous commit, followed by the bodies of the index pages since.
pub fn put_content_id(file: &mut [u8], at: usize, before: &[u8]) -> Vec<u8> {
    let Some(rest) = body(file, at).and_then(|body| body.get(CONTENT_ID_BYTES..)) else {
        return vec![0; CONTENT_ID_BYTES];
    };
    let id = Sha256::digest([before, rest].concat())[..CONTENT_ID_BYTES].to_vec();
    file[at + HEADER_BYTES..at + HEADER_BYTES + CONTENT_ID_BYTES].copy_from_slice(&id);
    id
}

/// Corrects the offsets, checksums and content ids of all regions, the checksums of blocks, and the
/// checksums that index pages and footers repeat.
pub fn reseal(file: &mut [u8]) {
    let (mut content, mut previous) = (vec![0; CONTENT_ID_BYTES], 0);
    let headers: Vec<(usize, [u8; 4])> = headers(file).collect();
    for (at, magic) in headers {
        if magic == CHUNK {
            seal_blocks(file, at);
        }
        if magic == PAGE {
            for (entry, chunk) in entries(file, at) {
                file.copy_within(chunk + 56..chunk + 60, entry + 24);
            }
            content.extend(body(file, at).unwrap_or(&[]));
        }
        if magic == FOOTER {
            for entry in tables(file, at).step_by(TABLE_ENTRY_BYTES) {
                put_table_crc(file, entry);
            }
            content = put_content_id(file, at, &content);
        }
        seal(file, at, &mut previous);
    }
}

/// Returns the range of the table entries in the footer at `at`, as far as they lie inside it.
pub fn tables(file: &[u8], at: usize) -> Range<usize> {
    let body = body(file, at).unwrap_or(&[]);
    let four = |at: usize| body.get(at..at.saturating_add(4)).map_or(0, |bytes| number(bytes, 0, 4) as usize);
    let count = CONTENT_ID_BYTES + 4 + four(CONTENT_ID_BYTES);
    let start = body.len().min(count + 4);
    let end = body.len().min(start + TABLE_ENTRY_BYTES * four(count));
    at + HEADER_BYTES + start..at + HEADER_BYTES + end
}

/// Copies the checksum of a table to its entry in a footer.
fn put_table_crc(file: &mut [u8], entry: usize) {
    let Some(fields) = file.get(entry..entry + TABLE_ENTRY_BYTES) else { return };
    let table = number(fields, 8, 8) as usize;
    let is_table = file.get(table..table.saturating_add(HEADER_BYTES)).is_some_and(|header| header.starts_with(&TABLE));
    if is_table {
        file.copy_within(table + 56..table + 60, entry + 20);
    }
}

/// Returns the entries of the index page at `at` that point to chunks, as pairs of the offset of
/// the entry and the offset of the chunk.
pub fn entries(file: &[u8], at: usize) -> Vec<(usize, usize)> {
    let count = body(file, at).map_or(0, |body| body.len() / ENTRY_BYTES);
    let entries = (0..count).map(|i| at + HEADER_BYTES + i * ENTRY_BYTES);
    let chunk = |entry| usize::try_from(number(file, entry, 8)).ok();
    let is_chunk =
        |&at: &usize| file.get(at..at.saturating_add(HEADER_BYTES)).is_some_and(|header| header.starts_with(&CHUNK));
    entries.filter_map(|entry| Some((entry, chunk(entry).filter(is_chunk)?))).collect()
}
