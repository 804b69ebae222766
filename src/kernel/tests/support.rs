//! Random contents, and buffers that show what a kernel wrote.

use crate::kernel::Width;

pub const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

/// Byte around a destination that no kernel may change.
pub const GUARD: u8 = 0xA5;

/// Pseudo-random numbers (Marsaglia's xorshift64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: usize) -> Self {
        Self((seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// Returns offsets of source and destination from alignment, which differ from count to count.
pub fn offsets(count: usize) -> (usize, usize) {
    [(0, 0), (1, 0), (0, 1), (3, 7), (15, 17), (33, 31), (63, 63)][count % 7]
}

/// A copy of bytes that is exactly as long and `offset` bytes off alignment.
pub struct Misaligned {
    bytes: Box<[u8]>,
    offset: usize,
}

impl Misaligned {
    pub fn new(bytes: &[u8], offset: usize) -> Self {
        Self { bytes: [&vec![GUARD; offset], bytes].concat().into(), offset }
    }

    pub fn get(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }
}

/// A buffer off alignment, between bytes that must keep their value.
pub struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Guarded {
    pub fn new(content: &[u8], offset: usize) -> Self {
        let (start, end) = (64 + offset, 64 + offset + content.len());
        let mut bytes = vec![GUARD; end + 64];
        bytes[start..end].copy_from_slice(content);
        Self { bytes, start, end }
    }

    pub fn zeros(len: usize, offset: usize) -> Self {
        Self::new(&vec![0; len], offset)
    }

    pub fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    #[track_caller]
    pub fn assert_is(&self, due: &[u8], context: impl Fn() -> String) {
        assert!(&self.bytes[self.start..self.end] == due, "{}", context());
        self.assert_guards(context);
    }

    #[track_caller]
    pub fn into_bytes(self, context: impl Fn() -> String) -> Vec<u8> {
        self.assert_guards(context);
        self.bytes[self.start..self.end].to_vec()
    }

    #[track_caller]
    fn assert_guards(&self, context: impl Fn() -> String) {
        let mut around = self.bytes[..self.start].iter().chain(&self.bytes[self.end..]);
        assert!(around.all(|&byte| byte == GUARD), "wrote outside of the buffer: {}", context());
    }
}

/// Returns random contents, extremes, or contents that carry through all bits, as `seed` chooses.
pub fn contents(seed: usize, len: usize) -> Vec<u8> {
    match seed % 6 {
        0 => vec![0xFF; len],
        1 => (0..len).map(|i| if i % 8 == 7 { 0x80 } else { 0 }).collect(),
        2 => (0..len).map(|i| if i % 2 == 0 { 0 } else { 0x80 }).collect(),
        _ => Random::new(seed).bytes(len),
    }
}

/// Returns counts of symbols or elements to test: more than two blocks of the fast implementations,
/// and more than eight.
pub fn counts() -> impl Iterator<Item = usize> {
    let ranges = if cfg!(miri) { [0..4, 63..67, 0..0] } else { [0..1025, 1090..1101, 4090..4100] };
    ranges.into_iter().flatten()
}
