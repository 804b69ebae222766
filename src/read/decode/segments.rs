//! Divides a plan into segments that any thread can decode.
//!
//! The tasks of a plan are divided in order, and each segment has tasks of one column. The
//! destinations are divided in the same way. If the shape is fixed, a segment gets the slots at the
//! positions of its samples. If it is ragged, the segment gets entries in two lists that are
//! ordered by sorted index: where the values of each sample are, and its extents. Destinations of
//! different segments do not overlap, so threads need no lock.
//!
//! Ragged values cannot be placed until the lengths of all samples are known. Each segment stages
//! them, and the calling thread lays them out once all segments are decoded. The results of a
//! segment are stored under its number, whichever thread decoded it. The outcome therefore does not
//! depend on scheduling, and memory is reused.

use super::decoder::TaskDecoder;
use super::output::{Destination, SplitOutput, begin_buffer, check_delivered, check_length};
use super::staging::{RaggedOutput, RaggedScratch, RaggedValues, StagedValues, Staging, sample_extents};
use crate::bytes::memory;
use crate::bytes::pod::AlignedBytes;
use crate::read::batch::plan::{FetchedBytes, ReadPlan};
use crate::read::batch::stages::Decoder;
use crate::read::batch::tasks::{Selection, Task, TaskBytes};
use crate::read::buffer::ColumnBuffer;
use crate::{Error, Result};
use std::ops::Range;

/// Some tasks of a plan, and the destinations of their samples. See [`ReadPlan::decode_segments`].
pub struct PlanSegment<'p> {
    plan: &'p ReadPlan,
    pub(in crate::read) tasks: Range<usize>,
    first_sorted_index: usize,
    destinations: Destinations<'p>,
    state: &'p mut SegmentResult,
}

/// The results of a decoded segment.
#[derive(Default)]
struct SegmentResult {
    number: usize,
    column: usize,
    /// Values and lists of samples.
    staging: Staging,
    /// Positions of nulls in the request.
    nulls: Vec<usize>,
    is_decoded: bool,
}

/// Reusable memory for divided requests.
#[derive(Default)]
pub(in crate::read) struct SegmentScratch {
    states: Vec<SegmentResult>,
    ragged: Vec<RaggedScratch>,
}

/// The destinations of consecutive sorted indices of one column.
enum Destinations<'p> {
    Fixed(Vec<&'p mut [u8]>),
    Ragged { values: &'p mut [RaggedValues], extents: &'p mut [u32] },
}

/// The destinations of a column that are not yet assigned to a segment.
enum AllDestinations<'p> {
    /// By position in the request.
    Fixed(Vec<&'p mut [u8]>),
    /// By sorted index.
    Ragged { values: &'p mut [RaggedValues], extents: &'p mut [u32] },
}

impl PlanSegment<'_> {
    /// Decodes the samples of the segment. Segments can be decoded by any threads in any order.
    ///
    /// Cost: decodes each chunk once, or only the requested samples if they are few and the
    /// encoding allows it.
    pub fn decode(self, decoder: &mut Decoder, bytes: &FetchedBytes) -> Result<()> {
        let plan = self.plan;
        bytes.check(plan)?;
        let result = self.decode_with(&mut decoder.tasks, |tasks, run| bytes.for_each(plan, tasks, run));
        result.map_err(|(_, error)| error)
    }

    /// Decodes the samples of the segment. `for_each` provides the bytes of its tasks. Returns the
    /// first error and the number of its task.
    pub(in crate::read) fn decode_with(
        self,
        decoder: &mut TaskDecoder,
        for_each: impl FnOnce(
            Range<usize>,
            &mut dyn FnMut(usize, TaskBytes<'_>) -> Result<()>,
        ) -> std::result::Result<(), (usize, Error)>,
    ) -> std::result::Result<(), (usize, Error)> {
        let Self { plan, tasks, first_sorted_index, mut destinations, state } = self;
        let column = plan.columns.get(state.column).ok_or_else(|| (tasks.start, not_of_plan()))?;
        decoder.begin(state.number);
        std::mem::swap(&mut decoder.nulls, &mut state.nulls);
        std::mem::swap(&mut decoder.staging, &mut state.staging);
        let selection = &plan.list.selection;
        let first_task = tasks.start;
        let result = for_each(tasks, &mut |number, bytes| {
            let task = plan.list.tasks.get(number).ok_or_else(not_of_plan)?;
            match &mut destinations {
                Destinations::Fixed(destinations) => {
                    let mut out = SplitOutput { destinations, first_sorted_index };
                    decoder.decode_fixed(column, selection, task, bytes, &mut out)
                }
                Destinations::Ragged { values, extents } => {
                    let mut out = RaggedOutput { first_sorted_index, values, extents, blocks: None };
                    decoder.decode_ragged(column, selection, task, bytes, &mut out)
                }
            }
        });
        let copied = match &mut destinations {
            Destinations::Fixed(destinations) => {
                let file = column.file.bytes().memory().unwrap_or(&[]);
                decoder.copy_from_file(file, &mut SplitOutput { destinations, first_sorted_index })
            }
            Destinations::Ragged { .. } => Ok(()),
        };
        let result = result.and(copied.map_err(|error| (first_task, error)));
        std::mem::swap(&mut decoder.nulls, &mut state.nulls);
        std::mem::swap(&mut decoder.staging, &mut state.staging);
        state.is_decoded = result.is_ok();
        result.map_err(|(number, error)| (number, plan.in_task(number, error)))
    }
}

// here rather than next to `ReadPlan`, to avoid a dependency cycle between modules
impl ReadPlan {
    /// Decodes the plan in at least `segment_count` segments, or in one segment per task if there
    /// are fewer tasks. `work` distributes them among threads. Fills one buffer for each column. On
    /// failure, all buffers are empty.
    ///
    /// Cost: same as [`Decoder::decode`], divided by the number of threads, plus a few lists with
    /// an entry per requested sample. The calling thread copies the values of ragged samples one
    /// more time.
    ///
    /// ```
    /// use std::thread;
    /// use tensilo::ColumnBuffer;
    /// use tensilo::stages::{Decoder, FetchedBytes, PlanSegment, ReadPlan};
    /// # use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Value, Writer, WriterOptions};
    /// # use tensilo::sink::Stream;
    /// # let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
    /// # let options = WriterOptions::new().chunk_bytes(400);
    /// # let mut writer = Writer::new(Stream(Vec::new()), schema, &options)?;
    /// # for label in 0..1000_i32 { writer.push(&[Value::tensor(&[label])])?; }
    /// # let reader = Reader::from_bytes(writer.into_bytes()?)?;
    /// let mut plan = ReadPlan::new();
    /// plan.select_range(&[reader.column("label")?], 0..1000)?;
    /// let mut bytes = FetchedBytes::new();
    /// plan.fetch(&mut bytes)?;
    /// let mut out = [ColumnBuffer::new()];
    /// plan.decode_segments(2, &mut out, |segments| {
    ///     thread::scope(|scope| {
    ///         let decode = |segment: PlanSegment<'_>| segment.decode(&mut Decoder::new(), &bytes);
    ///         let start = |segment| scope.spawn(move || decode(segment));
    ///         let threads: Vec<_> = segments.into_iter().map(start).collect();
    ///         threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    ///     })
    /// })?;
    /// assert!(out[0].values::<i32>()?.iter().copied().eq(0..1000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode_segments(
        &self,
        segment_count: usize,
        out: &mut [ColumnBuffer],
        work: impl FnOnce(Vec<PlanSegment<'_>>) -> Result<()>,
    ) -> Result<()> {
        let decoded = self.check_outputs(out.len()).and_then(|()| {
            let mut outputs: Vec<Destination<'_>> = out.iter_mut().map(Destination::Buffer).collect();
            self.decode_segments_to(segment_count, &mut outputs, &mut SegmentScratch::default(), work)
        });
        decoded.map(|_| ()).inspect_err(|_| out.iter_mut().for_each(ColumnBuffer::clear))
    }

    /// Like [`ReadPlan::decode_segments`], but in reused memory. Returns the number of nulls.
    pub(in crate::read) fn decode_segments_to(
        &self,
        segment_count: usize,
        out: &mut [Destination<'_>],
        scratch: &mut SegmentScratch,
        work: impl FnOnce(Vec<PlanSegment<'_>>) -> Result<()>,
    ) -> Result<usize> {
        let step = (self.list.tasks.len() / segment_count.max(1)).max(1);
        scratch.ragged.resize_with(self.columns.len(), RaggedScratch::default);
        for state in &mut scratch.states {
            state.staging.clear();
            state.nulls.clear();
            state.is_decoded = false;
        }
        let segment_count = self.divided(out, scratch, step, work)?;
        let mut nulls = 0;
        for (number, (output, ragged)) in out.iter_mut().zip(&mut scratch.ragged).enumerate() {
            // in bounds: at most the number of states
            let states = scratch.states.get_mut(..segment_count).unwrap_or(&mut []);
            nulls += self.finish(number, output, ragged, states)?;
        }
        Ok(nulls)
    }

    /// Divides the tasks into segments of at most `step` tasks, and calls `work` with them. Returns
    /// the number of segments.
    fn divided(
        &self,
        out: &mut [Destination<'_>],
        scratch: &mut SegmentScratch,
        step: usize,
        work: impl FnOnce(Vec<PlanSegment<'_>>) -> Result<()>,
    ) -> Result<usize> {
        let mut steps: Vec<Range<usize>> = Vec::new();
        for (number, task) in self.list.tasks.iter().enumerate() {
            match steps.last_mut() {
                Some(last) if last.len() < step && self.column_of(last.start) == task.column => last.end = number + 1,
                _ => {
                    memory::reserve(&mut steps, 1)?;
                    steps.push(number..number + 1);
                }
            }
        }
        if scratch.states.len() < steps.len() {
            scratch.states.resize_with(steps.len(), SegmentResult::default);
        }
        let mut segments = memory::with_capacity(steps.len())?;
        let mut states = scratch.states.iter_mut().enumerate();
        let mut steps = steps.into_iter().peekable();
        let segment_count = steps.len();
        for (number, (output, ragged)) in out.iter_mut().zip(&mut scratch.ragged).enumerate() {
            let mut rest = self.destinations(number, output, ragged)?;
            let varying = self.columns.get(number).map_or(0, |column| sample_extents(column.layout()));
            while let Some(tasks) = steps.next_if(|tasks| self.column_of(tasks.start) == number) {
                let (segment, state) = states.next().ok_or_else(not_of_plan)?;
                (state.number, state.column) = (segment, number);
                let sorted_indices = self.sorted_indices(&tasks);
                let destinations = rest.take(&self.list.selection, &sorted_indices, varying)?;
                segments.push(PlanSegment {
                    plan: self,
                    tasks,
                    first_sorted_index: sorted_indices.start,
                    destinations,
                    state,
                });
            }
        }
        work(segments).map(|()| segment_count)
    }

    fn column_of(&self, task: usize) -> usize {
        self.list.tasks.get(task).map_or(usize::MAX, |task| task.column)
    }

    /// Returns the sorted indices of consecutive tasks of one column.
    fn sorted_indices(&self, tasks: &Range<usize>) -> Range<usize> {
        let of = self.list.tasks.get(tasks.clone()).unwrap_or(&[]);
        let [first, last] =
            [of.first(), of.last()].map(|task| task.map_or(0..0, |task: &Task| task.sorted_indices.clone()));
        first.start..last.end
    }

    /// Prepares the destinations of a column, which are then divided among its segments.
    fn destinations<'o>(
        &self,
        number: usize,
        output: &'o mut Destination<'_>,
        ragged: &'o mut RaggedScratch,
    ) -> Result<AllDestinations<'o>> {
        let column = self.columns.get(number).ok_or_else(not_of_plan)?;
        let (count, layout) = (self.sample_count(), column.layout());
        let bytes = match output {
            Destination::Buffer(buffer) => {
                begin_buffer(column, &self.list, buffer).map_err(|error| column.in_column(error))?;
                if layout.has_shape() {
                    ragged.begin(count, layout)?;
                    let RaggedScratch { values, extents, .. } = ragged;
                    return Ok(AllDestinations::Ragged { values, extents });
                }
                buffer.values.as_mut_slice()
            }
            Destination::Bytes(bytes) => {
                check_length(column, count, bytes.len()).map_err(|error| column.in_column(error))?;
                bytes
            }
        };
        let mut by_position = memory::with_capacity(count)?;
        let mut rest = bytes;
        for _ in 0..count {
            by_position.push(rest.split_off_mut(..layout.inner_bytes).ok_or_else(not_of_plan)?);
        }
        Ok(AllDestinations::Fixed(by_position))
    }

    /// Completes the destination of a column, and returns the number of its nulls.
    fn finish(
        &self,
        number: usize,
        output: &mut Destination<'_>,
        ragged: &mut RaggedScratch,
        states: &mut [SegmentResult],
    ) -> Result<usize> {
        if states.iter().any(|state| !state.is_decoded) {
            return Err(Error::bad_argument("some segments of the plan were not decoded"));
        }
        // `states` is sorted by column
        let first = states.partition_point(|state| state.column < number);
        let own = states.iter().skip(first).take_while(|state| state.column == number);
        let nulls = || own.clone().flat_map(|state| &state.nulls);
        let count = nulls().count();
        if let Destination::Buffer(buffer) = output {
            let column = self.columns.get(number).ok_or_else(not_of_plan)?;
            if !column.layout().is_nested() {
                nulls().for_each(|&null| buffer.set_null(null));
            }
            if column.layout().has_shape() {
                let file = column.file.bytes().memory().unwrap_or(&[]);
                let mut staged = StagedBySegments(states);
                ragged.finish(column.layout(), &self.list.selection, file, &mut staged, true, buffer)?;
            }
        }
        let column = self.columns.get(number).ok_or_else(not_of_plan)?;
        let checked = check_delivered(column, &self.list.selection, output);
        checked.map_err(|error| column.in_column(error))?;
        Ok(count)
    }
}

impl<'p> AllDestinations<'p> {
    /// Takes the destinations of the next sorted indices.
    fn take(
        &mut self,
        selection: &Selection,
        sorted_indices: &Range<usize>,
        varying: usize,
    ) -> Result<Destinations<'p>> {
        match self {
            AllDestinations::Fixed(by_position) => {
                let mut by_sorted_index = memory::with_capacity(sorted_indices.len())?;
                for sorted_index in sorted_indices.clone() {
                    let (_, position) = selection.get(sorted_index);
                    by_sorted_index.push(std::mem::take(by_position.get_mut(position).ok_or_else(not_of_plan)?));
                }
                Ok(Destinations::Fixed(by_sorted_index))
            }
            AllDestinations::Ragged { values, extents } => Ok(Destinations::Ragged {
                values: values.split_off_mut(..sorted_indices.len()).ok_or_else(not_of_plan)?,
                extents: extents
                    .split_off_mut(..sorted_indices.len().saturating_mul(varying))
                    .ok_or_else(not_of_plan)?,
            }),
        }
    }
}

#[cold]
fn not_of_plan() -> Error {
    Error::internal("a segment has a column, a task or a destination that its plan does not have")
}

/// The values and lists that each segment has staged.
struct StagedBySegments<'s>(&'s [SegmentResult]);

impl StagedValues for StagedBySegments<'_> {
    fn of(&self, segment: usize) -> &[u8] {
        self.0.get(segment).map_or(&[], |state| state.staging.values.as_slice())
    }

    fn words(&self, segment: usize) -> &[u32] {
        self.0.get(segment).map_or(&[], |state| state.staging.words.as_slice())
    }

    fn exchange(&mut self, _end: usize, _out: &mut AlignedBytes) -> bool {
        false
    }
}
