//! The files of the cold measurements: the same values as a tensilo file and as a raw file.

use crate::measure::Random;
use crate::peers::tensilo::{COLUMN, sink};
use anyhow::Result;
use half::bf16;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};
use tensilo_data::WindowSizes;

/// The files for one sample size.
pub struct Files {
    pub raw: PathBuf,
    pub encoded: PathBuf,
    pub samples: usize,
    pub sample_bytes: usize,
    /// The default window sizes for such samples.
    pub order: WindowSizes,
}

/// The number of random values. Samples are cut from them at random offsets: no encoding sees the
/// repetition, because none looks beyond a chunk.
const POOL: usize = 1 << 22;

impl Files {
    /// Writes `bytes` of normal values in samples of `sample_bytes`.
    pub fn write(folder: &Path, bytes: usize, sample_bytes: usize) -> Result<Self> {
        let (samples, elements) = (bytes / sample_bytes, sample_bytes / size_of::<bf16>());
        let (raw, encoded) = (folder.join("values"), folder.join("values.tsl"));
        let mut random = Random::new(1);
        let pool: Vec<bf16> = (0..POOL).map(|_| bf16::from_f32(random.normal())).collect();
        let schema = Schema::new([ColumnSchema::tensor(COLUMN, DType::Bf16, Shape::fixed(&[elements as u32]))]);
        let options = WriterOptions::new().profile(Profile::Fast).threads(2);
        let mut writer = Writer::new(sink(&encoded)?, schema, &options)?;
        let mut plain = BufWriter::new(File::create_new(&raw)?);
        for _ in 0..samples {
            let start = (random.uniform() * (POOL - elements) as f32) as usize;
            let sample = &pool[start..start + elements];
            writer.push_batch(&[ColumnBatch::fixed(1, sample)])?;
            plain.write_all(bytemuck::cast_slice(sample))?;
        }
        writer.finish()?;
        plain.flush()?;
        let order =
            WindowSizes::for_dataset(samples as u64, (samples * sample_bytes) as u64, WindowSizes::FILE_RUN_BYTES);
        Ok(Self { raw, encoded, samples, sample_bytes, order })
    }
}
