//! The division of a file into tiles, and the columns in each tile.

use crate::failure::{Failure, Outcome};
use crate::progress::{Progress, Unit};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use tensilo::facts::{BlockInfo, ChunkBlocks, ChunkInfo};
use tensilo::{Column, Reader};

/// The maximum number of columns that a tile lists.
const MOST_SHARES: usize = 16;

/// A part of a chunk in blocks. Blocks are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkPart {
    Front { blocks: usize },
    Block { number: usize, blocks: usize },
}

/// The facts of a chunk, or of a part of it, that tiles need.
struct TiledChunk {
    /// The number of the chunk in its column.
    number: u64,
    part: Option<ChunkPart>,
    samples: Range<u64>,
    file_range: Range<u64>,
    encoding: String,
    raw_bytes: u64,
}

impl TiledChunk {
    fn new(number: u64, info: ChunkInfo) -> Self {
        let ChunkInfo { samples, file_range, encoding, raw_bytes, .. } = info;
        Self { number, part: None, samples, file_range, encoding, raw_bytes }
    }

    /// Returns the front and the blocks of a chunk.
    fn parts(&self, blocks: ChunkBlocks) -> Vec<Self> {
        let count = blocks.blocks.len();
        let in_blocks = blocks.blocks.iter().map(|block| block.raw_bytes).fold(0, u64::saturating_add);
        let front = Self {
            number: self.number,
            part: Some(ChunkPart::Front { blocks: count }),
            samples: self.samples.clone(),
            file_range: blocks.front,
            encoding: self.encoding.clone(),
            raw_bytes: self.raw_bytes.saturating_sub(in_blocks), // nulls and extents
        };
        let block = |(number, block): (usize, BlockInfo)| Self {
            number: self.number,
            part: Some(ChunkPart::Block { number, blocks: count }),
            samples: block.samples,
            file_range: block.file_range,
            encoding: self.encoding.clone(),
            raw_bytes: block.raw_bytes,
        };
        [front].into_iter().chain((1..).zip(blocks.blocks).map(block)).collect()
    }
}

/// The chunks of one column in a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnShare {
    /// The number of the column.
    pub(super) column: usize,
    /// The part of a chunk, if the tile is drawn for one.
    pub(super) part: Option<ChunkPart>,
    /// The number of chunks, whole or in part.
    pub(super) chunks: u64,
    /// The samples of these chunks.
    pub(super) samples: Range<u64>,
    pub(super) encodings: BTreeSet<String>,
    pub(super) stored_bytes: u64,
    /// The bytes that the stored bytes decode to.
    pub(super) raw_bytes: u64,
}

impl ColumnShare {
    /// Returns the part of a chunk that lies in a range of the file; `None` if no part does.
    fn of(column: usize, chunk: &TiledChunk, range: &Range<u64>) -> Option<Self> {
        let (start, end) = (chunk.file_range.start.max(range.start), chunk.file_range.end.min(range.end));
        let stored_bytes = end.checked_sub(start).filter(|bytes| *bytes > 0)?;
        Some(Self {
            column,
            part: chunk.part,
            chunks: 1,
            samples: chunk.samples.clone(),
            encodings: BTreeSet::from([chunk.encoding.clone()]),
            stored_bytes,
            raw_bytes: part(chunk.raw_bytes, stored_bytes, length(&chunk.file_range)),
        })
    }

    fn merge(&mut self, other: Self) {
        self.chunks = self.chunks.saturating_add(other.chunks);
        self.samples = self.samples.start.min(other.samples.start)..self.samples.end.max(other.samples.end);
        self.encodings.extend(other.encodings);
        self.stored_bytes = self.stored_bytes.saturating_add(other.stored_bytes);
        self.raw_bytes = self.raw_bytes.saturating_add(other.raw_bytes);
    }

    /// Returns raw bytes divided by stored bytes.
    pub(super) fn ratio(&self) -> f64 {
        self.raw_bytes as f64 / self.stored_bytes.max(1) as f64 // an approximation
    }
}

/// A range of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    pub(super) range: Range<u64>,
    /// Bytes of chunks; the rest is structure.
    chunk_bytes: u64,
    /// One for each column, in column order. If there are too many, the smallest are left out.
    pub(super) shares: Vec<ColumnShare>,
    /// The number of columns left out.
    pub(super) left_out: u64,
    /// Whether any byte of the tile is damaged.
    pub(super) is_damaged: bool,
}

impl Tile {
    fn new(range: Range<u64>) -> Self {
        Self { range, chunk_bytes: 0, shares: Vec::new(), left_out: 0, is_damaged: false }
    }

    /// Returns the column that takes most of the tile; `None` if structure takes more.
    pub(super) fn main(&self) -> Option<&ColumnShare> {
        let structure = length(&self.range).saturating_sub(self.chunk_bytes);
        let largest = self.shares.iter().max_by_key(|share| share.stored_bytes);
        largest.filter(|share| share.stored_bytes >= structure)
    }

    /// Adds the part of a chunk that lies in the tile. Chunks arrive column by column.
    fn add(&mut self, column: usize, chunk: &TiledChunk) {
        let Some(share) = ColumnShare::of(column, chunk, &self.range) else { return };
        self.chunk_bytes = self.chunk_bytes.saturating_add(share.stored_bytes);
        match self.shares.last_mut() {
            Some(last) if last.column == column => last.merge(share),
            _ => {
                self.leave_out();
                self.shares.push(share);
            }
        }
    }

    /// Removes the smallest column if the list is full. The listed columns are complete.
    fn leave_out(&mut self) {
        if self.shares.len() < MOST_SHARES {
            return;
        }
        if let Some((smallest, _)) = self.shares.iter().enumerate().min_by_key(|(_, share)| share.stored_bytes) {
            self.shares.remove(smallest);
            self.left_out += 1;
        }
    }
}

/// Returns the number of bytes in a range.
pub(super) fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Returns `whole` x `part` / `of`.
fn part(whole: u64, part: u64, of: u64) -> u64 {
    // the product is below 2^128
    let share = (u128::from(whole) * u128::from(part)).checked_div(u128::from(of));
    share.and_then(|share| u64::try_from(share).ok()).unwrap_or(0)
}

/// Divides the file into tiles of `tile_bytes` bytes; the last may be shorter.
pub(crate) fn equal_tiles(reader: &Reader, path: &Path, tile_bytes: u64, quiet: bool) -> Outcome<Vec<Tile>> {
    let (file_bytes, tile_bytes) = (reader.file_bytes(), tile_bytes.max(1));
    let starts = (0..file_bytes.div_ceil(tile_bytes)).map(|tile| tile.saturating_mul(tile_bytes));
    let range = |start: u64| start..start.saturating_add(tile_bytes).min(file_bytes);
    let mut tiles: Vec<Tile> = starts.map(|start| Tile::new(range(start))).collect();
    for_each_chunk(reader, path, quiet, |column, _, chunk| {
        let number = |at: u64| usize::try_from(at / tile_bytes).unwrap_or(usize::MAX);
        let (first, end) = (number(chunk.file_range.start), number(chunk.file_range.end.min(file_bytes)));
        let touched = tiles.iter_mut().skip(first).take(end.saturating_sub(first).saturating_add(1));
        touched.for_each(|tile| tile.add(column, chunk));
    })?;
    Ok(tiles)
}

/// Marks the tiles that contain a byte of these ranges. Tiles are in file order.
pub(super) fn mark_damage(tiles: &mut [Tile], damaged: &[Range<u64>]) {
    for range in damaged {
        let first = tiles.partition_point(|tile| tile.range.end <= range.start);
        let touched = tiles.iter_mut().skip(first).take_while(|tile| tile.range.start < range.end);
        touched.for_each(|tile| tile.is_damaged = true);
    }
}

/// Returns a tile for each chunk that is not empty, in file order. If there are at most `most`
/// then, a chunk in blocks has a tile for its front and for each block instead.
pub(crate) fn chunk_tiles(reader: &Reader, path: &Path, most: u64, quiet: bool) -> Outcome<Vec<Tile>> {
    let (mut whole, mut parts) = (Vec::new(), Some(Vec::new()));
    for_each_chunk(reader, path, quiet, |number, column, chunk| {
        whole.extend(tile_of(reader, number, chunk));
        let Some(tiles) = &mut parts else { return };
        // a chunk whose front is damaged is drawn whole
        match column.blocks(chunk.number).ok().flatten() {
            Some(blocks) => tiles.extend(chunk.parts(blocks).iter().filter_map(|part| tile_of(reader, number, part))),
            None => tiles.extend(tile_of(reader, number, chunk)),
        }
        if u64::try_from(tiles.len()).is_ok_and(|count| count > most) {
            parts = None;
        }
    })?;
    let mut tiles = parts.unwrap_or(whole);
    tiles.sort_by_key(|tile| tile.range.start);
    Ok(tiles)
}

/// Returns the tile of a chunk; `None` if it is empty.
fn tile_of(reader: &Reader, column: usize, chunk: &TiledChunk) -> Option<Tile> {
    let mut tile = Tile::new(chunk.file_range.start..chunk.file_range.end.min(reader.file_bytes()));
    tile.add(column, chunk);
    (!tile.shares.is_empty()).then_some(tile)
}

/// Calls `visit` with each chunk and the number of its column, column by column.
fn for_each_chunk(
    reader: &Reader,
    path: &Path,
    quiet: bool,
    mut visit: impl FnMut(usize, &Column, &TiledChunk),
) -> Outcome {
    let progress = Progress::new(Unit::Samples, quiet);
    for (number, column) in reader.columns().enumerate() {
        for chunk in 0..column.facts().chunk_count {
            let info = column.chunk(chunk).map_err(|error| Failure::about(path, error))?;
            if let Some(chunk) = info.map(|info| TiledChunk::new(chunk, info)) {
                visit(number, &column, &chunk);
                let flow = progress.set("reading the index", chunk.samples.end, Some(reader.sample_count()));
                if flow.is_break() {
                    return Err(Failure::Cancelled);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(file_range: Range<u64>, raw_bytes: u64) -> TiledChunk {
        TiledChunk { number: 0, part: None, samples: 0..1, file_range, encoding: "raw".to_owned(), raw_bytes }
    }

    #[test]
    fn a_tile_is_of_what_takes_most_of_it() {
        let mut tile = Tile::new(100..200);
        assert_eq!(tile.main(), None);
        tile.add(0, &chunk(0..110, 220));
        assert_eq!(tile.main(), None, "90 of 100 bytes are structure");
        tile.add(1, &chunk(110..140, 30));
        tile.add(1, &chunk(140..160, 20));
        let main = tile.main().unwrap();
        assert_eq!((main.column, main.chunks, main.stored_bytes, main.raw_bytes), (1, 2, 50, 50));
        let first = tile.shares.first().unwrap();
        assert_eq!((first.stored_bytes, first.raw_bytes), (10, 20), "the part of the chunk that is in the tile");
    }

    #[test]
    fn a_tile_of_many_columns_keeps_the_largest() {
        let mut tile = Tile::new(0..10_000);
        for column in 0..100_u64 {
            let start = column * 100;
            let bytes = if column == 3 { 90 } else { 50 };
            tile.add(usize::try_from(column).unwrap(), &chunk(start..start + bytes, bytes));
        }
        assert_eq!((tile.shares.len(), tile.left_out), (16, 84));
        assert!(tile.shares.iter().any(|share| share.column == 3));
    }

    #[test]
    fn a_damaged_byte_marks_its_tile() {
        let mut tiles: Vec<Tile> = (0..10).map(|i| Tile::new(i * 10..i * 10 + 10)).collect();
        mark_damage(&mut tiles, &[19..20, 30..50, 99..200]);
        let marked: Vec<u64> = tiles.iter().filter(|tile| tile.is_damaged).map(|tile| tile.range.start).collect();
        assert_eq!(marked, [10, 30, 40, 90]);
    }

    #[test]
    fn what_is_outside_the_file_is_nothing() {
        let mut tile = Tile::new(0..10);
        tile.add(0, &chunk(10..20, 10));
        tile.add(0, &chunk(5..5, 0));
        assert!(tile.shares.is_empty());
    }
}
