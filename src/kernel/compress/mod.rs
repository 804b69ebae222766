//! Moves the bytes at the positions of a mask together, eight at a time by a byte shuffle whose
//! indices come from a table: the opposite of [`expand`](super::expand).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

use super::expand::{NOTHING, ranks_of_bytes};

/// A byte shuffle.
pub(super) trait Shuffle: Copy {
    /// Returns the bytes at the indices `order`. Index [`NOTHING`] gives 0.
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> [u8; 8];
}

/// Stores the bytes whose bits in `mask` are set, in order, so that they end where `to` ends. Any
/// contents are stored before them.
#[inline(always)]
pub(super) fn compress<S: Shuffle>(s: S, mask: u64, bytes: &[u8; 64], to: &mut [u8; WINDOW]) {
    // from the last eight to the first: the next one overwrites what is before the bytes of one
    let ranks = ranks_of_bytes(mask.swap_bytes());
    let eights = bytes.as_chunks::<8>().0.iter().rev();
    for ((eight, set), rank) in eights.zip(mask.to_be_bytes()).zip(ranks) {
        // in bounds: a rank is at most 63
        let to = &mut to[WINDOW - 8 - rank..].as_chunks_mut().0[0];
        *to = s.shuffle(eight, &COMPRESS[usize::from(set)]); // in bounds: a byte
    }
}

/// For each set of eight positions, the indices that compress bytes: those of the set are the last
/// ones, and zeros are before them.
static COMPRESS: [[u8; 8]; 256] = {
    let mut table = [[NOTHING; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut position, mut end) = (8, 8);
        while position > 0 {
            position -= 1;
            if set >> position & 1 == 1 {
                end -= 1;
                table[set][end] = position as u8; // exact: below 8
            }
        }
        set += 1;
    }
    table
};

/// Bytes of a destination: eight can be stored before any of [`ranks_of_bytes`] from the end.
pub(super) const WINDOW: usize = 63 + 8;
