//! A plain training loop, which stops in the middle and goes on.

use half::bf16;
use tensilo_data::{LoaderOptions, Mode, State, View};
use tensilo_ecosystem::{WIDTH, dataset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let view = View::all(&dataset(&folder.path().join("train"))?);
    let options = || LoaderOptions::new(64).mode(Mode::Shuffled).seed(1);
    let loader = options().loader(&view)?;

    // epoch 0: threads read ahead while the loop works
    let mut checkpoint = None;
    let mut batches = loader.epoch(0);
    while let Some(batch) = batches.next() {
        let batch = batch?;
        let embeddings = batch.column("embedding")?.values::<bf16>()?;
        let labels = batch.column("label")?.values::<i32>()?;
        assert_eq!((embeddings.len(), labels.len()), (64 * WIDTH, 64));
        if batch.position() == 64 * 7 {
            checkpoint = Some(batches.state().to_bytes()); // 96 bytes, saved with the model
            break;
        }
    }
    println!("{}", batches.metrics());
    drop(batches);

    // another process, with two ranks instead of one: the rest of the epoch, each sample once
    let state = State::from_bytes(&checkpoint.ok_or("no checkpoint")?)?;
    for rank in 0..2 {
        let loader = LoaderOptions::new(64).rank(rank, 2).loader(&view)?;
        let samples: usize = loader.resume(&state)?.map(|batch| batch.map_or(0, |batch| batch.samples().len())).sum();
        println!("rank {rank} goes on with {samples} samples");
    }
    Ok(())
}
