//! Bins and frequencies, laid out for kernels.

/// Elements of a group, and states of a block.
pub const GROUP: usize = 64;
/// The most bins.
pub const BINS: usize = 64;
/// The most classes.
pub const CLASSES: usize = 4;

/// The bit in [`BinModel::taken`] of bins whose elements have a byte of their own in the stream.
pub(super) const HAS_BYTE: u8 = 0x80;

/// The bins and the frequencies of each class, as chapter 5.13 defines them.
///
/// Any contents are safe to decode with. No load of 64 bytes crosses a cache line.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct BinModel {
    /// The lower byte of `V` of each bin.
    pub(super) low: [u8; BINS],
    /// The upper byte of `V` of each bin.
    pub(super) high: [u8; BINS],
    /// For each bin the bits taken from the state, 0 to 7, and [`HAS_BYTE`].
    pub(super) taken: [u8; BINS],
    /// `K` of each bin.
    pub(super) bits: [u8; BINS],
    pub(super) classes: [Class; CLASSES],
    /// Whether there are more than 32 bins.
    pub(super) is_wide: bool,
}

/// The frequencies of a class.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Class {
    /// The bin of each slot.
    pub bin_of: [u8; 256],
    /// `F` of each bin.
    pub frequency: [u8; BINS],
    /// `C` of each bin.
    pub start: [u8; BINS],
}

const NO_CLASS: Class = Class { bin_of: [0; 256], frequency: [0; BINS], start: [0; BINS] };

impl Default for BinModel {
    fn default() -> Self {
        Self {
            low: [0; BINS],
            high: [0; BINS],
            taken: [0; BINS],
            bits: [0; BINS],
            classes: [NO_CLASS; CLASSES],
            is_wide: false,
        }
    }
}

impl BinModel {
    /// Sets the bins: `K` of each.
    pub fn set_bins(&mut self, bits: &[u8]) {
        let mut start = 0_u32;
        self.is_wide = bits.len() > BINS / 2;
        for (bin, &bits) in bits.iter().enumerate().take(BINS) {
            // in bounds: four arrays of BINS; the lower 16 bits are meant
            [self.low[bin], self.high[bin], ..] = start.to_le_bytes();
            self.bits[bin] = bits;
            self.taken[bin] = if bits >= 8 { (bits - 8) & 15 | HAS_BYTE } else { bits };
            start = start.wrapping_add(1_u32.wrapping_shl(bits.into()));
        }
    }

    /// Sets the frequencies of a class: `F` of the bins from `first` on. All others are 0.
    pub fn set_class(&mut self, class: usize, first: usize, frequencies: &[u8]) {
        let Some(class) = self.classes.get_mut(class) else { return };
        (class.frequency, class.start) = ([0; BINS], [0; BINS]);
        let mut start = 0;
        for (bin, &frequency) in (first..BINS).zip(frequencies) {
            class.frequency[bin] = frequency; // in bounds: below BINS
            class.start[bin] = start as u8; // in bounds; exact unless the frequencies are too great
            let end = start + usize::from(frequency);
            if let Some(slots) = class.bin_of.get_mut(start..end) {
                slots.fill(bin as u8); // exact: below BINS
            }
            start = end;
        }
    }
}
