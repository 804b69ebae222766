//! c-blosc2: bit-shuffle and Zstandard 9 on elements of two bytes, block size left to it. As bare chunks, and for each sample
//! in the recipe (`lmdb_blosc.rs`).
//!
//! A random sample takes `blosc2_getitem_ctx` where a chunk has several blocks: it decodes only those that are needed.

pub mod simd;
mod sys;

use super::chunked::{Codec, Coder};
use super::size;
use anyhow::{Result, ensure};
use half::bf16;
pub use sys::version;

pub struct Blosc2 {
    chunk_bytes: usize,
}

pub const LEVEL: u8 = 9;

impl Blosc2 {
    pub fn new(chunk_bytes: usize) -> Self {
        Self { chunk_bytes }
    }
}

impl Codec for Blosc2 {
    fn name(&self) -> String {
        format!("c-blosc2 {}", size(self.chunk_bytes))
    }

    fn about(&self) -> String {
        let (version, chunk) = (version(), size(self.chunk_bytes));
        format!("c-blosc2 {version}, bit-shuffle and Zstandard level {LEVEL}, typesize 2, chunks of {chunk}")
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn coder(&self) -> Result<Box<dyn Coder>> {
        Ok(Box::new(sys::Contexts::new(LEVEL)?))
    }
}

impl Coder for sys::Contexts {
    fn encode(&mut self, raw: &[bf16], stored: &mut Vec<u8>) -> Result<()> {
        self.compress(bytemuck::cast_slice(raw), stored)
    }

    fn decode(&mut self, stored: &[u8], out: &mut [bf16]) -> Result<()> {
        let out: &mut [u8] = bytemuck::cast_slice_mut(out);
        let length = self.decompress(stored, out)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(())
    }

    fn decode_part(&mut self, stored: &[u8], start: usize, out: &mut [bf16]) -> Result<bool> {
        let (raw_bytes, block_bytes) = self.sizes(stored)?;
        if block_bytes >= raw_bytes {
            return Ok(false);
        }
        let out: &mut [u8] = bytemuck::cast_slice_mut(out);
        let length = self.items(stored, start, out)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(true)
    }
}
