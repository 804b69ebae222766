//! The dataset that the examples read: 1,000 samples in two files in a temporary folder.
//!
//! A real job would read a folder written by `tensilo convert INPUT... -o train/ --shard-bytes
//! 1GiB`.

use half::bf16;
use std::path::Path;
use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions};
use tensilo_data::{DataError, Dataset};

/// The number of samples in the dataset.
pub const SAMPLES: u64 = 1000;
/// The number of elements in an embedding.
pub const WIDTH: usize = 32;

/// Makes the dataset. Sample `i` has the label `i % 10` and an embedding of elements `i / 1000`.
pub fn dataset(folder: &Path) -> Result<Dataset, DataError> {
    let schema = Schema::new([
        ColumnSchema::tensor("embedding", DType::Bf16, Shape::fixed(&[32])),
        ColumnSchema::tensor("label", DType::I32, Shape::scalar()),
    ]);
    let mut changes = Dataset::create(folder)?;
    for half in 0..2 {
        let samples = half * SAMPLES / 2..(half + 1) * SAMPLES / 2;
        let path = changes.next_path()?;
        let mut writer = Writer::create(&path, schema.clone(), &WriterOptions::new())?;
        let embeddings: Vec<bf16> = samples.clone().flat_map(|i| [bf16::from_f32(i as f32 / 1000.0); WIDTH]).collect();
        let labels: Vec<i32> = samples.clone().map(|i| (i % 10) as i32).collect();
        let count = labels.len();
        writer.push_batch(&[ColumnBatch::fixed(count, &embeddings), ColumnBatch::fixed(count, &labels)])?;
        writer.finish()?;
        changes.add_file(&path)?;
    }
    changes.publish("create")
}
