//! Reads batches on the caller's thread pool instead of the threads of a loader.

use half::bf16;
use rayon::prelude::*;
use tensilo_data::{DataError, EpochOrder, LoaderOptions, Order, View};
use tensilo_ecosystem::{SAMPLES, WIDTH, dataset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let loader = LoaderOptions::new(1).loader(&View::all(&dataset(&folder.path().join("train"))?))?;
    let order = EpochOrder::new(Order::Shuffled, SAMPLES, 1, 0);
    let positions: Vec<u64> = (0..SAMPLES).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    // each thread has its own reader, which reuses its memory from batch to batch
    let sums: Result<Vec<f32>, DataError> = pool.install(|| {
        let batches = positions.par_chunks(128);
        batches
            .map_init(
                || loader.reader(),
                |reader, positions| {
                    let samples: Vec<u64> =
                        positions.iter().filter_map(|&position| order.sample_at(position)).collect();
                    let batch = reader.take(&samples)?;
                    let values = batch.column("embedding")?.values::<bf16>()?;
                    Ok(values.iter().map(|value| value.to_f32()).sum())
                },
            )
            .collect()
    });
    let mean = sums?.iter().sum::<f32>() / (SAMPLES as f32 * WIDTH as f32);
    println!("the mean of all elements is {mean:.4}");
    assert!((mean - 0.4995).abs() < 1e-3);
    Ok(())
}
