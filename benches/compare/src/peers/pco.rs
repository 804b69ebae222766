//! pco (pcodec) at its default level 8, on the bits of BF16 as 16-bit integers: it has no type of
//! its own for them.

use super::chunked::{Codec, Coder};
use anyhow::{Result, ensure};
use half::bf16;
use pco::ChunkConfig;
use pco::standalone::{simple_compress_into, simple_decompress_into};

pub struct Pco;

const LEVEL: usize = 8;

impl Codec for Pco {
    fn name(&self) -> String {
        format!("pco {LEVEL}")
    }

    fn about(&self) -> String {
        format!("pco {}, level {LEVEL}, as u16, chunks of 64 KiB", env!("PCO_VERSION"))
    }

    fn chunk_bytes(&self) -> usize {
        64 << 10
    }

    fn coder(&self) -> Result<Box<dyn Coder>> {
        Ok(Box::new(Config(ChunkConfig::default().with_compression_level(LEVEL))))
    }
}

struct Config(ChunkConfig);

impl Coder for Config {
    fn encode(&mut self, raw: &[bf16], stored: &mut Vec<u8>) -> Result<()> {
        simple_compress_into::<u16, _>(bytemuck::cast_slice(raw), &self.0, stored)?;
        Ok(())
    }

    fn decode(&mut self, stored: &[u8], out: &mut [bf16]) -> Result<()> {
        let out: &mut [u16] = bytemuck::cast_slice_mut(out);
        let progress = simple_decompress_into(stored, out)?;
        ensure!(progress.n_processed == out.len(), "{} values instead of {}", progress.n_processed, out.len());
        Ok(())
    }
}
