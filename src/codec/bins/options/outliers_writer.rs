//! Chooses the window of coded integers, and which of them are outliers.

use super::marks::{MarkWriter, RiceParameters, write_marks};
use super::outliers::Outliers;
use crate::codec::search::{Idea, Search};
use std::ops::Range;

/// Bits of a window.
const WINDOW_BITS: usize = 16;
/// About what the position of an outlier takes, besides the logarithm of how rare it is.
const MARK_BITS: f64 = 2.0;
/// Bits of an integer below its highest one that its bin tells, about.
const BIN_TELLS: usize = 2;

/// Returns the bytes below the window with which integers take the fewest bits, and that number,
/// without what bins take. `counts` are the integers of each bit length.
pub(in crate::codec) fn low_bytes_of(counts: &[u32], search: Search) -> (usize, f64) {
    let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let most = longest.saturating_sub(WINDOW_BITS).div_ceil(8);
    let bits = |low_bytes: usize| {
        let top = 8 * low_bytes + WINDOW_BITS;
        let offset = |length: usize| length.saturating_sub(1 + BIN_TELLS).max(8 * low_bytes) as f64;
        let offsets: f64 = counts.iter().enumerate().map(|(length, &count)| offset(length) * f64::from(count)).sum();
        let all: f64 = counts.iter().map(|&count| f64::from(count)).sum();
        let outliers: f64 = counts.iter().skip(top + 1).map(|&count| f64::from(count)).sum();
        let marks = if outliers > 0.0 { outliers * ((all / outliers).log2() + MARK_BITS) } else { 0.0 };
        // the bits above the window are of the longest
        let uppers = outliers * longest.saturating_sub(top) as f64;
        let beside: f64 =
            counts.iter().enumerate().skip(top + 1).map(|(length, &n)| (length - top) as f64 * f64::from(n)).sum();
        (low_bytes, offsets - beside + marks + uppers)
    };
    let least = if search.has(Idea::Outliers) { 0 } else { most };
    (least..=most).map(bits).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((most, 0.0))
}

/// The outliers of a part, in memory that is reused.
#[derive(Default)]
pub(in crate::codec) struct OutlierPlan {
    /// `None` if there are none; the rest has no meaning then.
    pub outliers: Option<Outliers>,
    /// Outliers of all blocks, counted from the start of each.
    stretches: Vec<Range<usize>>,
    /// The bits of each above the window.
    uppers: Vec<u64>,
    /// The number of elements of each block, and which of `stretches` and `uppers` are in it.
    blocks: Vec<(usize, Range<usize>, Range<usize>)>,
}

impl OutlierPlan {
    /// Begins the plan of another part.
    pub(in crate::codec) fn clear(&mut self) {
        self.outliers = None;
        self.stretches.clear();
        self.uppers.clear();
        self.blocks.clear();
    }

    /// Adds a block, with the bits above the window of each of its elements.
    pub(in crate::codec) fn add_block(&mut self, uppers: impl Iterator<Item = u64>) {
        let before = (self.stretches.len(), self.uppers.len());
        let mut count = 0;
        for (i, upper) in uppers.enumerate() {
            count = i + 1;
            if upper == 0 {
                continue;
            }
            self.uppers.push(upper);
            let own = self.stretches.get_mut(before.0..).and_then(<[_]>::last_mut);
            match own.filter(|stretch| stretch.end == i) {
                Some(stretch) => stretch.end = i + 1,
                None => self.stretches.push(i..i + 1),
            }
        }
        self.blocks.push((count, before.0..self.stretches.len(), before.1..self.uppers.len()));
    }

    /// Ends the plan, when all blocks have been added.
    pub(in crate::codec) fn finish(&mut self) {
        let all = self.uppers.iter().fold(0, |all, &upper| all | upper);
        let upper_bits = (u64::BITS - all.leading_zeros()) as u8; // at most 64
        self.outliers =
            (upper_bits > 0).then(|| Outliers { upper_bits, parameters: RiceParameters::best(self.marks()) });
    }

    fn marks(&self) -> impl Iterator<Item = (usize, &[Range<usize>])> + Clone {
        let stretches = |range: &Range<usize>| self.stretches.get(range.clone()).unwrap_or(&[]);
        self.blocks.iter().map(move |(count, range, _)| (*count, stretches(range)))
    }

    /// Appends the outliers of a block, if the part has outliers.
    pub(in crate::codec) fn append(&self, block: usize, stored: &mut Vec<u8>) {
        let block = (self.outliers, self.blocks.get(block));
        let (Some(outliers), Some((count, stretches, uppers))) = block else { return };
        let stretches = self.stretches.get(stretches.clone()).unwrap_or(&[]);
        write_marks(outliers.parameters, *count, stretches, stored);
        let mut bits = MarkWriter::new(stored);
        for &upper in self.uppers.get(uppers.clone()).unwrap_or(&[]) {
            bits.push(upper, outliers.upper_bits.into());
        }
        bits.finish();
    }
}
