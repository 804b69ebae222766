//! Every implementation is compared with the scalar implementation, and the scalar implementation
//! with the specification.
//!
//! Tests share random contents and two types of buffers. [`Misaligned`] bytes begin at any offset.
//! [`Guarded`] bytes have guards on both sides, which reveal a write outside of the buffer.

use super::dispatch::Implementation;
use crate::kernel::Width;

mod bins;
mod mappings;
mod planes;
mod predict;

/// Checks that this machine has the implementations that CI requires. Otherwise, tests could pass
/// only because the CPU lacks an instruction set.
#[test]
fn required_kernels_are_available() {
    check("bitshuffle", super::bitshuffle::available(), super::bitshuffle::best());
    check("byte_planes", super::byte_planes::available(), super::byte_planes::best());
    check("predict", super::predict::available(), super::predict::best());
    check("tiers", super::tiers::available(), super::tiers::best());
    check("bins", super::bins::available(), super::bins::best());
    check("bins::encode", super::bins::encode::available(), super::bins::encode::best());
    check("bins::costs", super::bins::costs::available(), super::bins::costs::best());
    check("extra_bits", super::extra_bits::available(), super::extra_bits::best());
    check("dictionaries", super::dictionaries::available(), super::dictionaries::best());
    check("float_multiples", super::float_multiples::available(), super::float_multiples::best());
}

fn check<K: ?Sized>(family: &str, available: &[Implementation<K>], best: &Implementation<K>) {
    let names: Vec<_> = available.iter().map(Implementation::name).collect();
    println!("{family}: {}", names.join(", "));
    assert_eq!(names.first(), Some(&"scalar"), "{family}");
    let requested = super::dispatch::requested().filter(|requested| names.contains(&requested.as_str()));
    assert_eq!(best.name(), requested.as_deref().unwrap_or(names[names.len() - 1]), "{family}");
    let required = std::env::var("TENSILO_REQUIRE_KERNELS").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        assert!(names.contains(&name), "{family}: kernel {name} is required, but this CPU supports only {names:?}");
    }
}

#[test]
fn requested_kernels_are_chosen() {
    let available = super::predict::available();
    let chosen = |requested: Option<&str>| super::dispatch::choose(available, requested).map(Implementation::name);
    for kernel in available {
        assert_eq!(chosen(Some(kernel.name())), Some(kernel.name()));
    }
    let fastest = available.last().map(Implementation::name);
    assert_eq!((chosen(None), chosen(Some("abacus")), chosen(Some(""))), (fastest, fastest, fastest));
}

#[test]
fn widths_are_1_2_4_8() {
    for bytes in 0..=16 {
        let width = super::Width::from_bytes(bytes);
        assert_eq!(width.is_some(), [1, 2, 4, 8].contains(&bytes));
        assert!(width.is_none_or(|width| width.bytes() == bytes));
    }
}

pub const WIDTHS: [Width; 4] = [Width::W1, Width::W2, Width::W4, Width::W8];

/// The value of the bytes around a destination, which no kernel may change.
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

/// Returns the misalignments of a source and of a destination. They depend on `count`.
pub fn offsets(count: usize) -> (usize, usize) {
    [(0, 0), (1, 0), (0, 1), (3, 7), (15, 17), (33, 31), (63, 63)][count % 7]
}

/// A copy of bytes that starts `offset` bytes into its allocation and ends where the allocation
/// ends.
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

/// A misaligned buffer between bytes that must keep their values.
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
    pub fn assert_is(&self, expected: &[u8], context: impl Fn() -> String) {
        assert!(&self.bytes[self.start..self.end] == expected, "{}", context());
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
        assert!(around.all(|&byte| byte == GUARD), "a kernel wrote outside of the buffer: {}", context());
    }
}

/// Returns random bytes, extreme values, or values whose sums carry through all bits, depending on
/// `seed`.
pub fn contents(seed: usize, len: usize) -> Vec<u8> {
    match seed % 6 {
        0 => vec![0xFF; len],
        1 => (0..len).map(|i| if i % 8 == 7 { 0x80 } else { 0 }).collect(),
        2 => (0..len).map(|i| if i % 2 == 0 { 0 } else { 0x80 }).collect(),
        _ => Random::new(seed).bytes(len),
    }
}

/// Returns the counts of symbols or elements to test: up to more than two blocks of the fast
/// implementations, and around eight blocks.
pub fn counts() -> impl Iterator<Item = usize> {
    let ranges = if cfg!(miri) { [0..4, 63..67, 0..0] } else { [0..1025, 1090..1101, 4090..4100] };
    ranges.into_iter().flatten()
}
