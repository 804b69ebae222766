//! Divides a file into tiles, and finds the columns in each tile.
//!
//! Tiles are chunks, or ranges of the file of equal size. If a chunk spans several such ranges,
//! each range counts only the bytes of the chunk that lie in it. The column with the most bytes
//! determines the color or letter of a tile; bytes outside chunks are structure. Only the index of
//! the file is read.

use crate::failure::{Failure, Outcome};
use crate::terminal::{Progress, Unit};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use tensilo::Reader;
use tensilo::facts::ChunkInfo;

/// The chunks of one column in a tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ColumnShare {
    pub(super) column: usize,
    /// The number of chunks that lie in the tile, wholly or partially.
    pub(super) chunks: u64,
    /// The samples of these chunks.
    pub(super) samples: Range<u64>,
    pub(super) encodings: BTreeSet<String>,
    pub(super) stored_bytes: u64,
    /// The decoded size of the stored bytes: their proportional share of the raw size of the
    /// chunks.
    pub(super) raw_bytes: u64,
}

impl ColumnShare {
    /// Returns the share of a chunk in a range of the file, or `None` if they do not overlap.
    fn of(column: usize, chunk: &ChunkInfo, range: &Range<u64>) -> Option<Self> {
        let (start, end) = (chunk.file_range.start.max(range.start), chunk.file_range.end.min(range.end));
        let stored_bytes = end.checked_sub(start).filter(|bytes| *bytes > 0)?;
        Some(Self {
            column,
            chunks: 1,
            samples: chunk.samples.clone(),
            encodings: BTreeSet::from([chunk.encoding.clone()]),
            stored_bytes,
            raw_bytes: scale(chunk.raw_bytes, stored_bytes, length(&chunk.file_range)),
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
pub(super) struct Tile {
    pub(super) range: Range<u64>,
    /// The number of bytes that belong to chunks. The remaining bytes are structure.
    chunk_bytes: u64,
    /// The shares of the columns, in column order.
    pub(super) shares: Vec<ColumnShare>,
    /// Whether any byte of the tile is damaged.
    pub(super) is_damaged: bool,
}

impl Tile {
    fn new(range: Range<u64>) -> Self {
        Self { range, chunk_bytes: 0, shares: Vec::new(), is_damaged: false }
    }

    /// Returns the column that takes most of the tile, or `None` if structure takes more.
    pub(super) fn main(&self) -> Option<&ColumnShare> {
        let structure = length(&self.range).saturating_sub(self.chunk_bytes);
        let largest = self.shares.iter().max_by_key(|share| share.stored_bytes);
        largest.filter(|share| share.stored_bytes >= structure)
    }

    /// Adds the bytes of a chunk that lie in the tile. Chunks must be added column by column.
    fn add(&mut self, column: usize, chunk: &ChunkInfo) {
        let Some(share) = ColumnShare::of(column, chunk, &self.range) else { return };
        self.chunk_bytes = self.chunk_bytes.saturating_add(share.stored_bytes);
        match self.shares.last_mut() {
            Some(last) if last.column == column => last.merge(share),
            _ => self.shares.push(share),
        }
    }
}

/// Returns the number of bytes in a range.
fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// Returns `whole` x `fraction` / `of`.
fn scale(whole: u64, fraction: u64, of: u64) -> u64 {
    // the product is below 2^128
    let share = (u128::from(whole) * u128::from(fraction)).checked_div(u128::from(of));
    share.and_then(|share| u64::try_from(share).ok()).unwrap_or(0)
}

/// Divides the file into tiles of `tile_bytes` bytes. The last tile can be shorter.
pub(super) fn equal_tiles(reader: &Reader, path: &Path, tile_bytes: u64, quiet: bool) -> Outcome<Vec<Tile>> {
    let (file_bytes, tile_bytes) = (reader.file_bytes(), tile_bytes.max(1));
    let starts = (0..file_bytes.div_ceil(tile_bytes)).map(|tile| tile.saturating_mul(tile_bytes));
    let range = |start: u64| start..start.saturating_add(tile_bytes).min(file_bytes);
    let mut tiles: Vec<Tile> = starts.map(|start| Tile::new(range(start))).collect();
    for_each_chunk(reader, path, quiet, |column, chunk| {
        let number = |at: u64| usize::try_from(at / tile_bytes).unwrap_or(usize::MAX);
        let (first, end) = (number(chunk.file_range.start), number(chunk.file_range.end.min(file_bytes)));
        let touched = tiles.iter_mut().skip(first).take(end.saturating_sub(first).saturating_add(1));
        touched.for_each(|tile| tile.add(column, chunk));
    })?;
    Ok(tiles)
}

/// Marks the tiles that contain a byte of these ranges. The tiles must be in file order.
pub(super) fn mark_damage(tiles: &mut [Tile], damaged: &[Range<u64>]) {
    for range in damaged {
        let first = tiles.partition_point(|tile| tile.range.end <= range.start);
        let touched = tiles.iter_mut().skip(first).take_while(|tile| tile.range.start < range.end);
        touched.for_each(|tile| tile.is_damaged = true);
    }
}

/// Returns a tile for each chunk that is not empty, in file order.
pub(super) fn chunk_tiles(reader: &Reader, path: &Path, quiet: bool) -> Outcome<Vec<Tile>> {
    let mut tiles = Vec::new();
    for_each_chunk(reader, path, quiet, |column, chunk| {
        let mut tile = Tile::new(chunk.file_range.start..chunk.file_range.end.min(reader.file_bytes()));
        tile.add(column, chunk);
        tiles.extend((!tile.shares.is_empty()).then_some(tile));
    })?;
    tiles.sort_by_key(|tile| tile.range.start);
    Ok(tiles)
}

/// Calls `visit` with each chunk and the number of its column, column by column.
fn for_each_chunk(reader: &Reader, path: &Path, quiet: bool, mut visit: impl FnMut(usize, &ChunkInfo)) -> Outcome {
    let progress = Progress::new(Unit::Samples, quiet);
    for (number, column) in reader.columns().enumerate() {
        for chunk in 0..column.facts().chunk_count {
            if let Some(chunk) = column.chunk(chunk).map_err(|error| Failure::about(path, error))? {
                visit(number, &chunk);
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

    #[test]
    fn a_damaged_byte_marks_its_tile() {
        let mut tiles: Vec<Tile> = (0..10).map(|i| Tile::new(i * 10..i * 10 + 10)).collect();
        mark_damage(&mut tiles, &[19..20, 30..50, 99..200]);
        let marked: Vec<u64> = tiles.iter().filter(|tile| tile.is_damaged).map(|tile| tile.range.start).collect();
        assert_eq!(marked, [10, 30, 40, 90]);
    }
}
