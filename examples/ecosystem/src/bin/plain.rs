//! A plain training loop that stops in the middle of an epoch and resumes on two ranks.

use half::bf16;
use tensilo_data::{LastBatch, LoaderOptions, Order, State, View};
use tensilo_ecosystem::{SAMPLES, WIDTH, dataset};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let view = View::all(&dataset(&folder.path().join("train"))?);
    // the default, `LastBatch::Drop`, drops samples that do not fill a step of all ranks
    let options = || LoaderOptions::new(64).last_batch(LastBatch::Exact);
    let loader = options().order(Order::Shuffled).seed(1).loader(&view)?;

    // epoch 0: threads prefetch while the loop works
    let (mut checkpoint, mut taken) = (None, 0);
    let mut batches = loader.epoch(0);
    while let Some(batch) = batches.next() {
        let batch = batch?;
        let embeddings = batch.column("embedding")?.values::<bf16>()?;
        let labels = batch.column("label")?.values::<i32>()?;
        assert_eq!((embeddings.len(), labels.len()), (64 * WIDTH, 64));
        taken += labels.len();
        if batch.position() == 64 * 7 {
            checkpoint = Some(batches.state().to_bytes()); // 96 bytes, to save with the model
            break;
        }
    }
    println!("{}", batches.metrics());
    drop(batches);

    // new processes, two ranks instead of one: the rest of the epoch, each sample once
    let state = State::from_bytes(&checkpoint.ok_or("no checkpoint")?)?;
    for rank in 0..2 {
        // columns, casts and batch size are set again; order and seed come from the state
        let loader = options().rank(rank, 2).loader(&view)?;
        let mut samples = 0;
        for batch in loader.resume(&state)? {
            samples += batch?.indices().len();
        }
        println!("rank {rank} continues with {samples} samples");
        taken += samples;
    }
    assert_eq!(taken as u64, SAMPLES);
    Ok(())
}
