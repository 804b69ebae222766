//! Makes mutants of intact files.
//!
//! A plain change would fail at the first checksum and test nothing behind it. Here, checksums and
//! copies of the changed bytes are corrected, so that the change itself stops a reader. Mutants
//! change fields of headers, parts of chunks before a file is built around them, or, rarely, bytes
//! without correction.

use crate::support::build::{Build, Chunk, column, seal_after};
use crate::support::regions::{Region, regions, u32_at, u64_at};
use sha2::{Digest, Sha256};
use std::ops::Range;
use tensilo::facts::RegionKind;
use tensilo::{DType, Extent, Reader};
use tensilo_testing::Random;

/// Changes fields and bytes of a file in place.
pub fn changed_in_place(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut mutant = file.to_vec();
    let all = regions(file);
    if random.one_in(16) {
        damage(&mut mutant, random);
        return mutant;
    }
    for _ in 0..=random.below(3) {
        change_region(&mut mutant, &all, random);
    }
    reseal(&mut mutant, &all);
    mutant
}

/// Damages bytes without correcting checksums.
fn damage(file: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(file.len() as u64) as usize;
    match random.below(4) {
        0 => file.truncate(at),
        1 => file.truncate(at / 64 * 64),
        2 => {
            let count = [1, 64, 4096][random.below(3) as usize];
            let byte = random.below(2) as u8;
            file.extend(std::iter::repeat_n(byte, count));
        }
        _ => file[at] ^= 1 << random.below(8),
    }
}

/// Offsets and lengths of the header fields that differ between kinds of regions.
const FIELDS: [(usize, usize); 9] = [(4, 4), (32, 4), (32, 8), (36, 4), (40, 4), (44, 4), (48, 4), (52, 2), (54, 2)];

fn change_region(file: &mut [u8], all: &[Region], random: &mut Random) {
    let chunks: Vec<&Region> = all.iter().filter(|region| region.kind == RegionKind::Chunk).collect();
    let region = match random.below(3) {
        0 if !chunks.is_empty() => chunks[random.below(chunks.len() as u64) as usize],
        _ => &all[random.below(all.len() as u64) as usize],
    };
    let body = region.header + 64..region.end;
    match random.below(12) {
        0 => {
            let other = &all[random.below(all.len() as u64) as usize];
            let count = (other.end - other.header).min(file.len() - region.header);
            file.copy_within(other.header..other.header + count, region.header);
        }
        1 => file[region.header + random.below(56) as usize] ^= 1 << random.below(8),
        2..4 => {
            let padding = region.end..region.end.next_multiple_of(64).min(file.len());
            if !padding.is_empty() && random.one_in(4) {
                file[padding.start + random.below(padding.len() as u64) as usize] ^= 1 << random.below(8);
            }
        }
        4..7 => {
            let (field, length) = FIELDS[random.below(FIELDS.len() as u64) as usize];
            change_number(file, region.header + field..region.header + field + length, random);
        }
        _ if body.is_empty() => {}
        _ => {
            let number = some_number(body, random);
            change_number(file, number, random);
        }
    }
    if !random.one_in(8) {
        match region.kind {
            RegionKind::Chunk => repeat_chunk(file, all, region),
            RegionKind::FileHeader => repeat_schema(file, all),
            _ => {}
        }
    }
}

/// Returns the range of a number of 1, 2, 4 or 8 bytes; `within` is not empty.
fn some_number(within: Range<usize>, random: &mut Random) -> Range<usize> {
    let length = [1, 2, 4, 8][random.below(4) as usize].min(within.len());
    let at = random.below((within.len() - length + 1) as u64) as usize;
    let at = within.start + if random.one_in(2) { at } else { at / length * length };
    at..at + length
}

fn change_number(bytes: &mut [u8], at: Range<usize>, random: &mut Random) {
    let length = at.len();
    let mut number = [0; 8];
    number[..length].copy_from_slice(&bytes[at.clone()]);
    let old = u64::from_le_bytes(number);
    let new = match random.below(8) {
        0 | 1 => old ^ 1 << random.below(8 * length as u64),
        2 => old.wrapping_add(1),
        3 => old.wrapping_sub(1),
        4 => random.below(4),
        5 => u64::MAX >> random.below(64),
        6 => old.wrapping_add(random.below(256)).wrapping_sub(128),
        _ => random.bits(),
    };
    bytes[at].copy_from_slice(&new.to_le_bytes()[..length]);
}

/// Repeats the header of a chunk in the index entries that point to it.
fn repeat_chunk(file: &mut [u8], all: &[Region], chunk: &Region) {
    for entry in entries(file, all).filter(|&entry| u64_at(file, entry) == chunk.header as u64).collect::<Vec<_>>() {
        for (from, to, bytes) in [(32, 8, 8), (44, 16, 4), (40, 20, 4), (52, 28, 4)] {
            file.copy_within(chunk.header + from..chunk.header + from + bytes, entry + to);
        }
    }
}

/// Returns the offsets of all index entries.
fn entries(file: &[u8], all: &[Region]) -> impl Iterator<Item = usize> {
    let pages = all.iter().filter(|region| region.kind == RegionKind::IndexPage && region.end <= file.len());
    pages.flat_map(|page| (page.header + 64..page.end - 31).step_by(32))
}

/// Repeats the schema in the footers.
fn repeat_schema(file: &mut [u8], all: &[Region]) {
    let schema = all[0].header + 64..all[0].end;
    for footer in all.iter().filter(|region| region.kind == RegionKind::Footer) {
        let to = footer.header + FOOTER_SCHEMA_OFFSET;
        if to + schema.len() <= footer.end {
            file.copy_within(schema.clone(), to);
        }
    }
}

/// The offset of the schema in a footer, counted from its header.
const FOOTER_SCHEMA_OFFSET: usize = 64 + CONTENT_ID_BYTES + 4;

/// The length of the content id, with which the body of a footer starts.
const CONTENT_ID_BYTES: usize = 16;

/// Corrects the checksums of bodies and headers, the copies of both, and the content ids.
fn reseal(file: &mut [u8], all: &[Region]) {
    let mut content = vec![0; CONTENT_ID_BYTES];
    let mut previous = 0;
    for region in all {
        let body = region.header + 64..region.end.min(file.len());
        match region.kind {
            RegionKind::IndexPage => {
                repeat_checksums(file, region);
                content.extend(&file[body]);
            }
            RegionKind::Footer => {
                content.extend(&file[body.start + CONTENT_ID_BYTES..body.end]);
                content = Sha256::digest(&content)[..CONTENT_ID_BYTES].to_vec();
                file[body.start..body.start + CONTENT_ID_BYTES].copy_from_slice(&content);
            }
            _ => {}
        }
        previous = seal_after(file, region.header, previous);
    }
}

/// Repeats the checksums of chunk bodies in the entries of an index page.
fn repeat_checksums(file: &mut [u8], page: &Region) {
    for entry in entries(file, std::slice::from_ref(page)).collect::<Vec<_>>() {
        let chunk = usize::try_from(u64_at(file, entry)).unwrap_or(usize::MAX);
        if file.get(chunk..chunk.saturating_add(64)).is_some_and(|header| header.starts_with(b"TSLC")) {
            file.copy_within(chunk + 56..chunk + 60, entry + 24);
        }
    }
}

/// A chunk of an intact file, with everything needed to make a file of this chunk only.
#[derive(Clone)]
pub struct Sample {
    dtype: u8,
    nullable: bool,
    extents: Vec<u32>,
    nulls: u64,
    chunk: Chunk,
}

/// Returns the chunks of an intact file.
pub fn samples(file: &[u8]) -> Vec<Sample> {
    let reader = Reader::from_bytes(file.to_vec()).expect("an intact file");
    let columns: Vec<_> = reader.columns().collect();
    let all = regions(file);
    let chunks = all.iter().filter(|region| region.kind == RegionKind::Chunk);
    let chunks = chunks.filter(|region| DType::ALL.contains(&columns[region.column].schema().dtype));
    let sample = |region: &Region| {
        let (header, column) = (&file[region.header..region.header + 64], &columns[region.column]);
        let mut cursor = column.cursor();
        let is_nested = !column.schema().levels.is_empty();
        let mut is_null = |i: &u64| match is_nested {
            true => cursor.read_list(*i).expect("an intact file").is_null(),
            false => cursor.read(*i).expect("an intact file").is_null(),
        };
        let extent = |extent: &Extent| match extent {
            Extent::Fixed(extent) => *extent,
            Extent::Varying => u32::MAX,
        };
        Sample {
            dtype: 1 + DType::ALL.iter().position(|dtype| *dtype == column.schema().dtype).expect("a dtype") as u8,
            nullable: column.schema().nullable,
            extents: column.schema().shape.extents().iter().map(extent).collect(),
            nulls: region.samples.clone().filter(&mut is_null).count() as u64,
            chunk: Chunk {
                column: 0,
                samples: u32_at(header, 40),
                raw_bytes: u32_at(header, 48),
                encoding: u32_at(header, 52) as u16,
                parts: header[54] != 0,
                body: file[region.header + 64..region.end].to_vec(),
            },
        }
    };
    chunks.map(sample).collect()
}

/// Returns a file of one chunk that was changed before the file was built around it.
pub fn changed_before(sample: &Sample, other: &Sample, random: &mut Random) -> Vec<u8> {
    let mut sample = sample.clone();
    for _ in 0..=random.below(2) {
        change_sample(&mut sample, other, random);
    }
    let Sample { dtype, nullable, extents, nulls, chunk } = &sample;
    let mut encodings = encodings(chunk);
    encodings.sort_unstable();
    encodings.dedup();
    let counts: Vec<(u16, u64)> = encodings.into_iter().map(|id| (id, u64::from(id == chunk.encoding))).collect();
    let mut build = Build::new(&[column("x", *dtype, *nullable, extents)]);
    build.chunk(chunk);
    build.finish(*nulls, &counts)
}

/// Returns the encodings of the parts that are present.
fn encodings(chunk: &Chunk) -> Vec<u16> {
    let mut found = vec![chunk.encoding];
    if chunk.parts && chunk.body.len() >= 64 {
        let sides = [0, 16].map(|at| (u32_at(&chunk.body, at + 4), u32_at(&chunk.body, at + 8) as u16));
        found.extend(sides.into_iter().filter(|(raw_bytes, _)| *raw_bytes != 0).map(|(_, id)| id));
    }
    found
}

fn change_sample(sample: &mut Sample, other: &Sample, random: &mut Random) {
    let chunk = &mut sample.chunk;
    let mut number = [0; 8];
    match random.below(24) {
        0 => (sample.dtype, sample.extents) = (1 + random.below(DType::ALL.len() as u64) as u8, other.extents.clone()),
        1 => sample.nullable ^= true,
        2 => sample.nulls = random.below(3),
        3 if !sample.extents.is_empty() => {
            let extent = random.below(sample.extents.len() as u64) as usize;
            sample.extents[extent] = [0, 1, 2, u32::MAX, u32::MAX - 1][random.below(5) as usize];
        }
        4 => {
            number[..4].copy_from_slice(&chunk.samples.to_le_bytes());
            change_number(&mut number, 0..4, random);
            chunk.samples = u32_at(&number, 0);
        }
        5 => {
            number[..4].copy_from_slice(&chunk.raw_bytes.to_le_bytes());
            change_number(&mut number, 0..4, random);
            chunk.raw_bytes = u32_at(&number, 0);
        }
        6 => chunk.encoding = random.below(9) as u16 | (random.below(2) as u16) << 8,
        7 => chunk.body.truncate(random.below(chunk.body.len() as u64 + 1) as usize),
        8 => chunk.body.extend(std::iter::repeat_n(0, 1 + random.below(16) as usize)),
        9 => chunk.body.clone_from(&other.chunk.body),
        _ if chunk.body.is_empty() => {}
        10 => {
            let at = random.below(chunk.body.len() as u64) as usize;
            chunk.body.remove(at);
        }
        11 => {
            let table = 0..chunk.body.len().min(64);
            let number = some_number(table, random);
            change_number(&mut chunk.body, number, random);
        }
        12..20 => {
            // the parameters of a decoder are at the start of a part
            let part = some_part(chunk, random);
            let number = some_number(part.start..part.end.min(part.start + 80), random);
            change_number(&mut chunk.body, number, random);
        }
        _ => {
            let all = 0..chunk.body.len();
            let number = some_number(all, random);
            change_number(&mut chunk.body, number, random);
        }
    }
    repair(sample, random);
}

/// Returns the range of a part of a chunk, or of the whole body; it is not empty.
fn some_part(chunk: &Chunk, random: &mut Random) -> Range<usize> {
    let all = 0..chunk.body.len();
    if !chunk.parts || chunk.body.len() < 64 {
        return all;
    }
    let mut parts = Vec::new();
    let mut at = 64_usize;
    for entry in [0, 16, 32] {
        let end = at.saturating_add(u32_at(&chunk.body, entry) as usize);
        parts.push(at..end);
        at = end.next_multiple_of(64);
    }
    parts.retain(|part| !part.is_empty() && part.end <= chunk.body.len());
    if parts.is_empty() { all } else { parts[random.below(parts.len() as u64) as usize].clone() }
}

/// Corrects, most of the time, the fields that follow from the parts. Otherwise they would stop
/// most mutants.
fn repair(sample: &mut Sample, random: &mut Random) {
    let chunk = &mut sample.chunk;
    if !chunk.parts || chunk.body.len() < 65 || random.one_in(8) {
        return;
    }
    let [validity, shape] = [0, 16].map(|entry| u64::from(u32_at(&chunk.body, entry)));
    let values = (64 + validity).next_multiple_of(64) + shape.next_multiple_of(64);
    if let Some(stored) = (chunk.body.len() as u64).checked_sub(values) {
        chunk.body[32..36].copy_from_slice(&(stored as u32).to_le_bytes());
    }
    chunk.raw_bytes = [4, 20, 36].iter().fold(0, |sum: u32, at| sum.wrapping_add(u32_at(&chunk.body, *at)));
    chunk.encoding = u32_at(&chunk.body, 40) as u16;
    let is_raw = u32_at(&chunk.body, 8) as u16 == 0;
    if validity == 0 {
        sample.nulls = 0;
    } else if let (true, Some(bits)) = (is_raw, chunk.body.get(64..64 + validity as usize)) {
        let is_null = |i: &usize| bits.get(i / 8).is_some_and(|byte| byte >> (i % 8) & 1 == 0);
        sample.nulls = (0..chunk.samples as usize).take(1 << 16).filter(is_null).count() as u64;
    }
}
