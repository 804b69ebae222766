//! A canonical Huffman code for bytes, with codes of at most 12 bits.
//!
//! Codes are written from the lowest bit of each byte, first bit first. 8 zero bytes follow the
//! last code, so that the decoder can always load a word.

use anyhow::{Context, Result, ensure};

/// The maximum bits of a code.
const MAX_CODE_BITS: usize = 12;
/// The size of the stored lengths: 4 bits for each symbol.
pub const TABLE_BYTES: usize = 128;

/// The code length of each symbol; 0 if the symbol does not occur.
pub struct Lengths([u8; 256]);

impl Lengths {
    /// Finds the optimal lengths with package-merge (Larmore and Hirschberg 1990).
    pub fn of(counts: &[u64; 256]) -> Self {
        let mut leaves: Vec<(u64, Vec<u8>)> =
            (0..=255).zip(counts).filter(|(_, count)| **count > 0).map(|(i, count)| (*count, vec![i])).collect();
        leaves.sort();
        let mut lengths = [0; 256];
        if let [(_, symbols)] = leaves.as_slice() {
            lengths[usize::from(symbols[0])] = 1;
        }
        let mut packages = leaves.clone();
        for _ in 1..MAX_CODE_BITS {
            let pairs = packages.as_chunks().0.iter();
            let mut merged: Vec<_> = pairs.map(|[a, b]| (a.0 + b.0, [&*a.1, &*b.1].concat())).collect();
            merged.extend(leaves.iter().cloned());
            merged.sort();
            packages = merged;
        }
        let taken = 2 * leaves.len().saturating_sub(1);
        for symbol in packages.iter().take(taken).flat_map(|(_, symbols)| symbols) {
            lengths[usize::from(*symbol)] += 1;
        }
        Self(lengths)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.as_chunks().0.iter().map(|[low, high]| low | high << 4).collect()
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        ensure!(bytes.len() == TABLE_BYTES, "the code lengths have {} bytes, expected {TABLE_BYTES}", bytes.len());
        let mut lengths = [0; 256];
        for (pair, byte) in lengths.as_chunks_mut().0.iter_mut().zip(bytes) {
            *pair = [byte & 15, byte >> 4];
        }
        ensure!(
            lengths.iter().all(|length| usize::from(*length) <= MAX_CODE_BITS),
            "a code is longer than {MAX_CODE_BITS} bits"
        );
        Ok(Self(lengths))
    }

    /// Returns symbol, length and code of all symbols, shorter codes first. The first bit of a code
    /// is its lowest.
    fn codes(&self) -> impl Iterator<Item = (u8, u8, u16)> {
        let mut symbols: Vec<(u8, u8)> =
            (0..=255).zip(self.0).filter(|(_, length)| *length > 0).map(|(i, length)| (length, i)).collect();
        symbols.sort_unstable();
        let mut next = 0_u32; // the code in `MAX_CODE_BITS` bits, first bit highest
        symbols.into_iter().map(move |(length, symbol)| {
            let code = next >> (MAX_CODE_BITS - usize::from(length));
            next += 1 << (MAX_CODE_BITS - usize::from(length));
            (symbol, length, (code.reverse_bits() >> (32 - u32::from(length))) as u16)
        })
    }
}

pub struct Encoder {
    /// The code and the code length of each symbol.
    codes: [(u16, u8); 256],
}

impl Encoder {
    pub fn new(lengths: &Lengths) -> Self {
        let mut codes = [(0, 0); 256];
        for (symbol, length, code) in lengths.codes() {
            codes[usize::from(symbol)] = (code, length);
        }
        Self { codes }
    }

    /// Appends the codes of the symbols.
    pub fn encode(&self, symbols: impl Iterator<Item = u8>, out: &mut Vec<u8>) {
        let (mut bits, mut count) = (0_u64, 0_u32);
        for symbol in symbols {
            let (code, length) = self.codes[usize::from(symbol)];
            bits |= u64::from(code) << count;
            count += u32::from(length);
            if count >= 32 {
                out.extend((bits as u32).to_le_bytes());
                bits >>= 32;
                count -= 32;
            }
        }
        out.extend(&bits.to_le_bytes()[..count.div_ceil(8) as usize]);
        out.extend([0; 8]);
    }
}

pub struct Decoder {
    /// For the next `MAX_CODE_BITS` bits, the symbol and the length of its code.
    table: Box<[(u8, u8); 1 << MAX_CODE_BITS]>,
}

/// The number of symbols decoded per word: up to 7 bits of the word may already be used.
const SYMBOLS: usize = (64 - 7) / MAX_CODE_BITS;

impl Decoder {
    pub fn new(lengths: &Lengths) -> Result<Self> {
        let mut table = Box::new([(0, 0); 1 << MAX_CODE_BITS]);
        let mut filled = 0;
        for (symbol, length, code) in lengths.codes() {
            for entry in table.iter_mut().skip(usize::from(code)).step_by(1 << length) {
                *entry = (symbol, length);
                filled += 1;
            }
        }
        ensure!(filled <= table.len(), "the code lengths do not form a code");
        Ok(Self { table })
    }

    pub fn decode(&self, mut stream: &[u8], out: &mut [u8]) -> Result<()> {
        let mut used = 0; // bits of the first byte
        for symbols in out.chunks_mut(SYMBOLS) {
            let word = stream.first_chunk().context("the codes are truncated")?;
            let mut bits = u64::from_le_bytes(*word) >> used;
            for out in symbols {
                let (symbol, length) = self.table[bits as usize % (1 << MAX_CODE_BITS)];
                *out = symbol;
                bits >>= length;
                used += usize::from(length);
            }
            stream = &stream[used / 8..]; // at most 7 bytes
            used %= 8;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(symbols: &[u8], stored_bytes: usize) {
        let mut counts = [0; 256];
        symbols.iter().for_each(|symbol| counts[usize::from(*symbol)] += 1);
        let lengths = Lengths::from_bytes(&Lengths::of(&counts).to_bytes()).unwrap();
        let mut stored = Vec::new();
        Encoder::new(&lengths).encode(symbols.iter().copied(), &mut stored);
        assert_eq!(stored.len(), stored_bytes + 8);
        let mut out = vec![0; symbols.len()];
        Decoder::new(&lengths).unwrap().decode(&stored, &mut out).unwrap();
        assert_eq!(out, symbols);
    }

    #[test]
    fn symbols_return() {
        check(&[], 0);
        check(&[7; 100], 13);
        check(&[1, 1, 1, 1, 2, 2, 3, 4], 2);
        check(&(0..=255).collect::<Vec<_>>(), 256);
    }

    #[test]
    fn no_code_is_longer_than_the_limit() {
        let counts: [u64; 256] = std::array::from_fn(|i| 1_u64 << (i % 40));
        let lengths = Lengths::of(&counts);
        assert!(lengths.0.iter().all(|length| (1..=12).contains(length)));
        let kraft: u32 = lengths.0.iter().map(|length| 1 << (12 - length)).sum();
        assert_eq!(kraft, 1 << 12);
    }
}
