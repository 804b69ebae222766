//! Views batches as `ndarray` arrays, without a copy.

use ndarray::{ArrayView1, ArrayView2, Axis};
use tensilo::DType;
use tensilo_data::{LoaderOptions, View};
use tensilo_ecosystem::{WIDTH, dataset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let view = View::all(&dataset(&folder.path().join("train"))?);
    let loader = LoaderOptions::new(100).cast("embedding", DType::F32).loader(&view)?;
    let mut sum = 0.0;
    for batch in loader.epoch(0) {
        let batch = batch?;
        let count = batch.indices().len();
        let embeddings = ArrayView2::from_shape((count, WIDTH), batch.column("embedding")?.values::<f32>()?)?;
        let labels = ArrayView1::from(batch.column("label")?.values::<i32>()?);
        assert_eq!(labels.len(), count);
        sum += embeddings.mean_axis(Axis(1)).ok_or("no columns")?.sum();
    }
    println!("the mean of all elements is {:.4}", sum / 1000.0);
    assert!((sum / 1000.0 - 0.4995).abs() < 1e-3);
    Ok(())
}
