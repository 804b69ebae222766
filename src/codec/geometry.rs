//! What encoders know about the elements of a part, and where writers end its blocks.
//!
//! Facts of the column decide how small the stored bytes are, and nothing else: the length of rows,
//! where prediction begins anew, whether elements are floats. A decoder needs none of them.
//!
//! Blocks end with samples, so that a sample is read with one request, or with rows of a long one.
//! Prediction restarts with each block, which is why blocks of a long sample have some rows at
//! least.

use crate::dtype::DType;
use crate::format::{content::Content, schema::Layout};
use crate::kernel::{Width, quotients::FloatFormat};
use crate::{Result, limits};
use half::{bf16, f16};
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

/// A part that is to be encoded.
#[derive(Clone, Copy)]
pub(crate) struct RawPart<'a> {
    pub geometry: &'a Geometry<'a>,
    /// The elements, in the byte order of the file.
    pub raw: &'a [u8],
}

impl<'a> RawPart<'a> {
    pub(super) fn bytes_of(&self, elements: &Range<usize>) -> &'a [u8] {
        self.geometry.bytes_of(self.raw, elements)
    }
}

/// Scalars are predicted from the samples before them. Prediction begins anew after this many, so
/// that a reader of one sample decodes few others.
pub(super) const SCALARS: u32 = 1024;

impl<'a> Geometry<'a> {
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

    pub(super) fn block_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        // exact: no target has a smaller usize
        let ends = self.blocks.iter().map(|&end| end as usize);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end))
    }

    pub(super) fn bytes_of<'r>(&self, raw: &'r [u8], elements: &Range<usize>) -> &'r [u8] {
        // a part of the bytes
        raw.get(elements.start * self.element_bytes..elements.end * self.element_bytes).unwrap_or(&[])
    }

    pub(super) fn blocks_of<'r>(&self, raw: &'r [u8]) -> impl Iterator<Item = &'r [u8]> {
        self.block_ranges().map(|elements| self.bytes_of(raw, &elements))
    }

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatType {
    Bf16 = 1,
    F16 = 2,
    F32 = 3,
    F64 = 4,
}

impl FloatType {
    const ALL: [Self; 4] = [Self::Bf16, Self::F16, Self::F32, Self::F64];

    /// Returns the type with this code in the file.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    pub(super) fn code(self) -> u8 {
        self as u8 // exact: the discriminants are the codes
    }

    /// Returns the type of the elements of a column; `None` if they are not floats.
    pub(super) fn of_column(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Bf16 => Some(Self::Bf16),
            DType::F16 => Some(Self::F16),
            DType::F32 | DType::Complex64 => Some(Self::F32), // which is coded as two
            DType::F64 => Some(Self::F64),
            _ => None,
        }
    }

    pub(super) fn format(self) -> FloatFormat {
        match self {
            Self::Bf16 => FloatFormat::Bf16,
            Self::F16 => FloatFormat::F16,
            Self::F32 => FloatFormat::F32,
            Self::F64 => FloatFormat::F64,
        }
    }

    pub(super) fn width(self) -> Width {
        self.format().width()
    }

    pub(super) fn precision(self) -> u32 {
        self.format().precision()
    }

    /// Returns the value of an element, which has the type's length. That is exact.
    pub(super) fn value(self, element: &[u8]) -> f64 {
        match (self, element) {
            (Self::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
            (Self::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (Self::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0.0, // no element
        }
    }
}

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
