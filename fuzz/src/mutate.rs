//! A mutator that knows the regions of a file, for `resealed` and `salvage`.
//!
//! Blind mutations destroy the structure of a file long before they reach anything interesting.
//! This mutator changes numbers in headers, block indexes and bodies, copies regions, and leaves
//! the rest intact. It then repeats a changed header or schema where the format repeats it, and
//! corrects all checksums. Most of the files still open, so nearly all reach the code behind the
//! checksums. A few mutations are libFuzzer's own, so that no change is impossible.

use super::regions::{
    BLOCK_ENTRY_BYTES, BlockIndex, CHUNK, FILE_HEADER, FOOTER, FOOTER_SCHEMA_OFFSET, HEADER_BYTES, PAGE, block_index,
    body, entries, headers, number, put, reseal, values_at,
};
use tensilo_testing::Random;

/// libFuzzer's own mutation, which knows no format. Takes a buffer, its length and the maximum
/// length afterwards; returns the new length.
pub type Bytes = fn(&mut [u8], usize, usize) -> usize;

/// The fields of region headers whose meaning depends on the kind: offset and size.
const FIELDS: [(usize, usize); 9] = [(4, 4), (32, 4), (32, 8), (36, 4), (40, 4), (44, 4), (48, 4), (52, 2), (54, 2)];
/// The fields of a chunk header that an index entry repeats: offset in the header, offset in the
/// entry, and size.
const REPEATED: [(usize, usize, usize); 4] = [(32, 8, 8), (44, 16, 4), (40, 20, 4), (52, 28, 4)];
/// The maximum number of bytes that one blind mutation changes in a body.
const WINDOW: usize = 64;

/// Mutates the file in the first `size` bytes of `data`. Returns its new length, at most
/// `max_size`.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32, bytes: Bytes) -> usize {
    let mut random = Random(seed.into());
    let file = &mut data[..size];
    let regions: Vec<(usize, [u8; 4])> = headers(file).collect();
    if regions.is_empty() || size > max_size || random.one_in(64) {
        return bytes(data, size, max_size);
    }
    for _ in 0..=random.index(3) {
        change(file, &regions, &mut random, bytes);
    }
    reseal(file);
    size
}

fn change(file: &mut [u8], regions: &[(usize, [u8; 4])], random: &mut Random, bytes: Bytes) {
    let (at, magic) = pick(regions, random);
    let length = body(file, at).map_or(0, <[u8]>::len);
    let block_index = if magic == CHUNK { block_index_of(file, at) } else { None };
    if let Some((values, block_index)) = block_index.filter(|_| random.one_in(3)) {
        change_block_index(&mut file[at + HEADER_BYTES + values..at + HEADER_BYTES + length], &block_index, random);
    } else if random.one_in(16) {
        copy_region(file, pick(regions, random).0, at);
    } else if length == 0 || random.one_in(3) {
        let (field, size) = random.pick(&FIELDS);
        change_number(file, at + field, size, random);
    } else {
        change_body(&mut file[at + HEADER_BYTES..at + HEADER_BYTES + length], random, bytes);
    }
    // otherwise a reader would only see that header and index entry disagree
    if random.index(8) > 0 {
        match magic {
            FILE_HEADER => repeat_schema(file, regions, at),
            CHUNK => repeat_chunk(file, regions, at),
            _ => {}
        }
    }
}

/// Picks a region, half of the time a chunk, because chunks have most of the structure.
fn pick(regions: &[(usize, [u8; 4])], random: &mut Random) -> (usize, [u8; 4]) {
    let kind = random.pick(&[CHUNK, CHUNK, CHUNK, PAGE, FOOTER, FILE_HEADER]);
    let of_kind: Vec<_> = regions.iter().filter(|(_, magic)| *magic == kind).collect();
    match of_kind.get(random.index(of_kind.len().max(1))) {
        Some(region) => **region,
        None => random.pick(regions),
    }
}

/// Returns the offset of the values in the body of the chunk at `at`, and their block index, if
/// there is one.
fn block_index_of(file: &[u8], at: usize) -> Option<(usize, BlockIndex)> {
    let values = values_at(file, at)?;
    let stored = body(file, at)?.get(values..)?;
    Some((values, block_index(stored, number(file, at + 52, 2) as u16)?))
}

/// Changes a number in a block index: its length, the number of blocks, or the end of a block.
fn change_block_index(stored: &mut [u8], block_index: &BlockIndex, random: &mut Random) {
    let field = match random.index(8) {
        field @ (0 | 1) => 4 * field,
        _ if block_index.block_count == 0 => 4,
        _ => {
            block_index.entries_start + BLOCK_ENTRY_BYTES * random.index(block_index.block_count) + 4 * random.index(2)
        }
    };
    change_number(stored, field, 4, random);
}

fn change_body(body: &mut [u8], random: &mut Random, bytes: Bytes) {
    if random.index(3) > 0 {
        let size = random.pick(&[1, 2, 4, 8]);
        if let Some(last) = body.len().checked_sub(size) {
            // most numbers are aligned; those in schemas are not
            let at = random.index(last + 1);
            let at = if random.one_in(2) { at } else { at / size * size };
            change_number(body, at, size, random);
        }
        return;
    }
    let start = random.index(body.len());
    let end = body.len().min(start + 1 + random.index(WINDOW));
    let mut buffer = [0; WINDOW];
    let window = &mut body[start..end];
    buffer[..window.len()].copy_from_slice(window);
    let length = bytes(&mut buffer, window.len(), window.len());
    window[..length].copy_from_slice(&buffer[..length]);
}

fn change_number(bytes: &mut [u8], at: usize, size: usize, random: &mut Random) {
    let old = number(bytes, at, size);
    let new = match random.index(8) {
        0 => old ^ 1 << random.index(8 * size),
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        3 => random.index(4) as u64,
        4 => u64::MAX >> random.index(64),
        5 => random.bits(),
        6 => old.wrapping_add(random.index(256) as u64).wrapping_sub(128),
        _ => number(bytes, random.index(bytes.len() - size + 1), size),
    };
    put(bytes, at, size, new);
}

/// Copies the header and the body of one region over another, as far as both fit the file.
fn copy_region(file: &mut [u8], from: usize, to: usize) {
    let length = HEADER_BYTES + body(file, from).map_or(0, <[u8]>::len);
    let length = length.min(file.len() - from.max(to));
    file.copy_within(from..from + length, to);
}

/// Copies the schema from the file header to all footers, which repeat it.
fn repeat_schema(file: &mut [u8], regions: &[(usize, [u8; 4])], header: usize) {
    let length = body(file, header).map_or(0, <[u8]>::len);
    for &(footer, _) in regions.iter().filter(|(_, magic)| *magic == FOOTER) {
        let to = footer + FOOTER_SCHEMA_OFFSET;
        if to + length <= file.len() {
            file.copy_within(header + HEADER_BYTES..header + HEADER_BYTES + length, to);
        }
    }
}

/// Copies the header fields of a chunk to its index entries, which repeat them.
fn repeat_chunk(file: &mut [u8], regions: &[(usize, [u8; 4])], chunk: usize) {
    for &(page, _) in regions.iter().filter(|(_, magic)| *magic == PAGE) {
        for (entry, _) in entries(file, page).into_iter().filter(|(_, of)| *of == chunk) {
            for (from, to, bytes) in REPEATED {
                file.copy_within(chunk + from..chunk + from + bytes, entry + to);
            }
        }
    }
}
