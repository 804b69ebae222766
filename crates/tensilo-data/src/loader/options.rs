//! The options of a loader: what to deliver, in which order, and how.
//!
//! Setters only store values. [`LoaderOptions::loader`] checks the values against the view and
//! resolves them to a setup that never changes. So an invalid option is an error before any thread
//! starts.

use super::deliver::batch::Batch;
use super::deliver::memory::BatchAllocator;
#[cfg(feature = "cuda")]
use super::device::blocks::Device;
use super::handle::{Loader, SampleReader};
use super::plan::columns::ColumnSpecs;
use super::setup::{Interrupt, OnDamage, ReadAhead, Setup, Threads, check_steps};
use super::transform::BatchTransform;
use super::transform::padding::Padding;
#[cfg(feature = "cuda")]
use crate::error::DataError;
use crate::error::Result;
use crate::order::{Division, LastBatch, Order};
use crate::view::View;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tensilo::DType;

/// The options of a [`Loader`].
///
/// ```
/// use tensilo_data::{LoaderOptions, Order, View};
/// # use tensilo::{ColumnSchema, DType, Schema, Shape, Value, Writer, WriterOptions};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("labels.tsl");
/// # let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
/// # let mut writer = Writer::create(&path, schema, &WriterOptions::new())?;
/// # for label in 0..1000_i32 { writer.push(&[Value::tensor(&[label])])?; }
/// # writer.finish()?;
/// let dataset = tensilo_data::Dataset::open(folder.path())?;
/// let options = LoaderOptions::new(256).order(Order::Shuffled).seed(1);
/// let loader = options.loader(&View::all(&dataset))?;
/// for epoch in 0..2 {
///     for batch in loader.epoch(epoch) {
///         let batch = batch?;
///         assert_eq!(batch.column("label")?.values::<i32>()?.len(), 256);
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LoaderOptions {
    batch_size: u32,
    rank: u32,
    world_size: u32,
    last_batch: Option<LastBatch>,
    order: Option<Order>,
    seed: Option<u64>,
    columns: Option<Vec<String>>,
    casts: Vec<(String, DType)>,
    paddings: Vec<(String, Padding)>,
    stored_elements: bool,
    threads: Threads,
    on_damage: OnDamage,
    read_ahead: ReadAhead,
    allocator: Option<Arc<dyn BatchAllocator>>,
    interrupt: Option<Interrupt>,
    transform: Option<BatchTransform>,
    #[cfg(feature = "cuda")]
    gpu: Option<tensilo_cuda::Gpu>,
    #[cfg(feature = "cuda")]
    min_device_bytes: usize,
}

impl fmt::Debug for LoaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch_size, rank, world_size, last_batch, order, seed, columns, .. } = self;
        let shown = (batch_size, rank, world_size, last_batch, order, seed, columns);
        f.debug_tuple("LoaderOptions").field(&shown).finish_non_exhaustive()
    }
}

impl LoaderOptions {
    /// Returns the defaults for batches of `batch_size` samples: all columns, one rank, seed 0,
    /// [`LastBatch::Drop`], and the order that [`LoaderOptions::order`] describes.
    pub fn new(batch_size: u32) -> Self {
        Self {
            batch_size,
            rank: 0,
            world_size: 1,
            last_batch: None,
            order: None,
            seed: None,
            columns: None,
            casts: Vec::new(),
            paddings: Vec::new(),
            stored_elements: false,
            threads: Threads::default(),
            on_damage: OnDamage::Error,
            read_ahead: ReadAhead::Auto,
            allocator: None,
            interrupt: None,
            transform: None,
            #[cfg(feature = "cuda")]
            gpu: None,
            #[cfg(feature = "cuda")]
            min_device_bytes: 1 << 20,
        }
    }

    /// Sets the number of this rank, counted from 0, and the number of ranks.
    pub fn rank(mut self, rank: u32, world_size: u32) -> Self {
        (self.rank, self.world_size) = (rank, world_size);
        self
    }

    /// Sets what happens to the samples at the end of an epoch that do not fill a step.
    pub fn last_batch(mut self, last_batch: LastBatch) -> Self {
        self.last_batch = Some(last_batch);
        self
    }

    /// Sets how samples are shuffled. The default is [`Order::Windowed`] with the sizes that the
    /// dataset's manifest records. A mixture shuffles its samples itself, so its default is
    /// [`Order::Sequential`].
    pub fn order(mut self, order: Order) -> Self {
        self.order = Some(order);
        self
    }

    /// Sets the seed of the order.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Selects columns, in this order. The default is all columns.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Delivers a column as another type. Floats can be cast to any float type; a cast to a
    /// narrower type rounds to nearest, with ties to even. Integers of at most 2 bytes and bools
    /// can be cast to `f32`, and integers of 4 bytes to `f64`. Integers and bools can be cast to
    /// wider integers that represent all of their values.
    pub fn cast(mut self, column: impl Into<String>, to: DType) -> Self {
        self.casts.push((column.into(), to));
        self
    }

    /// Sets whether a column whose stored elements are not its values is delivered in stored form.
    /// This concerns intervals, which are stored as their components, and decimals with a scale or
    /// with more than 18 digits, which are stored as unscaled integers or as the bytes of unscaled
    /// integers. By default, requesting such a column is an error. [`LogicalType::of`] says what
    /// the elements represent. Casting such a column to another type with [`LoaderOptions::cast`]
    /// is still an error.
    ///
    /// Dates, times, timestamps and durations are delivered with either setting, as counts of the
    /// unit that [`LogicalType::of`] returns.
    ///
    /// [`LogicalType::of`]: tensilo::LogicalType::of
    pub fn stored_elements(mut self, stored_elements: bool) -> Self {
        self.stored_elements = stored_elements;
        self
    }

    /// Decodes on a GPU. Batches contain stored blocks, and
    /// [`BatchIterator::on_device`](super::BatchIterator::on_device) decodes them into GPU memory.
    /// Text and lists stay in host memory unless they are padded. Other columns that the GPU cannot
    /// decode are decoded on the host and sent together with the blocks.
    ///
    /// Such a loader supports neither [`LoaderOptions::transform`] nor
    /// [`LoaderOptions::allocator`]. With [`OnDamage::Substitute`], a sample whose checksum does
    /// not match is substituted. If the checksum of a sample matches but its encoding breaks a
    /// rule, reading the batch fails.
    #[cfg(feature = "cuda")]
    pub fn decode_on(mut self, gpu: &tensilo_cuda::Gpu) -> Self {
        self.gpu = Some(gpu.clone());
        self
    }

    /// Sets the minimum size of a batch that the GPU decodes, in delivered bytes. The CPU
    /// decodes smaller batches, which is just as fast, and sends them decoded. The default is 1
    /// MiB; with 0, the GPU decodes every batch. The size of a batch is estimated from the previous
    /// batch.
    #[cfg(feature = "cuda")]
    pub fn min_device_bytes(mut self, bytes: usize) -> Self {
        self.min_device_bytes = bytes;
        self
    }

    /// Delivers a ragged or nested column as a tensor; see [`Padding`].
    pub fn pad(mut self, column: impl Into<String>, padding: Padding) -> Self {
        self.paddings.push((column.into(), padding));
        self
    }

    /// Sets the maximum number of threads that decode concurrently.
    ///
    /// The default, 0, means one less than the number of CPUs that the process can use, but at
    /// least 1. This leaves one CPU for the consumer. Raise this number if the consumer waits and
    /// [`LoaderMetrics`](super::LoaderMetrics) show more decoding than fetching.
    pub fn decode_threads(mut self, threads: usize) -> Self {
        self.threads.decode_threads = threads;
        self
    }

    /// Sets the number of batches that are read concurrently, each by its own thread. While some of
    /// these threads wait for storage, others decode. A value below
    /// [`decode_threads`](Self::decode_threads) is raised to it.
    ///
    /// The default, 0, means the number of decode threads, but at least 4 for objects in a store.
    /// Raise this number if storage has a high latency and
    /// [`LoaderMetrics`](super::LoaderMetrics) show more fetching than decoding.
    ///
    /// If the samples of a batch are in several files that are not open, up to 16 of these files
    /// are opened and read concurrently. With an I/O depth of 1, they are opened and read one after
    /// another.
    pub fn io_depth(mut self, batches: usize) -> Self {
        self.threads.io_depth = batches;
        self
    }

    /// Sets the prefetch depth: the maximum number of batches that are ready or in progress before
    /// the consumer requests them. A value below [`io_depth`](Self::io_depth) is raised to it.
    ///
    /// The default, 0, means twice the I/O depth. Raise this number if the duration of reads or of
    /// the consumer's steps varies a lot, but note that each batch needs memory.
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.threads.prefetch = batches;
        self
    }

    /// Sets what happens to damaged samples. The default is [`OnDamage::Error`].
    pub fn on_damage(mut self, on_damage: OnDamage) -> Self {
        self.on_damage = on_damage;
        self
    }

    /// Sets whether whole runs of a windowed order are prefetched. The default is
    /// [`ReadAhead::Auto`].
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.read_ahead = read_ahead;
        self
    }

    /// Sets an allocator for the values of batches, instead of memory that the loader owns and
    /// reuses. Values of ragged and nested columns are copied into it once.
    pub fn allocator(mut self, allocator: Arc<dyn BatchAllocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Sets a function that is called before each segment of at most 16,384 samples is read or
    /// decoded. If it returns `Break`, reading the batch fails with an error of kind
    /// [`Cancelled`](tensilo::ErrorKind::Cancelled).
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Sets a function that changes each batch, such as a normalization or an augmentation. It runs
    /// after casts and padding, on the thread that decoded the batch, so at most
    /// [`decode_threads`](Self::decode_threads) calls run concurrently. Order, states and receipts
    /// are unaffected. A function that depends only on the batch produces the same values
    /// after a resume. A [`SampleReader`] also calls the function.
    ///
    /// If the function fails or panics, reading the batch fails.
    ///
    /// ```
    /// use tensilo_data::{LoaderOptions, View};
    /// # use tensilo::{ColumnSchema, DType, Schema, Shape, Value, Writer, WriterOptions};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("mel.tsl");
    /// # let schema = Schema::new([ColumnSchema::tensor("mel", DType::F32, Shape::fixed(&[80]))]);
    /// # let mut writer = Writer::create(&path, schema, &WriterOptions::new())?;
    /// # for i in 0..10 { writer.push(&[Value::tensor(&[i as f32; 80])])?; }
    /// # writer.finish()?;
    /// let dataset = tensilo_data::Dataset::open(folder.path())?;
    /// let options = LoaderOptions::new(5).transform(|batch| {
    ///     for value in batch.column_mut("mel")?.values_mut::<f32>()? {
    ///         *value = (*value - 4.5) / 2.9;
    ///     }
    ///     Ok(())
    /// });
    /// for batch in options.loader(&View::all(&dataset))?.epoch(0) {
    ///     assert!(batch?.column("mel")?.values::<f32>()?.iter().all(|value| value.abs() < 2.0));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn transform(
        mut self,
        transform: impl Fn(&mut Batch) -> std::result::Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Returns a loader for a view. Starts no threads and opens no files.
    ///
    /// Fails if an option is not valid for the view: a column does not exist or differs among
    /// datasets, a cast or a padding is not possible, the rank is not below the number of ranks, or
    /// an epoch has no steps. Also fails if the stored elements of a column are not its values,
    /// unless [`LoaderOptions::stored_elements`] is set and the column is not cast.
    pub fn loader(self, view: &View) -> Result<Loader> {
        let setup = self.setup(view)?;
        check_steps(setup.division, view.sample_count())?;
        Ok(Loader::new(setup))
    }

    /// Returns a reader of arbitrary samples of a view for the calling thread, like
    /// [`Loader::reader`](super::Loader::reader). Fails if [`LoaderOptions::loader`] fails, but an
    /// epoch without steps is not an error.
    pub fn reader(self, view: &View) -> Result<SampleReader> {
        Ok(Loader::new(self.setup(view)?).reader())
    }

    /// Reads a range of samples of a view, checks them, and sends them in stored form to the GPU
    /// that was passed to [`LoaderOptions::decode_on`], where they stay. Sends samples from the
    /// start of the range, in uploads of about 64 MiB, and stops before the upload that would
    /// exceed `max_bytes`. Columns must be numeric, and must either have a fixed shape, or be
    /// padded and vary only in the first extent. The only supported casts are from `bf16` and `f16`
    /// to `f32`.
    ///
    /// Calls `progress` with the number of samples sent so far and the total. If `progress` returns
    /// `Break`, fails with an error of kind [`Cancelled`](tensilo::ErrorKind::Cancelled).
    ///
    /// Fails if [`LoaderOptions::loader`] fails, or if the range is not in the view, a sample is
    /// damaged, or a file does not have a column. Cost: reads the columns once.
    #[cfg(feature = "cuda")]
    pub fn resident(
        self,
        view: &View,
        samples: std::ops::Range<u64>,
        max_bytes: usize,
        mut progress: impl FnMut(u64, u64) -> std::ops::ControlFlow<()>,
    ) -> Result<super::ResidentSamples> {
        let missing = || DataError::BadArgument("resident samples need a GPU: set LoaderOptions::decode_on".to_owned());
        let gpu = self.gpu.clone().ok_or_else(missing)?;
        let setup = self.setup(view)?;
        super::device::resident::build(&setup, &gpu, samples, max_bytes, &mut progress)
    }

    fn setup(self, view: &View) -> Result<Setup> {
        let division = Division::new(self.batch_size, self.world_size, self.last_batch.unwrap_or_default())?;
        let columns =
            ColumnSpecs::new(view, self.columns.as_deref(), &self.casts, &self.paddings, self.stored_elements)?;
        let explicit = (self.order, self.seed, self.last_batch);
        let mut setup =
            Setup::new(view.clone(), division, self.rank, columns)?.explicit(explicit).threads(self.threads);
        (setup.on_damage, setup.read_ahead) = (self.on_damage, self.read_ahead);
        (setup.allocator, setup.interrupt, setup.transform) = (self.allocator, self.interrupt, self.transform);
        #[cfg(feature = "cuda")]
        if let Some(gpu) = self.gpu {
            if setup.transform.is_some() || setup.allocator.is_some() {
                let message = "a loader that decodes on a GPU supports neither LoaderOptions::transform nor LoaderOptions::allocator";
                return Err(DataError::BadArgument(message.to_owned()));
            }
            setup.device = Some(Device::new(gpu, self.min_device_bytes, setup.threads.prefetch.saturating_add(2)));
        }
        if setup.order == Order::Shuffled {
            setup.view = setup.view.for_shuffled();
        }
        Ok(setup)
    }
}
