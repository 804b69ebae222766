//! Keys and permutations: randomness that is computed, not stored (chapters 1 and 2 of `ORDER.md`).
//!
//! A key is a hash of a purpose and of words such as the seed and the epoch. The words are absorbed
//! one after another and never added up, so seed 1 in epoch 2 and seed 2 in epoch 1 have unrelated
//! keys.
//!
//! A [`Permutation`] of `0..n` maps a single index, in either direction, without a list of `n`
//! entries. If `n` is a power of two, `2^b`, a Feistel network does this. It splits an index of `b`
//! bits into two halves: `high` has the upper `b / 2` bits, and `low` has the remaining bits. Each
//! round has its own key and changes one half with a hash of the other:
//!
//! ```text
//! k[i] = absorb(key, i)                         rounds are counted from 0
//! even i:  high ^= mix(k[i] ^ low)              truncated to the width of high
//! odd i:   low  ^= mix(k[i] ^ high)             truncated to the width of low
//! ```
//!
//! A round is its own inverse, because the half that it hashes does not change. So the same rounds
//! in reverse order invert the network, no matter what the hash is.
//!
//! For other `n`, the network works on the smallest `2^b >= n`, and is applied again while the
//! result is not below `n` (cycle walking, Black and Rogaway 2002). The network is a permutation of
//! `0..2^b`, so the cycle of an index below `n` always returns to an index below `n`. Because `2^b`
//! is less than `2n`, this takes fewer than two applications on average.
//!
//! Eight rounds shuffle well if the halves have enough bits. On a half of only a few bits, there
//! are too few different functions for a round to choose from. So for small `n`, statistical tests
//! can tell eight rounds from a true shuffle. Therefore orders of up to 4,096 samples use 24 rounds
//! (`RATIONALE.md` has the measurement).

/// The purpose of a key: the first word that is hashed. Keys with different purposes are unrelated.
/// Each variant lists the words that follow, in order.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// The permutation of a shuffled order: seed, epoch.
    Shuffled = 1,
    /// The permutation of the runs of a stream of a windowed order: seed, epoch, stream.
    Runs = 2,
    /// The permutation of the samples of a window: seed, epoch, stream, window.
    Window = 3,
    /// The hash of a sample in a split: seed, sample.
    Split = 4,
    /// The seed of a component of a mixture: seed, component.
    Component = 5,
    /// A term of a receipt: sample, epoch.
    Receipt = 6,
    /// A substitute for a damaged sample: seed, epoch, sample, attempt.
    Substitute = 7,
    /// The identity of a view: its kind, and the words that define it.
    View = 8,
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014), a bijection of 64-bit words.
#[inline]
pub(crate) fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[inline]
pub(crate) fn absorb(h: u64, word: u64) -> u64 {
    mix(h ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15)
}

/// Returns the key for a purpose and the words that follow it.
#[inline]
pub(crate) fn key(purpose: Purpose, words: impl IntoIterator<Item = u64>) -> u64 {
    // exact: the discriminant is below 16
    words.into_iter().fold(absorb(0, purpose as u64), absorb)
}

/// The number of rounds, and the number for networks of at most [`MAX_SMALL_BITS`] bits.
const ROUNDS: usize = 8;
const SMALL_ROUNDS: usize = 24;
const MAX_SMALL_BITS: u32 = 12;

/// The number of indices that are permuted together. Each round depends on the round before it, but
/// a processor can start several independent multiplications in the time that one takes. Six lanes
/// are the most that fit in the registers of x86-64.
const LANES: usize = 6;

/// A permutation of `0..n` that is selected by a key: a Feistel network of eight rounds, or 24 if
/// `n` is at most 4,096, on the smallest power of two that is at least `n`. Its halves can differ
/// in length by one bit. Results outside `0..n` are permuted again (Black and Rogaway 2002).
///
/// Cost: about 20 ns for a lookup, or 80 ns if `n` is at most 4,096. Allocates no heap memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    keys: [u64; SMALL_ROUNDS],
    rounds: usize,
    /// The number of bits of each half.
    high: u32,
    low: u32,
}

impl Permutation {
    /// Returns the permutation of `0..n` that a key selects.
    pub fn new(key: u64, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mut keys = [0; SMALL_ROUNDS];
        let rounds = if bits <= MAX_SMALL_BITS { SMALL_ROUNDS } else { ROUNDS };
        (0..).zip(&mut keys).take(rounds).for_each(|(i, round)| *round = absorb(key, i));
        Self { n, keys, rounds, high: bits / 2, low: bits - bits / 2 }
    }

    /// Returns the number of members.
    pub fn member_count(&self) -> u64 {
        self.n
    }

    /// Returns the member at position `p`, or `None` if `p` is not below `n`.
    #[inline]
    pub fn at(&self, p: u64) -> Option<u64> {
        self.walk(p, |halves| {
            for (i, &key) in self.keys.iter().enumerate().take(self.rounds) {
                self.round(i, key, halves);
            }
        })
    }

    /// Returns the position of a member, or `None` if it is not below `n`. This is the inverse of
    /// [`Permutation::at`].
    #[inline]
    pub fn position_of(&self, member: u64) -> Option<u64> {
        self.walk(member, |halves| {
            for (i, &key) in self.keys.iter().enumerate().take(self.rounds).rev() {
                self.round(i, key, halves);
            }
        })
    }

    /// Replaces each position with its member. All positions must be below `n`. Cost: for each
    /// position, 0.4 to 0.6 times the cost of [`Permutation::at`].
    pub(super) fn replace(&self, positions: &mut [u64]) {
        if self.n <= 1 {
            return;
        }
        let (mut lanes, mut indexes) = ([0; LANES], [usize::MAX; LANES]);
        let (mut next, mut left) = (0, positions.len());
        let mut load = |positions: &[u64]| match positions.get(next) {
            Some(&position) => {
                next += 1;
                (next - 1, position)
            }
            None => (usize::MAX, 0), // an idle lane
        };
        for (index, lane) in indexes.iter_mut().zip(&mut lanes) {
            (*index, *lane) = load(positions);
        }
        while left > 0 {
            self.network(&mut lanes);
            for (index, lane) in indexes.iter_mut().zip(&mut lanes).filter(|(_, lane)| **lane < self.n) {
                let Some(position) = positions.get_mut(*index) else { continue };
                *position = *lane;
                left -= 1; // once for each position
                (*index, *lane) = load(positions);
            }
        }
    }

    /// Applies the network to several indices.
    #[inline]
    fn network(&self, numbers: &mut [u64; LANES]) {
        let mut high = numbers.map(|number| number >> self.low);
        let mut low = numbers.map(|number| number & mask(self.low));
        for (i, &key) in self.keys.iter().enumerate().take(self.rounds) {
            for (high, low) in high.iter_mut().zip(&mut low) {
                let mut halves = [*high, *low];
                self.round(i, key, &mut halves);
                [*high, *low] = halves;
            }
        }
        for (number, (high, low)) in numbers.iter_mut().zip(high.into_iter().zip(low)) {
            *number = high << self.low | low;
        }
    }

    /// Applies the network until the result is below `n`.
    #[inline]
    fn walk(&self, mut number: u64, network: impl Fn(&mut [u64; 2])) -> Option<u64> {
        if number >= self.n {
            return None;
        }
        if self.n == 1 {
            return Some(number);
        }
        loop {
            // each half has at most 32 bits
            let mut halves = [number >> self.low, number & mask(self.low)];
            network(&mut halves);
            number = halves[0] << self.low | halves[1];
            if number < self.n {
                return Some(number);
            }
        }
    }

    /// Applies a round. It changes one half with a function of the other, so it is its own inverse.
    #[inline]
    fn round(&self, i: usize, key: u64, [high, low]: &mut [u64; 2]) {
        match i % 2 {
            0 => *high ^= mix(key ^ *low) & mask(self.high),
            _ => *low ^= mix(key ^ *high) & mask(self.low),
        }
    }
}

/// Replaces each index with its member in a permutation of its own. An item has the key of the
/// permutation, its length and the index, which must be below the length.
///
/// Cost: for each item, about half the cost of creating a [`Permutation`] and looking up the index,
/// because several lookups overlap.
pub(super) fn permute_each(items: &mut [(u64, u64, u64)]) {
    let (groups, rest) = items.as_chunks_mut::<LANES>();
    groups.iter_mut().for_each(permute_lanes);
    let mut last = [(0, 1, 0); LANES];
    last.iter_mut().zip(&*rest).for_each(|(lane, item)| *lane = *item);
    if !rest.is_empty() {
        permute_lanes(&mut last);
        rest.iter_mut().zip(last).for_each(|(item, lane)| *item = lane);
    }
}

fn permute_lanes(items: &mut [(u64, u64, u64); LANES]) {
    let shapes = items.map(|(_, n, _)| {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        (bits / 2, bits - bits / 2, if bits <= MAX_SMALL_BITS { SMALL_ROUNDS } else { ROUNDS })
    });
    let max_rounds = shapes.iter().map(|(_, _, rounds)| *rounds).max().unwrap_or(0);
    let mut done = items.map(|(_, n, _)| n <= 1);
    while done.contains(&false) {
        let mut halves = [[0; 2]; LANES];
        for ((halves, (_, _, number)), (_, low, _)) in halves.iter_mut().zip(&*items).zip(shapes) {
            *halves = [number >> low, number & mask(low)];
        }
        for i in 0..max_rounds {
            for (([high, low], (key, _, _)), (high_bits, low_bits, rounds)) in
                halves.iter_mut().zip(&*items).zip(shapes)
            {
                let key = absorb(*key, i as u64);
                let mask_of = |bits| if i < rounds { mask(bits) } else { 0 };
                match i % 2 {
                    0 => *high ^= mix(key ^ *low) & mask_of(high_bits),
                    _ => *low ^= mix(key ^ *high) & mask_of(low_bits),
                }
            }
        }
        for (((item, done), [high, low]), (_, low_bits, _)) in items.iter_mut().zip(&mut done).zip(halves).zip(shapes) {
            if !*done {
                item.2 = high << low_bits | low;
                *done = item.2 < item.1;
            }
        }
    }
}

/// Returns a mask of the lowest `bits` bits. `bits` is at most 32.
#[inline]
fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}
