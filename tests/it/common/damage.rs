//! Ways in which disks, networks and programs damage files.

use crate::support::build::seal;
use std::ops::Range;
use tensilo::{Column, Reader};
use tensilo_testing::Random;

/// A chunk of an intact file.
#[derive(Clone, Debug)]
pub struct ChunkLocation {
    pub column: usize,
    pub samples: Range<u64>,
    /// Header and body.
    pub bytes: Range<usize>,
}

/// Returns all chunks of an intact file.
pub fn chunks(file: &[u8]) -> Vec<ChunkLocation> {
    let reader = Reader::from_bytes(file.to_vec()).expect("an intact file");
    let of_column = |(column, handle): (usize, Column)| chunks_of(column, &handle);
    reader.columns().enumerate().flat_map(of_column).collect()
}

fn chunks_of(column: usize, handle: &Column) -> Vec<ChunkLocation> {
    let location = |chunk| {
        let info = handle.chunk(chunk).expect("an intact index")?;
        let bytes = info.file_range.start as usize - 64..info.file_range.end as usize;
        Some(ChunkLocation { column, samples: info.samples, bytes })
    };
    (0..).map_while(location).collect()
}

/// Returns the apparent ranges of the regions that start with one of these magic numbers: header
/// and, if its length is plausible, body.
pub fn regions(file: &[u8], magics: &[&[u8; 4]]) -> Vec<Range<usize>> {
    let headers = (0..file.len()).step_by(64).filter(|&at| magics.iter().any(|magic| file[at..].starts_with(*magic)));
    let length = |at: usize| file.get(at + 44..at + 48).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
    headers.map(|at| at..(at + 64 + length(at) as usize).min(file.len())).collect()
}

/// Corrects the checksums of the chunk at `header` and of its index entry, as if a faulty writer
/// had written the chunk.
pub fn seal_chunk(file: &mut [u8], header: usize) {
    seal(file, header);
    let body_crc = header + 56..header + 60;
    for page in regions(file, &[b"TSLI"]) {
        let is_entry = |at: &usize| file[*at..*at + 8] == (header as u64).to_le_bytes();
        if let Some(entry) = (page.start + 64..page.end).step_by(32).find(is_entry) {
            file.copy_within(body_crc.clone(), entry + 24);
            seal(file, page.start);
        }
    }
}

/// The magic numbers of all regions except chunks.
pub const STRUCTURE: [&[u8; 4]; 5] = [b"\x89TSL", b"TSLI", b"TSLF", b"TSLE", b"TSLT"];

/// One way to damage a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// One bit is flipped.
    Flip,
    /// Some bytes are replaced by garbage.
    Garbage,
    /// A block is zeroed.
    ZeroBlock,
    /// A block is overwritten with a copy of another.
    CopyBlock,
    /// Two blocks are swapped.
    SwapBlocks,
    /// The file is cut off.
    Truncate,
    /// A block is replaced by one from another file.
    ForeignBlock,
    /// A region that is not a chunk is zeroed.
    EraseStructure,
    /// All regions of one kind, but not chunks, are zeroed.
    EraseKind,
    /// A chunk is overwritten with another one.
    MoveChunk,
}

impl Damage {
    pub const ALL: [Self; 10] = [
        Self::Flip,
        Self::Garbage,
        Self::ZeroBlock,
        Self::CopyBlock,
        Self::SwapBlocks,
        Self::Truncate,
        Self::ForeignBlock,
        Self::EraseStructure,
        Self::EraseKind,
        Self::MoveChunk,
    ];

    /// Damages `file`; `foreign` is another file. By chance, the file may stay unchanged.
    pub fn apply(self, file: &mut Vec<u8>, foreign: &[u8], random: &mut Random) {
        let block_bytes = [512, 4096, 65536][random.below(3) as usize];
        let length = file.len();
        let mut block = |of: usize| {
            let start = random.below(of.div_ceil(block_bytes) as u64) as usize * block_bytes;
            start..(start + block_bytes).min(of)
        };
        match self {
            Self::ZeroBlock => file[block(length)].fill(0),
            Self::CopyBlock => {
                let (from, to) = (block(length), block(length));
                file.copy_within(from.start..from.start + from.len().min(to.len()), to.start);
            }
            Self::SwapBlocks => {
                let (one, other) = (block(length), block(length));
                let saved = file.clone();
                let count = one.len().min(other.len());
                file[one.start..one.start + count].copy_from_slice(&saved[other.start..other.start + count]);
                file[other.start..other.start + count].copy_from_slice(&saved[one.start..one.start + count]);
            }
            Self::ForeignBlock => {
                let at = block(length.min(foreign.len()));
                file[at.clone()].copy_from_slice(&foreign[at]);
            }
            Self::Flip => file[random.below(length as u64) as usize] ^= 1 << random.below(8),
            Self::Garbage => {
                let start = random.below(length as u64) as usize;
                let count = (1 + random.below(100) as usize).min(length - start);
                file[start..start + count].copy_from_slice(&random.bytes(count));
            }
            Self::Truncate => file.truncate(random.below(length as u64) as usize),
            Self::EraseStructure => erase_some(file, &STRUCTURE, random),
            Self::EraseKind => {
                let kind = STRUCTURE[random.below(4) as usize];
                regions(file, &[kind]).into_iter().for_each(|region| file[region].fill(0));
            }
            Self::MoveChunk => {
                let locations = regions(file, &[b"TSLC"]);
                if !locations.is_empty() {
                    let [from, to] = [0; 2].map(|_| locations[random.below(locations.len() as u64) as usize].clone());
                    let count = from.len().min(length - to.start);
                    file.copy_within(from.start..from.start + count, to.start);
                }
            }
        }
    }
}

fn erase_some(file: &mut [u8], magics: &[&[u8; 4]], random: &mut Random) {
    let locations = regions(file, magics);
    if !locations.is_empty() {
        file[locations[random.below(locations.len() as u64) as usize].clone()].fill(0);
    }
}
