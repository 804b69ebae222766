//! Zstandard 9 without a filter. The context is reused from chunk to chunk.

use super::chunked::{Codec, Coder};
use anyhow::{Result, ensure};
use tensilo::DType;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe;

pub struct Zstd {
    /// Whether each frame has a checksum, which is off by default.
    pub checksum: bool,
}

const LEVEL: i32 = 9;

impl Codec for Zstd {
    fn name(&self) -> String {
        format!("zstd {LEVEL}{}", if self.checksum { ", checksums" } else { "" })
    }

    fn about(&self) -> String {
        format!("Zstandard {}, level {LEVEL}, chunks of 64 KiB", zstd_safe::version_string())
    }

    fn chunk_bytes(&self) -> usize {
        64 << 10
    }

    fn coder(&self, _dtype: DType, _column: &[u8]) -> Result<Box<dyn Coder>> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.include_checksum(self.checksum)?;
        Ok(Box::new(Contexts { compressor, decompressor: Decompressor::new()? }))
    }
}

struct Contexts {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
}

impl Coder for Contexts {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        stored.resize(zstd_safe::compress_bound(raw.len()), 0);
        let length = self.compressor.compress_to_buffer(raw, stored.as_mut_slice())?;
        stored.truncate(length);
        Ok(())
    }

    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let length = self.decompressor.decompress_to_buffer(stored, out)?;
        ensure!(length == out.len(), "{length} bytes instead of {}", out.len());
        Ok(())
    }
}
