//! The options of a loader: what to deliver, in which order, and how.
//!
//! They are checked when a loader or a reader is made from them, against the view. Then they are
//! resolved to a setup, which never changes.

use super::deliver::batch::Batch;
use super::deliver::memory::BatchAllocator;
#[cfg(feature = "cuda")]
use super::device::blocks::Device;
use super::handle::{Loader, SampleReader};
use super::plan::columns::ColumnSpecs;
use super::setup::{Interrupt, OnDamage, ReadAhead, Setup, Threads, check_steps};
use super::transform::BatchMap;
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
/// let loader = LoaderOptions::new(256).order(Order::Shuffled).seed(1).loader(&View::all(&dataset))?;
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
    batch: u32,
    rank: u32,
    world: u32,
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
    map: Option<BatchMap>,
    #[cfg(feature = "cuda")]
    gpu: Option<tensilo_cuda::Gpu>,
    #[cfg(feature = "cuda")]
    min_device_bytes: usize,
}

impl fmt::Debug for LoaderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batch, rank, world, last_batch, order, seed, columns, .. } = self;
        let shown = (batch, rank, world, last_batch, order, seed, columns);
        f.debug_tuple("LoaderOptions").field(&shown).finish_non_exhaustive()
    }
}

impl LoaderOptions {
    /// Returns the defaults for batches of so many samples: all columns, one rank, seed 0,
    /// [`LastBatch::Drop`], and the order that [`LoaderOptions::order`] describes.
    pub fn new(batch: u32) -> Self {
        Self {
            batch,
            rank: 0,
            world: 1,
            last_batch: None,
            order: None,
            seed: None,
            columns: None,
            casts: Vec::new(),
            paddings: Vec::new(),
            stored_elements: false,
            threads: Threads::default(),
            on_damage: OnDamage::Fail,
            read_ahead: ReadAhead::Auto,
            allocator: None,
            interrupt: None,
            map: None,
            #[cfg(feature = "cuda")]
            gpu: None,
            #[cfg(feature = "cuda")]
            min_device_bytes: 1 << 20,
        }
    }

    /// Sets the number of this rank, counted from 0, and the number of ranks.
    pub fn rank(mut self, rank: u32, world: u32) -> Self {
        (self.rank, self.world) = (rank, world);
        self
    }

    /// Sets how the last step of an epoch ends.
    pub fn last_batch(mut self, last_batch: LastBatch) -> Self {
        self.last_batch = Some(last_batch);
        self
    }

    /// Sets how samples are shuffled. The default is [`Order::Windowed`] with the sizes that the
    /// manifest of the dataset records, and for a mixture, which is shuffled by itself,
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

    /// Chooses columns, in this order.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Delivers a column as another type: floats as any float, rounded to nearest even if it is
    /// narrower; integers of at most 2 bytes and bools as `f32`; integers and bools as wider
    /// integers that have all their values.
    pub fn cast(mut self, column: impl Into<String>, to: DType) -> Self {
        self.casts.push((column.into(), to));
        self
    }

    /// Sets whether columns whose stored elements are not their values are delivered as they are
    /// stored: the unscaled integers of decimals, or their bytes, and the parts of intervals
    /// (default: no, such a column is an error). [`LogicalType::of`] tells what they stand for.
    /// [`LoaderOptions::cast`] to another type stays an error for such a column.
    ///
    /// Dates, times, timestamps and durations are delivered either way, as counts of the unit that
    /// [`LogicalType::of`] tells.
    ///
    /// [`LogicalType::of`]: tensilo::LogicalType::of
    pub fn stored_elements(mut self, stored_elements: bool) -> Self {
        self.stored_elements = stored_elements;
        self
    }

    /// Decodes on a GPU: batches have blocks as they are stored, and
    /// [`BatchIterator::on_device`](super::BatchIterator::on_device) decodes them to memory of the
    /// GPU. Texts and lists stay in the memory of the host, unless they are padded; columns that a
    /// GPU cannot decode are decoded here, and sent with the others.
    ///
    /// Such a loader has no [`LoaderOptions::map`] and no [`LoaderOptions::allocator`]. With
    /// [`OnDamage::Substitute`], a sample whose checksum does not match is substituted; one whose
    /// checksum is right, and which breaks a rule of its encoding, is an error of its batch.
    #[cfg(feature = "cuda")]
    pub fn decode_on(mut self, gpu: &tensilo_cuda::Gpu) -> Self {
        self.gpu = Some(gpu.clone());
        self
    }

    /// Sets the minimum size of a batch that the GPU decodes, in delivered bytes. Smaller batches
    /// are decoded by the processor, which is as fast with them, and sent decoded. The default is
    /// 1 MiB; with 0, the GPU decodes all. A batch is expected to be as long as the one before.
    #[cfg(feature = "cuda")]
    pub fn min_device_bytes(mut self, bytes: usize) -> Self {
        self.min_device_bytes = bytes;
        self
    }

    /// Delivers a ragged or nested column as a tensor, see [`Padding`].
    pub fn pad(mut self, column: impl Into<String>, padding: Padding) -> Self {
        self.paddings.push((column.into(), padding));
        self
    }

    /// Sets the maximum number of threads that decode at the same time.
    ///
    /// The default, 0, is one less than the processors of the machine, and at least 1: it leaves
    /// one to the consumer. Raise it if [`LoaderMetrics`](super::LoaderMetrics) show more decoding
    /// than fetching, and the consumer waits.
    pub fn decode_threads(mut self, threads: usize) -> Self {
        self.threads.decode_threads = threads;
        self
    }

    /// Sets the number of batches that are read at the same time, each by a thread of its own.
    /// While some of these threads wait for storage, others decode. A value below
    /// [`decode_threads`](Self::decode_threads) is raised to it.
    ///
    /// The default, 0, is the number of decode threads, and at least 4 for objects of a store.
    /// Raise it for storage with a high latency, if [`LoaderMetrics`](super::LoaderMetrics) show
    /// more fetching than decoding.
    ///
    /// A batch of samples from several files that are not open opens and reads up to 16 of them at
    /// the same time. If this is set to 1, it opens and reads one after the other.
    pub fn io_depth(mut self, batches: usize) -> Self {
        self.threads.io_depth = batches;
        self
    }

    /// Sets the prefetch depth: the maximum number of batches that are ready or in work before the
    /// consumer asks for them. A value below [`io_depth`](Self::io_depth) is raised to it.
    ///
    /// The default, 0, is twice the I/O depth. Raise it if the steps of the consumer, or the
    /// answers of the storage, take times that vary much. Each batch takes memory.
    pub fn prefetch(mut self, batches: usize) -> Self {
        self.threads.prefetch = batches;
        self
    }

    /// Sets what happens to samples that are damaged.
    pub fn on_damage(mut self, on_damage: OnDamage) -> Self {
        self.on_damage = on_damage;
        self
    }

    /// Sets whether whole runs of a windowed order are announced to the operating system.
    pub fn read_ahead(mut self, read_ahead: ReadAhead) -> Self {
        self.read_ahead = read_ahead;
        self
    }

    /// Sets where values are decoded to, instead of memory of the loader that is reused. Values of
    /// ragged and nested columns are copied there once.
    pub fn allocator(mut self, allocator: Arc<dyn BatchAllocator>) -> Self {
        self.allocator = Some(allocator);
        self
    }

    /// Sets what is asked before each piece of 16,384 samples of a batch whether to go on: if it
    /// breaks, the batch is an error of kind [`Cancelled`](tensilo::ErrorKind::Cancelled).
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Sets a function that changes each batch, such as a normalization or an augmentation. It runs
    /// after casts and paddings, on the thread that decoded the batch, so that no more than
    /// [`decode_threads`](Self::decode_threads) run at the same time. Order, states and receipts
    /// stay the same: a function that depends on nothing but the batch gives the same values after
    /// a resume. A [`SampleReader`] runs it, too.
    ///
    /// If it fails or panics, the batch is an error.
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
    /// let options = LoaderOptions::new(5).map(|batch| {
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
    pub fn map(
        mut self,
        map: impl Fn(&mut Batch) -> std::result::Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        self.map = Some(Arc::new(map));
        self
    }

    /// Returns the loader of a view. Starts no thread and opens no file.
    ///
    /// Fails if an argument does not fit: a column that does not exist or differs among datasets, a
    /// cast or a padding that is not possible, a rank outside of the world, an epoch without a
    /// step; a column of decimals or intervals, unless [`LoaderOptions::stored_elements`] is set
    /// and the column is not cast.
    pub fn loader(self, view: &View) -> Result<Loader> {
        let setup = self.setup(view)?;
        check_steps(setup.division, view.n())?;
        Ok(Loader::new(setup))
    }

    /// Returns a reader of any samples of a view, for the calling thread: that of
    /// [`Loader::reader`](super::Loader::reader), also where an epoch has no step. Fails as
    /// [`LoaderOptions::loader`] does.
    pub fn reader(self, view: &View) -> Result<SampleReader> {
        Ok(Loader::new(self.setup(view)?).reader())
    }

    /// Reads a range of the samples of a view, checks them, and sends them as they are stored to
    /// the GPU of [`LoaderOptions::decode_on`], where they stay: as many from the first on as
    /// `max_bytes` have room for, in whole pieces of about 64 MiB. Columns are numbers of a fixed
    /// shape, or padded ones whose first extent varies. The GPU casts `bf16` and `f16` to `f32`,
    /// and nothing else.
    ///
    /// `progress` is told how many samples are sent, and of how many; if it breaks, the error is of
    /// kind [`Cancelled`](tensilo::ErrorKind::Cancelled).
    ///
    /// Fails as [`LoaderOptions::loader`] does, or if the range is not in the view, if a sample is
    /// damaged, or if files do not have a column. Cost: reading the columns once.
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
        let division = Division::new(self.batch, self.world, self.last_batch.unwrap_or_default())?;
        let columns =
            ColumnSpecs::new(view, self.columns.as_deref(), &self.casts, &self.paddings, self.stored_elements)?;
        let explicit = (self.order, self.seed, self.last_batch);
        let mut setup =
            Setup::new(view.clone(), division, self.rank, columns)?.explicit(explicit).threads(self.threads);
        (setup.on_damage, setup.read_ahead) = (self.on_damage, self.read_ahead);
        (setup.allocator, setup.interrupt, setup.map) = (self.allocator, self.interrupt, self.map);
        #[cfg(feature = "cuda")]
        if let Some(gpu) = self.gpu {
            if setup.map.is_some() || setup.allocator.is_some() {
                let message = "a loader that decodes on a GPU has no function of batches and no allocator";
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
