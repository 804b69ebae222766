//! The method of DFloat11 (Zhang et al. 2025), reimplemented: exponents of BF16 in a Huffman code
//! for the whole column; signs and mantissas stay raw.
//!
//! DFloat11 decodes on a GPU. This decoder runs on one core, with one look-up per exponent. Codes
//! have at most 12 bits instead of 32, so that the look-up table fits in the first-level cache.

mod huffman;

use super::chunked::{Codec, Coder};
use super::size;
use anyhow::{Result, ensure};
use huffman::{Decoder, Encoder, Lengths};
use tensilo::DType;

pub struct DFloat11;

const CHUNK_BYTES: usize = 256 << 10;

impl Codec for DFloat11 {
    fn name(&self) -> String {
        "DFloat11's method".to_owned()
    }

    fn about(&self) -> String {
        let chunks = size(CHUNK_BYTES);
        format!("reimplemented: exponents by one Huffman code of the column, other bits raw, chunks of {chunks}")
    }

    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES
    }

    fn tables(&self, raw: &[u8]) -> Vec<u8> {
        let mut counts = [0; 256];
        for element in raw.as_chunks().0 {
            counts[usize::from(exponent(*element))] += 1;
        }
        Lengths::of(&counts).to_bytes()
    }

    fn table_bytes(&self) -> usize {
        huffman::TABLE_BYTES
    }

    fn coder(&self, dtype: DType, tables: &[u8]) -> Result<Box<dyn Coder>> {
        ensure!(dtype == DType::Bf16, "DFloat11 is for BF16, not for {dtype}");
        let lengths = Lengths::from_bytes(tables)?;
        Ok(Box::new(Exponents {
            encoder: Encoder::new(&lengths),
            decoder: Decoder::new(&lengths)?,
            exponents: Vec::new(),
        }))
    }
}

/// Returns the exponent of a little-endian BF16.
fn exponent([low, high]: [u8; 2]) -> u8 {
    high << 1 | low >> 7
}

/// Returns sign and mantissa.
fn rest([low, high]: [u8; 2]) -> u8 {
    high & 0x80 | low & 0x7F
}

fn join(exponent: u8, rest: u8) -> [u8; 2] {
    [exponent << 7 | rest & 0x7F, rest & 0x80 | exponent >> 1]
}

struct Exponents {
    encoder: Encoder,
    decoder: Decoder,
    exponents: Vec<u8>,
}

impl Coder for Exponents {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let elements = raw.as_chunks().0;
        stored.extend(elements.iter().map(|element| rest(*element)));
        self.encoder.encode(elements.iter().map(|element| exponent(*element)), stored);
        Ok(())
    }

    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let elements = out.as_chunks_mut().0;
        ensure!(stored.len() >= elements.len(), "the chunk is truncated");
        let (rests, codes) = stored.split_at(elements.len());
        self.exponents.resize(elements.len(), 0);
        self.decoder.decode(codes, &mut self.exponents)?;
        for ((element, exponent), rest) in elements.iter_mut().zip(&self.exponents).zip(rests) {
            *element = join(*exponent, *rest);
        }
        Ok(())
    }
}
