//! Collects the samples of a column until they fill a chunk.

use crate::batch::{ColumnBatch, product_of_extents, pushed_inner_bytes};
use crate::cast::Caster;
use crate::codec::RawChunk;
use crate::format::column_record::ColumnRecord;
use crate::format::content::validity_bytes;
use crate::format::schema::Layout;
use crate::format::{CastFacts, ColumnSchema};
use crate::{Error, Result, le, limits};
use std::mem;
use std::ops::Range;

/// The samples of one column that are not yet in a chunk.
pub(super) struct PendingColumn {
    column: usize,
    pub(super) layout: Layout,
    /// The bytes that are pushed for one count; a cast makes them fewer.
    pushed_bytes: usize,
    caster: Option<Caster>,
    /// If values come rounded: the column as values are pushed, and what rounding them did.
    rounded: Option<(ColumnSchema, CastFacts)>,
    chunk_bytes: usize,
    first_sample: u64,
    sample_count: u32,
    /// The varying extents of all pending samples, one sample after the other.
    extents: Vec<u32>,
    /// The sum of the counts of all pending samples.
    count: u32,
    values: Vec<u8>,
    validity: Vec<u8>,
    null_count: u32,
    pub(super) total_nulls: u64,
}

impl PendingColumn {
    pub(super) fn new(index: usize, column: &ColumnSchema, chunk_bytes: usize) -> Result<Self> {
        Ok(Self {
            column: index,
            layout: column.layout()?,
            pushed_bytes: pushed_inner_bytes(column)?,
            caster: column.cast.map(|cast| Caster::new(cast.source, column.dtype)),
            rounded: None,
            chunk_bytes,
            first_sample: 0,
            sample_count: 0,
            extents: Vec::new(),
            count: 0,
            values: Vec::new(),
            validity: Vec::new(),
            null_count: 0,
            total_nulls: 0,
        })
    }

    /// Makes a column whose values are pushed as they are stored, because they were rounded before.
    #[cfg(feature = "import")]
    pub(super) fn rounded(index: usize, column: &ColumnSchema, chunk_bytes: usize, facts: CastFacts) -> Result<Self> {
        let pushed = ColumnSchema { cast: None, ..column.clone() };
        let pending = Self::new(index, &pushed, chunk_bytes)?;
        Ok(Self { rounded: Some((pushed, facts)), ..pending })
    }

    /// Returns the column as its values are pushed; `schema` is the column as it is stored.
    pub(super) fn pushed_schema<'a>(&'a self, schema: &'a ColumnSchema) -> &'a ColumnSchema {
        self.rounded.as_ref().map_or(schema, |(pushed, _)| pushed)
    }

    /// Returns the same column after `sample_count` samples that are written and have these facts.
    pub(super) fn after(mut self, sample_count: u64, facts: &ColumnRecord) -> Self {
        self.first_sample = sample_count;
        self.total_nulls = facts.null_count;
        if let (Some(caster), Some(facts)) = (&mut self.caster, facts.cast) {
            caster.facts = facts;
        }
        self
    }

    /// Returns the bytes that are pushed for a null.
    pub(super) fn null_bytes(&self) -> usize {
        if self.layout.is_ragged() { 0 } else { self.pushed_bytes }
    }

    pub(super) fn cast_facts(&self) -> Option<CastFacts> {
        let rounded = self.rounded.as_ref().map(|(_, facts)| *facts);
        self.caster.as_ref().map(|caster| caster.facts).or(rounded)
    }

    /// Refuses a batch with a sample that is larger than a chunk may be. The batch has passed
    /// [`ColumnBatch::check`].
    pub(super) fn check_sizes(&self, batch: &ColumnBatch) -> Result<()> {
        let largest = match self.layout.varying {
            0 => Some(1),
            varying => {
                let mut counts = batch.extents.chunks_exact(varying).map(product_of_extents);
                counts.try_fold(0, |largest: usize, count| Some(largest.max(count?)))
            }
        };
        let fits = largest
            .filter(|&count| u32::try_from(count).is_ok())
            // shape, validity, table
            .and_then(|count| count.checked_mul(self.layout.inner_bytes)?.checked_add(256))
            .and_then(|bytes| u32::try_from(bytes).ok())
            .is_some_and(|bytes| bytes <= limits::CHUNK_BYTES);
        if fits {
            return Ok(());
        }
        let message = format!(
            "a sample is larger than the {} bytes that the format allows for a chunk; split it",
            limits::CHUNK_BYTES
        );
        Err(Error::over_limit(message))
    }

    /// Adds all samples of a checked batch. Appends the chunks that are full to `cut`.
    pub(super) fn push(&mut self, batch: &ColumnBatch, cut: &mut Vec<RawChunk>) {
        let mut at = BatchPosition::default();
        while at.sample < batch.sample_count {
            let next = self.chunk_end(batch, at);
            if next.sample == at.sample {
                cut.extend(self.cut());
                continue;
            }
            self.take(batch, at, next);
            at = next;
        }
    }

    /// Returns the position in the batch at which the current chunk is full. An empty chunk takes
    /// at least one sample.
    fn chunk_end(&self, batch: &ColumnBatch, from: BatchPosition) -> BatchPosition {
        if !self.layout.is_ragged() {
            let free = self.samples_per_chunk().saturating_sub(self.sample_count);
            let take = usize::try_from(free).unwrap_or(usize::MAX).min(batch.sample_count - from.sample);
            return BatchPosition { sample: from.sample + take, count: from.count + take };
        }
        let (mut at, mut samples, mut count) = (from, self.sample_count, self.count);
        while at.sample < batch.sample_count {
            let sample_count = self.count_at(batch, at.sample);
            let Some(sum) = u32::try_from(sample_count).ok().and_then(|c| count.checked_add(c)) else { break };
            if samples > 0
                && (self.ragged_bytes(samples + 1, sum) > self.chunk_bytes || samples == limits::CHUNK_SAMPLES)
            {
                break;
            }
            (samples, count) = (samples + 1, sum);
            at = BatchPosition { sample: at.sample + 1, count: at.count + sample_count };
        }
        at
    }

    /// Returns the number of samples in each chunk of a fixed column.
    fn samples_per_chunk(&self) -> u32 {
        let fit = self.chunk_bytes.checked_div(self.layout.inner_bytes).unwrap_or(usize::MAX);
        u32::try_from(fit).unwrap_or(u32::MAX).clamp(1, limits::CHUNK_SAMPLES)
    }

    fn ragged_bytes(&self, samples: u32, count: u32) -> usize {
        let wide = |x: u32| usize::try_from(x).unwrap_or(usize::MAX);
        let shape = wide(samples).saturating_mul(self.layout.shape_bytes());
        wide(count).saturating_mul(self.layout.inner_bytes).saturating_add(shape)
    }

    /// Returns the count of sample `i` of a batch of this ragged column.
    fn count_at(&self, batch: &ColumnBatch, i: usize) -> usize {
        // checked before
        extents_of(batch, self.layout.varying, &(i..i + 1)).and_then(product_of_extents).unwrap_or(0)
    }

    /// Adds the samples of the batch between two positions.
    fn take(&mut self, batch: &ColumnBatch, from: BatchPosition, to: BatchPosition) {
        let samples = from.sample..to.sample;
        self.take_validity(batch, &samples);
        self.extents.extend_from_slice(extents_of(batch, self.layout.varying, &samples).unwrap_or(&[]));
        // within the batch: checked before
        let range = from.count * self.pushed_bytes..to.count * self.pushed_bytes;
        self.take_values(batch, &samples, batch.values.get(range).unwrap_or(&[]));
        if self.layout.is_ragged() {
            // `fill` has checked the sum
            self.count += u32::try_from(to.count - from.count).unwrap_or(0);
        }
        self.sample_count += u32::try_from(samples.len()).unwrap_or(0); // at most CHUNK_SAMPLES
    }

    fn take_validity(&mut self, batch: &ColumnBatch, samples: &Range<usize>) {
        if !self.layout.nullable {
            return; // all are present, and no bitmap will be written
        }
        let start = usize::try_from(self.sample_count).unwrap_or(0); // at most 2^24
        self.validity.resize(validity_bytes(start + samples.len()), 0);
        for (to, from) in (start..).zip(samples.clone()) {
            if batch.is_null(from) {
                self.null_count += 1;
                self.total_nulls += 1;
            } else if let Some(byte) = self.validity.get_mut(to / 8) {
                *byte |= 1 << (to % 8);
            }
        }
    }

    fn take_values(&mut self, batch: &ColumnBatch, samples: &Range<usize>, pushed: &[u8]) {
        if self.layout.is_ragged() || batch.validity.is_none() {
            return self.append(pushed);
        }
        if self.pushed_bytes == 0 {
            return;
        }
        let zeros = vec![0; self.pushed_bytes];
        for (i, sample) in samples.clone().zip(pushed.chunks_exact(self.pushed_bytes)) {
            self.append(if batch.is_null(i) { &zeros } else { sample });
        }
    }

    fn append(&mut self, pushed: &[u8]) {
        let start = self.values.len();
        match &mut self.caster {
            Some(caster) => caster.cast(pushed, &mut self.values),
            None => self.values.extend_from_slice(pushed),
        }
        if let Some(new) = self.values.get_mut(start..) {
            le::swap_to_native(self.layout.element_bytes, new);
        }
    }

    /// Returns the pending samples as a chunk; `None` if there are none.
    pub(super) fn cut(&mut self) -> Option<RawChunk> {
        if self.sample_count == 0 {
            return None;
        }
        let shape = self.shape_part();
        let validity = mem::take(&mut self.validity);
        let chunk = RawChunk {
            column: self.column,
            first_sample: self.first_sample,
            sample_count: self.sample_count,
            validity: (self.null_count > 0).then_some(validity),
            shape,
            values: mem::take(&mut self.values),
        };
        self.first_sample += u64::from(self.sample_count);
        self.extents.clear();
        (self.sample_count, self.count, self.null_count) = (0, 0, 0);
        Some(chunk)
    }

    /// Returns the shape part: `ends`, then the extents by dimension if several vary (chapter 4.3).
    fn shape_part(&self) -> Vec<u8> {
        let varying = self.layout.varying;
        if varying == 0 {
            return Vec::new();
        }
        let mut end = 0_u32;
        let ends = self.extents.chunks_exact(varying).flat_map(|extents| {
            let count = product_of_extents(extents).and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
            end += count; // the sum is `self.count`
            end.to_le_bytes()
        });
        let mut shape: Vec<u8> = ends.collect();
        if varying > 1 {
            for dimension in 0..varying {
                let extents = self.extents.iter().skip(dimension).step_by(varying);
                shape.extend(extents.flat_map(|extent| extent.to_le_bytes()));
            }
        }
        shape
    }
}

/// A position in a batch: a sample, and the sum of the counts before it.
#[derive(Clone, Copy, Default)]
struct BatchPosition {
    sample: usize,
    count: usize,
}

fn extents_of<'a>(batch: &ColumnBatch<'a>, varying: usize, samples: &Range<usize>) -> Option<&'a [u32]> {
    batch.extents.get(samples.start * varying..samples.end * varying)
}
