//! pco (pcodec) at its default level, 8, and with the best of several settings at its highest
//! level.
//!
//! pco has no BF16, so the bits are compressed as 16-bit integers.

use super::chunked::{Codec, Coder};
use super::{WHOLE, size};
use anyhow::{Result, bail, ensure};
use bytemuck::Pod;
use pco::data_types::Number;
use pco::standalone::{simple_compress_into, simple_decompress_into};
use pco::{ChunkConfig, DeltaSpec, ModeSpec, PagingSpec};
use std::marker::PhantomData;
use tensilo::DType;

pub struct Pco {
    chunk_bytes: usize,
    config: ChunkConfig,
    /// The description of modes and deltas.
    settings: &'static str,
}

const LEVEL: usize = 8;
const HIGHEST_LEVEL: usize = 12;
/// The maximum number of values in a chunk of the format.
const CHUNK_NUMBERS: usize = 1 << 24;

impl Default for Pco {
    fn default() -> Self {
        let config = ChunkConfig::default().with_compression_level(LEVEL);
        Self { chunk_bytes: 64 << 10, config, settings: "automatic mode and delta" }
    }
}

/// Returns the settings that are tried for the smallest file.
pub fn candidates(dtype: DType) -> Vec<Pco> {
    let mut settings = vec![
        ("automatic mode and delta", ModeSpec::Auto, DeltaSpec::Auto),
        ("automatic mode, lookback", ModeSpec::Auto, DeltaSpec::TryLookback),
        ("dictionary, automatic delta", ModeSpec::TryDict, DeltaSpec::Auto),
    ];
    if matches!(dtype, DType::Bf16 | DType::F32 | DType::I32) {
        settings.push(("automatic mode, convolution of order 6", ModeSpec::Auto, DeltaSpec::TryConv1(6)));
        settings.push(("automatic mode, convolution of order 32", ModeSpec::Auto, DeltaSpec::TryConv1(32)));
    }
    let of_size = |chunk_bytes| {
        settings.clone().into_iter().map(move |(settings, mode, delta)| {
            let config = ChunkConfig::default()
                .with_compression_level(HIGHEST_LEVEL)
                .with_mode_spec(mode)
                .with_delta_spec(delta)
                .with_paging_spec(PagingSpec::EqualPagesUpTo(CHUNK_NUMBERS));
            Pco { chunk_bytes, config, settings }
        })
    };
    [256 << 10, WHOLE].into_iter().flat_map(of_size).collect()
}

pub fn about_best() -> String {
    let version = env!("PCO_VERSION");
    format!(
        "pco {version}, level {HIGHEST_LEVEL}, BF16 as u16, the smallest file of several modes and deltas, in chunks of \
         256 KiB or in one"
    )
}

impl Codec for Pco {
    fn name(&self) -> String {
        format!("pco {}", self.config.compression_level)
    }

    fn about(&self) -> String {
        let (version, level, chunks) = (env!("PCO_VERSION"), self.config.compression_level, size(self.chunk_bytes));
        format!("pco {version}, level {level}, BF16 as u16, {}, chunks of {chunks}", self.settings)
    }

    fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    fn coder(&self, dtype: DType, _tables: &[u8]) -> Result<Box<dyn Coder>> {
        let config = self.config.clone();
        Ok(match dtype {
            DType::Bf16 => Box::new(Numbers::<u16>(config, PhantomData)),
            DType::F32 => Box::new(Numbers::<f32>(config, PhantomData)),
            DType::F64 => Box::new(Numbers::<f64>(config, PhantomData)),
            DType::I32 => Box::new(Numbers::<i32>(config, PhantomData)),
            DType::I64 => Box::new(Numbers::<i64>(config, PhantomData)),
            _ => bail!("pco has no type for {dtype}"),
        })
    }
}

/// A coder of numbers of one type.
struct Numbers<N>(ChunkConfig, PhantomData<N>);

/// The number of values in a batch of pco.
const BATCH: usize = 256;

impl<N: Pod> Numbers<N> {
    /// Returns the settings for this number of values. pco 1.1.0 panics if the last batch of a page
    /// is shorter than the order of a convolution; the automatic delta is used then.
    fn config(&self, numbers: usize) -> Result<ChunkConfig> {
        let config = self.0.clone();
        let DeltaSpec::TryConv1(order) = config.delta_spec else { return Ok(config) };
        let pages = config.paging_spec.n_per_page(numbers)?;
        let is_short = pages.iter().any(|page| (1..order).contains(&(page % BATCH)));
        Ok(if is_short { config.with_delta_spec(DeltaSpec::Auto) } else { config })
    }
}

impl<N: Number + Pod> Coder for Numbers<N> {
    fn encode(&mut self, raw: &[u8], stored: &mut Vec<u8>) -> Result<()> {
        let numbers: &[N] = bytemuck::cast_slice(raw);
        simple_compress_into(numbers, &self.config(numbers.len())?, stored)?;
        Ok(())
    }

    fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let out: &mut [N] = bytemuck::cast_slice_mut(out);
        let progress = simple_decompress_into(stored, out)?;
        ensure!(progress.n_processed == out.len(), "{} values instead of {}", progress.n_processed, out.len());
        Ok(())
    }
}
