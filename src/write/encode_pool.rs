//! Encodes chunks on several threads. The encoded bytes do not depend on the number of threads.
//!
//! Choosing an encoding takes longer than encoding, and consecutive chunks of a column are alike.
//! So each chunk first tries the encoding that was chosen for the chunk before it. To use several
//! threads, the chunks of a column are divided into runs, and one thread encodes each run in order.
//! Every run after the first starts with the choice with which the first run ended, so these runs
//! do not wait for each other. The choice is compared with alternatives once per run, and again if
//! the ratio of stored to decoded size changes noticeably.
//!
//! Only the chunks and the commits determine where runs end. So neither the number of threads nor
//! the size of batches changes the bytes of a file.

use super::options::WriterOptions;
use crate::Profile;
use crate::codec::{ChunkEncoder, EncodedChunk, RawChunk, ValueChoice, ZstdEncoderDictionary};
use crate::format::ColumnSchema;
use crate::format::schema::Layout;
use crate::{Error, Result, threads};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The settings of a column for its encoders, and the choices that they have made.
pub(super) struct ColumnEncoderState {
    pub layout: Layout,
    /// The dictionary in the last table of the column.
    pub zstd_dictionary: Option<Arc<ZstdEncoderDictionary>>,
    profile: Profile,
    block_bytes: Option<usize>,
    /// The number of decoded bytes after which a run ends.
    max_run_bytes: usize,
    /// The choice for the last chunk.
    last_choice: Option<ValueChoice>,
    /// The choice with which every run after the first starts.
    first_choice: Option<ValueChoice>,
    /// The number of runs so far. The last one may continue.
    run_count: usize,
    /// The decoded size of the last run in bytes.
    run_bytes: usize,
}

impl ColumnEncoderState {
    /// Returns the state of a column without chunks. Drops the dictionary if the column's profile
    /// does not use one.
    pub(super) fn new(
        schema: &ColumnSchema,
        layout: Layout,
        zstd_dictionary: Option<Arc<ZstdEncoderDictionary>>,
        options: &WriterOptions,
    ) -> Self {
        let options = options.of_column(&schema.name);
        Self {
            layout,
            zstd_dictionary: zstd_dictionary.filter(|_| options.profile.has_zstd_dictionaries()),
            profile: options.profile,
            block_bytes: options.resolved_block_bytes(),
            max_run_bytes: options.resolved_chunk_bytes().saturating_mul(RUN_CHUNKS).min(MAX_RUN_BYTES),
            last_choice: None,
            first_choice: None,
            run_count: 0,
            run_bytes: 0,
        }
    }

    /// Starts over with a first run, so chunks after a commit do not depend on chunks before it.
    pub(super) fn reset_choices(&mut self) {
        (self.last_choice, self.first_choice) = (None, None);
        (self.run_count, self.run_bytes) = (0, 0);
    }

    /// Returns the choice with which run `number`, which is not the first, starts. The first run
    /// must have ended.
    fn choice_for_run(&mut self, number: usize) -> Option<ValueChoice> {
        if number == 1 {
            self.first_choice = self.last_choice.take().map(ValueChoice::unconfirmed);
        }
        self.first_choice.clone()
    }
}

/// A run ends when its decoded size is this many times the chunk size, or [`MAX_RUN_BYTES`] if that
/// is less.
const RUN_CHUNKS: usize = 8;
const MAX_RUN_BYTES: usize = 4 << 20;
/// The number of runs per thread in one batch of work. It is more than one, so that the threads
/// finish at about the same time.
const RUNS_PER_THREAD: usize = 2;
/// The minimum number of decoded bytes that makes it worthwhile to start a thread.
const MIN_BUSY_BYTES: usize = 1 << 20;

/// Consecutive chunks of a column, which one thread encodes in order.
struct Run<'c> {
    column: usize,
    /// The number of the run within the column.
    number: usize,
    /// Whether earlier chunks of the run have already been encoded.
    is_continued: bool,
    /// The choice for the chunk that was encoded last.
    choice: Option<ValueChoice>,
    /// The chunks, each with the number of the slot for its result.
    chunks: Vec<(usize, &'c RawChunk)>,
}

/// Receives an encoded chunk, or an error.
type Slot = Mutex<Option<Result<EncodedChunk>>>;

/// One encoder for each thread. An encoder reuses its memory.
pub(super) struct EncodePool {
    encoders: Vec<ChunkEncoder>,
    /// The number of decoded bytes after which a run ends, in the column where it is largest.
    max_run_bytes: usize,
}

impl EncodePool {
    pub(super) fn new(options: &WriterOptions, columns: &[ColumnEncoderState]) -> Self {
        let encoder =
            |_| ChunkEncoder::new(options.profile, options.resolved_block_bytes(), options.check, options.search);
        Self {
            encoders: (0..options.threads.max(1)).map(encoder).collect(),
            max_run_bytes: columns.iter().map(|column| column.max_run_bytes).max().unwrap_or(0),
        }
    }

    /// Returns the number of decoded bytes that keep all threads busy.
    pub(super) fn busy_bytes(&self) -> usize {
        (RUNS_PER_THREAD * self.max_run_bytes).max(MIN_BUSY_BYTES) * self.encoders.len()
    }

    /// Encodes `chunks`, the next chunks of these columns.
    pub(super) fn encode(
        &mut self,
        columns: &mut [ColumnEncoderState],
        chunks: &[RawChunk],
    ) -> Result<Vec<EncodedChunk>> {
        let (first, mut later): (Vec<_>, Vec<_>) = runs(columns, chunks)?.into_iter().partition(|run| run.number == 0);
        let slots: Vec<Slot> = chunks.iter().map(|_| Mutex::new(None)).collect();
        self.encode_runs(columns, first, &slots);
        for run in later.iter_mut().filter(|run| !run.is_continued) {
            run.choice = columns.get_mut(run.column).and_then(|column| column.choice_for_run(run.number));
        }
        self.encode_runs(columns, later, &slots);
        let result = |slot: Slot| {
            let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            result.unwrap_or_else(|| Err(Error::internal("a chunk was not encoded")))
        };
        slots.into_iter().map(result).collect()
    }

    /// Encodes runs on all threads.
    fn encode_runs(&mut self, columns: &mut [ColumnEncoderState], runs: Vec<Run<'_>>, slots: &[Slot]) {
        let runs: Vec<Mutex<Run<'_>>> = runs.into_iter().map(Mutex::new).collect();
        let next = AtomicUsize::new(0);
        let encode_runs = |encoder: &mut ChunkEncoder| {
            while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                lock(run).encode(encoder, columns, slots);
            }
        };
        match self.encoders.as_mut_slice() {
            [encoder] => encode_runs(encoder),
            encoders => threads::run(encoders.iter_mut().take(runs.len()).map(|encoder| || encode_runs(encoder))),
        }
        for run in runs {
            let Run { column, choice, .. } = run.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some(column) = columns.get_mut(column) {
                column.last_choice = choice;
            }
        }
    }
}

/// Divides chunks into runs. The last run of each column may continue with later chunks.
fn runs<'c>(columns: &mut [ColumnEncoderState], chunks: &'c [RawChunk]) -> Result<Vec<Run<'c>>> {
    let mut runs: Vec<Run<'c>> = Vec::new();
    // the open run of each column
    let mut open: Vec<Option<usize>> = vec![None; columns.len()];
    for numbered in chunks.iter().enumerate() {
        let number = numbered.1.column;
        let unknown = || Error::internal("a chunk belongs to an unknown column");
        let (column, open) = columns.get_mut(number).zip(open.get_mut(number)).ok_or_else(unknown)?;
        let is_new = column.run_count == 0 || column.run_bytes >= column.max_run_bytes;
        if is_new {
            (column.run_count, column.run_bytes) = (column.run_count + 1, 0);
        }
        column.run_bytes = column.run_bytes.saturating_add(numbered.1.values.len());
        match open.filter(|_| !is_new).and_then(|run| runs.get_mut(run)) {
            Some(run) => run.chunks.push(numbered),
            None => {
                *open = Some(runs.len());
                let choice = if is_new { None } else { column.last_choice.take() };
                let run_number = column.run_count - 1; // `run_count` is at least 1
                let chunks = vec![numbered];
                runs.push(Run { column: number, number: run_number, is_continued: !is_new, choice, chunks });
            }
        }
    }
    Ok(runs)
}

impl Run<'_> {
    /// Encodes the chunks, up to the first that fails.
    fn encode(&mut self, encoder: &mut ChunkEncoder, columns: &[ColumnEncoderState], slots: &[Slot]) {
        let Some(column) = columns.get(self.column) else { return };
        encoder.set_profile(column.profile, column.block_bytes);
        for &(slot, chunk) in &self.chunks {
            let result = encoder.encode(&column.layout, column.zstd_dictionary.as_ref(), chunk, &mut self.choice);
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
