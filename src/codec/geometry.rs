//! The facts about the elements of a part that encoders use.

use super::float_type::FloatType;
use crate::format::schema::Layout;
use std::ops::Range;

/// The facts about the elements of a part that an encoder uses. They decide how small the result
/// is, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry<'a> {
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Whether the elements are floats.
    pub float: bool,
    /// The type of the elements, if they are floats of a known one.
    pub float_type: Option<FloatType>,
    /// Elements after which prediction begins anew: those of one sample, or a multiple.
    pub restart: u32,
    /// Elements of a row and of a matrix; 0 if there is none.
    pub strides: [u32; 2],
    /// The element at which each block ends. One if the part is one block.
    pub blocks: &'a [u32],
}

/// Scalars are predicted from the samples before them. Prediction begins anew after this many, so
/// that a reader of one sample decodes few others.
pub(super) const SCALARS: u32 = 1024;

impl<'a> Geometry<'a> {
    /// Returns the geometry of the values of a column.
    pub(super) fn of_values(layout: &Layout) -> Self {
        let sample = u32::try_from(layout.inner_bytes / layout.element_bytes).unwrap_or(u32::MAX);
        let float_type = FloatType::of_column(layout.dtype);
        Self {
            element_bytes: layout.element_bytes,
            float: float_type.is_some(),
            float_type,
            restart: match sample {
                _ if layout.is_ragged() => u32::MAX,
                0 | 1 => SCALARS,
                sample => sample,
            },
            strides: layout.strides,
            blocks: &[],
        }
    }

    /// Sets the blocks.
    pub(super) fn in_blocks(self, blocks: &'a [u32]) -> Self {
        Self { blocks, ..self }
    }

    /// Returns whether the part is to be in several blocks.
    pub(super) fn is_in_blocks(&self) -> bool {
        self.blocks.len() > 1
    }

    /// Returns the element at which the last block ends; 0 if there are no blocks.
    pub(super) fn end(&self) -> u32 {
        self.blocks.last().copied().unwrap_or(0)
    }

    /// Returns the elements of each block.
    pub(super) fn block_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        // exact: no target has a smaller usize
        let ends = self.blocks.iter().map(|&end| end as usize);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end))
    }

    /// Returns the bytes of some elements of a part.
    #[cfg(feature = "zstd")]
    pub(super) fn bytes_of<'r>(&self, raw: &'r [u8], elements: &Range<usize>) -> &'r [u8] {
        // a part of the bytes
        raw.get(elements.start * self.element_bytes..elements.end * self.element_bytes).unwrap_or(&[])
    }

    /// Returns the geometry of a sequence of integers.
    pub(super) fn of_numbers(element_bytes: usize) -> Self {
        Self { element_bytes, float: false, float_type: None, restart: u32::MAX, strides: [0; 2], blocks: &[] }
    }

    /// Returns the elements of the longest row, of at most `most`; 0 if all are longer.
    pub(super) fn longest_row(&self, most: usize) -> usize {
        let rows = self.strides.into_iter().map(|stride| stride as usize); // exact
        rows.filter(|row| *row <= most).max().unwrap_or(0)
    }

    /// Returns the elements of a sample, or else of the longest row, of at most `most`; 1 if all
    /// are longer.
    pub(super) fn row_up_to(&self, most: u32) -> u32 {
        let rows = [self.restart, self.strides[1], self.strides[0]].into_iter();
        rows.filter(|row| (1..=most).contains(row)).max().unwrap_or(1)
    }
}
