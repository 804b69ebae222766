//! Collects the samples of a column until they fill a chunk.
//!
//! A chunk ends before the sample that would make it larger than the chunk size. So the same
//! samples become the same chunks, no matter in which batches they are pushed. All samples of a
//! batch are checked before any of them is added, so a refused batch changes nothing.
//!
//! The first chunks of a column of text or bytes are held back until there is enough data to train
//! a Zstandard dictionary ([`TrainingTexts`]). The dictionary is written before the first chunk
//! that uses it.

use super::pending_entries::{BatchPosition, PendingItems, PendingLists};
use crate::batch::ColumnBatch;
use crate::bytes::le::u64_of;
use crate::codec::{self, RawChunk};
use crate::format::column_record::ColumnRecord;
use crate::format::content::validity_bytes;
use crate::format::schema::Layout;
use crate::format::{CastFacts, CastSource, ColumnSchema};
use crate::{Error, Profile, Result, WriterOptions, limits};

/// A chunk that is ready to be encoded and written.
pub(super) struct ReadyChunk {
    pub chunk: RawChunk,
    /// The number of samples that had been pushed when the chunk became ready. Chunks are written
    /// in ascending order of this number, and then of their column.
    pub end_sample: u64,
    /// The dictionary of this chunk and the chunks after it. It is written before the chunk.
    pub table: Option<Vec<u8>>,
}

/// The samples of one column that are not yet in a chunk.
pub(super) struct PendingColumn {
    column: usize,
    pub(super) layout: Layout,
    /// Set if the pushed values are already rounded: the schema of the pushed values, and the facts
    /// of the cast.
    rounded: Option<(ColumnSchema, CastFacts)>,
    chunk_bytes: usize,
    first_sample: u64,
    sample_count: u32,
    lists: PendingLists,
    items: PendingItems,
    pub(super) total_nulls: u64,
    /// The first chunks. `None` once a dictionary has been trained, or if the column gets none.
    training_texts: Option<TrainingTexts>,
}

impl PendingColumn {
    pub(super) fn new(index: usize, column: &ColumnSchema, chunk_bytes: usize) -> Result<Self> {
        let is_of_decimals = column.cast.is_some_and(|cast| cast.source == CastSource::Decimal);
        Ok(Self {
            column: index,
            layout: column.layout()?,
            rounded: is_of_decimals.then(|| (column.clone(), CastFacts::default())),
            chunk_bytes,
            first_sample: 0,
            sample_count: 0,
            lists: PendingLists::new(&column.layout()?),
            items: PendingItems::new(column)?,
            total_nulls: 0,
            training_texts: None,
        })
    }

    /// Creates a column whose values are pushed in their stored type, because they are already
    /// rounded.
    pub(super) fn rounded(index: usize, column: &ColumnSchema, chunk_bytes: usize, facts: CastFacts) -> Result<Self> {
        let pushed = ColumnSchema { cast: None, ..column.clone() };
        let pending = Self::new(index, &pushed, chunk_bytes)?;
        // merging with the default ensures that no error is NaN or negative
        Ok(Self { rounded: Some((pushed, CastFacts::default().merged(&facts))), ..pending })
    }

    /// Holds back the first chunks, to train a dictionary with them.
    pub(super) fn with_training_texts(self, rule: ZstdDictionaryRule) -> Self {
        Self { training_texts: Some(TrainingTexts::new(rule)), ..self }
    }

    /// Sets the chunk size for a column that has a dictionary.
    pub(super) fn with_zstd_dictionary(self, rule: ZstdDictionaryRule) -> Self {
        Self { chunk_bytes: rule.chunk_bytes, ..self }
    }

    /// Returns the schema of the pushed values. `schema` is the schema of the stored values.
    pub(super) fn pushed_schema<'a>(&'a self, schema: &'a ColumnSchema) -> &'a ColumnSchema {
        self.rounded.as_ref().map_or(schema, |(pushed, _)| pushed)
    }

    /// Continues a column that has `sample_count` written samples and these facts.
    pub(super) fn after(mut self, sample_count: u64, facts: &ColumnRecord) -> Self {
        self.first_sample = sample_count;
        self.total_nulls = facts.null_count;
        let own = self.items.caster.as_mut().map(|caster| &mut caster.facts);
        if let (Some(own), Some(facts)) = (own.or(self.rounded.as_mut().map(|(_, own)| own)), facts.cast) {
            *own = facts;
        }
        self
    }

    /// Returns the number of bytes that a pushed null sample has.
    pub(super) fn null_bytes(&self) -> usize {
        if self.layout.has_shape() { 0 } else { self.items.pushed_bytes }
    }

    /// Merges the facts of values that are already rounded.
    pub(super) fn merge_cast_facts(&mut self, more: &CastFacts) {
        if let Some((_, facts)) = &mut self.rounded {
            *facts = facts.merged(more);
        }
    }

    pub(super) fn cast_facts(&self) -> Option<CastFacts> {
        let rounded = self.rounded.as_ref().map(|(_, facts)| *facts);
        self.items.caster.as_ref().map(|caster| caster.facts).or(rounded)
    }

    /// Fails if a sample of the batch does not fit in a chunk. The batch must have passed
    /// [`ColumnBatch::check`].
    pub(super) fn check_sizes(&self, batch: &ColumnBatch) -> Result<()> {
        if self.is_small(batch) {
            return Ok(());
        }
        (0..batch.sample_count()).try_fold(BatchPosition::start(), |at, _| self.fits(batch, at)).map(|_| ())
    }

    /// Returns whether a batch is so small that each of its samples fits in a chunk. Its samples
    /// then need not be measured.
    fn is_small(&self, batch: &ColumnBatch) -> bool {
        let lists = (0..self.layout.levels).filter_map(|level| batch.lists(level)).map(|lists| lists.count()).sum();
        let bytes_besides_values = self.bytes_besides_values(lists, batch.item_count);
        self.items.pushed_bytes > 0
            && batch.values.len() < LARGE_BYTES
            && batch.item_count < LARGE_BYTES / 256
            && (!self.layout.is_nested() || bytes_besides_values <= usize_of(limits::VALIDITY_AND_SHAPE_BYTES))
    }

    /// Returns the position after the next sample of a batch. Fails if the sample does not fit in a
    /// chunk.
    fn fits(&self, batch: &ColumnBatch, at: BatchPosition) -> Result<BatchPosition> {
        let next = at.next(batch, &self.layout);
        let entries = |level| next.entries(level) - at.entries(level);
        let lists = (0..self.layout.levels).map(entries).sum();
        let items = entries(self.layout.levels);
        let bytes_besides_values = self.bytes_besides_values(lists, items);
        let values = (next.count - at.count).saturating_mul(self.layout.inner_bytes);
        let too_large = |limit: usize, what: &str| {
            let message = format!("a sample exceeds the limit of {limit} {what}; split the sample");
            Err(Error::over_limit(message))
        };
        let bytes = bytes_besides_values.saturating_add(values);
        if items > self.layout.max_items() {
            return too_large(self.layout.max_items(), "items without elements per chunk");
        }
        if u32::try_from(next.count - at.count).is_err() || bytes > usize_of(limits::CHUNK_BYTES) {
            return too_large(usize_of(limits::CHUNK_BYTES), "bytes per chunk");
        }
        let max_bytes = usize_of(limits::VALIDITY_AND_SHAPE_BYTES);
        if self.layout.is_nested()
            && bytes_besides_values > max_bytes
            && self.exact_validity_and_shape_bytes(batch, &at, &next) > max_bytes
        {
            return too_large(max_bytes, "bytes per chunk for the lengths and nulls of its lists and items");
        }
        Ok(next)
    }

    /// Adds all samples of a checked batch. Appends full chunks to `cut`.
    pub(super) fn push(&mut self, batch: &ColumnBatch, cut: &mut Vec<ReadyChunk>) {
        let mut at = BatchPosition::start();
        while at.entries(0) < batch.sample_count() {
            let next = self.chunk_end(batch, at);
            if next.entries(0) == at.entries(0) {
                self.cut_full(cut);
                continue;
            }
            self.take(batch, &at, &next);
            at = next;
        }
    }

    /// Returns the position in the batch at which the current chunk is full. An empty chunk accepts
    /// at least one sample.
    fn chunk_end(&self, batch: &ColumnBatch, from: BatchPosition) -> BatchPosition {
        if !self.layout.has_shape() {
            let free = self.samples_per_chunk().saturating_sub(self.sample_count);
            let take = usize::try_from(free).unwrap_or(usize::MAX).min(batch.item_count - from.entries(0));
            return from.after_fixed(take);
        }
        let pending = self.pending_bytes();
        let (mut at, mut samples) = (from, self.sample_count);
        while at.entries(0) < batch.sample_count() {
            let next = at.next(batch, &self.layout);
            let sum =
                u32::try_from(next.count - from.count).ok().and_then(|more| self.items.count_sum.checked_add(more));
            let bytes = pending.saturating_add(self.bytes_between(&from, &next));
            let items = self.items.count + next.entries(self.layout.levels) - from.entries(self.layout.levels);
            let is_full = sum.is_none()
                || bytes > self.chunk_bytes
                || samples == limits::CHUNK_SAMPLES
                || items > self.layout.max_items();
            if samples > 0 && is_full {
                break;
            }
            (at, samples) = (next, samples + 1);
        }
        at
    }

    /// Returns the number of samples per chunk for a column without lists and with a fixed shape.
    fn samples_per_chunk(&self) -> u32 {
        let fit = self.chunk_bytes.checked_div(self.layout.inner_bytes).unwrap_or(usize::MAX);
        u32::try_from(fit).unwrap_or(u32::MAX).clamp(1, limits::CHUNK_SAMPLES)
    }

    /// Returns the size, in bytes, of the shape and values of the pending samples.
    fn pending_bytes(&self) -> usize {
        let count = if self.layout.is_ragged() { usize_of(self.items.count_sum) } else { self.items.count };
        self.bytes(self.lists.count(), self.items.count, count)
    }

    /// Returns the size, in bytes, of the shape and values of the samples between two positions of
    /// a batch.
    fn bytes_between(&self, from: &BatchPosition, to: &BatchPosition) -> usize {
        let entries = |level| to.entries(level) - from.entries(level);
        let lists = (0..self.layout.levels).map(entries).sum();
        self.bytes(lists, entries(self.layout.levels), to.count - from.count)
    }

    fn bytes(&self, lists: usize, items: usize, count: usize) -> usize {
        count.saturating_mul(self.layout.inner_bytes).saturating_add(self.shape_bytes(lists, items))
    }

    fn shape_bytes(&self, lists: usize, items: usize) -> usize {
        lists.saturating_mul(4).saturating_add(items.saturating_mul(self.layout.shape_bytes()))
    }

    /// Returns an upper bound on the size, in bytes, of the part table, validity and shape of a
    /// chunk with these entries.
    fn bytes_besides_values(&self, lists: usize, items: usize) -> usize {
        let bitmaps = if self.layout.may_have_nulls() { lists.saturating_add(items) / 8 } else { 0 };
        // 256 bytes are enough for the part table and the last byte of each bitmap
        self.shape_bytes(lists, items).saturating_add(bitmaps).saturating_add(256)
    }

    /// Returns the exact size, in bytes, of the validity and shape of a chunk with the samples
    /// between two positions. Cost: linear in the number of entries.
    fn exact_validity_and_shape_bytes(&self, batch: &ColumnBatch, from: &BatchPosition, to: &BatchPosition) -> usize {
        let levels = self.layout.levels;
        let entries = |level| from.entries(level)..to.entries(level);
        let is_null = |level, i| match batch.lists(level) {
            Some(lists) => lists.is_null(i),
            None => batch.is_null(i),
        };
        let has_nulls = (0..=levels).any(|level| entries(level).any(|i| is_null(level, i)));
        let bitmaps: usize = (0..=levels).map(|level| validity_bytes(entries(level).len())).sum();
        let lists = (0..levels).map(|level| entries(level).len()).sum();
        let shape = self.shape_bytes(lists, entries(levels).len());
        shape.saturating_add(if has_nulls { bitmaps } else { 0 })
    }

    /// Adds the samples between two positions of the batch.
    fn take(&mut self, batch: &ColumnBatch, from: &BatchPosition, to: &BatchPosition) {
        self.lists.take(batch, from, to);
        let levels = self.layout.levels;
        self.items.take(batch, &(from.entries(levels)..to.entries(levels)), &(from.count..to.count));
        // fits: at most CHUNK_SAMPLES
        self.sample_count += u32::try_from(to.entries(0) - from.entries(0)).unwrap_or(0);
    }

    fn null_samples(&self) -> usize {
        if self.layout.is_nested() { self.lists.null_samples() } else { self.items.null_count }
    }

    /// Turns the pending samples into a chunk. Appends to `cut` the chunks that can now be written;
    /// there are none while the column collects training texts.
    fn cut_full(&mut self, cut: &mut Vec<ReadyChunk>) {
        let Some(chunk) = self.cut() else { return };
        let end_sample = self.first_sample;
        let Some(mut training) = self.training_texts.take() else {
            cut.push(ReadyChunk { chunk, end_sample, table: None });
            return;
        };
        if !training.add(chunk) {
            self.training_texts = Some(training);
            return;
        }
        let mut table = training.train();
        if table.is_some() {
            self.chunk_bytes = training.chunk_bytes();
        }
        cut.extend(training.take().into_iter().map(|chunk| ReadyChunk { chunk, end_sample, table: table.take() }));
    }

    /// Returns all remaining chunks. If the column is collecting training texts, the collection
    /// starts over.
    pub(super) fn cut_rest(&mut self) -> Vec<RawChunk> {
        let mut rest = self.training_texts.as_mut().map(TrainingTexts::take).unwrap_or_default();
        rest.extend(self.cut());
        rest
    }

    /// Returns the pending samples as a chunk; `None` if there are none.
    fn cut(&mut self) -> Option<RawChunk> {
        if self.sample_count == 0 {
            return None;
        }
        let null_count = u64_of(self.null_samples());
        let has_nulls = self.items.null_count > 0 || self.lists.has_nulls();
        let (mut validity, mut shape) = (Vec::new(), Vec::new());
        self.lists.cut(has_nulls, &mut validity, &mut shape);
        let mut items = self.items.cut(has_nulls);
        let chunk = RawChunk {
            column: self.column,
            first_sample: self.first_sample,
            sample_count: self.sample_count,
            null_count,
            validity: has_nulls.then(|| merged(validity, &mut items.validity)),
            shape: merged(shape, &mut items.shape),
            values: items.values,
        };
        self.total_nulls += null_count;
        self.first_sample += u64::from(self.sample_count);
        self.sample_count = 0;
        Some(chunk)
    }
}

/// Batches with fewer bytes than this are not measured sample by sample.
const LARGE_BYTES: usize = 1 << 30;

fn usize_of(x: u32) -> usize {
    usize::try_from(x).unwrap_or(usize::MAX)
}

/// Appends the bytes of items to the bytes of lists. Leaves `items` empty.
fn merged(mut lists: Vec<u8>, items: &mut Vec<u8>) -> Vec<u8> {
    if lists.is_empty() {
        return std::mem::take(items);
    }
    lists.append(items);
    lists
}

/// The number of bytes that a column holds back to train a dictionary.
const TRAINING_BYTES: usize = 2 << 20;
/// The maximum number of bytes that all columns together hold back.
const ALL_TRAINING_BYTES: usize = 64 << 20;
/// No column gets a dictionary if fewer training bytes than this are available to each column.
const MIN_TRAINING_BYTES: usize = 256 << 10;
/// The number of training bytes per byte of a dictionary. A larger ratio means a smaller
/// dictionary. The rationale of the specification lists measurements of other values.
const TRAINING_RATIO: usize = 8;

/// The chunk size of a column with a dictionary and without blocks. The dictionary makes up for the
/// matches that smaller chunks lose, and decoding one text takes half the time.
const CHUNK_BYTES: usize = 32 << 10;

/// The rule by which the columns of a file get dictionaries.
#[derive(Clone, Copy)]
pub(super) struct ZstdDictionaryRule {
    training_bytes: usize,
    /// The chunk size of a column with a dictionary.
    pub chunk_bytes: usize,
}

impl ZstdDictionaryRule {
    /// Returns the rule for a file with this many columns of text or bytes; `None` if none of them
    /// gets a dictionary.
    pub(super) fn new(options: &WriterOptions, text_columns: usize) -> Option<Self> {
        let training_bytes = ALL_TRAINING_BYTES.checked_div(text_columns)?.min(TRAINING_BYTES);
        let is_enabled = options.profile.has_zstd_dictionaries() && training_bytes >= MIN_TRAINING_BYTES;
        let chunk_bytes = match options.profile {
            Profile::Balanced if options.resolved_block_bytes().is_none() => {
                options.explicit_chunk_bytes().unwrap_or(CHUNK_BYTES)
            }
            _ => options.resolved_text_chunk_bytes(),
        };
        is_enabled.then_some(Self { training_bytes, chunk_bytes })
    }
}

/// The first chunks of a column, with which its dictionary is trained.
pub(super) struct TrainingTexts {
    rule: ZstdDictionaryRule,
    chunks: Vec<RawChunk>,
    bytes: usize,
}

impl TrainingTexts {
    pub(super) fn new(rule: ZstdDictionaryRule) -> Self {
        Self { rule, chunks: Vec::new(), bytes: 0 }
    }

    /// Adds a chunk. Returns whether there are enough bytes to train with. Nulls and lengths also
    /// count, because they take memory.
    pub(super) fn add(&mut self, chunk: RawChunk) -> bool {
        self.bytes = self.bytes.saturating_add(chunk.raw_bytes()).saturating_add(size_of::<RawChunk>());
        self.chunks.push(chunk);
        self.bytes >= self.rule.training_bytes
    }

    /// Returns the chunk size of the column once it has a dictionary.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.rule.chunk_bytes
    }

    /// Takes the chunks.
    pub(super) fn take(&mut self) -> Vec<RawChunk> {
        self.bytes = 0;
        std::mem::take(&mut self.chunks)
    }

    /// Trains a dictionary. Returns `None` if a dictionary would not save enough.
    pub(super) fn train(&self) -> Option<Vec<u8>> {
        let values: Vec<&[u8]> = self.chunks.iter().map(|chunk| chunk.values.as_slice()).collect();
        let training_bytes = self.rule.training_bytes;
        codec::train(&values, training_bytes, training_bytes / TRAINING_RATIO)
    }
}
