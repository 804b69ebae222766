//! Makes `candle` tensors from batches, with one copy to the device.

use candle_core::{DType, Device, Tensor};
use half::bf16;
use tensilo_data::{LoaderOptions, View};
use tensilo_ecosystem::{WIDTH, dataset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let view = View::all(&dataset(&folder.path().join("train"))?);
    let device = Device::Cpu;
    let mut means = Vec::new();
    for batch in LoaderOptions::new(100).loader(&view)?.epoch(0) {
        let batch = batch?;
        let count = batch.indices().len();
        // the only copy, to the device
        let embeddings = Tensor::from_slice(batch.column("embedding")?.values::<bf16>()?, (count, WIDTH), &device)?;
        let labels: Vec<i64> = batch.column("label")?.values::<i32>()?.iter().map(|&label| label.into()).collect();
        let labels = Tensor::from_vec(labels, count, &device)?;
        assert_eq!(labels.dims(), [100]);
        means.push(embeddings.to_dtype(DType::F32)?.mean_all()?.to_scalar::<f32>()?);
    }
    let mean = means.iter().sum::<f32>() / means.len() as f32;
    println!("the mean of all elements is {mean:.4}");
    assert!((mean - 0.4995).abs() < 1e-3);
    Ok(())
}
