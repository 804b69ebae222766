//! The sections of a block of bins: class codes, bytes below windows, states and stream.
//!
//! Decoding makes windows, which are the elements themselves if these have two bytes; otherwise
//! they are joined with the bytes below them. The windows of a block come out in order, so the
//! first elements of a block can be decoded without the rest, and two blocks of a part can be
//! decoded at once.

use super::malformed_block;
use super::tables::BinTables;
use crate::codec::bits::with_width;
use crate::codec::part::Anatomy;
use crate::kernel::{
    Width,
    bins::{CodedBlock, GROUP, best},
};
use crate::{Result, memory};

/// Memory for the windows and classes of two blocks.
#[derive(Default)]
pub(crate) struct WindowScratch([BlockScratch; 2]);

/// Memory for the windows and classes of a block.
#[derive(Default)]
struct BlockScratch {
    classes: Vec<u8>,
    windows: Vec<[u8; 2]>,
}

/// The stored bytes of a block of numbers. Without a mapping, these are the elements.
pub(crate) struct StoredBins<'a> {
    tables: &'a BinTables,
    width: Width,
    count: usize,
    codes: &'a [u8],
    /// The planes of the bytes below the windows.
    low_bytes: &'a [u8],
    coded: &'a [u8],
}

impl<'a> StoredBins<'a> {
    /// Splits the sections of a block of `count` numbers.
    pub(crate) fn split(tables: &'a BinTables, width: Width, count: usize, stored: &'a [u8]) -> Result<Self> {
        let split = || {
            let (codes, rest) = stored.split_at_checked(tables.class_codes().bytes(count.div_ceil(GROUP))?)?;
            let (low_bytes, coded) = rest.split_at_checked(tables.low_bytes.checked_mul(count)?)?;
            // no elements have no states, and no kernel looks at them
            (count > 0 || coded.is_empty()).then_some(())?;
            Some(Self { tables, width, count, codes, low_bytes, coded })
        };
        split()
            .ok_or_else(|| malformed_block("it ends within its class codes or low bytes, or has bytes of no elements"))
    }

    /// Decodes the first elements, as many as `out` has. If that is all, checks all of.
    pub(crate) fn decode(&self, out: &mut [u8], scratch: &mut WindowScratch) -> Result<()> {
        let [scratch, _] = &mut scratch.0;
        let is_right = best().decode(&self.tables.model, self.start(out, scratch)?);
        self.finish(is_right, out, scratch)
    }

    /// Decodes two blocks of the same part as [`decode`](Self::decode) does.
    pub(crate) fn decode_two(
        [a, b]: [&Self; 2],
        [out_a, out_b]: [&mut [u8]; 2],
        scratch: &mut WindowScratch,
    ) -> Result<()> {
        let [scratch_a, scratch_b] = &mut scratch.0;
        let started = [a.start(out_a, scratch_a)?, b.start(out_b, scratch_b)?];
        let [is_a_right, is_b_right] = best().decode_two(&a.tables.model, started);
        a.finish(is_a_right, out_a, scratch_a)?;
        b.finish(is_b_right, out_b, scratch_b)
    }

    /// Checks the class codes of the first elements, as many as `out` has. Returns what decodes
    /// their windows: to `out` if these are the elements.
    fn start<'b>(&'b self, out: &'b mut [u8], scratch: &'b mut BlockScratch) -> Result<CodedBlock<'b>> {
        let Self { tables, width, count, codes, .. } = *self;
        let BlockScratch { classes, windows } = scratch;
        let wanted = out.len() / width.bytes();
        let groups = wanted.min(count).div_ceil(GROUP);
        let class_codes = tables.class_codes();
        let is_filled = wanted < count || class_codes.end_in_zeros(codes, groups);
        if !is_filled || !class_codes.are_valid(codes, groups) {
            return Err(malformed_block("a class code is out of range, or bits that fill up are not zero"));
        }
        classes.clear();
        classes.extend((0..groups).map(|group| class_codes.get(codes, group)));
        let out = if width == Width::W2 {
            out.as_chunks_mut().0
        } else {
            memory::resize(windows, wanted, [0; 2])?;
            windows
        };
        Ok(CodedBlock { classes, count, stored: self.coded, out })
    }

    /// Sets `out` to elements, whose windows were decoded.
    fn finish(&self, is_right: bool, out: &mut [u8], scratch: &BlockScratch) -> Result<()> {
        if !is_right {
            return Err(malformed_block("its states or its stream do not end as they should"));
        }
        if self.width != Width::W2 {
            self.join(&scratch.windows, out);
        }
        Ok(())
    }

    /// Sets elements to their windows and the bytes below them.
    fn join(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        match (self.width, self.tables.low_bytes) {
            // a loop of nothing else is a loop of vectors
            (Width::W1, 0) => {
                let elements = out.iter_mut().zip(windows);
                // the lower byte
                elements.for_each(|(element, window)| *element = u16::from_le_bytes(*window) as u8);
            }
            (Width::W4, 2) => self.join_all(windows, out),
            (width, _) => with_width!(width, W => self.join_bytes::<W>(windows, out)),
        }
    }

    /// Does the same with elements of 4 bytes, two of them below the window, as encoders write
    /// them.
    fn join_all(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        let (first, second) = self.low_bytes.split_at(self.low_bytes.len() / 2);
        let elements = out.as_chunks_mut().0.iter_mut().zip(windows);
        for (((element, [low, high]), first), second) in elements.zip(first).zip(second) {
            *element = [*first, *second, *low, *high];
        }
    }

    /// Does the same with elements of `W` bytes, one byte of all after the other.
    fn join_bytes<const W: usize>(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        let low_bytes = self.tables.low_bytes;
        let (elements, _) = out.as_chunks_mut::<W>();
        let planes = self.low_bytes.chunks_exact(self.count.max(1));
        planes.enumerate().for_each(|(byte, plane)| set_bytes(elements, byte, plane.iter().copied()));
        set_bytes(elements, low_bytes, windows.iter().map(|[low, _]| *low));
        set_bytes(elements, low_bytes + 1, windows.iter().map(|[_, high]| *high));
        (low_bytes + 2..W).for_each(|byte| set_bytes(elements, byte, windows.iter().map(|_| 0)));
    }

    pub(crate) fn describe(&self, anatomy: &mut Anatomy) {
        let (states, stream) = self.coded.split_at(self.coded.len().min(2 * self.count.min(GROUP)));
        anatomy.add("classes", "the class of each group of 64", self.codes);
        anatomy.add("low bytes", "the bytes of each element below its window", self.low_bytes);
        anatomy.add("states", "the first states of rANS", states);
        anatomy.add("stream", format!("{} bins, {} classes", self.tables.bin_count, self.tables.class_count), stream);
    }
}

/// Sets a byte of each element, if elements have it.
fn set_bytes<const W: usize>(elements: &mut [[u8; W]], byte: usize, bytes: impl Iterator<Item = u8>) {
    for (element, from) in elements.iter_mut().zip(bytes) {
        if let Some(to) = element.get_mut(byte) {
            *to = from;
        }
    }
}
