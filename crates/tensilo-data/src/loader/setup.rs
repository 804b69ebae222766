//! The choices of a loader, which all of its threads share, and which never change.
//!
//! Defaults are resolved here: numbers of threads from the processors and from where files are, the
//! order from the dataset. A process that was forked gets a setup of its own, with other handles and
//! threads.

use super::deliver::batch::BatchColumn;
use super::deliver::memory::{BatchAllocator, Pool};
use super::plan::columns::ColumnSpecs;
use super::transform::BatchMap;
use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::io::{Io, IoPool};
use crate::order::{Division, LastBatch, Order};
use crate::view::View;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::{process, thread};

/// A function that a reader asks whether to go on.
pub type Interrupt = Arc<dyn Fn() -> ControlFlow<()> + Send + Sync>;

/// The way in which a loader treats samples that are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDamage {
    /// The batch is an error, which names the sample.
    #[default]
    Fail,
    /// Other samples take their places: the same ones on every rank ([`substitute`]). Files that
    /// cannot be opened or read, or were replaced, are errors all the same.
    ///
    /// [`substitute`]: crate::substitute()
    Substitute,
}

/// Whether a loader announces the runs of [`Order::Windowed`] ahead of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadAhead {
    /// In the first epoch of an iterator; in later ones if the files are larger than half of the
    /// memory of the machine, or in an object store. With more than 8 ranks never: each would read
    /// all of the data.
    #[default]
    Auto,
    /// Always. If ranks are on different machines, each of these reads all of the data.
    Always,
    /// Never: only the samples that are wanted are read.
    Never,
}

/// The choices of a loader.
#[derive(Clone)]
pub(super) struct Setup {
    /// The process that opened the datasets of the view.
    process: u32,
    pub view: View,
    /// Whether files are objects of a store, which keeps nothing in the memory of this machine.
    pub reads_objects: bool,
    /// Whether files are objects or on a network: each request takes a round trip.
    pub is_remote: bool,
    pub division: Division,
    pub rank: u32,
    pub columns: ColumnSpecs,
    pub order: Order,
    pub seed: u64,
    /// The parts of the order that the caller has chosen, which a state must agree with.
    pub explicit: (Option<Order>, Option<u64>, Option<LastBatch>),
    pub threads: Threads,
    /// Opens and reads several files at the same time.
    pub io: Arc<IoPool>,
    pub on_damage: OnDamage,
    pub read_ahead: ReadAhead,
    pub allocator: Option<Arc<dyn BatchAllocator>>,
    pub interrupt: Option<Interrupt>,
    pub map: Option<BatchMap>,
    /// The GPU that decodes.
    #[cfg(feature = "cuda")]
    pub device: Option<super::device::blocks::Device>,
    /// The memory of batches, which one epoch leaves to the next.
    pub pool: Arc<Pool<Vec<BatchColumn>>>,
}

/// The threads that open and read several files of a batch at the same time: enough that a server
/// of a network answers many requests at the same time. Objects are begun together, whatever the
/// number of threads.
const IO_THREADS: usize = 16;
/// The default I/O depth for objects of a store, unless there are more decode threads.
const OBJECT_IO_DEPTH: usize = 4;

/// Numbers of threads and batches; 0 is a default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Threads {
    pub decode_threads: usize,
    pub io_depth: usize,
    pub prefetch: usize,
}

impl Threads {
    /// Replaces defaults by numbers, for files that are objects of a store, or not.
    fn resolved(self, are_objects: bool) -> Self {
        let processors = || thread::available_parallelism().map_or(1, NonZero::get);
        let or = |number: usize, default: usize| if number == 0 { default } else { number };
        let decode_threads = or(self.decode_threads, processors().saturating_sub(1).max(1));
        let io_depth = or(self.io_depth, if are_objects { OBJECT_IO_DEPTH } else { decode_threads });
        let io_depth = io_depth.max(decode_threads);
        let prefetch = or(self.prefetch, io_depth.saturating_mul(2)).max(io_depth);
        Self { decode_threads, io_depth, prefetch }
    }

    /// Returns a pool that opens and reads several files at the same time, unless the caller has
    /// set an I/O depth of 1.
    fn io_pool(self) -> Arc<IoPool> {
        Arc::new(IoPool::new(if self.io_depth == 1 { 1 } else { IO_THREADS }))
    }

    /// Returns a pool for the batches in work and ready, and some that the consumer has.
    fn pool(self) -> Arc<Pool<Vec<BatchColumn>>> {
        Pool::new(self.prefetch.saturating_add(2))
    }
}

impl Setup {
    pub(super) fn new(view: View, division: Division, rank: u32, columns: ColumnSpecs) -> Result<Self> {
        if rank >= division.world() {
            let message = format!("rank {rank} of {} ranks, counted from 0", division.world());
            return Err(DataError::BadArgument(message));
        }
        let reads_objects = view.datasets().iter().any(|dataset| dataset.io() == Io::Object);
        let is_remote = view.datasets().iter().any(Dataset::is_remote);
        let threads = Threads::default().resolved(reads_objects);
        Ok(Self {
            process: process::id(),
            order: default_order(&view),
            view,
            reads_objects,
            is_remote,
            division,
            rank,
            columns,
            seed: 0,
            explicit: (None, None, None),
            threads,
            io: Threads::default().io_pool(),
            on_damage: OnDamage::Fail,
            read_ahead: ReadAhead::Auto,
            allocator: None,
            interrupt: None,
            map: None,
            #[cfg(feature = "cuda")]
            device: None,
            pool: threads.pool(),
        })
    }

    pub(super) fn explicit(mut self, explicit: (Option<Order>, Option<u64>, Option<LastBatch>)) -> Self {
        self.order = explicit.0.unwrap_or(self.order);
        self.seed = explicit.1.unwrap_or(self.seed);
        self.explicit = explicit;
        self
    }

    pub(super) fn threads(mut self, threads: Threads) -> Self {
        self.io = threads.io_pool();
        self.threads = threads.resolved(self.reads_objects);
        self.pool = self.threads.pool();
        self
    }

    /// Returns the same without a GPU.
    #[cfg(feature = "cuda")]
    pub(super) fn on_host(&self) -> Self {
        Self { device: None, ..self.clone() }
    }

    /// Fails if the caller does not want to go on.
    pub(super) fn check_interrupt(&self) -> Result<()> {
        match self.interrupt.as_ref().map(|interrupt| interrupt()) {
            Some(ControlFlow::Break(())) => Err(tensilo::Error::cancelled().into()),
            _ => Ok(()),
        }
    }

    /// Returns the setup for this process: the same, or, in one that was forked, one that shares no
    /// lock with threads that this process does not have.
    pub(super) fn for_this_process(self: &Arc<Self>) -> Arc<Self> {
        if self.process == process::id() {
            return self.clone();
        }
        let (process, view, pool) = (process::id(), self.view.reopened(), self.threads.pool());
        let io = Arc::new(self.io.reopened());
        let reopened = Self { process, view, pool, io, ..Self::clone(self) };
        Arc::new(reopened)
    }
}

/// Refuses an epoch without a step (O-4.5).
pub(super) fn check_steps(division: Division, n: u64) -> Result<()> {
    if division.steps(n, 0) > 0 {
        return Ok(());
    }
    if n == 0 {
        return Err(DataError::BadArgument("there are no samples, so an epoch has no batch".to_owned()));
    }
    let step = division.step_samples();
    Err(DataError::BadArgument(format!(
        "{n} samples do not fill one step of {step} samples (the batches of all ranks): use smaller batches, or last_batch pad or exact"
    )))
}

fn default_order(view: &View) -> Order {
    match view.datasets() {
        [dataset] => Order::Windowed(dataset.window_sizes()),
        _ => Order::Sequential, // a mixture
    }
}
