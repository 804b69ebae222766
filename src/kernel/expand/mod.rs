//! Spreads bytes over the positions of a mask, eight at a time by a byte shuffle whose indices come
//! from a table: no instruction of AVX2 or NEON does it.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

/// Vectors of eight bytes, and of a group of 64.
pub(super) trait Eights: Copy {
    /// 64 bytes.
    type Group: Copy;
    /// Eight bytes.
    type Eight: Copy;

    /// Returns eight zeros.
    fn zero(self) -> Self::Eight;
    /// Returns the bytes at the indices `order`. Index [`NOTHING`] gives 0.
    fn shuffle(self, bytes: &[u8; 8], order: &[u8; 8]) -> Self::Eight;
    /// Joins eight times eight bytes.
    fn join(self, eights: [Self::Eight; 8]) -> Self::Group;
}

/// Returns, for each bit of `mask` that is set, the next byte of `bytes`, and zero for any other.
#[inline(always)]
pub(super) fn expand<V: Eights>(v: V, mask: u64, bytes: &[u8; WINDOW]) -> V::Group {
    let ranks = ranks_of_bytes(mask);
    let mut eights = [v.zero(); 8];
    for ((eight, mask), rank) in eights.iter_mut().zip(mask.to_le_bytes()).zip(ranks) {
        let next = &bytes[rank..].as_chunks().0[0]; // in bounds: see `WINDOW`
        *eight = v.shuffle(next, &EXPAND[usize::from(mask)]); // in bounds: a byte
    }
    v.join(eights)
}

/// For each set of eight positions, the indices that expand bytes: a position of the set receives
/// the byte of its rank in the set, and any other position receives zero.
static EXPAND: [[u8; 8]; 256] = {
    let mut table = [[NOTHING; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut position, mut rank) = (0, 0);
        while position < 8 {
            if set >> position & 1 == 1 {
                table[set][position] = rank;
                rank += 1;
            }
            position += 1;
        }
        set += 1;
    }
    table
};

/// An index for which `pshufb` and `tbl` give 0.
pub(super) const NOTHING: u8 = 0x80;

/// Returns, for each byte of `mask`, how many bits are set in the bytes below it: at most 56.
#[inline(always)]
pub(super) fn ranks_of_bytes(mask: u64) -> [usize; 8] {
    // counts of pairs, nibbles and bytes (Warren, Hacker's Delight, 5-1), then sums of bytes
    let pairs = mask - (mask >> 1 & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    let ranks = (bytes << 8).wrapping_mul(0x0101_0101_0101_0101);
    // the mask lets the compiler drop the bounds checks of `WINDOW`
    ranks.to_le_bytes().map(|rank| usize::from(rank & 63))
}

/// Bytes of which eight can be taken from any of [`ranks_of_bytes`] on.
pub(super) const WINDOW: usize = 63 + 8;
