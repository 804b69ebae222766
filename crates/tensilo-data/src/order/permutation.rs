//! Chapters 1 and 2 of `ORDER.md`: keys, and the permutations that they choose.
//!
//! Nothing of an order is stored. Each number that looks random is a key: a hash of its purpose and
//! of words such as seed and epoch. A permutation of any length is a network of a few rounds that
//! mix an index with a key, so that one lookup takes nanoseconds and no memory.

/// The first word of a key.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Shuffled = 1,
    Runs = 2,
    Window = 3,
    Split = 4,
    Component = 5,
    Receipt = 6,
    Substitute = 7,
    View = 8,
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a permutation of all words.
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

/// Returns the key of a purpose and some words.
#[inline]
pub(crate) fn key(purpose: Purpose, words: impl IntoIterator<Item = u64>) -> u64 {
    // a number below 16
    words.into_iter().fold(absorb(0, purpose as u64), absorb)
}

/// Rounds of a network, and of one with few bits, whose halves have too few functions for eight:
/// RATIONALE.md has the measurement.
const ROUNDS: usize = 8;
const SMALL_ROUNDS: usize = 24;
const MAX_SMALL_BITS: u32 = 12;

/// Numbers that are permuted together: a processor begins several multiplications in the time that
/// one takes, and each round waits for the one before. The registers of x86-64 hold no more.
const LANES: usize = 6;

/// A permutation of `0..n` that is chosen by a key: a Feistel network of eight rounds, or 24 if
/// `n` is at most 4,096, on the least power of two that is at least `n`. Its halves may have
/// different lengths. Results outside of `0..n` are permuted again (Black and Rogaway 2002).
///
/// Cost: some 20 ns a lookup, 80 ns if `n` is at most 4,096. No memory on the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    keys: [u64; SMALL_ROUNDS],
    rounds: usize,
    /// The bits of both halves.
    high: u32,
    low: u32,
}

impl Permutation {
    /// Returns the permutation of `0..n` for a key.
    pub fn new(key: u64, n: u64) -> Self {
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        let mut keys = [0; SMALL_ROUNDS];
        let rounds = if bits <= MAX_SMALL_BITS { SMALL_ROUNDS } else { ROUNDS };
        (0..).zip(&mut keys).take(rounds).for_each(|(i, round)| *round = absorb(key, i));
        Self { n, keys, rounds, high: bits / 2, low: bits - bits / 2 }
    }

    /// Returns the number of members.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Returns the member at position `p`; `None` from `n` on.
    #[inline]
    pub fn at(&self, p: u64) -> Option<u64> {
        self.walk(p, |halves| {
            for (i, &key) in self.keys.iter().enumerate().take(self.rounds) {
                self.round(i, key, halves);
            }
        })
    }

    /// Returns the position of a member: the inverse of [`Permutation::at`]. `None` from `n` on.
    #[inline]
    pub fn position_of(&self, member: u64) -> Option<u64> {
        self.walk(member, |halves| {
            for (i, &key) in self.keys.iter().enumerate().take(self.rounds).rev() {
                self.round(i, key, halves);
            }
        })
    }

    /// Replaces positions, all of which are below `n`, by the members there. Cost: 0.4 to 0.6 of
    /// that of [`Permutation::at`] for each.
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
                left -= 1; // once for each place
                (*index, *lane) = load(positions);
            }
        }
    }

    /// The network for several numbers.
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

    /// Permutes until the result is below `n`. It ends: the network is a permutation, so that the
    /// cycle of a number below `n` has one.
    #[inline]
    fn walk(&self, mut number: u64, network: impl Fn(&mut [u64; 2])) -> Option<u64> {
        if number >= self.n {
            return None;
        }
        if self.n == 1 {
            return Some(number);
        }
        loop {
            // the upper half has at most 32 bits, and so has the lower one
            let mut halves = [number >> self.low, number & mask(self.low)];
            network(&mut halves);
            number = halves[0] << self.low | halves[1];
            if number < self.n {
                return Some(number);
            }
        }
    }

    /// A round is its own inverse: it changes one half by a function of the other.
    #[inline]
    fn round(&self, i: usize, key: u64, [high, low]: &mut [u64; 2]) {
        match i % 2 {
            0 => *high ^= mix(key ^ *low) & mask(self.high),
            _ => *low ^= mix(key ^ *high) & mask(self.low),
        }
    }
}

/// Returns the number with the lowest `bits` set, at most 32.
#[inline]
fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}
