//! Divides a chunk into blocks, which end with samples, or with rows of a long sample.

use crate::format::content::Content;
use crate::format::schema::Layout;
use crate::{Result, limits};
use std::ops::Range;

/// A sample of up to this many blocks is in one, and so are the rows of a longer one: all of them
/// are read with it.
const LONG: usize = 4;
/// The least number of rows in a block of a long sample. Prediction begins anew with each block, so
/// that its first row costs more bits.
const LEAST_ROWS: usize = 16;

/// Sets `ends` to the element at which each block of a chunk ends, for blocks of about
/// `block_bytes`. It has none if the chunk is one block.
pub(crate) fn block_ends(
    layout: &Layout,
    content: &Content<'_>,
    block_bytes: usize,
    ends: &mut Vec<u32>,
) -> Result<()> {
    ends.clear();
    let element_bytes = layout.element_bytes.max(1);
    let most = (block_bytes / element_bytes).clamp(1, limits::BLOCK_ELEMENTS);
    let count = content.values.len() / element_bytes;
    if count <= (most + most / 2).min(limits::BLOCK_ELEMENTS) {
        return Ok(()); // two blocks would be small
    }
    let mut planner = Planner { most, rows: rows(layout, most), block: 0..0, ends };
    for i in 0..content.sample_count {
        // below the chunk's sample count
        let end = content.values_range(layout, &(i..i + 1))?.end / element_bytes;
        planner.add_sample(end);
    }
    planner.close();
    Ok(())
}

/// Returns the ends of as few blocks as validity or a shape of `count` elements may have.
pub(crate) fn number_ends(count: usize) -> Vec<u32> {
    let ends = (1..=count.div_ceil(limits::BLOCK_ELEMENTS)).map(|block| count.min(block * limits::BLOCK_ELEMENTS));
    ends.filter_map(|end| u32::try_from(end).ok()).collect() // a part has fewer than 2^32 bytes
}

/// Returns the elements of a row, and the elements of a block of rows, which are at most those that
/// any block may have.
fn rows(layout: &Layout, most: usize) -> (usize, usize) {
    // exact
    let stride = layout.strides.into_iter().map(|stride| stride as usize).find(|&stride| stride > 1);
    let most = most.saturating_mul(LONG).min(limits::BLOCK_ELEMENTS);
    match stride {
        Some(row) if row <= limits::BLOCK_ELEMENTS => {
            let longest = limits::BLOCK_ELEMENTS - limits::BLOCK_ELEMENTS % row;
            (row, row.saturating_mul(LEAST_ROWS).max(most - most % row).min(longest))
        }
        _ => (1, most),
    }
}

struct Planner<'a> {
    /// The elements that a block has if samples are small.
    most: usize,
    /// The elements of a row, and of a block of rows.
    rows: (usize, usize),
    /// The elements that are in no block yet.
    block: Range<usize>,
    ends: &'a mut Vec<u32>,
}

impl Planner<'_> {
    /// Adds a sample that ends at element `end`.
    fn add_sample(&mut self, end: usize) {
        if end - self.block.start > self.most {
            self.close();
        }
        self.block.end = end;
        let (row, step) = self.rows;
        if self.block.len() <= step {
            return;
        }
        // a long sample: parts of equal length, but for the last
        let parts = self.block.len().div_ceil(step).max(1);
        let step = self.block.len().div_ceil(parts).next_multiple_of(row); // at most the other one
        while self.block.start < end {
            self.block.end = end.min(self.block.start + step);
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.block.is_empty() {
            // below 2^32: a chunk has fewer elements
            self.ends.extend(u32::try_from(self.block.end));
            self.block.start = self.block.end;
        }
    }
}
