//! The resolved options of a loader, which all of its threads share and which never change.
//!
//! Defaults are resolved here: thread counts depend on the number of CPUs and on where the
//! files are, and the order comes from the dataset. A forked process gets its own setup, with file
//! handles and an I/O pool that share no lock with threads of the parent.

use super::deliver::batch::BatchColumn;
use super::deliver::memory::{BatchAllocator, Pool};
use super::plan::columns::ColumnSpecs;
use super::transform::BatchTransform;
use crate::dataset::Dataset;
use crate::error::{DataError, Result};
use crate::io::{Io, IoPool};
use crate::order::{Division, LastBatch, Order};
use crate::view::View;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::{process, thread};

/// A function that a reader calls to find out whether to continue.
pub type Interrupt = Arc<dyn Fn() -> ControlFlow<()> + Send + Sync>;

/// How a loader treats damaged samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDamage {
    /// Reading the batch fails with an error that names the sample.
    #[default]
    Error,
    /// Damaged samples are replaced by other samples, which are the same on every rank
    /// ([`substitute_candidate`]). A file that does not match the manifest, or that cannot be
    /// opened or read, is still an error.
    ///
    /// [`substitute_candidate`]: crate::substitute_candidate
    Substitute,
}

/// Whether a loader prefetches the runs of [`Order::Windowed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadAhead {
    /// Prefetches in the first epoch of an iterator, and in later epochs if the files are larger
    /// than half of the machine's memory or are in an object store. Does not prefetch if more than
    /// 64 ranks share a stream, or more than 8 if runs are short, because each machine would read
    /// many runs but need only a few samples of each.
    #[default]
    Auto,
    /// Always prefetches, no matter how many ranks share a stream.
    Always,
    /// Never prefetches: only requested samples are read.
    Never,
}

/// The resolved options of a loader.
#[derive(Clone)]
pub(super) struct Setup {
    /// The process that opened the datasets of the view.
    process: u32,
    pub view: View,
    /// Whether files are objects in a store, which the page cache does not hold.
    pub reads_objects: bool,
    /// Whether files are objects or on a network, so that each request takes a round trip.
    pub is_remote: bool,
    pub division: Division,
    pub rank: u32,
    pub columns: ColumnSpecs,
    pub order: Order,
    pub seed: u64,
    /// The order, the seed and the last batch, if the caller set them. A resumed state must agree
    /// with them.
    pub explicit: (Option<Order>, Option<u64>, Option<LastBatch>),
    pub threads: Threads,
    /// Opens and reads several files concurrently.
    pub io: Arc<IoPool>,
    pub on_damage: OnDamage,
    pub read_ahead: ReadAhead,
    pub allocator: Option<Arc<dyn BatchAllocator>>,
    pub interrupt: Option<Interrupt>,
    pub transform: Option<BatchTransform>,
    /// The GPU that decodes, if any.
    #[cfg(feature = "cuda")]
    pub device: Option<super::device::blocks::Device>,
    /// The memory of batches, which later batches and epochs reuse.
    pub pool: Arc<Pool<Vec<BatchColumn>>>,
}

/// The number of threads that open and read files of a batch concurrently: enough to keep many
/// requests to a network server in flight. This number does not limit objects: a single thread
/// starts opening many of them at the same time.
const IO_THREADS: usize = 16;
/// The minimum default I/O depth for objects in a store.
const OBJECT_IO_DEPTH: usize = 4;

/// Numbers of threads and batches; 0 means the default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Threads {
    pub decode_threads: usize,
    pub io_depth: usize,
    pub prefetch: usize,
}

impl Threads {
    /// Resolves the defaults, which depend on whether files are objects in a store.
    fn resolved(self, are_objects: bool) -> Self {
        let cpus = || thread::available_parallelism().map_or(1, NonZero::get);
        let or = |number: usize, default: usize| if number == 0 { default } else { number };
        let decode_threads = or(self.decode_threads, cpus().saturating_sub(1).max(1));
        let io_depth = or(self.io_depth, if are_objects { OBJECT_IO_DEPTH } else { decode_threads });
        let io_depth = io_depth.max(decode_threads);
        let prefetch = or(self.prefetch, io_depth.saturating_mul(2)).max(io_depth);
        Self { decode_threads, io_depth, prefetch }
    }

    /// Returns a pool that opens and reads files concurrently, unless the caller set an I/O depth
    /// of 1.
    fn io_pool(self) -> Arc<IoPool> {
        Arc::new(IoPool::new(if self.io_depth == 1 { 1 } else { IO_THREADS }))
    }

    /// Returns a pool with room for the batches that are ready or in progress, and for two that the
    /// consumer holds.
    fn pool(self) -> Arc<Pool<Vec<BatchColumn>>> {
        Pool::new(self.prefetch.saturating_add(2))
    }
}

impl Setup {
    pub(super) fn new(view: View, division: Division, rank: u32, columns: ColumnSpecs) -> Result<Self> {
        if rank >= division.world_size() {
            let message = format!("rank {rank} of {} does not exist: ranks are counted from 0", division.world_size());
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
            on_damage: OnDamage::Error,
            read_ahead: ReadAhead::Auto,
            allocator: None,
            interrupt: None,
            transform: None,
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

    /// Returns a copy that does not use a GPU.
    #[cfg(feature = "cuda")]
    pub(super) fn on_host(&self) -> Self {
        Self { device: None, ..self.clone() }
    }

    /// Fails if the caller's function requests a stop.
    pub(super) fn check_interrupt(&self) -> Result<()> {
        match self.interrupt.as_ref().map(|interrupt| interrupt()) {
            Some(ControlFlow::Break(())) => Err(tensilo::Error::cancelled().into()),
            _ => Ok(()),
        }
    }

    /// Returns the setup for this process. If it was forked since the datasets were opened, the
    /// result shares no lock with threads of the parent.
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

/// Fails if an epoch has no steps (O-4.5).
pub(super) fn check_steps(division: Division, n: u64) -> Result<()> {
    if division.steps(n, 0) > 0 {
        return Ok(());
    }
    if n == 0 {
        return Err(DataError::BadArgument("there are no samples, so an epoch has no batch".to_owned()));
    }
    let step = division.step_samples();
    Err(DataError::BadArgument(format!(
        "{n} samples do not fill one step of {step} samples (the batches of all ranks): use smaller batches, or set \
         last_batch to pad or exact"
    )))
}

fn default_order(view: &View) -> Order {
    match view.datasets() {
        [dataset] => Order::Windowed(dataset.window_sizes()),
        _ => Order::Sequential, // a mixture is already shuffled
    }
}
