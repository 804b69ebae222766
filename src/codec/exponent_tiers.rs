//! Chapter 5.8: exponent-tiers codes the top byte of each element in tiers and keeps the other
//! bytes.

use super::anatomy::Anatomy;
use super::tier_stream::{TierScratch, TierStream, overrun};
use crate::Result;
use crate::kernel::tiers::GROUP;
use crate::kernel::{Width, byte_planes};
use std::ops::Range;

/// The sections of a block.
pub(super) struct StoredExponents<'a> {
    pub width: Width,
    pub rotate: bool,
    pub low_bytes: &'a [u8],
    pub symbols: TierStream<'a>,
    pub count: usize,
}

impl StoredExponents<'_> {
    /// Decodes all elements.
    pub(super) fn decode(&self, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut out = out;
        self.symbols.decode(scratch, |at, symbols| {
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at, symbols, block)
        })
    }

    /// Decodes the elements of a range.
    pub(super) fn decode_range(&self, range: &Range<usize>, out: &mut [u8], scratch: &mut TierScratch) -> Result<()> {
        let mut out = out;
        let groups = range.start - range.start % GROUP..range.end;
        self.symbols.decode_range(&groups, scratch, |at, symbols| {
            let skip = range.start.saturating_sub(at); // the first group may begin before the range
            let symbols = symbols.get(skip..).unwrap_or(&[]);
            let block = out.split_off_mut(..symbols.len() * self.width.bytes()).ok_or_else(overrun)?;
            self.join(at + skip, symbols, block)
        })
    }

    /// Adds the sections to a description.
    pub(super) fn describe(&self, anatomy: &mut Anatomy) {
        for (byte, plane) in self.low_bytes.chunks_exact(self.count.max(1)).enumerate() {
            anatomy.add(format!("byte {byte}"), "as it is", plane);
        }
        self.symbols.describe(anatomy);
    }

    /// Joins symbols, the first of which is that of element `at`, with their low bytes.
    fn join(&self, at: usize, symbols: &[u8], out: &mut [u8]) -> Result<()> {
        let mut low: [&[u8]; 7] = [&[]; 7];
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        for (low, plane) in low.iter_mut().zip(planes) {
            // has one for each symbol
            *low = plane.get(at..at + symbols.len()).ok_or_else(overrun)?;
        }
        let low = low.get(..self.width.bytes() - 1).unwrap_or(&[]); // a width is 1 to 8
        byte_planes::best().join(self.width, self.rotate, low, symbols, out);
        Ok(())
    }
}

/// Splits elements into their top bytes and the planes of the bytes below.
pub(super) fn split(width: Width, rotate: bool, elements: &[u8], top: &mut Vec<u8>, low: &mut Vec<u8>) {
    let count = elements.len() / width.bytes();
    top.resize(count, 0);
    low.resize(count * (width.bytes() - 1), 0);
    let mut planes: [&mut [u8]; 7] = Default::default();
    planes.iter_mut().zip(low.chunks_exact_mut(count.max(1))).for_each(|(plane, low)| *plane = low);
    let planes = planes.get_mut(..width.bytes() - 1).unwrap_or(&mut []); // a width is 1 to 8
    byte_planes::best().split(width, rotate, elements, planes, top);
}
