//! The method of ZipNN (Hershcovitch et al. 2024), reimplemented: the bits of a float are rotated,
//! so that one byte is the exponent. Each byte plane is a group, compressed only by Huffman codes.
//!
//! The Huffman coder is Zstandard's, which ZipNN uses too: a frame of literals without matches. A
//! group that would not shrink is stored raw.

mod literals;

use super::chunked::{Codec, Coder};
use super::{size, width};
use anyhow::{Context, Result, bail};
use literals::Contexts;
use tensilo::DType;
use zstd::zstd_safe;

pub struct ZipNn;

/// The chunk size of ZipNN.
const CHUNK_BYTES: usize = 256 << 10;

impl Codec for ZipNn {
    fn name(&self) -> String {
        "ZipNN's method".to_owned()
    }

    fn about(&self) -> String {
        let (version, chunks) = (zstd_safe::version_string(), size(CHUNK_BYTES));
        format!("reimplemented: groups of bytes by the Huffman coder of Zstandard {version}, chunks of {chunks}")
    }

    fn chunk_bytes(&self) -> usize {
        CHUNK_BYTES
    }

    fn coder(&self, dtype: DType, _tables: &[u8]) -> Result<Box<dyn Coder>> {
        Ok(match width(dtype)? {
            2 => Box::new(Groups::<2>::new()?),
            4 => Box::new(Groups::<4>::new()?),
            _ => bail!("ZipNN has no groups for {dtype}"),
        })
    }
}

/// A coder for elements of `N` bytes. A stored chunk has, for each group, the length of the frame
/// and the frame.
struct Groups<const N: usize> {
    contexts: Contexts,
    groups: [Vec<u8>; N],
}

impl<const N: usize> Groups<N> {
    fn new() -> Result<Self> {
        Ok(Self { contexts: Contexts::new()?, groups: std::array::from_fn(|_| Vec::new()) })
    }
}

impl<const N: usize> Coder for Groups<N> {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let elements: &[[u8; N]] = raw.as_chunks().0;
        for (number, group) in self.groups.iter_mut().enumerate() {
            group.clear();
            // byte `number` of the little-endian element, rotated to the left by one bit
            let below = (number + N - 1) % N;
            group.extend(elements.iter().map(|element| element[number] << 1 | element[below] >> 7));
            let at = stored.len();
            stored.extend([0; 4]);
            self.contexts.compress(group, stored)?;
            let length = u32::try_from(stored.len() - at - 4)?;
            stored[at..at + 4].copy_from_slice(&length.to_le_bytes());
        }
        Ok(())
    }

    fn decode(&mut self, mut stored: &[u8], out: &mut [u8]) -> Result<()> {
        let elements: &mut [[u8; N]] = out.as_chunks_mut().0;
        for group in &mut self.groups {
            let (length, rest) = stored.split_first_chunk().context("the chunk is truncated")?;
            let length = u32::from_le_bytes(*length) as usize;
            let (frame, rest) = rest.split_at_checked(length).context("a group exceeds the chunk")?;
            group.resize(elements.len(), 0);
            self.contexts.decompress(frame, group)?;
            stored = rest;
        }
        let groups: [&[u8]; N] = std::array::from_fn(|number| &self.groups[number][..elements.len()]);
        for (i, element) in elements.iter_mut().enumerate() {
            *element = std::array::from_fn(|number| groups[number][i] >> 1 | groups[(number + 1) % N][i] << 7);
        }
        Ok(())
    }
}
