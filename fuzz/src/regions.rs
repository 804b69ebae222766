//! Regions of a file (chapter 2 of the specification), as far as fuzzing changes them.

use sha2::{Digest, Sha256};
use std::ops::Range;

/// Bytes of a head.
pub const HEAD: usize = 64;
/// Bytes of an entry of an index page.
pub const ENTRY: usize = 32;
/// Bytes of a footer's entry of a table.
const TABLE_ENTRY: usize = 24;
/// Bytes of the content id that a footer's body begins with.
pub const CONTENT_ID: usize = 16;
/// The offset of the schema in a footer, counted from its head.
pub const FOOTER_SCHEMA: usize = HEAD + CONTENT_ID + 4;

pub const HEADER: [u8; 4] = *b"\x89TSL";
pub const CHUNK: [u8; 4] = *b"TSLC";
pub const TABLE: [u8; 4] = *b"TSLT";
pub const PAGE: [u8; 4] = *b"TSLI";
pub const FOOTER: [u8; 4] = *b"TSLF";

/// Returns everything that begins with a magic number at a multiple of 64: offset and magic number.
pub fn heads(file: &[u8]) -> impl Iterator<Item = (usize, [u8; 4])> {
    file.chunks_exact(HEAD).enumerate().filter_map(|(i, head)| {
        let magic = *head.first_chunk()?;
        (magic == HEADER || magic.starts_with(b"TSL")).then_some((i * HEAD, magic))
    })
}

/// A number of at most 8 bytes.
pub fn number(file: &[u8], at: usize, bytes: usize) -> u64 {
    file[at..at + bytes].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Writes the lower bytes of a number.
pub fn put(file: &mut [u8], at: usize, bytes: usize, number: u64) {
    file[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
}

/// The body of the region at `at`, if it lies inside the file.
pub fn body(file: &[u8], at: usize) -> Option<&[u8]> {
    file.get(at + HEAD..)?.get(..number(file, at + 44, 4) as usize)
}

/// Corrects the offset and the checksums of the region at `at`. `previous` is the `head_crc` of the
/// region before, and becomes that of this one.
pub fn seal(file: &mut [u8], at: usize, previous: &mut u32) {
    put(file, at + 20, 4, (*previous).into());
    put(file, at + 24, 8, at as u64);
    if let Some(crc) = body(file, at).map(crc32fast::hash) {
        put(file, at + 56, 4, crc.into());
    }
    *previous = crc32fast::hash(&file[at..at + 60]);
    put(file, at + 60, 4, (*previous).into());
}

/// The bit of an encoding whose part is in several blocks (chapter 5 of the specification).
pub const BLOCKS: u16 = 1 << 8;

/// Chapter 5.12: a front whose directory fits.
pub struct Front {
    pub bytes: usize,
    pub block_count: usize,
    /// Where the directory begins.
    pub directory: usize,
}

/// Bytes of an entry of a directory.
pub const BLOCK_ENTRY: usize = 12;
/// Bytes of the checksum that a front ends with.
pub const FRONT_CRC: usize = 4;

/// Parses the front that stored bytes of this encoding begin with. Returns `None` if the part is
/// not in several blocks, or the directory does not fit.
pub fn front(stored: &[u8], encoding: u16) -> Option<Front> {
    let table_bytes = match encoding.checked_sub(BLOCKS)? {
        0 | 3 => 0,
        2 => 4,
        4 | 5 => 48,
        6 => number(stored.get(8..12)?, 0, 4) as usize,
        7 => 24,
        _ => return None,
    };
    let directory = 8_usize.checked_add(table_bytes)?;
    let head = stored.get(..8)?;
    let (bytes, block_count) = (number(head, 0, 4) as usize, number(head, 4, 4) as usize);
    let end = block_count.checked_mul(BLOCK_ENTRY)?.checked_add(directory + FRONT_CRC)?;
    (end <= bytes && bytes <= stored.len()).then_some(Front { bytes, block_count, directory })
}

/// Each block begins at a multiple of as many bytes, counted from the end of the front.
pub fn block_align(encoding: u16) -> usize {
    if matches!(encoding & !BLOCKS, 4..=6) { 16 } else { 1 }
}

/// The front has a multiple of as many bytes.
pub fn front_align(encoding: u16) -> usize {
    if encoding & !BLOCKS == 0 { 64 } else { block_align(encoding) }
}

/// Corrects the checksums of blocks and front. The values begin at `values` in the body.
pub fn seal_front(body: &mut [u8], values: usize, encoding: u16) {
    let Some(stored) = body.get_mut(values..) else { return };
    let Some(front) = front(stored, encoding) else { return };
    let align = block_align(encoding);
    let mut start = front.bytes;
    for block in 0..front.block_count {
        let entry = front.directory + BLOCK_ENTRY * block;
        let mut end = front.bytes.saturating_add(number(stored, entry + 4, 4) as usize);
        if block + 1 < front.block_count {
            end = front.bytes + (end - front.bytes).next_multiple_of(align); // with the padding
        }
        if let Some(crc) = stored.get(start..end).map(crc32fast::hash) {
            put(stored, entry + 8, 4, crc.into());
        }
        start = end;
    }
    let end = values + front.bytes - FRONT_CRC;
    let crc = crc32fast::hash(&body[..end]);
    put(body, end, FRONT_CRC, crc.into());
}

/// Returns where the values begin in the body of the chunk at `at`, as its part table states.
pub fn values_at(file: &[u8], at: usize) -> Option<usize> {
    if number(file, at + 54, 2) & 1 == 0 {
        return Some(0);
    }
    let body = body(file, at)?.get(..64)?;
    let part = |part: usize| (number(body, 16 * part, 4) as usize).next_multiple_of(64);
    Some(64 + part(0) + part(1))
}

/// Corrects the checksums of blocks and front of the chunk at `at`, if it is in blocks.
fn seal_blocks(file: &mut [u8], at: usize) {
    let (Some(values), Some(length)) = (values_at(file, at), body(file, at).map(<[u8]>::len)) else { return };
    let encoding = number(file, at + 52, 2) as u16;
    seal_front(&mut file[at + HEAD..at + HEAD + length], values, encoding);
}

/// Makes the content id of the footer at `at` right and returns it. `before` is the id of the
/// commit before, followed by the bodies of the index pages since.
pub fn put_content_id(file: &mut [u8], at: usize, before: &[u8]) -> Vec<u8> {
    let Some(rest) = body(file, at).and_then(|body| body.get(CONTENT_ID..)) else { return vec![0; CONTENT_ID] };
    let id = Sha256::digest([before, rest].concat())[..CONTENT_ID].to_vec();
    file[at + HEAD..at + HEAD + CONTENT_ID].copy_from_slice(&id);
    id
}

/// Corrects the offsets, the checksums and the content ids of all regions, the checksums of blocks,
/// and those that index pages and footers repeat.
pub fn reseal(file: &mut [u8]) {
    let (mut content, mut previous) = (vec![0; CONTENT_ID], 0);
    let heads: Vec<(usize, [u8; 4])> = heads(file).collect();
    for (at, magic) in heads {
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
            for entry in tables(file, at).step_by(TABLE_ENTRY) {
                put_table_crc(file, entry);
            }
            content = put_content_id(file, at, &content);
        }
        seal(file, at, &mut previous);
    }
}

/// Returns where the entries of tables are in the footer at `at`, as far as they lie inside it.
pub fn tables(file: &[u8], at: usize) -> Range<usize> {
    let body = body(file, at).unwrap_or(&[]);
    let four = |at: usize| body.get(at..at.saturating_add(4)).map_or(0, |bytes| number(bytes, 0, 4) as usize);
    let count = CONTENT_ID + 4 + four(CONTENT_ID);
    let start = body.len().min(count + 4);
    let end = body.len().min(start + TABLE_ENTRY * four(count));
    at + HEAD + start..at + HEAD + end
}

/// Repeats the checksum of a table in this entry of a footer.
fn put_table_crc(file: &mut [u8], entry: usize) {
    let Some(fields) = file.get(entry..entry + TABLE_ENTRY) else { return };
    let table = number(fields, 8, 8) as usize;
    let is_table = file.get(table..table.saturating_add(HEAD)).is_some_and(|head| head.starts_with(&TABLE));
    if is_table {
        file.copy_within(table + 56..table + 60, entry + 20);
    }
}

/// Returns the entries of the index page at `at` that point to chunks: the offsets of entry and
/// chunk.
pub fn entries(file: &[u8], at: usize) -> Vec<(usize, usize)> {
    let count = body(file, at).map_or(0, |body| body.len() / ENTRY);
    let entries = (0..count).map(|i| at + HEAD + i * ENTRY);
    let chunk = |entry| usize::try_from(number(file, entry, 8)).ok();
    let is_chunk = |&at: &usize| file.get(at..at.saturating_add(HEAD)).is_some_and(|head| head.starts_with(&CHUNK));
    entries.filter_map(|entry| Some((entry, chunk(entry).filter(is_chunk)?))).collect()
}
