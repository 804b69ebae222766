//! The sections of a block of bins.

use super::tables::BinTables;
use crate::codec::anatomy::Anatomy;
use crate::codec::part_spec::PartSpec;
use crate::kernel::Width;
use crate::kernel::bins::{Block, GROUP, best};
use crate::{Error, Result, memory};

/// Memory for the windows and classes of two blocks.
#[derive(Default)]
pub(in crate::codec) struct WindowScratch([BlockScratch; 2]);

/// Memory for the windows and classes of a block.
#[derive(Default)]
struct BlockScratch {
    classes: Vec<u8>,
    windows: Vec<[u8; 2]>,
}

/// The stored bytes of a block.
pub(in crate::codec) struct StoredBins<'a> {
    tables: &'a BinTables,
    width: Width,
    count: usize,
    /// The class codes of the block; empty if the tables have them.
    codes: &'a [u8],
    /// The planes of the bytes below the windows.
    low_bytes: &'a [u8],
    /// States and stream.
    coded: &'a [u8],
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::corrupt("R-5.19", format!("a block of bins: {what}"))
}

impl<'a> StoredBins<'a> {
    /// Splits the sections.
    pub(in crate::codec) fn split(tables: &'a BinTables, spec: PartSpec<'_>, stored: &'a [u8]) -> Result<Self> {
        let (width, count) = spec.width_and_count()?;
        let split = || {
            let (codes, rest) = stored.split_at_checked(tables.code_bytes(count.div_ceil(GROUP))?)?;
            let (low_bytes, coded) = rest.split_at_checked(tables.low_bytes.checked_mul(count)?)?;
            Some(Self { tables, width, count, codes, low_bytes, coded })
        };
        split().ok_or_else(|| malformed("it ends within its class codes or low bytes"))
    }

    /// Decodes the first elements, as many as `out` has. If that is all, checks all of.
    pub(in crate::codec) fn decode(&self, out: &mut [u8], scratch: &mut WindowScratch) -> Result<()> {
        let [scratch, _] = &mut scratch.0;
        let is_right = best().decode(&self.tables.model, self.start(out, scratch)?);
        self.finish(is_right, out, scratch)
    }

    /// Decodes two blocks of the same part as [`decode`](Self::decode) does.
    #[allow(dead_code, reason = "blocks of bins call it with their next change")]
    pub(in crate::codec) fn decode_two(
        [a, b]: [Self; 2],
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
    fn start<'b>(&'b self, out: &'b mut [u8], scratch: &'b mut BlockScratch) -> Result<Block<'b>> {
        let Self { tables, width, count, codes, .. } = *self;
        let BlockScratch { classes, windows } = scratch;
        let wanted = out.len() / width.bytes();
        let groups = wanted.min(count).div_ceil(GROUP);
        let class_codes = tables.class_codes();
        let is_filled = wanted < count || class_codes.end_in_zeros(codes, groups);
        let are_valid = codes.is_empty() || is_filled && class_codes.are_valid(codes, groups);
        if !are_valid {
            return Err(malformed("a class code is out of range, or bits that fill up are not zero"));
        }
        tables.classes(codes, groups, classes);
        let out = if width == Width::W2 {
            out.as_chunks_mut().0
        } else {
            memory::resize(windows, wanted, [0; 2])?;
            windows
        };
        Ok(Block { classes, count, stored: self.coded, out })
    }

    /// Sets `out` to elements, whose windows were decoded.
    fn finish(&self, is_right: bool, out: &mut [u8], scratch: &BlockScratch) -> Result<()> {
        if !is_right {
            return Err(malformed("its states or its stream do not end as they should"));
        }
        if self.width != Width::W2 {
            self.join(&scratch.windows, out);
        }
        Ok(())
    }

    /// Sets elements to their windows and the bytes below them.
    fn join(&self, windows: &[[u8; 2]], out: &mut [u8]) {
        let w = self.width.bytes();
        out.fill(0);
        for (element, window) in out.chunks_exact_mut(w).zip(windows) {
            let to = element.iter_mut().skip(self.tables.low_bytes);
            to.zip(window).for_each(|(to, from)| *to = *from);
        }
        for (byte, plane) in self.low_bytes.chunks_exact(self.count.max(1)).enumerate() {
            let to = out.iter_mut().skip(byte).step_by(w);
            to.zip(plane).for_each(|(to, from)| *to = *from);
        }
    }

    /// Adds the sections to a description.
    pub(in crate::codec) fn describe(&self, anatomy: &mut Anatomy) {
        let (states, stream) = self.coded.split_at(self.coded.len().min(2 * self.count.min(GROUP)));
        anatomy.add("classes", "the class of each group of 64", self.codes);
        anatomy.add("low bytes", "the bytes of each element below its window", self.low_bytes);
        anatomy.add("states", "the first states of rANS", states);
        anatomy.add("stream", format!("{} bins, {} classes", self.tables.bin_count, self.tables.class_count), stream);
    }
}
