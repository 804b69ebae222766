//! Data that is hard to encode, for tests of the codecs and of whole files.
//!
//! Each [`Pattern`] exercises an encoding or an edge case: equal values, outliers, NaN payloads,
//! and data that a transform, a mapping or an option was made for. An element is a function of the
//! seed and its index, so any element can be computed individually.

use super::random::mix;

/// A pattern of values. For floats, the width selects the type: one byte with four exponent bits,
/// bf16, f32 or f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    AllEqual,
    Ascending,
    /// All integers below the number of elements, permuted.
    Permuted,
    /// NaNs with payloads, of both signs.
    Nans,
    /// Floats near 1, with alternating signs.
    AlternatingFloats,
    /// Small integers, with alternating signs.
    AlternatingIntegers,
    /// Subnormal numbers of both signs.
    Denormals,
    RandomBits,
    /// Numbers of random bit lengths. All bit lengths are equally likely.
    RandomLengths,
    OneOutlierInConstant,
    OneOutlierInSmooth,
    Ramp,
    /// Rows of 128 elements, each row close to the one above.
    Rows,
    /// Zeros, except for about one element in fifty.
    Sparse,
    Sawtooth,
    /// The smallest and the largest signed number, alternating.
    Extremes,
    /// Top bytes that are rarer the larger they are, so that all tiers and literals occur.
    Skewed,
    /// Prices with two decimals as floats, and rarely NaN or -0.
    Decimals,
    /// Three channels of 256 values each, normalized.
    Pixels,
    /// Sums of sines, most of them rounded to multiples of 1/64.
    FixedPoint,
    /// Integers that ascend from a large start by multiples of 250.
    Multiples,
    /// A curve with stretches of zeros.
    Gapped,
    /// Timestamps about 10 apart, with a long pause after every forty of them.
    Pauses,
    /// Ids of tokens or names, in no particular order. A few of them are frequent.
    Names,
    /// Floats that use only the upper half of their bits.
    Halves,
    /// Noise of varying loudness, filtered by two resonances: integers of at most 16 bits, and
    /// floats of 32 and 64 bits that are multiples of 2^-15.
    Sound,
}

use Pattern::*;

impl Pattern {
    pub const ALL: [Self; 26] = [
        AllEqual,
        Ascending,
        Permuted,
        Nans,
        AlternatingFloats,
        AlternatingIntegers,
        Denormals,
        RandomBits,
        RandomLengths,
        OneOutlierInConstant,
        OneOutlierInSmooth,
        Ramp,
        Rows,
        Sparse,
        Sawtooth,
        Extremes,
        Skewed,
        Decimals,
        Pixels,
        FixedPoint,
        Multiples,
        Gapped,
        Pauses,
        Names,
        Halves,
        Sound,
    ];

    /// Returns `count` little-endian elements of `width` bytes: 1, 2, 4 or 8.
    pub fn elements(self, width: usize, count: usize, seed: u64) -> Vec<u8> {
        let element = |i| self.element(width, count as u64, i, seed).to_le_bytes();
        (0..count as u64).flat_map(|i| element(i).into_iter().take(width)).collect()
    }

    /// Returns element `i` of `count`. The caller ignores the bits above the width of an element.
    fn element(self, width: usize, count: u64, i: u64, seed: u64) -> u64 {
        let bits = 8 * width as u32;
        let mantissa_bits = [3, 7, 23, 52][width.ilog2() as usize];
        let sign = 1 << (bits - 1);
        let mantissa = (1 << mantissa_bits) - 1;
        let infinity = (sign - 1) & !mantissa;
        let one = (infinity >> 1) & !mantissa;
        let random = mix(seed, i);
        let any_sign = random & sign;
        let is_outlier = i == mix(seed, u64::MAX) % count;
        match self {
            AllEqual => mix(seed, 0),
            Ascending => i,
            Permuted => i * 1_000_003 % count, // a prime larger than any count in the tests
            Nans => any_sign | infinity | (random & mantissa).max(1),
            AlternatingFloats => (one + random % 8) ^ if i.is_multiple_of(2) { 0 } else { sign },
            AlternatingIntegers => {
                if i.is_multiple_of(2) {
                    random % 40
                } else {
                    (random % 40).wrapping_neg()
                }
            }
            Denormals => any_sign | (random & mantissa),
            RandomBits => random,
            RandomLengths => random >> (64 - bits + mix(random, i) as u32 % (bits + 1)).min(63),
            OneOutlierInConstant | OneOutlierInSmooth if is_outlier => random,
            OneOutlierInConstant => mix(seed, 0),
            OneOutlierInSmooth => one + (i % 200).abs_diff(100) / 4,
            Ramp => seed.wrapping_add(i * (seed % 5)),
            Rows => one + (i / 128) % 16 + (i % 128).abs_diff(64) / 4 + random % 2,
            Sparse => {
                if random.is_multiple_of(50) {
                    mix(random, i)
                } else {
                    0
                }
            }
            Sawtooth => i % 37 * 3,
            Extremes => {
                if i % 2 == seed % 2 {
                    sign
                } else {
                    sign - 1
                }
            }
            Skewed => {
                let [a, b, c, ..] = random.to_le_bytes().map(u64::from);
                (a.min(b).min(c) / 4) << (bits - 8) | random & ((1 << (bits - 8)) - 1)
            }
            Decimals if random.is_multiple_of(301) => [infinity | 1, sign][(random / 301 % 2) as usize],
            Decimals => {
                float(width, (10_000.0 + (i as f64 / 40.0).sin() * 900.0 + (random % 8) as f64).round() / 100.0)
            }
            Pixels => {
                let (channel, pixel) = (i % 3, (i / 3 + mix(seed, i % 3)) % 400);
                let value = (pixel.min(255) ^ (random % 4)) as f32 / 255.0;
                float(width, f64::from((value - 0.45 - 0.02 * channel as f32) / 0.225))
            }
            FixedPoint => {
                let x = (i as f64 / 30.0).sin() * 5.0 + (i as f64 / 7.0).cos();
                let coarse = if random.is_multiple_of(100) { x } else { (x * 64.0).round() / 64.0 };
                float(width, coarse)
            }
            Multiples => (seed | 1 << 40).wrapping_add(i * 1000 + random % 4 * 250),
            Gapped if mix(seed, i / 24).is_multiple_of(3) => 0,
            Gapped => one + (i % 96).abs_diff(48) + random % 4,
            Pauses => seed.wrapping_add(i * 10 + random % 5 + mix(seed, i / 40) % 40_000 + i / 40 * 40_000),
            Names => {
                let rarity = random.trailing_zeros().min(9);
                mix(seed, rarity.into()) % 5000 + (random >> 50) % (1 << rarity) * 97
            }
            Halves => {
                let (zeros, magnitude) = (4 * width as u32, mix(random, i) % 60);
                let exponent = one.wrapping_sub(magnitude << mantissa_bits) & infinity;
                (any_sign | exponent | random & mantissa) >> zeros << zeros
            }
            Sound => match (width, sound(i, seed)) {
                (1, sound) => (sound >> 8) as u64,
                (2, sound) => sound as u64,
                (_, sound) => float(width, sound as f64 / 32768.0),
            },
        }
    }
}

/// The response of two resonances to an impulse of 32.
const RESPONSE: [i64; 40] = [
    32, 82, 111, 98, 59, 25, 11, 8, -3, -26, -48, -55, -45, -28, -15, -10, -5, 4, 17, 26, 26, 21, 14, 10, 7, 2, -4,
    -10, -13, -13, -10, -8, -6, -4, -1, 3, 5, 7, 6, 5,
];

/// Returns sample `i` of a sound, a signed 16-bit number.
fn sound(i: u64, seed: u64) -> i64 {
    let noise = |i: u64| {
        let loudness = 20 + (i % 3000).abs_diff(1500) as i64 / 16;
        (mix(seed, i) % 256) as i64 * loudness - 128 * loudness
    };
    let responses = (0..).zip(RESPONSE).map(|(before, response)| response * noise(i.wrapping_sub(before)));
    responses.sum::<i64>() >> 9
}

/// Returns the bits of a number as a float of `width` bytes: bf16, f32 or f64. For one byte,
/// returns the integer part of the number.
fn float(width: usize, x: f64) -> u64 {
    match width {
        1 => x as i64 as u64,
        2 => u64::from(((x as f32).to_bits() + 0x7FFF) >> 16),
        4 => (x as f32).to_bits().into(),
        _ => x.to_bits(),
    }
}
