//! Gaps: elements that are all equal, of which only the positions are stored.

use super::marks::{Marks, RiceParameters};
use crate::Result;
use crate::codec::bins::mappings::cut;
use crate::kernel::Width;
use crate::le::Fields;
use std::ops::Range;

/// Chapter 5.15: the fields of *gaps*.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Gaps {
    /// The bytes of the filler, as many as an element has.
    pub(super) filler: [u8; 8],
    pub(super) parameters: RiceParameters,
}

impl Gaps {
    /// Parses the fields: of them.
    pub(super) fn parse(width: Width, fields: &mut Fields<'_>) -> Result<Self> {
        let mut filler = [0; 8];
        let stored = fields.bytes(width.bytes()).ok_or_else(cut)?;
        filler.iter_mut().zip(stored).for_each(|(to, from)| *to = *from);
        Ok(Self { filler, parameters: RiceParameters::parse(fields)? })
    }

    pub(super) fn write(&self, width: Width, tables: &mut Vec<u8>) {
        tables.extend(self.filler.iter().take(width.bytes()));
        self.parameters.write(tables);
    }

    /// Reads which elements of a block are gaps. Returns the bytes after that.
    pub(in crate::codec) fn read<'a>(&self, count: usize, stored: &'a [u8], marks: &mut Marks) -> Result<&'a [u8]> {
        marks.read(self.parameters, count, stored)
    }

    /// Sets `out` to the elements of a range of a block. `present` are those of the range that are
    /// no gaps.
    pub(in crate::codec) fn spread(
        &self,
        width: Width,
        marks: &Marks,
        range: &Range<usize>,
        present: &[u8],
        out: &mut [u8],
    ) {
        match width {
            Width::W1 => self.spread_as::<1>(marks, range, present, out),
            Width::W2 => self.spread_as::<2>(marks, range, present, out),
            Width::W4 => self.spread_as::<4>(marks, range, present, out),
            Width::W8 => self.spread_as::<8>(marks, range, present, out),
        }
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
