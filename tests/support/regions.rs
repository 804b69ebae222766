//! Finds the regions of an intact file.

use std::ops::Range;
use tensilo::facts::RegionKind;

/// A region. Chunks and index pages also have a column and samples.
#[derive(Clone, Debug)]
pub struct Region {
    pub kind: RegionKind,
    /// The offset of the header.
    pub header: usize,
    /// The offset of the end of the body.
    pub end: usize,
    pub column: usize,
    pub samples: Range<u64>,
}

fn kind_of(header: &[u8]) -> Option<RegionKind> {
    match &header[..4] {
        b"\x89TSL" => Some(RegionKind::FileHeader),
        b"TSLC" => Some(RegionKind::Chunk),
        b"TSLT" => Some(RegionKind::Table),
        b"TSLI" => Some(RegionKind::IndexPage),
        b"TSLF" => Some(RegionKind::Footer),
        b"TSLE" => Some(RegionKind::Trailer),
        _ => None,
    }
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// All regions of an intact file, in order.
pub fn regions(file: &[u8]) -> Vec<Region> {
    let mut regions = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let header = &file[at..at + 64];
        let Some(kind) = kind_of(header) else {
            at += 64; // padding
            continue;
        };
        let end = at + 64 + u32_at(header, 44) as usize;
        let first = u64_at(header, 32);
        let last = match kind {
            RegionKind::IndexPage => {
                let entry = &file[end - 32..end];
                u64_at(entry, 8) + u64::from(u32_at(entry, 20))
            }
            _ => first.saturating_add(u32_at(header, 40).into()),
        };
        regions.push(Region { kind, header: at, end, column: u32_at(header, 4) as usize, samples: first..last });
        at = end.next_multiple_of(64);
    }
    regions
}
