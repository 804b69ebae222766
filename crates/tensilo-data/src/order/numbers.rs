//! Chapter 1 of `ORDER.md`: keys.

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
