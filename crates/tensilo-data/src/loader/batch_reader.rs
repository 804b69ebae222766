//! The work of a thread: one batch after the other, from its step to its values.

use super::BatchAllocator;
use super::batch::{Batch, BatchColumn, Values};
use super::columns::ChosenColumn;
use super::memory::{BatchMemory, PageAligned, too_large};
use super::metrics::{Count, Counters};
use super::parts::Parts;
use super::policies::OnDamage;
use super::queue::Permits;
use super::read_ahead::Announced;
use super::schedule::Schedule;
use super::setup::Setup;
use crate::error::{DataError, Result};
use crate::receipt::Receipt;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tensilo::stages::Decoder;
use tensilo::{ColumnBuffer, ErrorKind};

/// Reads batches, in memory that is reused.
pub(super) struct BatchReader {
    setup: Arc<Setup>,
    pub(super) schedule: Schedule,
    permits: Arc<Permits>,
    pub(super) counters: Arc<Counters>,
    announced: Arc<Announced>,
    /// Whether the samples of the batch are in runs that are announced.
    is_announced: bool,
    /// How often stores had been asked for bytes when the last batch was begun.
    asked: u64,
    parts: Parts,
    /// A decoder for each column, which keeps a chunk of it.
    decoders: Vec<Decoder>,
    /// For each column, the positions of null samples.
    nulls: Vec<Vec<usize>>,
    /// Elements that are yet to be converted or padded.
    staging: PageAligned,
}

/// The reason why samples were not read.
pub(super) enum Unread {
    /// The job cannot go on.
    Fatal(DataError),
    /// Reading a file failed that was found and opened.
    Failed(DataError),
}

impl Unread {
    /// Returns whether the bytes of a sample are damaged.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Failed(DataError::File(error)) if error.kind() == ErrorKind::Corrupt)
    }

    pub(super) fn into_error(self) -> DataError {
        match self {
            Self::Fatal(error) | Self::Failed(error) => error,
        }
    }
}

/// The parts of a batch reader that its threads share.
pub(super) struct Shared {
    setup: Arc<Setup>,
    schedule: Schedule,
    permits: Arc<Permits>,
    counters: Arc<Counters>,
    announced: Arc<Announced>,
}

impl Shared {
    /// Returns the parts for the steps from `first` on.
    pub(super) fn new(setup: &Arc<Setup>, schedule: Schedule, first: u64, counters: &Arc<Counters>) -> Self {
        Self {
            setup: setup.clone(),
            schedule,
            permits: Arc::new(Permits::new(setup.threads.decode_threads)),
            counters: counters.clone(),
            announced: Arc::new(Announced::new(setup, &schedule, first)),
        }
    }
}

impl BatchReader {
    pub(super) fn new(shared: &Shared) -> Self {
        let Shared { setup, schedule, permits, counters, announced } = shared;
        let columns = setup.columns.columns.len();
        Self {
            setup: setup.clone(),
            schedule: *schedule,
            permits: permits.clone(),
            counters: counters.clone(),
            announced: announced.clone(),
            is_announced: false,
            asked: u64::MAX,
            parts: Parts::default(),
            decoders: (0..columns).map(|_| Decoder::new()).collect(),
            nulls: vec![Vec::new(); columns],
            staging: PageAligned::default(),
        }
    }

    /// Reads the batch of a step.
    pub(super) fn read(&mut self, step: u64) -> Result<Batch> {
        let place = self.schedule.place(step);
        let (mut samples, mut substituted) = (Vec::new(), Vec::new());
        self.schedule.samples(place, &mut samples)?;
        let Self { announced, setup, schedule, counters, .. } = self;
        // reading the batch meets the same errors
        let _ = counters.time(Count::Fetching, || announced.advance(setup, schedule, place, &samples));
        self.is_announced = announced.has(setup, schedule, place);
        let mut columns = self.columns();
        match self.fill(&samples, place.epoch, &mut columns) {
            Ok(()) => {}
            Err(unread) if unread.is_damage() && self.setup.on_damage == OnDamage::Substitute => {
                substituted = self.substitute(&mut samples, place.epoch, &mut columns)?;
                self.fill(&samples, place.epoch, &mut columns).map_err(Unread::into_error)?;
            }
            Err(unread) => return Err(unread.into_error()),
        }
        let mut batch = self.batch(samples, columns, place.epoch);
        (batch.position, batch.substituted) = (place.position, substituted);
        self.map(&mut batch)?;
        Ok(batch)
    }

    /// Calls the caller's function with a batch, as one of the threads that decode.
    pub(super) fn map(&self, batch: &mut Batch) -> Result<()> {
        let Some(map) = &self.setup.map else { return Ok(()) };
        // a batch that was left half changed is dropped with the error
        let mapped = AssertUnwindSafe(|| self.counters.time(Count::Decoding, || map(batch)));
        let mapped = self.permits.run(|| catch_unwind(mapped));
        mapped.unwrap_or_else(|panic| Err(text_of(&*panic).into())).map_err(DataError::Map)
    }

    /// Returns columns to fill, with memory that is used again.
    pub(super) fn columns(&self) -> Vec<BatchColumn> {
        let mut columns = self.setup.pool.take().unwrap_or_default();
        columns.resize_with(self.setup.columns.columns.len(), BatchColumn::default);
        columns
    }

    /// Returns a batch of columns that were filled with samples of an epoch.
    pub(super) fn batch(&self, samples: Vec<u64>, columns: Vec<BatchColumn>, epoch: u64) -> Batch {
        let mut receipt = Receipt::default();
        samples.iter().for_each(|&sample| receipt.add(sample, epoch));
        let pool = Some(self.setup.pool.clone());
        Batch { epoch, position: 0, samples, substituted: Vec::new(), receipt, columns, pool }
    }

    /// Fills columns with samples of the view.
    pub(super) fn fill(
        &mut self,
        samples: &[u64],
        epoch: u64,
        columns: &mut [BatchColumn],
    ) -> std::result::Result<(), Unread> {
        let Self { setup, parts, counters, .. } = self;
        let found = counters.time(Count::Planning, || parts.find(setup, samples, epoch));
        let filled = found.map_err(Unread::Fatal).and_then(|()| self.fill_found(samples.len(), columns));
        self.parts.release();
        filled
    }

    /// Fills columns with samples whose files were found.
    fn fill_found(&mut self, count: usize, columns: &mut [BatchColumn]) -> std::result::Result<(), Unread> {
        let Self { setup, parts, counters, .. } = self;
        // parts that wait for answers wait together; those of announced runs are on their way, and
        // none has to wait if none had to while the last batch was read
        if parts.are_new() || setup.reads_objects && !self.is_announced {
            let asked = setup.asked();
            let is_warm = !parts.are_new() && asked == std::mem::replace(&mut self.asked, asked);
            let read = || parts.read_together(&setup.io, || is_warm && setup.asked() == asked);
            counters.time(Count::Fetching, read).map_err(Unread::Failed)?;
        } else {
            let planned = counters.time(Count::Planning, || parts.iter_mut().try_for_each(|part| part.plan()));
            planned.map_err(Unread::Failed)?;
            let fetched = counters.time(Count::Fetching, || {
                parts.iter_mut().try_for_each(|part| {
                    setup.check_interrupt()?;
                    part.fetch()
                })
            });
            fetched.map_err(Unread::Failed)?;
        }
        counters.add(Count::ReadBytes, parts.iter().map(|part| part.plan.fetched_bytes()).sum());
        let (permits, counters) = (self.permits.clone(), self.counters.clone());
        permits.run(|| counters.time(Count::Decoding, || self.decode(count, columns)))
    }

    fn decode(&mut self, count: usize, columns: &mut [BatchColumn]) -> std::result::Result<(), Unread> {
        let setup = self.setup.clone();
        let allocator = setup.allocator.as_deref();
        for (place, (column, chosen)) in columns.iter_mut().zip(&setup.columns.columns).enumerate() {
            column.schema = Some(chosen.delivered.clone());
            column.sample_count = count;
            match chosen.fixed_bytes {
                Some(sample_bytes) => self.fixed(place, chosen, sample_bytes, column, allocator)?,
                None => self.ragged(place, chosen, column, allocator)?,
            }
        }
        Ok(())
    }

    /// Decodes a column of a fixed shape.
    fn fixed(
        &mut self,
        place: usize,
        chosen: &ChosenColumn,
        sample_bytes: usize,
        column: &mut BatchColumn,
        allocator: Option<&dyn BatchAllocator>,
    ) -> std::result::Result<(), Unread> {
        let Self { setup, parts, decoders, nulls, staging, .. } = self;
        let (Some(decoder), Some(nulls)) = (decoders.get_mut(place), nulls.get_mut(place)) else { return Ok(()) };
        nulls.clear();
        let count = column.sample_count;
        let stored_bytes = count.checked_mul(sample_bytes).ok_or_else(|| Unread::Fatal(too_large(usize::MAX)))?;
        let elements = stored_bytes / chosen.stored.dtype.element_bytes(); // at least 1
        let delivered = elements.saturating_mul(chosen.delivered.dtype.element_bytes());
        let room = column.room(delivered, allocator).map_err(Unread::Fatal)?;
        let out = match chosen.conversion {
            Some(_) => {
                staging.resize(stored_bytes).map_err(Unread::Fatal)?;
                staging.bytes_mut()
            }
            None => room,
        };
        for part in parts.iter() {
            let Some(number) = part.places.iter().position(|found| *found == place) else { continue };
            setup.check_interrupt().map_err(Unread::Fatal)?;
            let decoded = decoder.scatter(&part.plan, &part.bytes, number, &part.positions, out, nulls);
            decoded.map_err(|error| Unread::Failed(error.into()))?;
        }
        for (_, positions) in parts.absent.iter().filter(|(absent, _)| *absent == place) {
            for &position in positions {
                let start = position.saturating_mul(sample_bytes);
                let sample = out.get_mut(start..).and_then(|rest| rest.get_mut(..sample_bytes));
                sample.into_iter().for_each(|sample| sample.fill(0));
                nulls.push(position);
            }
        }
        if let Some(conversion) = &chosen.conversion {
            conversion.run(staging.bytes(), column.room_made()).map_err(Unread::Fatal)?;
        }
        column.set_nulls(nulls);
        let extents = chosen.stored.shape.extents().iter().map(|extent| match extent {
            tensilo::Extent::Fixed(extent) => u64::from(*extent),
            _ => 0, // not so
        });
        let tensor = column.tensor.get_or_insert_default();
        tensor.clear();
        tensor.push(count as u64); // exact
        tensor.extend(extents);
        Ok(())
    }

    /// Decodes a ragged or nested column.
    fn ragged(
        &mut self,
        place: usize,
        chosen: &ChosenColumn,
        column: &mut BatchColumn,
        allocator: Option<&dyn BatchAllocator>,
    ) -> std::result::Result<(), Unread> {
        let Self { setup, parts, decoders, staging, .. } = self;
        let Some(decoder) = decoders.get_mut(place) else { return Ok(()) };
        for part in parts.iter_mut() {
            let Some(number) = part.places.iter().position(|found| *found == place) else { continue };
            let Some(buffer) = part.buffers.get_mut(number) else { continue };
            setup.check_interrupt().map_err(Unread::Fatal)?;
            let decoded = decoder.decode_column(&part.plan, &part.bytes, number, buffer);
            decoded.map_err(|error| Unread::Failed(error.into()))?;
        }
        join(parts, place, chosen, column).map_err(Unread::Fatal)?;
        deliver(chosen, column, staging, allocator).map_err(Unread::Fatal)
    }
}

/// Returns the text of a panic.
fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "it panicked".to_owned(), |text| format!("it panicked: {text}"))
}

/// Puts the samples of a ragged or nested column into one buffer, in the order of the batch.
fn join(parts: &mut Parts, place: usize, chosen: &ChosenColumn, column: &mut BatchColumn) -> Result<()> {
    let count = column.sample_count;
    if let Some(buffer) = parts.iter_mut().find_map(|part| {
        let is_whole = part.positions.len() == count && part.positions.iter().copied().eq(0..count);
        let number = part.places.iter().position(|found| *found == place).filter(|_| is_whole)?;
        part.buffers.get_mut(number)
    }) {
        std::mem::swap(buffer, &mut column.buffer);
        return Ok(());
    }
    let mut samples: Vec<Option<(&ColumnBuffer, usize)>> = vec![None; count];
    for part in parts.iter() {
        let Some(number) = part.places.iter().position(|found| *found == place) else { continue };
        let Some(buffer) = part.buffers.get(number) else { continue };
        for (i, &position) in part.positions.iter().enumerate() {
            if let Some(sample) = samples.get_mut(position) {
                *sample = Some((buffer, i));
            }
        }
    }
    Ok(column.buffer.join(&chosen.stored, samples)?)
}

/// Converts, pads and copies the samples of a buffer, as far as that was asked for.
fn deliver(
    chosen: &ChosenColumn,
    column: &mut BatchColumn,
    staging: &mut PageAligned,
    allocator: Option<&dyn BatchAllocator>,
) -> Result<()> {
    column.tensor = None;
    let buffer = std::mem::take(&mut column.buffer);
    let values = match &chosen.conversion {
        Some(conversion) => {
            let elements = buffer.bytes().len() / chosen.stored.dtype.element_bytes(); // at least 1
            staging.resize(elements.saturating_mul(conversion.to.element_bytes()))?;
            conversion.run(buffer.bytes(), staging.bytes_mut())?;
            staging.bytes()
        }
        None => buffer.bytes(),
    };
    match &chosen.padding {
        Some(padding) => {
            let extents = padding.extents(&buffer);
            let room = column.room(padding.byte_count(&extents)?, allocator)?;
            padding.run(&buffer, values, &extents, room)?;
            column.tensor = Some(extents);
        }
        None if chosen.conversion.is_some() || allocator.is_some() => {
            column.room(values.len(), allocator)?.copy_from_slice(values); // equal lengths
        }
        None => column.values = Values::Buffer,
    }
    column.buffer = buffer;
    Ok(())
}
