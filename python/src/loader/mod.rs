//! `Loader`: batches that threads prefetch.
//!
//! The Rust loader, in `tensilo-data`, has threads, an order and a state. The Python class adds
//! what a training loop expects: each `for` is an epoch, `state_dict()` returns the progress of the
//! loop, and options are keyword arguments. Only delivering a batch advances the state, so
//! prefetched batches that the loop has not seen are not lost: after a restart, they are fetched
//! again.
//!
//! In this folder, `iterator` has the iterators and the cursor that they advance. `gpu` has the
//! GPUs that decode batches, and `resident` has the samples that stay in GPU memory.

pub mod gpu;
pub mod iterator;
pub mod resident;

use crate::arguments::{self, Dict, Natural, PaddingValue, Threads, members};
use crate::array::{Array, indices};
use crate::batch::Batch;
use crate::dataset::opened::{OpenDataset, named_columns};
use crate::dataset::{self, Dataset};
use crate::error::OrRaise;
use crate::loader::gpu::{Gpu, PythonAllocator};
use crate::loader::iterator::{Cursor, DeviceIterator, Iteration, PyBatchIterator, lock};
use crate::schema::hex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_data::{
    BatchIterator, LastBatch, LoaderOptions, OnDamage, Order, Padding, SampleReader, State, WindowSizes,
};

/// Delivers the batches of a dataset, which threads prefetch.
///
/// ``for batch in loader`` delivers the batches of one epoch. The next ``for`` delivers the next
/// epoch, even if the loop left the previous one early. ``state_dict()`` returns the state of the
/// loader, and ``load_state_dict()`` resumes from it, even with a different number of ranks or a
/// different batch size. No sample is lost or repeated.
///
/// Args:
///     dataset (Dataset, path or list of paths): the dataset, or a source for ``open``.
///     batch_size (int): the number of samples in a batch of this rank.
///     columns (list of str, optional): the columns to read. Default: all columns.
///     casts (dict, optional): the dtypes to convert columns to, such as ``{"mel": "f32"}``.
///         Default: the stored dtypes.
///     pad (dict, optional): the columns to pad, so that samples of different shapes become one
///         tensor: a dict from column names to padding values or ``(value, multiple)`` pairs. The
///         padded extents are rounded up to a multiple of ``multiple``. Default: no padding.
///     order (str, optional): "windowed" shuffles runs of samples, and then the samples within
///         windows of runs, so that files are read in long ranges. "shuffled" is a uniform shuffle
///         of all samples. "sequential" does not shuffle. Default: "windowed".
///     window_sizes (tuple of int, optional): ``(samples per run, runs per window, streams)`` for
///         "windowed". Default: the sizes that the dataset records.
///     seed (int, optional): the seed of the shuffle. Default: 0.
///     last_batch (str, optional): what happens to samples that do not fill a batch on every rank.
///         "drop" leaves them out, "pad" adds samples from the start of the epoch, and "exact"
///         delivers every sample once, in smaller batches. Default: "drop".
///     rank (int, optional): the rank of this process, counted from 0. Default: 0.
///     world_size (int, optional): the number of ranks. Default: 1.
///     decode_threads (int or "auto", optional): the maximum number of threads that decode at the
///         same time. "auto" leaves one CPU for training. Raise it if the training waits and
///         ``metrics()`` shows more decoding than fetching. Default: "auto".
///     io_depth (int, optional): the number of batches that are fetched at the same time. 0 means
///         the number of decode threads, but at least 4 in an object store. Raise it for storage
///         with high latency. Default: 0.
///     prefetch (int, optional): the maximum number of batches that are ready or in flight. 0 means
///         twice the I/O depth. Raise it if step times or storage latency vary. Default: 0.
///     on_damage (str, optional): "error" raises an exception at a damaged sample; "substitute"
///         replaces it with another sample, the same one on every rank. Default: "error".
#[pyclass(frozen, module = "tensilo", weakref)]
pub struct Loader {
    opened: Arc<OpenDataset>,
    pub options: LoaderOptions,
    loader: tensilo_data::Loader,
    batch_size: u32,
    world_size: u32,
    cursor: Arc<Mutex<Cursor>>,
}

impl Loader {
    /// Returns the view that the loader delivers.
    pub fn view(&self) -> tensilo_data::View {
        self.opened.view.for_this_process()
    }

    /// Starts an iteration. Returns its batches and its number.
    fn begin(&self, py: Python<'_>) -> PyResult<(BatchIterator, u64)> {
        let (epoch, loaded, iteration) = {
            let mut cursor = lock(&self.cursor);
            cursor.begin_again();
            (cursor.has_taken, cursor.iteration) = (false, cursor.iteration.wrapping_add(1));
            (cursor.epoch, cursor.loaded.take(), cursor.iteration)
        };
        let batches = py
            .detach(|| match loaded {
                Some(state) => self.loader.resume(&state),
                None => Ok(self.loader.epoch(epoch)),
            })
            .or_raise(py)?;
        lock(&self.cursor).reached = Some(batches.state());
        Ok((batches, iteration))
    }

    /// Returns the state that the last iteration reached, or the state at which the first iteration
    /// starts.
    fn state(&self) -> State {
        let cursor = lock(&self.cursor);
        match cursor.reached.or(cursor.loaded) {
            Some(state) => state,
            None => self.loader.state(cursor.epoch),
        }
    }
}

/// Returns `source` if it is a dataset; otherwise passes it to [`open`](dataset::open).
fn opened<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Dataset>> {
    match source.cast::<Dataset>() {
        Ok(dataset) => Ok(dataset.clone()),
        Err(_) => Bound::new(source.py(), dataset::open(source.py(), source.clone(), None, "auto", None)?),
    }
}

#[pymethods]
impl Loader {
    #[new]
    #[pyo3(
        signature = (
            dataset, batch_size, *, columns=None, casts=None, pad=None, order=None, window_sizes=None, seed=None,
            last_batch=None, rank=Natural(0), world_size=Natural(1), decode_threads=Threads(0),
            io_depth=Natural(0), prefetch=Natural(0), on_damage="error", _gpu=None, _min_device_bytes=None,
        ),
        text_signature = "(dataset, batch_size, *, columns=None, casts=None, pad=None, order=None, \
            window_sizes=None, seed=None, last_batch=None, rank=0, world_size=1, decode_threads='auto', io_depth=0, \
            prefetch=0, on_damage='error', _gpu=None, _min_device_bytes=None)",
    )]
    #[expect(clippy::too_many_arguments, reason = "one parameter per Python argument")]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, PyAny>,
        batch_size: Natural<u32>,
        columns: Option<Bound<'_, PyAny>>,
        casts: Option<Dict<'_>>,
        pad: Option<Dict<'_>>,
        order: Option<&str>,
        window_sizes: Option<(Natural<u32>, Natural<u32>, Natural<u32>)>,
        seed: Option<Natural<u64>>,
        last_batch: Option<&str>,
        rank: Natural<u32>,
        world_size: Natural<u32>,
        decode_threads: Threads,
        io_depth: Natural<usize>,
        prefetch: Natural<usize>,
        on_damage: &str,
        _gpu: Option<Bound<'_, Gpu>>,
        _min_device_bytes: Option<Natural<usize>>,
    ) -> PyResult<Self> {
        let opened = opened(dataset)?.get().opened(py)?;
        let (batch_size, world_size) = (batch_size.0, world_size.0);
        let mut options = LoaderOptions::new(batch_size)
            .rank(rank.0, world_size)
            .decode_threads(decode_threads.0)
            .io_depth(io_depth.0)
            .prefetch(prefetch.0)
            .on_damage(self::on_damage(on_damage)?);
        if order.is_some() || window_sizes.is_some() {
            options = options.order(parse_order(
                order.unwrap_or("windowed"),
                window_sizes,
                opened.dataset.window_sizes(),
                py,
            )?);
        }
        if let Some(seed) = seed {
            options = options.seed(seed.0);
        }
        if let Some(name) = last_batch {
            options = options.last_batch(self::last_batch(name)?);
        }
        if let Some(columns) = named_columns(columns, &opened)? {
            options = options.columns(columns);
        }
        for (column, dtype) in arguments::casts(casts.as_ref())? {
            options = options.cast(column, dtype);
        }
        for (column, padding) in paddings(pad.as_ref())? {
            options = options.pad(column, padding);
        }
        if let Some(gpu) = _gpu {
            options = options.decode_on(&gpu.get().gpu);
        }
        if let Some(bytes) = _min_device_bytes {
            options = options.min_device_bytes(bytes.0);
        }
        let view = opened.view.for_this_process();
        let loader = py.detach(|| options.clone().loader(&view)).or_raise(py)?;
        Ok(Self { opened, options, loader, batch_size, world_size, cursor: Arc::default() })
    }

    /// The epoch of the next batch, counted from 0. After the last batch of an epoch, it is the
    /// next epoch. A new ``for`` continues in this epoch, unless the previous loop left it after
    /// some of its batches: then the new loop starts the following epoch.
    #[getter]
    fn epoch(&self) -> u64 {
        let cursor = lock(&self.cursor);
        cursor.reached.or(cursor.loaded).map_or(cursor.epoch, |state| state.epoch)
    }

    /// Makes the next iteration start at the beginning of an epoch. Do not call it after
    /// ``load_state_dict``, which already resumes at the right place.
    ///
    /// Args:
    ///     epoch (int): the epoch, counted from 0.
    fn set_epoch(&self, py: Python<'_>, epoch: Natural<u64>) -> PyResult<()> {
        let epoch = epoch.0;
        {
            let mut cursor = lock(&self.cursor);
            let is_left = cursor.loaded.is_some_and(|state| state.epoch == epoch && state.position > 0);
            (cursor.epoch, cursor.loaded, cursor.reached, cursor.has_taken) = (epoch, None, None, false);
            if !is_left {
                return Ok(());
            }
        }
        let text = c"set_epoch restarts the epoch of the loaded state, so samples repeat; to resume from the state, do not call set_epoch before the first iteration";
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)
    }

    /// Returns the state after the delivered batches. The dict can be pickled or written as JSON.
    /// It is the same on all ranks, except for their receipts.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.state();
        let dict = PyDict::new(py);
        dict.set_item("tensilo", 1)?;
        dict.set_item("epoch", state.epoch)?;
        dict.set_item("position", state.position)?;
        dict.set_item("state", hex(&state.to_bytes()))?;
        Ok(dict)
    }

    /// Makes the next iteration resume from the state of a loader of the same dataset, order and
    /// seed, with any batch size and number of ranks.
    ///
    /// Args:
    ///     state_dict (dict): the result of ``state_dict``.
    ///
    /// Raises:
    ///     ValueError: the state belongs to a different dataset, order or seed, or is damaged.
    fn load_state_dict(&self, py: Python<'_>, state_dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let wrong = || PyValueError::new_err("not a valid loader state: pass the result of state_dict()");
        let text: String = state_dict.get_item("state")?.ok_or_else(wrong)?.extract()?;
        let bytes = unhex(&text).ok_or_else(wrong)?;
        let state = State::from_bytes(&bytes).or_raise(py)?;
        py.detach(|| self.loader.check(&state)).or_raise(py)?;
        let mut cursor = lock(&self.cursor);
        (cursor.epoch, cursor.loaded, cursor.reached, cursor.has_taken) = (state.epoch, Some(state), None, false);
        Ok(())
    }

    /// Returns the indices of the samples that this rank takes in a step of the current epoch.
    ///
    /// Args:
    ///     step (int): the step, counted from 0 at ``position``.
    ///     position (int, optional): a position in the epoch, counted in samples over all ranks.
    ///         Default: 0, the start of the epoch.
    #[pyo3(signature = (step, *, position=Natural(0)), text_signature = "($self, step, *, position=0)")]
    fn indices(&self, py: Python<'_>, step: Natural<u64>, position: Natural<u64>) -> PyResult<Array> {
        let epoch = self.epoch();
        let (step, position) = (step.0, position.0);
        let steps = step.saturating_mul(u64::from(self.batch_size)).saturating_mul(self.world_size.into());
        let position = position.saturating_add(steps);
        let samples = py.detach(|| self.loader.indices(epoch, position)).or_raise(py)?;
        let samples = samples.into_iter().map(i64::try_from).collect::<Result<_, _>>()?;
        Ok(Array::from_numbers(samples))
    }

    /// Returns the metrics of the last iteration. The entry "verdict" is a sentence that says what
    /// limits the loader and what to change.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = lock(&self.cursor).metrics.unwrap_or_default();
        let dict = PyDict::new(py);
        dict.set_item("batches", metrics.batches)?;
        dict.set_item("samples", metrics.samples)?;
        dict.set_item("value_bytes", metrics.value_bytes)?;
        dict.set_item("read_bytes", metrics.read_bytes)?;
        dict.set_item("substitutes", metrics.substitutes)?;
        dict.set_item("elapsed_seconds", metrics.elapsed.as_secs_f64())?;
        dict.set_item("waited_seconds", metrics.waited.as_secs_f64())?;
        dict.set_item("first_batch_seconds", metrics.first_batch.as_secs_f64())?;
        dict.set_item("planning_seconds", metrics.planning.as_secs_f64())?;
        dict.set_item("fetching_seconds", metrics.fetching.as_secs_f64())?;
        dict.set_item("decoding_seconds", metrics.decoding.as_secs_f64())?;
        dict.set_item("copied_bytes", metrics.copied_bytes)?;
        dict.set_item("copying_seconds", metrics.copying.as_secs_f64())?;
        dict.set_item("device_decoding_seconds", metrics.device_decoding.as_secs_f64())?;
        dict.set_item("device_waited_seconds", metrics.device_waited.as_secs_f64())?;
        dict.set_item("verdict", metrics.verdict())?;
        Ok(dict)
    }

    /// Returns a reader of arbitrary samples with the columns, casts and padding of this loader.
    /// It has no threads.
    fn reader(&self, py: Python<'_>) -> PySampleReader {
        PySampleReader { process: process::id(), reader: Mutex::new(py.detach(|| self.loader.reader())) }
    }

    /// The number of batches from a position of an epoch to its end.
    fn _batches_from(&self, position: u64) -> u64 {
        self.loader.batches_from(position)
    }

    /// The number of batches that the next ``for`` delivers: fewer than ``len(loader)`` if a state
    /// in the middle of an epoch was loaded.
    #[getter]
    fn batches_left(&self) -> u64 {
        self.loader.batches_from(lock(&self.cursor).next_position())
    }

    /// The number of batches of a whole epoch.
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.loader.batches_per_epoch())?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<PyBatchIterator> {
        let (batches, iteration) = self.begin(py)?;
        Ok(PyBatchIterator(Iteration::new(batches, &self.cursor, iteration)))
    }

    /// Iterates like ``iter``, but the GPU of the loader decodes the batches. ``allocate`` takes a
    /// number of bytes and returns memory: any object with a method ``data_ptr``. Each item is a
    /// pair: a batch, and the memory with the values of the columns that the GPU decoded. In the
    /// batch, these columns have no values.
    ///
    /// ``stream`` must be the stream that the memory belongs to or was last used on.
    fn _iter_on_device(&self, py: Python<'_>, allocate: Py<PyAny>, stream: u64) -> PyResult<DeviceIterator> {
        let (batches, iteration) = self.begin(py)?;
        let batches = batches.on_device(PythonAllocator { allocate, stream });
        Ok(DeviceIterator(Iteration::new(batches, &self.cursor, iteration)))
    }

    fn __repr__(&self) -> String {
        format!(
            "Loader({} samples in batches of {}, epoch {}, {} batches)",
            self.opened.view.sample_count(),
            self.batch_size,
            self.epoch(),
            self.loader.batches_per_epoch()
        )
    }
}

/// Reads samples in the form that a loader delivers, on the calling thread.
#[pyclass(frozen, module = "tensilo", name = "SampleReader")]
pub struct PySampleReader {
    process: u32,
    reader: Mutex<SampleReader>,
}

impl PySampleReader {
    fn check_process(&self) -> PyResult<()> {
        match self.process == process::id() {
            true => Ok(()),
            false => {
                Err(PyRuntimeError::new_err("this process was forked after the reader was created: create another one"))
            }
        }
    }
}

#[pymethods]
impl PySampleReader {
    /// Reads samples in the order of ``indices``, which may contain duplicates.
    fn take(&self, py: Python<'_>, indices: Bound<'_, PyAny>) -> PyResult<Batch> {
        self.check_process()?;
        let samples = indices::from_object(&indices, u64::MAX)?;
        let read = || self.reader.lock().unwrap_or_else(PoisonError::into_inner).take(&samples);
        Ok(Batch::new(py.detach(read).or_raise(py)?))
    }

    /// Reads samples like ``take``, but the GPU of the loader decodes them, see
    /// ``Loader._iter_on_device``.
    fn _take_on_device(
        &self,
        py: Python<'_>,
        indices: Bound<'_, PyAny>,
        allocate: Py<PyAny>,
        stream: u64,
    ) -> PyResult<(Batch, Py<PyAny>)> {
        self.check_process()?;
        let samples = indices::from_object(&indices, u64::MAX)?;
        let mut allocator = PythonAllocator { allocate, stream };
        let read = || {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.take_on_device(&samples, &mut allocator)
        };
        let (batch, memory) = py.detach(read).or_raise(py)?;
        Ok((Batch::new(batch), memory.object))
    }
}

/// Returns the requested paddings.
fn paddings(pad: Option<&Dict<'_>>) -> PyResult<Vec<(String, Padding)>> {
    let Some(pad) = pad else { return Ok(Vec::new()) };
    let padding = |(name, how): (String, Bound<'_, PyAny>)| {
        let wrong = |_| PyTypeError::new_err("pad must map column names to values or (value, multiple) pairs");
        let (value, multiple) = match how.extract::<(PaddingValue, u32)>() {
            Ok(both) => both,
            Err(_) => (how.extract().map_err(wrong)?, 1),
        };
        Ok((name, Padding::new().value(value.0).multiple(multiple)))
    };
    members(pad)?.into_iter().map(padding).collect()
}

fn parse_order(
    order: &str,
    sizes: Option<(Natural<u32>, Natural<u32>, Natural<u32>)>,
    of_dataset: WindowSizes,
    py: Python<'_>,
) -> PyResult<Order> {
    match (order, sizes) {
        ("windowed", Some((run, window, streams))) => {
            let sizes = WindowSizes::new(run.0, window.0).and_then(|sizes| sizes.with_streams(streams.0));
            sizes.or_raise(py).map(Order::Windowed)
        }
        ("windowed", None) => Ok(Order::Windowed(of_dataset)),
        (_, Some(_)) => Err(PyValueError::new_err("window_sizes needs order=\"windowed\"")),
        ("shuffled", None) => Ok(Order::Shuffled),
        ("sequential", None) => Ok(Order::Sequential),
        (other, None) => {
            Err(PyValueError::new_err(format!("order={other:?}: pass \"windowed\", \"shuffled\" or \"sequential\"")))
        }
    }
}

fn last_batch(name: &str) -> PyResult<LastBatch> {
    match name {
        "drop" => Ok(LastBatch::Drop),
        "pad" => Ok(LastBatch::Pad),
        "exact" => Ok(LastBatch::Exact),
        other => Err(PyValueError::new_err(format!("last_batch={other:?}: pass \"drop\", \"pad\" or \"exact\""))),
    }
}

fn on_damage(name: &str) -> PyResult<OnDamage> {
    match name {
        "error" => Ok(OnDamage::Error),
        "substitute" => Ok(OnDamage::Substitute),
        other => Err(PyValueError::new_err(format!("on_damage={other:?}: pass \"error\" or \"substitute\""))),
    }
}

/// Converts pairs of hexadecimal digits to bytes; returns `None` if the text is malformed.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
