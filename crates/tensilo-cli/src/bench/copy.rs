//! The speed of memcpy: an upper bound for every reader that copies samples to its caller.

use super::measure::{BLOCK_SAMPLES, on_threads};
use super::pattern::Sequence;
use crate::failure::Outcome;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Larger than most caches.
const BUFFER_BYTES: usize = 256 << 20;
/// A longer measurement would not be more precise.
const LONGEST: Duration = Duration::from_millis(250);

/// Measures copying of samples of `sample_bytes` each, one by one, from a large buffer. `sequence`
/// gives the order, from the number of slots in the buffer and the number of the thread. Returns
/// the bytes per second of all threads; `None` if samples are empty or memory runs out.
pub(super) fn bytes_per_second(
    sample_bytes: usize,
    batch: usize,
    threads: u32,
    time: Duration,
    sequence: impl Fn(u64, u32) -> Sequence,
) -> Outcome<Option<f64>> {
    let from = filled(BUFFER_BYTES.max(sample_bytes));
    let slots = from.len().checked_div(sample_bytes).and_then(|slots| u64::try_from(slots).ok());
    let Some(slots) = slots.filter(|slots| *slots >= u64::from(threads)) else { return Ok(None) };
    let batch_bytes = sample_bytes.checked_mul(batch);
    let copier = |thread| Some((sequence(slots, thread), filled(batch_bytes?))).filter(|(_, out)| !out.is_empty());
    let Some(mut copiers) = (0..threads).map(copier).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let rates = on_threads(&mut copiers, |_, (sequence, out)| {
        let mut order = vec![0; BLOCK_SAMPLES.next_multiple_of(batch)];
        let (mut copied, mut busy) = (0.0, Duration::ZERO);
        while busy < time.min(LONGEST) {
            sequence.fill(&mut order);
            let start = Instant::now();
            for order in order.chunks_exact(batch) {
                copy(&from, sample_bytes, order, out);
                copied += out.len() as f64; // exact below 2^53
            }
            busy += start.elapsed();
        }
        copied / busy.as_secs_f64()
    })?;
    Ok(Some(rates.iter().sum()))
}

fn copy(from: &[u8], sample_bytes: usize, order: &[u64], out: &mut [u8]) {
    for (to, slot) in out.chunks_exact_mut(sample_bytes).zip(order) {
        let start = usize::try_from(*slot).ok().and_then(|slot| slot.checked_mul(sample_bytes));
        if let Some(sample) = start.and_then(|start| from.get(start..)?.get(..sample_bytes)) {
            to.copy_from_slice(sample); // equal lengths
        }
    }
    black_box(out);
}

/// Allocates bytes that are not zero, because all pages of zeros may be one physical page. Returns
/// an empty vector if memory runs out.
fn filled(count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(count).is_ok() {
        bytes.resize(count, 1);
    }
    bytes
}
