//! The operations that the generic kernels are made of.

use crate::kernel::vectors::RowOffsets;
use crate::kernel::word::Word;

/// Columns of a tile.
pub(super) const COLUMNS: usize = 8;

/// Vectors of elements. All methods have the cost of a few instructions, except that `sums` takes a
/// shuffle for each bit of an element's index.
pub(super) trait Vectors: Copy {
    /// A vector.
    type Vector: Copy;
    /// Bytes of a vector.
    const BYTES: usize;
    /// Returns a vector of zeros.
    fn zero(self) -> Self::Vector;
    /// Loads the first vector of `bytes`. If `bytes` has fewer, any bytes follow them.
    fn load(self, bytes: &[u8]) -> Self::Vector;
    /// Sets `bytes`, at most as many as a vector has, to the first bytes of `vector`.
    fn store(self, vector: Self::Vector, bytes: &mut [u8]);
    /// Adds the elements of two vectors.
    fn plus<W: Word>(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// See [`Word::rotate_right`].
    fn rotate_right<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// Inverts all other bits of elements whose top bit is set.
    fn invert_negative<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// Adds to each element all elements before it in the vector.
    fn sums<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// Returns a vector that has the last element everywhere.
    fn last<W: Word>(self, vector: Self::Vector) -> Self::Vector;

    /// See [`Word::unzigzag`].
    ///
    /// A lowest bit that is set means that all others are inverted. It is rotated to the top.
    #[inline(always)]
    fn unzigzag<W: Word>(self, vector: Self::Vector) -> Self::Vector {
        self.invert_negative::<W>(self.rotate_right::<W>(vector))
    }
}

/// Vectors of lanes, whose bytes can be brought in any order.
pub(super) trait Lanes: Vectors {
    /// Bytes of a lane.
    const LANE: usize;
    /// Loads lanes that begin `lane` bytes apart, at most [`LANE`](Self::LANE). If `bytes` ends
    /// before the end of the last, any bytes follow.
    fn load_lanes(self, bytes: &[u8], lane: usize) -> Self::Vector;
    /// Stores what [`load_lanes`](Self::load_lanes) loads, one lane after the other. Does nothing
    /// if `bytes` ends before the end of the last.
    fn store_lanes(self, vector: Self::Vector, bytes: &mut [u8], lane: usize);
    /// Returns the bytes of each lane in an order. An index with its top bit set gives 0.
    fn shuffle(self, vector: Self::Vector, order: Self::Vector) -> Self::Vector;
    /// Returns, for each of at most two lanes, the one before it, and zeros for the first.
    fn lane_before(self, vector: Self::Vector) -> Self::Vector;
    /// Returns a vector that has the last lane everywhere.
    fn last_lane(self, vector: Self::Vector) -> Self::Vector;
    /// See [`Word::eighths`]. `weight` is less than 8, and elements have at most 4 bytes.
    fn eighths<W: Word>(self, vector: Self::Vector, weight: u8) -> Self::Vector;
}

/// Tiles of 2-byte elements: 8 columns, and as many rows as a vector has elements.
///
/// By rows, vector `i` of a tile has row `i` in its first 16 bytes, row `i + 8` in its next, and so
/// on. By columns, it has column `i`.
pub(super) trait Tiles: Vectors {
    /// Tiles of fewer rows, for the last rows of a sample. `Self` if there are none.
    type Fewer: Taps;
    /// Returns the token of the tiles of fewer rows.
    fn fewer(self) -> Self::Fewer;
    /// Loads a tile by rows. Returns zeros if `bytes` ends before them.
    fn load_rows(self, bytes: &[u8], rows: &RowOffsets) -> [Self::Vector; COLUMNS];
    /// Stores a tile by rows. Does nothing if `bytes` ends before them.
    fn store_rows(self, tile: [Self::Vector; COLUMNS], bytes: &mut [u8], rows: &RowOffsets);
    /// Interleaves the elements of each 16 bytes of two vectors: those of the first 8 bytes, and of
    /// the last.
    fn interleave(self, a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];
    /// Subtracts the elements of `b` from those of `a`.
    fn minus(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Returns the bits that both vectors have.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Returns the products of signed integers, divided by 2^15 and rounded to the nearest, up if
    /// two are as near. No element of `b` is -2^15.
    fn multiply(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Changes a tile from rows to columns, or back.
    ///
    /// Each round interleaves vectors 4 apart. The top bit of an element's vector so becomes the
    /// lowest of its index in 16 bytes, and the top bit of that the lowest of its vector: after
    /// three rounds, they have changed places.
    #[inline(always)]
    fn transpose(self, mut tile: [Self::Vector; COLUMNS]) -> [Self::Vector; COLUMNS] {
        for _ in 0..3 {
            let [a, b, c, d, e, f, g, h] = tile;
            let pairs = [self.interleave(a, e), self.interleave(b, f), self.interleave(c, g), self.interleave(d, h)];
            let [[a, b], [c, d], [e, f], [g, h]] = pairs;
            tile = [a, b, c, d, e, f, g, h];
        }
        tile
    }
}

/// Products of 2-byte elements, summed in 4 bytes: those of even index apart from those of odd
/// index.
pub(super) trait Taps: Tiles {
    /// Pairs the elements of two vectors: those of even index, and those of odd index. Those of
    /// `last` are the lower 2 bytes of each pair.
    fn pairs(self, last: Self::Vector, before: Self::Vector) -> [Self::Vector; 2];
    /// Adds the products of pairs to sums: both products of signed integers of each pair.
    fn add_products(self, sums: Self::Vector, pairs: Self::Vector, factors: Self::Vector) -> Self::Vector;
    /// Returns bits 12 to 27 of the sums of elements of even index, and of odd index.
    fn join_sums(self, sums: [Self::Vector; 2]) -> Self::Vector;
}
