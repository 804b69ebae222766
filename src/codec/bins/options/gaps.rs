//! Gaps (chapter 5.15): elements that are all equal, of which only the positions are stored.
//!
//! Missing values, zeros of a sparse tensor and pauses of a recording come in stretches. Coded with
//! the other elements, they break prediction on both sides of each stretch. The block has the marks
//! of its gaps, and bins code the elements that are left as if they adjoined each other.
//!
//! The filler of a part is the element that equals the one before it most often.

use super::marks::{Marks, PlannedMarks, RiceParameters};
use crate::Result;
use crate::codec::bins::cut;
use crate::codec::bits::{wide, with_width};
use crate::codec::geometry::Geometry;
use crate::kernel::Width;
use crate::le::Fields;
use std::ops::Range;

/// Chapter 5.15: the fields of *gaps*.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    /// The bytes of the filler, as many as an element has.
    pub(in crate::codec::bins) filler: [u8; 8],
    pub(in crate::codec::bins) parameters: RiceParameters,
}

impl Gaps {
    /// Parses the fields: of them.
    pub(super) fn parse(width: Width, fields: &mut Fields<'_>) -> Result<Self> {
        let filler = wide(fields.bytes(width.bytes()).ok_or_else(cut)?).to_le_bytes();
        Ok(Self { filler, parameters: RiceParameters::parse(fields)? })
    }

    pub(super) fn write(&self, width: Width, tables: &mut Vec<u8>) {
        tables.extend(self.filler.iter().take(width.bytes()));
        self.parameters.write(tables);
    }

    /// Reads which elements of a block are gaps. Returns the bytes after that.
    pub(crate) fn read<'a>(&self, count: usize, stored: &'a [u8], marks: &mut Marks) -> Result<&'a [u8]> {
        marks.read(self.parameters, count, stored)
    }

    /// Sets `out` to the elements of a range of a block. `present` are those of the range that are
    /// no gaps.
    pub(crate) fn spread(&self, width: Width, marks: &Marks, range: &Range<usize>, present: &[u8], out: &mut [u8]) {
        with_width!(width, W => self.spread_as::<W>(marks, range, present, out));
    }

    fn spread_as<const W: usize>(&self, marks: &Marks, range: &Range<usize>, present: &[u8], out: &mut [u8]) {
        let filler: [u8; W] = std::array::from_fn(|byte| self.filler.get(byte).copied().unwrap_or(0));
        let mut present = present.as_chunks().0;
        let mut out = out.as_chunks_mut::<W>().0;
        let mut at = range.start;
        let mut copy = |out: &mut &mut [[u8; W]], count: usize| {
            let from = present.split_off(..count.min(present.len())).unwrap_or_default();
            let to = out.split_off_mut(..count.min(out.len())).unwrap_or_default();
            to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        };
        for stretch in marks.stretches().filter(|stretch| stretch.end > range.start) {
            let (start, end) = (stretch.start.max(at).min(range.end), stretch.end.min(range.end));
            copy(&mut out, start - at);
            if start >= end {
                return;
            }
            let gap = out.split_off_mut(..(end - start).min(out.len())).unwrap_or_default();
            gap.fill(filler);
            at = end;
        }
        copy(&mut out, range.end - at);
    }
}

/// A filler is at least one in this many elements.
const FILLER_IS_ONE_IN: usize = 32;

/// The elements of a part that are no gaps, in memory that is reused.
#[derive(Default)]
pub(crate) struct Present {
    /// `None` if all elements are coded; the rest has no meaning then.
    pub gaps: Option<Gaps>,
    pub bytes: Vec<u8>,
    /// The element at which each block ends.
    ends: Vec<u32>,
    marks: PlannedMarks,
}

impl Present {
    /// Finds a filler of elements that come in stretches, and the elements that are not equal to
    /// it. Returns whether there is one.
    pub(crate) fn find(&mut self, width: Width, geometry: &Geometry<'_>, raw: &[u8]) -> bool {
        self.gaps = None;
        with_width!(width, W => self.find_as::<W>(geometry, raw))
    }

    fn find_as<const W: usize>(&mut self, geometry: &Geometry<'_>, raw: &[u8]) -> bool {
        let Some(filler) = find_filler(raw.as_chunks::<W>().0) else { return false };
        self.bytes.clear();
        self.ends.clear();
        self.marks.clear();
        for block in geometry.blocks_of(raw) {
            let elements = block.as_chunks::<W>().0;
            let mut at = 0;
            for run in elements.chunk_by(|a, b| (*a == filler) == (*b == filler)) {
                match run.first() == Some(&filler) {
                    true => self.marks.mark(at..at + run.len()),
                    false => self.bytes.extend_from_slice(run.as_flattened()),
                }
                at += run.len();
            }
            self.marks.end_block(elements.len());
            self.ends.push((self.bytes.len() / W) as u32); // a part has fewer than 2^32 elements
        }
        let parameters = RiceParameters::best(&self.marks);
        self.gaps = Some(Gaps { filler: wide(&filler).to_le_bytes(), parameters });
        true
    }

    /// Returns the geometry of the elements that are left, whose rows have no meaning.
    pub(crate) fn geometry<'a>(&'a self, all: &Geometry<'_>) -> Geometry<'a> {
        Geometry { restart: u32::MAX, strides: [0; 2], blocks: &self.ends, ..*all }
    }

    pub(crate) fn mark_bytes(&self) -> usize {
        let mut stored = Vec::new();
        (0..self.ends.len()).for_each(|block| self.append_marks(block, &mut stored));
        stored.len()
    }

    /// Appends the gaps of a block, if there are gaps.
    pub(crate) fn append_marks(&self, block: usize, stored: &mut Vec<u8>) {
        if let Some(gaps) = self.gaps {
            self.marks.write(gaps.parameters, block, stored);
        }
    }

    pub(crate) fn of_block(&self, block: usize) -> Range<usize> {
        // exact: as above
        let end = |block: usize| self.ends.get(block).map_or(0, |&end| end as usize);
        block.checked_sub(1).map_or(0, end)..end(block)
    }
}

/// Returns the element that comes in stretches most often, if it is often enough: by the vote of
/// R. S. Boyer and J. S. Moore (1981) among the elements that are equal to the one before them.
fn find_filler<const W: usize>(elements: &[[u8; W]]) -> Option<[u8; W]> {
    let mut vote = (None, 0_usize);
    for (before, element) in elements.iter().zip(elements.iter().skip(1)) {
        if before != element {
            continue;
        }
        vote = match vote {
            (_, 0) => (Some(*element), 1),
            (filler, votes) if filler == Some(*element) => (filler, votes + 1),
            (filler, votes) => (filler, votes - 1),
        };
    }
    let filler = vote.0?;
    let found = elements.iter().filter(|element| **element == filler).count();
    (found * FILLER_IS_ONE_IN >= elements.len() && found < elements.len()).then_some(filler)
}
