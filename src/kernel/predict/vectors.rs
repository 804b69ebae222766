//! The vector operations from which the loops of predictions are built.
//!
//! Sums work on elements of any [`Word`]. Tiles and products work on elements of 2 bytes. A vector
//! has one or two lanes of 16 bytes, and shuffles stay within their lane. Shuffles of AVX-512 cross
//! these lanes, so each of its vectors is treated as one lane of 64 bytes. AVX-512 also has its own
//! implementation of `sums`.

use crate::kernel::Word;
use crate::kernel::vectors::RowOffsets;

/// The number of columns in a tile.
pub(super) const COLUMNS: usize = 8;

/// The index for which [`Vectors::shuffle`] returns 0.
pub(super) const ZERO: u8 = 0x80;

/// Vectors of elements. Each method takes a few instructions. `sums` takes a shuffle for each bit
/// of an element's index.
pub(super) trait Vectors: Copy {
    type Vector: Copy;
    /// The token for tiles of fewer rows, which are used for the last rows of a sample; `Self` if
    /// there are no smaller tiles.
    type Narrower: Vectors;
    /// The size of a vector in bytes.
    const BYTES: usize;
    /// The size of a lane in bytes: 16, or the whole vector.
    const LANE: usize;
    fn zero(self) -> Self::Vector;
    /// Loads a vector from the start of `bytes`. If `bytes` is shorter than a vector, the other
    /// bytes of the vector are unspecified.
    fn load(self, bytes: &[u8]) -> Self::Vector;
    /// Sets `bytes`, which is at most as long as a vector, to the first bytes of `vector`.
    fn store(self, vector: Self::Vector, bytes: &mut [u8]);
    /// Adds the elements of two vectors.
    fn plus<W: Word>(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// See [`Word::rotate_right`].
    fn rotate_right<W: Word>(self, vector: Self::Vector) -> Self::Vector;
    /// Inverts all other bits of each element whose top bit is set.
    fn invert_negative<W: Word>(self, vector: Self::Vector) -> Self::Vector;

    /// Returns the prefix sums: adds all previous elements of the vector to each element.
    #[inline(always)]
    fn sums<W: Word>(self, mut sums: Self::Vector) -> Self::Vector {
        if W::BYTES <= 1 {
            sums = self.add_spread::<W>(sums, const { &spread(1, W::BYTES) });
        }
        if W::BYTES <= 2 {
            sums = self.add_spread::<W>(sums, const { &spread(2, W::BYTES) });
        }
        if W::BYTES <= 4 {
            sums = self.add_spread::<W>(sums, const { &spread(4, W::BYTES) });
        }
        sums = self.add_spread::<W>(sums, const { &spread(8, W::BYTES) });
        if Self::LANE < Self::BYTES {
            let lasts = self.shuffle(sums, self.load(const { &spread_last(W::BYTES) }));
            sums = self.plus::<W>(sums, self.lane_before(lasts));
        }
        sums
    }

    /// Adds, to each element of a lane, the element that `order` moves there.
    #[inline(always)]
    fn add_spread<W: Word>(self, sums: Self::Vector, order: &[u8; 64]) -> Self::Vector {
        self.plus::<W>(sums, self.shuffle(sums, self.load(order)))
    }

    /// Returns a vector that repeats the last element.
    #[inline(always)]
    fn last<W: Word>(self, vector: Self::Vector) -> Self::Vector {
        self.shuffle(self.last_lane(vector), self.load(const { &spread_last(W::BYTES) }))
    }

    /// See [`Word::unzigzag`].
    ///
    /// If the lowest bit is set, all other bits are inverted. The rotation moves the lowest bit to
    /// the top.
    #[inline(always)]
    fn unzigzag<W: Word>(self, vector: Self::Vector) -> Self::Vector {
        self.invert_negative::<W>(self.rotate_right::<W>(vector))
    }

    // ---- lanes, whose bytes can be shuffled in any order; the defaults are for a single lane

    /// Loads lanes that begin `lane` bytes apart, at most [`LANE`](Self::LANE). If `bytes` is too
    /// short, the other bytes of the vector are unspecified.
    #[inline(always)]
    fn load_lanes(self, bytes: &[u8], _lane: usize) -> Self::Vector {
        self.load(bytes)
    }

    /// Stores lanes in order, at the offsets from which [`load_lanes`](Self::load_lanes) loads
    /// them. A lane that ends beyond the end of `bytes` is not stored.
    #[inline(always)]
    fn store_lanes(self, vector: Self::Vector, bytes: &mut [u8], _lane: usize) {
        if bytes.len() >= Self::BYTES {
            self.store(vector, bytes);
        }
    }

    /// Returns the bytes of each lane in the given order. For the index [`ZERO`], returns 0.
    fn shuffle(self, vector: Self::Vector, order: Self::Vector) -> Self::Vector;

    /// Moves each lane to the position of the next lane, and zeros to the first position. There are
    /// at most two lanes.
    #[inline(always)]
    fn lane_before(self, _vector: Self::Vector) -> Self::Vector {
        self.zero()
    }

    /// Returns a vector that repeats the last lane.
    #[inline(always)]
    fn last_lane(self, vector: Self::Vector) -> Self::Vector {
        vector
    }

    /// See [`Word::eighths`]. `weight` is less than 8, and elements have at most 4 bytes.
    fn eighths<W: Word>(self, vector: Self::Vector, weight: u8) -> Self::Vector;

    // ---- tiles of 2-byte elements
    //
    // A tile has 8 columns, and as many rows as a vector has elements. If a tile is arranged by
    // rows, vector `i` has row `i` in its first 16 bytes, row `i + 8` in the next 16, and so on. If
    // it is arranged by columns, vector `i` has column `i`.

    /// Returns the token for tiles of fewer rows.
    fn narrower(self) -> Self::Narrower;
    /// Loads a tile by rows. Returns zeros if `bytes` does not contain all rows.
    fn load_rows(self, bytes: &[u8], rows: &RowOffsets) -> [Self::Vector; COLUMNS];
    /// Stores a tile by rows. Does nothing if `bytes` does not contain all rows.
    fn store_rows(self, tile: [Self::Vector; COLUMNS], bytes: &mut [u8], rows: &RowOffsets);
    /// Interleaves the elements of two vectors within each 16 bytes: first the elements in the
    /// lower 8 bytes, then the elements in the upper 8 bytes.
    fn interleave(self, a: Self::Vector, b: Self::Vector) -> [Self::Vector; 2];
    /// Subtracts `b` from `a`, element by element.
    fn minus(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Returns the bits that are set in both vectors.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Returns the products of signed integers, divided by 2^15 and rounded to the nearest, ties
    /// up. No element of `b` is -2^15.
    fn multiply(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Changes a tile from rows to columns, or back.
    ///
    /// Each round interleaves vectors that are 4 apart. The position of an element is the number of
    /// its vector (3 bits) and its index within 16 bytes (3 bits). A round moves the top bit of the
    /// vector number to the bottom of the index, and the top bit of the index to the bottom of the
    /// vector number. Three rounds swap vector number and index.
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

    // ---- products of 2-byte elements, summed in 4 bytes, separately for even and odd indices

    /// Pairs the elements of two vectors: first the elements with even indices, then the elements
    /// with odd indices. The lower 2 bytes of a pair come from `last`.
    fn pairs(self, last: Self::Vector, before: Self::Vector) -> [Self::Vector; 2];
    /// Multiplies pairs of signed integers by pairs of factors, and adds both products to the sums.
    fn add_products(self, sums: Self::Vector, pairs: Self::Vector, factors: Self::Vector) -> Self::Vector;
    /// Returns bits 12 to 27 of the sums. The first vector has the sums of elements with even
    /// indices, the second the sums of elements with odd indices.
    fn join_sums(self, sums: [Self::Vector; 2]) -> Self::Vector;
}

/// Returns an order for shuffles within lanes of 16 bytes. For each pair of units of `unit` bytes,
/// it copies the last element of the first unit to all elements of the second.
const fn spread(unit: usize, width: usize) -> [u8; 64] {
    let mut order = [ZERO; 64];
    let mut k = 0;
    while k < 64 {
        let of_lane = k % 16;
        if of_lane / unit % 2 == 1 && unit >= width {
            order[k] = (of_lane / unit * unit - width + k % width) as u8; // exact: in a lane
        }
        k += 1;
    }
    order
}

/// Returns the order that copies the last element of a lane of 16 bytes to all of its elements.
const fn spread_last(width: usize) -> [u8; 64] {
    let mut order = [ZERO; 64];
    let mut k = 0;
    while k < 64 {
        order[k] = (16 - width + k % width) as u8; // exact: in a lane
        k += 1;
    }
    order
}
