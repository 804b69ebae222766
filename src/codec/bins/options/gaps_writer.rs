//! Finds gaps, and makes the elements that are left.

use super::gaps::Gaps;
use super::marks::{RiceParameters, write_marks};
use crate::codec::geometry::Geometry;
use crate::kernel::Width;
use std::ops::Range;

/// A filler is at least one in this many elements.
const FILLER_IS_ONE_IN: usize = 32;

/// The elements of a part that are no gaps, in memory that is reused.
#[derive(Default)]
pub(in crate::codec) struct Present {
    /// `None` if all elements are coded; the rest has no meaning then.
    pub gaps: Option<Gaps>,
    /// The elements.
    pub bytes: Vec<u8>,
    /// The element at which each block ends.
    pub ends: Vec<u32>,
    /// The gaps of all blocks, counted from the start of each.
    stretches: Vec<Range<usize>>,
    /// The number of elements of each block, and which of `stretches` are in it.
    blocks: Vec<(usize, Range<usize>)>,
}

impl Present {
    /// Finds a filler of elements that come in stretches, and the elements that are not equal to
    /// it. Returns whether there is one.
    pub(in crate::codec) fn find(&mut self, width: Width, geometry: &Geometry<'_>, raw: &[u8]) -> bool {
        self.gaps = None;
        match width {
            Width::W1 => self.find_as::<1>(geometry, raw),
            Width::W2 => self.find_as::<2>(geometry, raw),
            Width::W4 => self.find_as::<4>(geometry, raw),
            Width::W8 => self.find_as::<8>(geometry, raw),
        }
    }

    fn find_as<const W: usize>(&mut self, geometry: &Geometry<'_>, raw: &[u8]) -> bool {
        let elements = raw.as_chunks::<W>().0;
        let Some(filler) = find_filler(elements) else { return false };
        self.bytes.clear();
        self.ends.clear();
        self.stretches.clear();
        self.blocks.clear();
        for block in geometry.block_ranges() {
            let before = self.stretches.len();
            let elements = elements.get(block).unwrap_or(&[]);
            let mut at = 0;
            for run in elements.chunk_by(|a, b| (*a == filler) == (*b == filler)) {
                match run.first() == Some(&filler) {
                    true => self.stretches.push(at..at + run.len()),
                    false => self.bytes.extend_from_slice(run.as_flattened()),
                }
                at += run.len();
            }
            self.blocks.push((elements.len(), before..self.stretches.len()));
            self.ends.push((self.bytes.len() / W) as u32); // a part has fewer than 2^32 elements
        }
        let parameters = RiceParameters::best(self.marks());
        let mut padded = [0; 8];
        padded.iter_mut().zip(filler).for_each(|(to, from)| *to = from);
        self.gaps = Some(Gaps { filler: padded, parameters });
        true
    }

    /// Returns the number of elements of each block, and its gaps.
    fn marks(&self) -> impl Iterator<Item = (usize, &[Range<usize>])> + Clone {
        let stretches = |range: &Range<usize>| self.stretches.get(range.clone()).unwrap_or(&[]);
        self.blocks.iter().map(move |(count, range)| (*count, stretches(range)))
    }

    /// Returns the geometry of the elements that are left, whose rows have no meaning.
    pub(in crate::codec) fn geometry<'a>(&'a self, all: &Geometry<'_>) -> Geometry<'a> {
        Geometry { restart: u32::MAX, strides: [0; 2], blocks: &self.ends, ..*all }
    }

    /// Returns the bytes that the gaps take.
    pub(in crate::codec) fn mark_bytes(&self) -> usize {
        let Some(gaps) = self.gaps else { return 0 };
        let mut stored = Vec::new();
        self.marks().for_each(|(count, marks)| write_marks(gaps.parameters, count, marks, &mut stored));
        stored.len()
    }

    /// Appends the gaps of a block, if there are gaps.
    pub(in crate::codec) fn append_marks(&self, block: usize, stored: &mut Vec<u8>) {
        if let (Some(gaps), Some((count, marks))) = (self.gaps, self.marks().nth(block)) {
            write_marks(gaps.parameters, count, marks, stored);
        }
    }

    /// Returns the elements of a block that are left.
    pub(in crate::codec) fn of_block(&self, block: usize) -> Range<usize> {
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
