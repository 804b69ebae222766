//! Builds files region by region, valid or not, from chapters 2 to 7 of the specification.
//!
//! The code shares nothing with the crate's writer, so a mistake of the writer cannot hide here.
//! Checksums are correct by default: [`seal`] and [`patch`] let a test change a field and correct
//! the checksums, so that a reader must find the field itself wrong.

use super::regions::{regions, u32_at};
use sha2::{Digest, Sha256};
use std::ops::Range;
use tensilo::facts::RegionKind;

pub const FILE_ID: [u8; 12] = *b"0123456789ab";

/// Returns a column record of the schema block. An extent of 2^32 - 1 is varying.
pub fn column(name: &str, dtype: u8, nullable: bool, extents: &[u32]) -> Vec<u8> {
    let mut record = (name.len() as u32).to_le_bytes().to_vec();
    record.extend(name.as_bytes());
    let known = tensilo::DType::ALL.get(usize::from(dtype) - 1).expect("a dtype");
    record.extend([dtype, nullable.into(), extents.len() as u8, known.element_bytes() as u8]);
    record.extend(extents.iter().flat_map(|extent| extent.to_le_bytes()));
    record.extend([0; 4]);
    record
}

/// Returns the record of a nested column. For each level of lists, outermost first, `members` says
/// whether its members may be null.
pub fn nested_column(name: &str, dtype: u8, nullable: bool, extents: &[u32], members: &[bool]) -> Vec<u8> {
    let mut record = column(name, dtype, nullable, extents);
    record[4 + name.len() + 1] |= NESTED;
    let bits = members.iter().rev().fold(0_u16, |bits, may| bits << 1 | u16::from(*may));
    let nesting = [[members.len() as u8, 0], bits.to_le_bytes()].concat();
    record.splice(record.len() - 4..record.len() - 4, nesting);
    record
}

/// The bit of the column flags that marks nested columns.
const NESTED: u8 = 4;

fn is_nested(record: &[u8]) -> bool {
    let name_bytes = u32_at(record, 0) as usize; // unchecked: may be anything
    record.get(name_bytes + 5).is_some_and(|flags| flags & NESTED != 0)
}

pub fn schema(columns: &[Vec<u8>]) -> Vec<u8> {
    [&(columns.len() as u32).to_le_bytes()[..], &[0; 4], &columns.concat()].concat()
}

/// The fields and the body of a chunk.
#[derive(Clone)]
pub struct Chunk {
    pub column: u32,
    pub samples: u32,
    pub raw_bytes: u32,
    pub encoding: u16,
    pub parts: bool,
    pub body: Vec<u8>,
}

/// A part: encoding, decoded length, stored bytes.
pub type Part<'a> = (u16, u32, &'a [u8]);

pub const ABSENT: Part<'static> = (0, 0, &[]);

impl Chunk {
    /// A chunk of column 0 with values only.
    pub fn of_values(samples: u32, (encoding, raw_bytes, stored): Part) -> Self {
        Self { column: 0, samples, raw_bytes, encoding, parts: false, body: stored.to_vec() }
    }

    /// A chunk of column 0 with validity, shape and values.
    pub fn of_parts(samples: u32, parts: [Part; 3]) -> Self {
        let mut body = Vec::new();
        for (encoding, raw_bytes, stored) in parts {
            body.extend((stored.len() as u32).to_le_bytes());
            body.extend(raw_bytes.to_le_bytes());
            body.extend(encoding.to_le_bytes());
            body.extend([0; 6]);
        }
        body.resize(64, 0);
        for (_, _, stored) in parts {
            body.resize(body.len().next_multiple_of(64), 0);
            body.extend(stored);
        }
        let raw_bytes = parts.iter().fold(0_u32, |sum, part| sum.wrapping_add(part.1));
        Self { column: 0, samples, raw_bytes, encoding: parts[2].0, parts: true, body }
    }
}

/// A file under construction.
#[derive(Default)]
pub struct Build {
    pub file: Vec<u8>,
    schema: Vec<u8>,
    columns: usize,
    /// The flag words of header and footer.
    flags: [u8; 12],
    /// The column and the index entry of each chunk.
    entries: Vec<(u32, [u8; 32])>,
    raw_bytes: Vec<u64>,
    /// Bodies of the index pages.
    pages: Vec<u8>,
    /// The `header_crc` of the last region.
    previous: u32,
}

impl Build {
    pub fn new(columns: &[Vec<u8>]) -> Self {
        let mut build = Self { schema: schema(columns), columns: columns.len(), ..Self::default() };
        build.flags[0] = columns.iter().any(|record| is_nested(record)).into();
        let (body, flags) = (build.schema.clone(), build.flags);
        let slot48 = [64_u32.to_le_bytes(), 1_u32.to_le_bytes()].concat();
        build.region(b"\x89TSL", [0x0D, 0x0A, 0x1A, 0x0A], &flags, &slot48, &body);
        build
    }

    /// Continues after the end of a file.
    pub fn after(file: &[u8]) -> Self {
        Self { file: file.to_vec(), previous: previous_of(file, file.len()), ..Self::default() }
    }

    /// Appends a region; returns its offset.
    pub fn region(&mut self, magic: &[u8; 4], slot4: [u8; 4], slot32: &[u8], slot48: &[u8], body: &[u8]) -> u64 {
        self.file.resize(self.file.len().next_multiple_of(64), 0);
        let offset = self.file.len();
        self.file.extend(magic);
        self.file.extend(slot4);
        self.file.extend(FILE_ID);
        self.file.extend([0; 4]);
        self.file.extend((offset as u64).to_le_bytes());
        self.file.extend(slot32);
        self.file.extend((body.len() as u32).to_le_bytes());
        self.file.extend(slot48);
        self.file.extend([0; 8]);
        self.file.extend(body);
        self.previous = seal_after(&mut self.file, offset, self.previous);
        offset as u64
    }

    fn next_sample(&self, column: u32) -> u64 {
        let of_column = self.entries.iter().filter(|(of, _)| *of == column);
        of_column.map(|(_, entry)| u64::from(u32_at(entry, 20))).sum()
    }

    pub fn chunk(&mut self, chunk: &Chunk) -> u64 {
        let first = self.next_sample(chunk.column).to_le_bytes();
        let (samples, flags) = (chunk.samples.to_le_bytes(), u16::from(chunk.parts).to_le_bytes());
        let slot32 = [&first[..], &samples].concat();
        let slot48 = [&chunk.raw_bytes.to_le_bytes()[..], &chunk.encoding.to_le_bytes(), &flags].concat();
        let offset = self.region(b"TSLC", chunk.column.to_le_bytes(), &slot32, &slot48, &chunk.body);
        let (length, crc) = ((chunk.body.len() as u32).to_le_bytes(), crc32fast::hash(&chunk.body).to_le_bytes());
        let encoding = chunk.encoding.to_le_bytes();
        let entry = [&offset.to_le_bytes()[..], &first, &length, &samples, &crc, &encoding, &flags].concat();
        self.entries.push((chunk.column, entry.try_into().unwrap()));
        self.raw_bytes.push(chunk.raw_bytes.into());
        offset
    }

    /// Adds index, footer and trailer of the only commit. Each column has these `nulls` and
    /// `encodings` (id, chunks).
    pub fn finish(mut self, nulls: u64, encodings: &[(u16, u64)]) -> Vec<u8> {
        let mut facts = Vec::new();
        let sample_count = self.next_sample(0);
        for column in 0..self.columns as u32 {
            facts.extend(self.column_facts(column, nulls, encodings));
        }
        let schema = self.schema.clone();
        let rest = [&(schema.len() as u32).to_le_bytes()[..], &schema, &[0; 4], &facts].concat();
        let hash = Sha256::digest([&[0; 16][..], &self.pages, &rest].concat());
        let body = [&hash[..16], &rest].concat();
        let flags = self.flags;
        let footer = self.region(b"TSLF", [0; 4], &flags, &sample_count.to_le_bytes(), &body);
        let slot32 = [&footer.to_le_bytes()[..], &[0; 4]].concat();
        self.region(b"TSLE", [1, 0, 0, 0], &slot32, &[0; 8], &[]);
        self.file
    }

    /// Adds the pages of a column; returns its facts.
    fn column_facts(&mut self, column: u32, nulls: u64, encodings: &[(u16, u64)]) -> Vec<u8> {
        let all = self.entries.iter().zip(&self.raw_bytes).filter(|((of, _), _)| *of == column);
        let (entries, raw): (Vec<[u8; 32]>, Vec<u64>) = all.map(|((_, entry), raw)| (*entry, *raw)).unzip();
        let mut pages = Vec::new();
        for (number, page) in entries.chunks(126).enumerate() {
            let slot32 = [&page[0][8..16], &(page.len() as u32).to_le_bytes()].concat();
            let first_chunk = (126 * number as u64).to_le_bytes();
            self.pages.extend(page.concat());
            pages.push(self.region(b"TSLI", column.to_le_bytes(), &slot32, &first_chunk, &page.concat()));
        }
        let counts: Vec<u32> = entries.iter().map(|entry| u32_at(entry, 20)).collect();
        let stored: u64 = entries.iter().map(|entry| u64::from(u32_at(entry, 16))).sum();
        let mut facts: Vec<u8> =
            [raw.iter().sum(), stored, nulls, counts.len() as u64].into_iter().flat_map(u64::to_le_bytes).collect();
        facts.extend(u32::from(!pages.is_empty()).to_le_bytes());
        facts.extend((encodings.len() as u32).to_le_bytes());
        for (id, chunks) in encodings {
            facts.extend([&id.to_le_bytes()[..], &[0; 6], &chunks.to_le_bytes()].concat());
        }
        if let (Some(offset), [first, rest @ ..]) = (pages.first(), &counts[..]) {
            let samples = counts.iter().map(|&count| u64::from(count)).sum();
            let (last, inner) = rest.split_last().unwrap_or((first, &[]));
            let uniform = inner.iter().all(|count| count == first) && last <= first;
            facts.extend([*offset, 0, samples, counts.len() as u64].into_iter().flat_map(u64::to_le_bytes));
            facts.extend(u64::from(if uniform { *first } else { 0 }).to_le_bytes());
        }
        facts
    }
}

/// Corrects the checksums of the region at `at` and of the intact headers after it: each header
/// repeats the checksum of the one before.
pub fn seal(file: &mut [u8], at: usize) {
    let mut previous = seal_after(file, at, previous_of(file, at));
    let mut next = (at + 64 + u32_at(file, at + 44) as usize).next_multiple_of(64);
    while let Some(header) = file.get(next..next.saturating_add(64)) {
        if !is_header(header) {
            next += 64; // padding
            continue;
        }
        if crc32fast::hash(&header[..60]) != u32_at(header, 60) {
            return; // damaged: the next header keeps its link
        }
        let end = next + 64 + u32_at(header, 44) as usize;
        file[next + 20..next + 24].copy_from_slice(&previous.to_le_bytes());
        previous = crc32fast::hash(&file[next..next + 60]);
        file[next + 60..next + 64].copy_from_slice(&previous.to_le_bytes());
        next = end.next_multiple_of(64);
    }
}

fn is_header(header: &[u8]) -> bool {
    header.starts_with(b"TSL") || header.starts_with(b"\x89TSL")
}

/// Returns the `header_crc` of the last region before `at`, or 0 if there is none.
pub fn previous_of(file: &[u8], at: usize) -> u32 {
    let (mut next, mut previous) = (0_usize, 0);
    while let Some(header) = file.get(next..next.saturating_add(64)).filter(|_| next < at) {
        let end = next + 64 + if is_header(header) { u32_at(header, 44) as usize } else { 0 };
        previous = if is_header(header) { u32_at(header, 60) } else { previous };
        next = if end <= at { end.next_multiple_of(64) } else { next + 64 };
    }
    previous
}

/// Corrects the checksums of the region at `at`, whose predecessor has the `header_crc` `previous`.
/// Returns its own `header_crc`.
pub fn seal_after(file: &mut [u8], at: usize, previous: u32) -> u32 {
    file[at + 20..at + 24].copy_from_slice(&previous.to_le_bytes());
    let length = u32_at(file, at + 44) as usize;
    if let Some(body) = file.get(at + 64..(at + 64).saturating_add(length)) {
        let crc = crc32fast::hash(body);
        file[at + 56..at + 60].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32fast::hash(&file[at..at + 60]);
    file[at + 60..at + 64].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// Overwrites bytes of the first region of this kind, at an offset from its header, and corrects
/// the checksums of the region.
pub fn patch(file: &mut [u8], kind: RegionKind, at: usize, bytes: &[u8]) {
    let all = regions(file);
    let region = all.iter().find(|region| region.kind == kind).unwrap();
    file[region.header + at..region.header + at + bytes.len()].copy_from_slice(bytes);
    seal(file, region.header);
}

/// Returns the range of the first region of this kind.
pub fn region_range(file: &[u8], kind: RegionKind) -> Range<usize> {
    let all = regions(file);
    let region = all.iter().find(|region| region.kind == kind).unwrap();
    region.header..region.end
}
