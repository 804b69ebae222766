//! A part of a chunk: the facts that decoders need, the facts that only encoders need, and the
//! positions where blocks end.
//!
//! [`PartSpec`] has the lengths and the table that decoding needs. [`Body`] holds the bytes of a
//! chunk, or only the ranges that were read. [`Description`] describes stored bytes for people.
//!
//! [`Geometry`] is for encoders. It has the length of rows, the interval at which prediction
//! restarts, and whether elements are floats. It affects only the stored size, so decoders never
//! need it.
//!
//! [`block_ends`] decides where blocks end. A block normally ends at the end of a sample, so one
//! request can read a sample. A sample longer than a few blocks is divided at the ends of rows.
//! Prediction restarts in each block, which makes the first row of a block more expensive, so a
//! block of a long sample has a minimum number of rows.

use super::zstandard::ZstdDictionary;
use crate::bytes::le::u64_of;
use crate::element::dtype::DType;
use crate::format::{content::Content, schema::Layout};
use crate::kernel::{Width, float_multiples::FloatFormat};
use crate::{Error, Result, limits};
use half::{bf16, f16};
use std::ops::Range;
use std::sync::Arc;

/// The facts about a part that decoding needs.
#[derive(Clone, Copy)]
pub(crate) struct PartSpec<'a> {
    /// The size of an element in bytes.
    pub element_bytes: usize,
    /// The decoded length in bytes.
    pub raw_bytes: usize,
    /// The table whose number [`Encoding::table`](super::blocked::Encoding::table) returns.
    #[cfg_attr(not(feature = "zstd"), expect(dead_code, reason = "the encoding that needs it is absent"))]
    pub zstd_dictionary: Option<&'a ZstdDictionary>,
}

impl<'a> PartSpec<'a> {
    /// Returns the facts about a part that needs no table.
    pub(crate) fn new(element_bytes: usize, raw_bytes: usize) -> Self {
        Self { element_bytes, raw_bytes, zstd_dictionary: None }
    }

    pub(super) fn with_zstd_dictionary(self, zstd_dictionary: Option<&'a ZstdDictionary>) -> Self {
        Self { zstd_dictionary, ..self }
    }

    /// Returns the width and the number of the elements. Fails if the length is not a whole number
    /// of elements, or if no kernel supports their width.
    pub(super) fn width_and_count(self) -> Result<(Width, usize)> {
        if let Some(width) = Width::from_bytes(self.element_bytes)
            && self.raw_bytes.is_multiple_of(width.bytes())
        {
            return Ok((width, self.raw_bytes / width.bytes()));
        }
        Err(Error::corrupt(
            "R-4.5",
            format!("{} bytes are not a whole number of {}-byte elements", self.raw_bytes, self.element_bytes),
        ))
    }
}

/// The tables of one column (chapter 4.5). All of them are Zstandard dictionaries.
pub(crate) trait Tables {
    /// Returns the table with this number. Reads it on first use.
    fn zstd_dictionary(&self, table: u32) -> Result<Arc<ZstdDictionary>>;
}

/// The body of a chunk. If the chunk is divided into blocks, this may be only its block index and
/// some of the blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Body<'a> {
    /// A prefix of the body.
    start: &'a [u8],
    /// Another range of the body.
    segment: &'a [u8],
    /// The offset of `segment` in the body.
    segment_offset: usize,
    is_mapped: bool,
}

impl<'a> Body<'a> {
    /// Returns a body that was read completely.
    pub(crate) fn whole(body: &'a [u8]) -> Self {
        Self { start: body, segment: &[], segment_offset: 0, is_mapped: false }
    }

    /// Returns a body that was not read just now, for example because the file is mapped.
    pub(crate) fn mapped(body: &'a [u8]) -> Self {
        Self { is_mapped: true, ..Self::whole(body) }
    }

    /// Returns a partially read body: its start, and a segment that begins at byte
    /// `segment_offset`.
    pub(crate) fn partial(start: &'a [u8], segment_offset: usize, segment: &'a [u8]) -> Self {
        Self { start, segment, segment_offset, is_mapped: false }
    }

    /// Returns whether the bytes are probably not in the CPU caches, because they were not just
    /// read.
    pub(crate) fn is_mapped(self) -> bool {
        self.is_mapped
    }

    /// Returns the start of the body, or the whole body if all of it was read.
    pub(crate) fn start(self) -> &'a [u8] {
        self.start
    }

    /// Returns a range of the body, if it was read.
    #[inline]
    pub(crate) fn get(self, range: Range<usize>) -> Option<&'a [u8]> {
        match self.start.get(range.clone()) {
            Some(bytes) => Some(bytes),
            None => {
                let start = range.start.checked_sub(self.segment_offset)?;
                self.segment.get(start..range.end.checked_sub(self.segment_offset)?)
            }
        }
    }
}

/// A section of the stored values of a chunk, such as a tier or a bit plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// The name, such as `tier 1` or `bit plane 7`.
    pub name: String,
    /// The content in words, such as `16384 codes of 2 bits`. May be empty.
    pub detail: String,
    /// The stored size in bytes.
    pub stored_bytes: u64,
}

/// The sections of the stored bytes of a part.
#[derive(Debug, Default)]
pub(crate) struct Description {
    /// The transform of the elements, in words; `None` in encodings without transforms.
    pub transform: Option<String>,
    /// The sections in file order, except empty ones. Their sizes add up to the stored size.
    pub sections: Vec<Section>,
}

impl Description {
    /// Adds the next section, unless it is empty.
    pub(super) fn add(&mut self, name: impl Into<String>, detail: impl Into<String>, stored: &[u8]) {
        if !stored.is_empty() {
            let stored_bytes = u64_of(stored.len());
            self.sections.push(Section { name: name.into(), detail: detail.into(), stored_bytes });
        }
    }

    /// Merges the sections of a block into the sections of earlier blocks, by name.
    pub(super) fn add_block(&mut self, block: Description) {
        for section in block.sections {
            match self.sections.iter_mut().find(|found| found.name == section.name) {
                Some(found) => {
                    found.stored_bytes = found.stored_bytes.saturating_add(section.stored_bytes);
                    if found.detail != section.detail {
                        found.detail = without_number(&found.detail).to_owned();
                    }
                }
                None => self.sections.push(section),
            }
        }
    }
}

/// Strips the leading number of a detail, which differs from block to block.
fn without_number(detail: &str) -> &str {
    detail.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()
}

// ---- facts for encoders

/// The facts about the elements of a part that an encoder uses. They affect only the size of the
/// result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry<'a> {
    /// The size of an element in bytes.
    pub element_bytes: usize,
    /// Whether the elements are floats.
    pub float: bool,
    /// The type of the elements, if they are floats of a known type.
    pub float_type: Option<FloatType>,
    /// The number of elements after which prediction restarts: the length of a sample, or a
    /// multiple of it.
    pub restart: u32,
    /// The number of elements in a row and in a matrix; 0 if there is none.
    pub strides: [u32; 2],
    /// The element at which each block ends; a single entry if the part is one block.
    pub blocks: &'a [u32],
}

/// A part to encode.
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

/// The number of scalars after which prediction restarts. Scalars are predicted from the samples
/// before them. Without restarts, reading one sample would mean decoding all samples before it.
pub(super) const SCALAR_RESTART: u32 = 1024;

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
                0 | 1 => SCALAR_RESTART,
                sample => sample,
            },
            strides: layout.strides,
            blocks: &[],
        }
    }

    pub(super) fn in_blocks(self, blocks: &'a [u32]) -> Self {
        Self { blocks, ..self }
    }

    /// Returns whether the part will be stored in several blocks.
    pub(super) fn is_in_blocks(&self) -> bool {
        self.blocks.len() > 1
    }

    /// Returns the element at which the last block ends; 0 if there are no blocks.
    pub(super) fn end(&self) -> u32 {
        self.blocks.last().copied().unwrap_or(0)
    }

    pub(super) fn block_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        // exact: no supported target has a smaller usize
        let ends = self.blocks.iter().map(|&end| end as usize);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end)..end))
    }

    pub(super) fn bytes_of<'r>(&self, raw: &'r [u8], elements: &Range<usize>) -> &'r [u8] {
        // no overflow: the elements are inside the part
        raw.get(elements.start * self.element_bytes..elements.end * self.element_bytes).unwrap_or(&[])
    }

    pub(super) fn blocks_of<'r>(&self, raw: &'r [u8]) -> impl Iterator<Item = &'r [u8]> {
        self.block_ranges().map(|elements| self.bytes_of(raw, &elements))
    }

    pub(super) fn of_numbers(element_bytes: usize) -> Self {
        Self { element_bytes, float: false, float_type: None, restart: u32::MAX, strides: [0; 2], blocks: &[] }
    }

    /// Returns the length of the longest row or matrix that has at most `max_elements` elements, or
    /// 0 if both are longer.
    pub(super) fn longest_row(&self, max_elements: usize) -> usize {
        let rows = self.strides.into_iter().map(|stride| stride as usize); // exact
        rows.filter(|row| *row <= max_elements).max().unwrap_or(0)
    }

    /// Returns the length of the longest unit (sample, matrix or row) that has at most
    /// `max_elements` elements, or 1 if all are longer.
    pub(super) fn row_up_to(&self, max_elements: u32) -> u32 {
        let rows = [self.restart, self.strides[1], self.strides[0]].into_iter();
        rows.filter(|row| (1..=max_elements).contains(row)).max().unwrap_or(1)
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

    /// Returns the type that has this code in the file.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.code() == code)
    }

    pub(super) fn code(self) -> u8 {
        self as u8 // exact: the discriminants are the codes
    }

    /// Returns the float type of the elements of a column; `None` if they are not floats.
    pub(super) fn of_column(dtype: DType) -> Option<Self> {
        match dtype {
            DType::Bf16 => Some(Self::Bf16),
            DType::F16 => Some(Self::F16),
            DType::F32 | DType::Complex64 => Some(Self::F32), // complex64 is coded as two f32
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

    /// Returns the exact value of an element of this type.
    pub(super) fn value(self, element: &[u8]) -> f64 {
        match (self, element) {
            (Self::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
            (Self::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (Self::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0.0, // not the bytes of one element
        }
    }
}

/// A sample of up to this many times the block size becomes one block, because its rows are read
/// together anyway. A longer sample is divided into blocks of up to this many times the block size.
const LONG_SAMPLE_BLOCKS: usize = 4;
/// The minimum number of rows in a block of a long sample. Prediction restarts in each block, so
/// the first row takes more bits than the others.
const MIN_ROWS: usize = 16;

/// Sets `ends` to the element at which each block of a chunk ends, for blocks of about
/// `block_bytes` bytes. Leaves `ends` empty if the chunk is one block.
pub(crate) fn block_ends(
    layout: &Layout,
    content: &Content<'_>,
    block_bytes: usize,
    ends: &mut Vec<u32>,
) -> Result<()> {
    ends.clear();
    let element_bytes = layout.element_bytes.max(1);
    let max_elements = (block_bytes / element_bytes).clamp(1, limits::BLOCK_ELEMENTS);
    let count = content.values.len() / element_bytes;
    if count <= (max_elements + max_elements / 2).min(limits::BLOCK_ELEMENTS) {
        return Ok(()); // two blocks would be too small
    }
    let mut planner = Planner { max_elements, rows: rows(layout, max_elements), block: 0..0, ends };
    for i in 0..content.sample_count {
        // no overflow: below the chunk's sample count
        let end = content.values_range(layout, &(i..i + 1))?.end / element_bytes;
        planner.add_sample(end);
    }
    planner.close();
    Ok(())
}

/// Returns the block ends that divide validity or a shape of `count` elements into as few blocks as
/// possible.
pub(crate) fn number_ends(count: usize) -> Vec<u32> {
    let ends = (1..=count.div_ceil(limits::BLOCK_ELEMENTS)).map(|block| count.min(block * limits::BLOCK_ELEMENTS));
    ends.filter_map(|end| u32::try_from(end).ok()).collect() // a part has fewer than 2^32 bytes
}

/// Returns the length of a row, and the maximum length of a block in a long sample, in elements.
/// `max_elements` is the block size.
fn rows(layout: &Layout, max_elements: usize) -> (usize, usize) {
    // exact
    let stride = layout.strides.into_iter().map(|stride| stride as usize).find(|&stride| stride > 1);
    let max_elements = max_elements.saturating_mul(LONG_SAMPLE_BLOCKS).min(limits::BLOCK_ELEMENTS);
    match stride {
        Some(row) if row <= limits::BLOCK_ELEMENTS => {
            let longest = limits::BLOCK_ELEMENTS - limits::BLOCK_ELEMENTS % row;
            (row, row.saturating_mul(MIN_ROWS).max(max_elements - max_elements % row).min(longest))
        }
        _ => (1, max_elements),
    }
}

struct Planner<'a> {
    /// The maximum number of elements in a block of small samples.
    max_elements: usize,
    /// The length of a row, and the maximum length of a block in a long sample.
    rows: (usize, usize),
    /// The elements that have not been assigned to a block yet.
    block: Range<usize>,
    ends: &'a mut Vec<u32>,
}

impl Planner<'_> {
    fn add_sample(&mut self, end: usize) {
        if end - self.block.start > self.max_elements {
            self.close();
        }
        self.block.end = end;
        let (row, step) = self.rows;
        if self.block.len() <= step {
            return;
        }
        // a long sample: the blocks have equal lengths, except for the last one
        let parts = self.block.len().div_ceil(step).max(1);
        let step = self.block.len().div_ceil(parts).next_multiple_of(row); // at most the old `step`
        while self.block.start < end {
            self.block.end = end.min(self.block.start + step);
            self.close();
        }
    }

    fn close(&mut self) {
        if !self.block.is_empty() {
            // always succeeds: a chunk has fewer than 2^32 elements
            self.ends.extend(u32::try_from(self.block.end));
            self.block.start = self.block.end;
        }
    }
}
