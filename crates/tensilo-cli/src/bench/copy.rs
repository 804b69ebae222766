//! What copying memory costs: the bound of every reader that hands out samples in memory of its caller.

use super::measure::{BLOCK_SAMPLES, on_threads};
use super::pattern::Sequence;
use crate::exit::Outcome;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// More than most caches hold.
const BUFFER_BYTES: usize = 256 << 20;
/// It need not be measured for longer.
const LONGEST: Duration = Duration::from_millis(250);

/// Copies samples of `sample_bytes` each, one by one, out of a large buffer, in the order that `sequence` makes of its
/// number of places, a thread and the number of threads. Bytes a second, of all threads; `None` if there is nothing to be
/// copied, or no memory for it.
pub(super) fn bytes_per_second(
    sample_bytes: usize,
    batch: usize,
    threads: u32,
    time: Duration,
    sequence: impl Fn(u64, u32) -> Sequence,
) -> Outcome<Option<f64>> {
    let from = filled(BUFFER_BYTES.max(sample_bytes));
    let places = from.len().checked_div(sample_bytes).and_then(|places| u64::try_from(places).ok());
    let Some(places) = places.filter(|places| *places >= u64::from(threads)) else { return Ok(None) };
    let room = sample_bytes.checked_mul(batch);
    let room = |thread| Some((sequence(places, thread), filled(room?))).filter(|(_, out)| !out.is_empty());
    let Some(mut copiers) = (0..threads).map(room).collect::<Option<Vec<_>>>() else { return Ok(None) };
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
    for (to, place) in out.chunks_exact_mut(sample_bytes).zip(order) {
        let start = usize::try_from(*place).ok().and_then(|place| place.checked_mul(sample_bytes));
        if let Some(sample) = start.and_then(|start| from.get(start..)?.get(..sample_bytes)) {
            to.copy_from_slice(sample); // equal lengths
        }
    }
    black_box(out);
}

/// Bytes that are not zero: the pages of zeros would all be the same one. Empty if there is no memory for them.
fn filled(count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if bytes.try_reserve_exact(count).is_ok() {
        bytes.resize(count, 1);
    }
    bytes
}
