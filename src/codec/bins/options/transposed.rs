//! Transposed rows: 64 rows are coded column by column.

use super::marks::malformed;
use crate::Result;
use crate::codec::bins::mappings::cut;
use crate::kernel::bins::GROUP;
use crate::kernel::{Width, transpose};
use crate::le::Fields;
use std::ops::Range;

/// Chapter 5.15: the field of *transposed*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::codec) struct Transposed {
    /// Elements of a row; at least 2.
    pub row: usize,
}

/// Rows of a tile: as many as a group has elements, so that a group is a column.
const TILE: usize = GROUP;
/// The most elements of a row that is transposed: a block is to have several rows.
const MOST_IN_ROW: usize = 1024;

impl Transposed {
    /// Parses the field: of it.
    pub(super) fn parse(fields: &mut Fields<'_>) -> Result<Self> {
        let row = usize::try_from(fields.u32().ok_or_else(cut)?).unwrap_or(usize::MAX);
        if row < 2 { Err(malformed(&format!("rows of {row} elements"))) } else { Ok(Self { row }) }
    }

    pub(super) fn write(&self, tables: &mut Vec<u8>) {
        // exact: that of a part, which has fewer than 2^32 elements
        tables.extend((self.row as u32).to_le_bytes());
    }

    /// Returns the order of rows of `row` elements; `None` if these are too few or too many for
    /// tiles to be of use.
    pub(in crate::codec) fn of(row: u32) -> Option<Self> {
        let row = usize::try_from(row).ok()?;
        (2..=MOST_IN_ROW).contains(&row).then_some(Self { row })
    }

    /// Sets `sorted` to the elements of blocks in their coded order.
    pub(in crate::codec) fn sort<T: Copy>(
        &self,
        blocks: impl Iterator<Item = Range<usize>>,
        elements: &[T],
        sorted: &mut Vec<T>,
    ) {
        sorted.clear();
        for block in blocks {
            let elements = elements.get(block).unwrap_or(&[]);
            sorted.extend(self.order(elements.len()).filter_map(|i| elements.get(i)));
        }
    }

    /// Returns how many elements of a block of `count` must be decoded, in their coded order, to
    /// know the first `wanted`.
    pub(in crate::codec) fn needed(&self, wanted: usize, count: usize) -> usize {
        let end = wanted.next_multiple_of(self.row.saturating_mul(TILE).min(count.max(1)));
        if end > count / self.row * self.row { count } else { end }
    }

    /// Returns the elements of a block of `count` in their coded order.
    pub(in crate::codec) fn order(&self, count: usize) -> impl Iterator<Item = usize> {
        let Self { row } = *self;
        let rows = count / row;
        let tiles = (0..rows).step_by(TILE).map(move |start| start..rows.min(start + TILE));
        let tiled =
            tiles.flat_map(move |tile| (0..row).flat_map(move |column| tile.clone().map(move |r| r * row + column)));
        tiled.chain(rows * row..count)
    }

    /// Sets `out` to the elements whose coded order `coded` has. Both are equally long, and of a
    /// block or of its first tiles.
    pub(in crate::codec) fn undo(&self, width: Width, mut coded: &[u8], mut out: &mut [u8]) {
        let row = self.row.saturating_mul(width.bytes());
        let mut rows = out.len() / row;
        while rows > 0 {
            let tile = rows.min(TILE);
            // no overflow: at most the length of `out`
            let from = coded.split_off(..tile * row).unwrap_or_default();
            let to = out.split_off_mut(..tile * row).unwrap_or_default();
            transpose::best().to_rows(width, tile, from, to);
            rows -= tile;
        }
        out.iter_mut().zip(coded).for_each(|(to, from)| *to = *from);
    }
}
