//! Encodes chunks on several threads. The results are in the order of the chunks.
//!
//! To choose an encoding takes longer than to encode, and consecutive chunks of a column are alike.
//! So the chunks of a column come in runs: each tries what was chosen before it, and all is
//! compared again for the second chunk of a run and where the cost of a byte changes. Where runs
//! end depends on the chunks and commits alone, not on threads or batches.

use super::options::WriterOptions;
use crate::codec::{ChunkEncoder, EncodedChunk, EncodingDictionary, RawChunk, ValueChoice};
use crate::format::schema::Layout;
use crate::{Error, Result, threads};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The facts about a column that its encoder needs.
pub(super) struct EncodedColumn {
    pub layout: Layout,
    /// The last table of the column.
    pub dictionary: Option<Arc<EncodingDictionary>>,
    /// What was chosen for the last chunk, if the run of chunks goes on.
    choice: Option<ValueChoice>,
    /// The decoded bytes of the run.
    run_bytes: usize,
}

impl EncodedColumn {
    pub(super) fn new(layout: Layout, dictionary: Option<Arc<EncodingDictionary>>) -> Self {
        Self { layout, dictionary, choice: None, run_bytes: 0 }
    }

    /// Ends the run of chunks: what follows a commit does not depend on what came before it.
    pub(super) fn end_run(&mut self) {
        (self.choice, self.run_bytes) = (None, 0);
    }
}

/// Chunks after which a run ends, and the most decoded bytes after which it does.
const RUN_CHUNKS: usize = 8;
const MOST_RUN_BYTES: usize = 4 << 20;
/// Runs of each thread that are encoded together, so that threads end at about the same time.
const RUNS_OF_THREAD: usize = 2;
/// Decoded bytes for each thread that are worth starting it.
const LEAST_BUSY_BYTES: usize = 1 << 20;

/// Consecutive chunks of a column: what is chosen for the first is tried first for the others. One
/// thread encodes them, so that bytes do not depend on threads.
struct Run<'c> {
    column: usize,
    choice: Option<ValueChoice>,
    /// The chunks, and where their results belong.
    chunks: Vec<(usize, &'c RawChunk)>,
}

/// An encoder for each thread, with the memory that it reuses.
pub(super) struct EncodePool {
    encoders: Vec<ChunkEncoder>,
    /// Decoded bytes after which a run ends.
    run_bytes: usize,
}

impl EncodePool {
    pub(super) fn new(options: &WriterOptions) -> Self {
        let encoder =
            |_| ChunkEncoder::new(options.profile, options.resolved_block_bytes(), options.check, options.search);
        Self {
            encoders: (0..options.threads.max(1)).map(encoder).collect(),
            run_bytes: options.resolved_chunk_bytes().saturating_mul(RUN_CHUNKS).min(MOST_RUN_BYTES),
        }
    }

    /// Returns the decoded bytes that keep all threads busy.
    pub(super) fn busy_bytes(&self) -> usize {
        (RUNS_OF_THREAD * self.run_bytes).max(LEAST_BUSY_BYTES) * self.encoders.len()
    }

    /// Encodes `chunks` of these columns, the next of each.
    pub(super) fn encode(&mut self, columns: &mut [EncodedColumn], chunks: &[RawChunk]) -> Result<Vec<EncodedChunk>> {
        let runs: Vec<Mutex<Run<'_>>> = runs(self.run_bytes, columns, chunks)?.into_iter().map(Mutex::new).collect();
        let slots: Vec<Mutex<Option<Result<EncodedChunk>>>> = chunks.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        let encode_runs = |encoder: &mut ChunkEncoder| {
            while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                lock(run).encode(encoder, columns, &slots);
            }
        };
        match self.encoders.as_mut_slice() {
            [encoder] => encode_runs(encoder),
            encoders => threads::run(encoders.iter_mut().take(runs.len()).map(|encoder| || encode_runs(encoder))),
        }
        for run in runs {
            let Run { column, choice, .. } = run.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(column) = columns.get_mut(column) {
                column.choice = choice;
            }
        }
        let result = |slot: Mutex<Option<Result<EncodedChunk>>>| {
            let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.unwrap_or_else(|| Err(Error::internal("a chunk was not encoded")))
        };
        slots.into_iter().map(result).collect()
    }
}

/// Divides chunks into runs, of which the last of each column may go on.
fn runs<'c>(run_bytes: usize, columns: &mut [EncodedColumn], chunks: &'c [RawChunk]) -> Result<Vec<Run<'c>>> {
    let mut runs: Vec<Run<'c>> = Vec::new();
    // the run of each column
    let mut open: Vec<Option<usize>> = vec![None; columns.len()];
    for numbered in chunks.iter().enumerate() {
        let number = numbered.1.column;
        let unknown = || Error::internal("a chunk belongs to an unknown column");
        let (column, open) = columns.get_mut(number).zip(open.get_mut(number)).ok_or_else(unknown)?;
        let is_new = column.run_bytes >= run_bytes;
        if is_new {
            column.end_run();
        }
        column.run_bytes = column.run_bytes.saturating_add(numbered.1.values.len());
        match open.filter(|_| !is_new).and_then(|run| runs.get_mut(run)) {
            Some(run) => run.chunks.push(numbered),
            None => {
                *open = Some(runs.len());
                runs.push(Run { column: number, choice: column.choice.take(), chunks: vec![numbered] });
            }
        }
    }
    Ok(runs)
}

impl Run<'_> {
    /// Encodes the chunks up to the first that fails.
    fn encode(
        &mut self,
        encoder: &mut ChunkEncoder,
        columns: &[EncodedColumn],
        slots: &[Mutex<Option<Result<EncodedChunk>>>],
    ) {
        let Some(EncodedColumn { layout, dictionary, .. }) = columns.get(self.column) else { return };
        for &(slot, chunk) in &self.chunks {
            let result = encoder.encode(layout, dictionary.as_ref(), chunk, &mut self.choice);
            let has_failed = result.is_err();
            if let Some(slot) = slots.get(slot) {
                *lock(slot) = Some(result);
            }
            if has_failed {
                return;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
