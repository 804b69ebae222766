//! Gathers shuffled batches on several threads, as a training loop does.
//!
//! Only the core is used: loader threads take batches of the epoch's order in turn, and a bounded
//! channel delivers them. The crate `tensilo-data` has a complete loader.
//!
//! `cargo run --release --example train`

use half::bf16;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Instant;
use tensilo::{ColumnBatch, ColumnSchema, DType, Reader, Schema, Shape, Writer, WriterOptions};

const SAMPLES: u64 = 20_000;
const VALUES: usize = 384;
const BATCH: usize = 256;
const LOADERS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("train.tsl");
    write(&path)?;

    // A reader is a handle: clones are cheap and share the open file. It has no lock and no file
    // position.
    let reader = Reader::open(&path)?;
    for epoch in 0..2 {
        let start = Instant::now();
        let order: Arc<[u64]> = shuffled(reader.sample_count(), epoch).into();
        let next = Arc::new(AtomicUsize::new(0));
        let (sender, batches) = sync_channel(2 * LOADERS); // bounds memory use
        for _ in 0..LOADERS {
            // The loaders own their handles, so they may outlive this function.
            let (reader, order, next, sender) = (reader.clone(), order.clone(), next.clone(), sender.clone());
            thread::spawn(move || {
                if let Err(error) = load(&reader, &order, &next, &sender) {
                    let _ = sender.send(Err(error)); // the receiver may be gone
                }
            });
        }
        drop(sender); // ends the loop below after the last batch

        let (mut samples, mut sum) = (0, 0.0);
        for batch in batches {
            let batch: Vec<bf16> = batch?;
            samples += batch.len() / VALUES;
            // the training step
            sum += batch.iter().map(|value| f64::from(value.to_f32())).sum::<f64>();
        }
        let rate = samples as f64 / start.elapsed().as_secs_f64();
        println!("epoch {epoch}: {samples} samples, sum {sum:.3}, {rate:.0} samples/s");
    }
    Ok(())
}

/// Gathers batches until none is left. Each loader has its own cursor, which reuses its memory.
fn load(
    reader: &Reader,
    order: &[u64],
    next: &AtomicUsize,
    sender: &SyncSender<tensilo::Result<Vec<bf16>>>,
) -> tensilo::Result<()> {
    let mut cursor = reader.column("embedding")?.cursor();
    loop {
        let start = next.fetch_add(BATCH, Ordering::Relaxed);
        let Some(rest) = order.get(start..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
        let indices = &rest[..rest.len().min(BATCH)];
        let mut batch = vec![bf16::ZERO; indices.len() * VALUES];
        cursor.gather_slice(indices, &mut batch)?;
        if sender.send(Ok(batch)).is_err() {
            return Ok(()); // the training loop has stopped
        }
    }
}

/// Returns all samples in an order that depends only on the epoch (Fisher-Yates shuffle).
fn shuffled(count: u64, epoch: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    let mut state = epoch;
    for i in (1..order.len()).rev() {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15); // SplitMix64
        let mut random = state;
        random = (random ^ (random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        order.swap(i, ((random ^ (random >> 31)) % (i as u64 + 1)) as usize);
    }
    order
}

fn write(path: &Path) -> tensilo::Result<()> {
    let shape = Shape::fixed(&[VALUES as u32]);
    let schema = Schema::new([ColumnSchema::tensor("embedding", DType::Bf16, shape).cast_from(DType::F32)]);
    let mut writer = Writer::create(path, schema, &WriterOptions::new())?;
    for i in 0..SAMPLES {
        let sample: Vec<f32> = (0..VALUES).map(|j| ((i as f32) * 0.37 + j as f32).sin()).collect();
        writer.push_batch(&[ColumnBatch::fixed(1, &sample)])?;
    }
    writer.finish().map(|_| ())
}
