//! Decodes the tasks of a request: without I/O, on any thread, in reused memory.
//!
//! A decoder keeps the chunk of its last task open, so the next task can use the same chunk without
//! opening it again. Samples reach their destination in one of three ways:
//!
//! * Samples of a fixed shape are decoded straight to their destination.
//! * Samples that are stored raw in a file in memory are only located at first, and copied together
//!   at the end. Copies in quick succession overlap their cache misses.
//! * Values of ragged samples are staged, because the offset of each depends on the lengths of all
//!   samples before it.
//!
//! Public callers use a [`Decoder`](crate::stages::Decoder), which decodes plans with a
//! [`TaskDecoder`].

use super::output::{
    Destination, FixedOutput, SampleTarget, WholeOutput, begin_buffer, check_delivered, check_length, copy_values,
};
use super::staging::{RaggedOutput, RaggedScratch, RaggedValues, Staging, copy_extents, stage_sample};
use crate::Result;
use crate::bytes::memory;
use crate::codec::Body;
use crate::format::region::HEADER_BYTES;
use crate::read::batch::tasks::{Fetch, Selection, Task, TaskBytes, TaskList, at_sample};
use crate::read::buffer::outside;
use crate::read::chunk::chunk_bytes::check_chunk_bytes;
use crate::read::chunk::open_chunk::{CachedBytes, OpenChunk};
use crate::read::chunk::part_ranges::{body_in, check_raw_values, values_only_chunk};
use crate::read::file::column_inner::ColumnInner;
use crate::read::file::state::{Verification, in_chunk};
use std::ops::Range;
use std::sync::Arc;

/// Decodes the tasks of a request. Each thread has its own decoder.
pub(in crate::read) struct TaskDecoder {
    /// The column of the open chunk.
    column: Option<ColumnInner>,
    pub(in crate::read) chunk: OpenChunk,
    /// The header and the body of the open chunk, if the file is not in memory.
    pub(in crate::read) cached: CachedBytes,
    /// Values of ragged samples, in the order in which they were decoded.
    pub(in crate::read) staging: Staging,
    /// Ragged samples of the request.
    pub(in crate::read) ragged: RaggedScratch,
    /// Positions of nulls in the request.
    pub(in crate::read) nulls: Vec<usize>,
    /// Raw samples of a file in memory. They are copied once all of them are located.
    mapped: Vec<MappedSamples>,
    /// For each position of the request, the offset of its sample in the file.
    starts: Vec<usize>,
    /// The number of this decoder among the decoders of the request.
    number: usize,
    /// Whether blocks are handed out instead of decoded. Chunks are then never decoded whole.
    pub(in crate::read) visits_blocks: bool,
}

/// Marks a sample that is not copied from the file.
const NOT_IN_FILE: usize = usize::MAX;

/// Raw samples of consecutive sorted indices in a file in memory.
struct MappedSamples {
    /// Offset in the file.
    start: usize,
    sorted_index: usize,
    position: usize,
    samples: usize,
}

impl Default for TaskDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl TaskDecoder {
    /// Returns a decoder that owns no memory yet.
    pub(in crate::read) fn new() -> Self {
        Self {
            column: None,
            chunk: OpenChunk::new(),
            cached: CachedBytes::default(),
            staging: Staging::default(),
            ragged: RaggedScratch::default(),
            nulls: Vec::new(),
            mapped: Vec::new(),
            starts: Vec::new(),
            number: 0,
            visits_blocks: false,
        }
    }

    /// Removes the results of the previous request. `number` identifies this decoder among the
    /// decoders of the request.
    pub(in crate::read) fn begin(&mut self, number: usize) {
        self.number = number;
        self.staging.clear();
        self.nulls.clear();
        self.mapped.clear();
    }

    /// Prepares for a column, and closes the open chunk if it belongs to a different column.
    #[inline]
    pub(in crate::read) fn enter_column(&mut self, column: &ColumnInner) {
        let is_same = self
            .column
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.file, &column.file) && current.number() == column.number());
        if !is_same {
            self.chunk.close();
            self.column = Some(column.clone());
        }
    }

    /// Opens the chunk of a task, and calls `decode` with its body. If `decode` fails and the bytes
    /// were fetched, closes the chunk, because the next fetch can return different bytes.
    #[inline]
    fn with_chunk(
        &mut self,
        column: &ColumnInner,
        task: &Task,
        bytes: TaskBytes<'_>,
        decode: impl FnOnce(&mut Self, Body<'_>) -> Result<()>,
    ) -> Result<()> {
        let cached = std::mem::take(&mut self.cached);
        let body = self.enter(column, task, bytes, &cached);
        let result = body.and_then(|body| decode(self, body));
        self.cached = cached;
        if result.is_err() && (task.blocks.is_some() || matches!(bytes, TaskBytes::Fetched(_))) {
            self.chunk.close();
        }
        result.and_then(|()| self.leave(task, bytes))
    }

    /// Opens the chunk of a task, and decodes all of its values if that is worthwhile. Returns its
    /// body.
    #[inline]
    fn enter<'a>(
        &mut self,
        column: &'a ColumnInner,
        task: &'a Task,
        bytes: TaskBytes<'a>,
        cached: &'a CachedBytes,
    ) -> Result<Body<'a>> {
        let location = &task.location;
        self.enter_column(column);
        if let Some((block_index, blocks)) = &task.blocks {
            let bytes = match bytes {
                TaskBytes::Fetched(bytes) => bytes,
                TaskBytes::Available => &[], // none are needed: no sample has an element
            };
            if !self.chunk.is_at(location) || !self.chunk.is_indexed() {
                self.chunk.open_indexed(column, block_index, 0)?;
            }
            self.chunk.count_touched(task.sorted_indices.len());
            return Ok(Body::partial(block_index.body(), blocks.start, bytes));
        }
        let is_loaded = self.chunk.is_at(location) && self.chunk.has_body();
        let body = match (bytes, column.file.bytes().memory()) {
            (TaskBytes::Fetched(bytes), _) => {
                // bytes that were fetched again can differ from the verified ones
                if !is_loaded || column.file.verification == Verification::Always {
                    let checked = check_chunk_bytes(column, location, bytes);
                    let (header, body) = checked.map_err(|error| in_chunk(error, location))?;
                    self.chunk.open(column, location, &header, Body::whole(body))?;
                }
                Body::whole(bytes.get(HEADER_BYTES..).unwrap_or(&[]))
            }
            (TaskBytes::Available, Some(file)) => {
                if !is_loaded {
                    self.chunk.open_in_memory(column, location, file)?;
                }
                Body::mapped(body_in(file, location)?)
            }
            (TaskBytes::Available, None) => cached.body(),
        };
        if !self.visits_blocks && !task.is_whole_chunk && self.chunk.count_touched(task.requested()) {
            self.chunk.decode(column, body)?;
        }
        Ok(body)
    }

    /// Caches the chunk of the last task for the next request.
    fn leave(&mut self, task: &Task, bytes: TaskBytes<'_>) -> Result<()> {
        if let Some((block_index, _)) = &task.blocks {
            self.cached.begin_whole();
            self.cached.block_index = Some(block_index.clone()); // its blocks are not cached
            return Ok(());
        }
        let TaskBytes::Fetched(bytes) = bytes else { return Ok(()) };
        if !task.is_last {
            self.chunk.close(); // its body is not cached
            return Ok(());
        }
        let cached = self.cached.begin_whole();
        cached.clear();
        memory::extend(cached, bytes).inspect_err(|_| self.chunk.close())
    }

    /// Decodes the samples of a task, which have a fixed shape, to their destinations. Samples of a
    /// chunk that is used in place are only located; [`TaskDecoder::copy_from_file`] copies them.
    pub(in crate::read) fn decode_fixed(
        &mut self,
        column: &ColumnInner,
        selection: &Selection,
        task: &Task,
        bytes: TaskBytes<'_>,
        out: &mut impl FixedOutput,
    ) -> Result<()> {
        if task.fetch == Fetch::Values {
            if let TaskBytes::Fetched(values) = bytes {
                return copy_values(column.layout(), selection, &task.sorted_indices, values, out);
            }
            // if the bytes are not fetched, the samples were read straight to their destination, or
            // have no elements
            return Ok(());
        }
        if !selection.is_range() && self.find_values_only(column, selection, task)? {
            return Ok(());
        }
        self.with_chunk(column, task, bytes, |decoder, body| decoder.fixed(column, selection, task, body, out))
    }

    fn fixed<O: FixedOutput>(
        &mut self,
        column: &ColumnInner,
        selection: &Selection,
        task: &Task,
        body: Body<'_>,
        out: &mut O,
    ) -> Result<()> {
        let mut sorted_index = task.sorted_indices.start;
        while sorted_index < task.sorted_indices.end {
            let (sample, position) = selection.get(sorted_index);
            let run = selection.run(sorted_index, task.sorted_indices.end).clamp(1, O::MAX_RUN);
            let i = task.location.position_of(sample);
            let samples = i..i.saturating_add(run);
            let content = self.chunk.content(body);
            if content.validity.is_some() {
                let nulls = (position..).zip(samples.clone()).filter(|&(_, i)| content.is_null(i));
                for (position, _) in nulls {
                    memory::reserve(&mut self.nulls, 1)?;
                    self.nulls.push(position);
                }
            }
            let values = self.chunk.values_range(column, body, &samples);
            let values = values.map_err(|error| at_sample(error, sample))?;
            match self.chunk.range_in_memory(&values) {
                Some(mapped) => {
                    memory::reserve(&mut self.mapped, 1)?;
                    self.mapped.push(MappedSamples { start: mapped.start, sorted_index, position, samples: run });
                }
                None => {
                    let to = SampleTarget { sorted_index, position, samples: run };
                    let delivered = out.decode(to, &mut self.chunk, column, body, &values);
                    delivered.map_err(|error| at_sample(error, sample))?;
                }
            }
            sorted_index += run;
        }
        Ok(())
    }

    /// Locates the samples of a task if the file is in memory and the chunk has only raw values.
    /// Otherwise returns `false`.
    ///
    /// Most tasks of a gather request a single sample of such a chunk. Opening a chunk takes as
    /// long as locating a sample, so only the chunk of the last task is opened.
    fn find_values_only(&mut self, column: &ColumnInner, selection: &Selection, task: &Task) -> Result<bool> {
        let (Some(file), location) = (column.file.bytes().memory(), &task.location) else { return Ok(false) };
        let plain = values_only_chunk(column, file, location).map_err(|error| in_chunk(error, location))?;
        let Some(parts) = plain else { return Ok(false) };
        memory::reserve(&mut self.mapped, task.sorted_indices.len())?;
        let start = location.body_start().saturating_add(parts.values_start());
        let (sample_bytes, body) = (column.layout().inner_bytes, body_in(file, location)?);
        for sorted_index in task.sorted_indices.clone() {
            let (sample, position) = selection.get(sorted_index);
            let at = location.position_of(sample).saturating_mul(sample_bytes);
            let checked = check_raw_values(column, location, &parts, body, &(at..at.saturating_add(sample_bytes)));
            checked.map_err(|error| at_sample(error, sample))?;
            // in bounds: the chunk contains the sample, and the values of its body have exactly the
            // length of its samples
            let start = start.saturating_add(location.position_of(sample).saturating_mul(sample_bytes));
            self.mapped.push(MappedSamples { start, sorted_index, position, samples: 1 });
        }
        if task.is_last {
            self.enter_column(column);
            self.chunk.open_mapped(location, parts);
        }
        Ok(true)
    }

    /// Copies the samples that were located in the file since the last call.
    pub(in crate::read) fn copy_from_file(&mut self, file: &[u8], out: &mut impl FixedOutput) -> Result<()> {
        for mapped in self.mapped.drain(..) {
            let to =
                SampleTarget { sorted_index: mapped.sorted_index, position: mapped.position, samples: mapped.samples };
            out.copy(to, file.get(mapped.start..).ok_or_else(outside)?, 1)?;
        }
        Ok(())
    }

    /// Copies the samples that were located in the file, in the order of their destinations. Used
    /// for requests in arbitrary order, because CPU caches handle scattered reads better than
    /// scattered writes.
    fn copy_in_order(&mut self, file: &[u8], out: &mut WholeOutput<'_>) -> Result<()> {
        if self.mapped.is_empty() {
            return Ok(());
        }
        let sample_bytes = out.sample_bytes.max(1);
        self.starts.clear();
        memory::resize(&mut self.starts, out.bytes.len() / sample_bytes, NOT_IN_FILE)?;
        for mapped in self.mapped.drain(..) {
            let positions = self.starts.iter_mut().skip(mapped.position).take(mapped.samples);
            for (start, number) in positions.zip(0_usize..) {
                *start = mapped.start.saturating_add(number.saturating_mul(sample_bytes));
            }
        }
        let samples = out.bytes.chunks_exact_mut(sample_bytes).zip(&self.starts);
        for (to, &start) in samples.filter(|(_, start)| **start != NOT_IN_FILE) {
            let from = file.get(start..).and_then(|rest| rest.get(..sample_bytes));
            to.copy_from_slice(from.ok_or_else(outside)?); // equal lengths
        }
        Ok(())
    }

    /// Decodes the ragged samples of a task: values to the staging area of this decoder, extents to
    /// `out`.
    pub(in crate::read) fn decode_ragged(
        &mut self,
        column: &ColumnInner,
        selection: &Selection,
        task: &Task,
        bytes: TaskBytes<'_>,
        out: &mut RaggedOutput<'_>,
    ) -> Result<()> {
        self.with_chunk(column, task, bytes, |decoder, body| decoder.ragged(column, selection, task, body, out))
    }

    fn ragged(
        &mut self,
        column: &ColumnInner,
        selection: &Selection,
        task: &Task,
        body: Body<'_>,
        out: &mut RaggedOutput<'_>,
    ) -> Result<()> {
        let mut sorted_index = task.sorted_indices.start;
        while sorted_index < task.sorted_indices.end {
            let run = selection.run(sorted_index, task.sorted_indices.end).max(1);
            let values = self.describe(column, selection, task, body, sorted_index..sorted_index + run, out)?;
            let (sample, position) = selection.get(sorted_index);
            if let Some(blocks) = &mut out.blocks {
                let emitted = blocks.emit(position, &mut self.chunk, column, body, &values);
                emitted.map_err(|error| at_sample(error, sample))?;
            } else if !self.chunk.is_mapped() {
                self.chunk.check_length(body, &values).map_err(|error| at_sample(error, sample))?;
                let start = self.staging.values.as_slice().len();
                self.staging.values.resize(start.saturating_add(values.len()))?;
                let to = self.staging.values.as_mut_slice().get_mut(start..).unwrap_or(&mut []);
                self.chunk.copy(column, body, &values, to).map_err(|error| at_sample(error, sample))?;
            }
            sorted_index += run;
        }
        Ok(())
    }

    /// Records the nulls, extents and value ranges of consecutive ragged samples. Returns the range
    /// of their values in the chunk, which the caller stages unless the values are in the file.
    fn describe(
        &mut self,
        column: &ColumnInner,
        selection: &Selection,
        task: &Task,
        body: Body<'_>,
        sorted_indices: Range<usize>,
        out: &mut RaggedOutput<'_>,
    ) -> Result<Range<usize>> {
        let layout = column.layout();
        let content = self.chunk.content(body);
        let mut all: Option<Range<usize>> = None;
        for sorted_index in sorted_indices {
            let (sample, position) = selection.get(sorted_index);
            let i = task.location.position_of(sample);
            let samples = i..i.saturating_add(1);
            let values = self.chunk.values_range(column, body, &samples);
            let values = values.map_err(|error| at_sample(error, sample))?;
            if content.is_null(i) {
                memory::reserve(&mut self.nulls, 1)?;
                self.nulls.push(position);
            }
            let index = sorted_index.saturating_sub(out.first_sorted_index);
            let extents = out.extents.get_mut(index.saturating_mul(layout.varying)..).unwrap_or(&mut []);
            let first_word = self.staging.words.len();
            let described = match layout.is_nested() {
                true => stage_sample(layout, &content, i, &mut self.staging.words),
                false => copy_extents(layout, &content, i, extents),
            };
            described.map_err(|error| at_sample(error, sample))?;
            let start = all.as_ref().map_or(values.start, |all| all.start);
            all = Some(start..values.end);
            if let Some(to) = out.values.get_mut(index) {
                let staged = self.staging.values.as_slice().len();
                *to = match self.chunk.range_in_memory(&values) {
                    Some(bytes) => RaggedValues { decoder: None, bytes, ..RaggedValues::default() },
                    None => {
                        let at = |byte: usize| staged.saturating_add(byte.saturating_sub(start));
                        let bytes = at(values.start)..at(values.end);
                        RaggedValues { decoder: Some(self.number), bytes, ..RaggedValues::default() }
                    }
                };
                (to.stager, to.words) = (self.number, first_word..self.staging.words.len());
            }
        }
        Ok(all.unwrap_or(0..0))
    }

    /// Prepares the destination of a column for the samples that `tasks` selects.
    pub(in crate::read) fn begin_output(
        &mut self,
        column: &ColumnInner,
        tasks: &TaskList,
        output: Destination<'_>,
    ) -> Result<()> {
        let (count, layout) = (tasks.selection.sample_count(), column.layout());
        self.begin(0);
        match output {
            Destination::Bytes(bytes) => check_length(column, count, bytes.len()),
            Destination::Buffer(buffer) => {
                begin_buffer(column, tasks, buffer)?;
                if !layout.has_shape() {
                    return Ok(());
                }
                if tasks.selection.is_range() && !layout.is_nested() {
                    // values arrive in order, so the memory of the buffer itself serves as the
                    // staging area
                    std::mem::swap(&mut self.staging.values, &mut buffer.values);
                    self.staging.clear();
                }
                self.ragged.begin(count, layout)
            }
        }
    }

    /// Decodes a task to the destination of its column.
    pub(in crate::read) fn decode_task(
        &mut self,
        column: &ColumnInner,
        tasks: &TaskList,
        task: &Task,
        bytes: TaskBytes<'_>,
        output: Destination<'_>,
    ) -> Result<()> {
        let selection = &tasks.selection;
        let mut out = match output {
            Destination::Buffer(_) if column.layout().has_shape() => {
                let mut ragged = std::mem::take(&mut self.ragged);
                let result = self.decode_ragged(column, selection, task, bytes, &mut ragged.output());
                self.ragged = ragged;
                return result;
            }
            fixed => fixed.whole(column.layout().inner_bytes),
        };
        self.decode_fixed(column, selection, task, bytes, &mut out)
    }

    /// Completes the destination of column number `number`, and returns the number of nulls.
    pub(in crate::read) fn finish_output(
        &mut self,
        number: usize,
        column: &ColumnInner,
        tasks: &TaskList,
        output: Destination<'_>,
    ) -> Result<usize> {
        let file = column.file.bytes().memory().unwrap_or(&[]);
        let sample_bytes = column.layout().inner_bytes;
        match output {
            Destination::Buffer(buffer) => {
                if !column.layout().is_nested() {
                    self.nulls.iter().for_each(|&null| buffer.set_null(null));
                }
                if column.layout().has_shape() {
                    self.ragged.finish(column.layout(), &tasks.selection, file, &mut self.staging, true, buffer)?;
                } else {
                    self.copy_stored(tasks, file, &mut Destination::Buffer(buffer).whole(sample_bytes))?;
                }
                check_delivered(column, &tasks.selection, &Destination::Buffer(buffer))?;
            }
            Destination::Bytes(bytes) => {
                self.copy_stored(tasks, file, &mut WholeOutput { bytes, sample_bytes })?;
                check_delivered(column, &tasks.selection, &Destination::Bytes(bytes))?;
            }
        }
        let last = tasks.tasks.get(tasks.of_column(number)).and_then(<[Task]>::last);
        if let Some(task) = last.filter(|task| task.fetch == Fetch::Values) {
            let (value_bytes, touched_bytes) = tasks.last_unread;
            self.enter_column(column);
            self.chunk.open_unread(&task.location, value_bytes, touched_bytes);
        }
        Ok(self.nulls.len())
    }

    fn copy_stored(&mut self, tasks: &TaskList, file: &[u8], out: &mut WholeOutput<'_>) -> Result<()> {
        if tasks.selection.is_range() {
            return self.copy_from_file(file, out);
        }
        self.copy_in_order(file, out)
    }
}
