//! c-blosc2: bit-shuffle and Zstandard with the element size of the data, and blocks of its choice.
//! Used for bare chunks, and for each sample of the LMDB recipe (`lmdb_blosc.rs`).
//!
//! Its level 9 is Zstandard's highest, 22: the smallest files, but slow to encode. Its level 5 is
//! Zstandard's level 9, which tensilo, Parquet and plain Zstandard use. Both are shown.
//!
//! If a chunk has several blocks, a random sample is read by `blosc2_getitem_ctx`, which decodes
//! only the blocks that it needs.

pub mod simd;
mod sys;

use super::chunked::{Codec, Coder};
use super::{size, width};
use anyhow::{Result, ensure};
pub use sys::version;
use tensilo::DType;

pub struct Blosc2 {
    pub chunk_bytes: usize,
    pub level: Level,
}

/// Levels of c-blosc2.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Five = 5,
    Nine = 9,
}

/// Describes the settings for the reports.
pub fn settings(level: Level) -> String {
    let zstandard = match level {
        Level::Five => 9,
        Level::Nine => 22,
    };
    format!("c-blosc2 {}, level {} (Zstandard level {zstandard}), bit-shuffle", version(), level as u8)
}

impl Codec for Blosc2 {
    fn name(&self) -> String {
        format!("c-blosc2 L{} {}", self.level as u8, size(self.chunk_bytes))
    }

    fn about(&self) -> String {
        format!("{}, chunks of {}", settings(self.level), size(self.chunk_bytes))
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn coder(&self, dtype: DType, _column: &[u8]) -> Result<Box<dyn Coder>> {
        Ok(Box::new(sys::Contexts::new(self.level as u8, width(dtype)?)?))
    }
}

impl Coder for sys::Contexts {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        self.compress(raw, stored)
    }

    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let length = self.decompress(stored, out)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(())
    }

    fn decode_part(&mut self, stored: &[u8], start: usize, out: &mut [u8]) -> Result<bool> {
        let (raw_bytes, block_bytes) = self.sizes(stored)?;
        if block_bytes >= raw_bytes {
            return Ok(false);
        }
        let length = self.items(stored, start, out)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(true)
    }
}
