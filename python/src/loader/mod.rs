//! `Loader`: batches that threads read ahead of time.
//!
//! The loader of the crates has threads, an order and a state. The class of Python adds what a
//! training loop expects: each `for` is an epoch, `state_dict()` is where the loop is, and options
//! have names. The place moves only when a batch is delivered, so batches that were read ahead
//! count as not seen.
//!
//! The files of this folder are the iterators and the place that they move, GPUs that decode
//! batches, and samples that stay on a GPU.

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
use crate::loader::iterator::{Cursor, DeviceIterator, Iteration, LoaderIterator, lock};
use crate::schema::hex;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use tensilo_data::{
    BatchIterator, LastBatch, LoaderOptions, OnDamage, Order, Padding, SampleReader, State, WindowSizes,
};

/// Batches of a dataset, which threads read before they are asked for.
///
/// ``for batch in loader`` delivers the batches of an epoch, and the next ``for`` those of the next
/// epoch, also if the first was left early. ``state_dict()`` is where the loader is, and
/// ``load_state_dict`` goes on there, also with another number of ranks or another batch size: no
/// sample is lost or repeated.
///
/// Args:
///     dataset: a ``Dataset``, or what ``open`` takes.
///     batch_size: the samples of a batch of this rank.
///     columns: the names of the columns; all by default.
///     dtypes: types that columns become, such as ``{"mel": "f32"}``.
///     pad: columns of samples of different shapes that become one tensor: a dict from names to the
///         value of what is filled up, or to ``(value, multiple)``.
///     order: "windowed" (the default), which shuffles runs of samples and then samples in windows
///         of runs, so that files are read in long pieces; "shuffled", any sample after any other;
///         or "sequential".
///     window: ``(samples of a run, runs of a window)``, of the order "windowed".
///     seed: that of the order; 0 by default.
///     last_batch: how an epoch ends: "drop" leaves out what does not fill a batch of each rank,
///         "pad" repeats samples from the beginning, "exact" delivers each sample once, in smaller
///         batches.
///     rank, world_size: the number of this rank, counted from 0, and how many there are.
///     decode_threads: the maximum number of threads that decode at the same time. "auto" (the
///         default) leaves a processor to the training. Raise it if ``stats()`` show more decoding
///         than fetching, and the training waits.
///     io_depth: the number of batches that are read at the same time. The default, 0, is the
///         number of decode threads, and at least 4 for objects of a store. Raise it for storage
///         with a high latency.
///     prefetch: the maximum number of batches that are ready or in work. The default, 0, is twice
///         the I/O depth. Raise it if the times of steps or of the storage vary much.
///     on_damage: "error", or "substitute": other samples take the places of damaged ones, the same
///         ones on every rank.
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
    /// Returns the samples that it delivers.
    pub fn view(&self) -> tensilo_data::View {
        self.opened.view.for_this_process()
    }

    /// Begins an iteration. Returns its batches and its number.
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

    /// Returns the state at which the next iteration begins, or the one that the last has reached.
    fn state(&self) -> State {
        let cursor = lock(&self.cursor);
        match cursor.reached.or(cursor.loaded) {
            Some(state) => state,
            None => self.loader.state(cursor.epoch),
        }
    }
}

/// Returns a dataset, or opens what [`open`](dataset::open) takes.
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
            dataset, batch_size, *, columns=None, dtypes=None, pad=None, order=None, window=None, seed=None,
            last_batch=None, rank=Natural(0), world_size=Natural(1), decode_threads=Threads(0),
            io_depth=Natural(0), prefetch=Natural(0), on_damage="error", _gpu=None, _min_device_bytes=None,
        ),
        text_signature = "(dataset, batch_size, *, columns=None, dtypes=None, pad=None, order=None, \
            window=None, seed=None, last_batch=None, rank=0, world_size=1, decode_threads='auto', io_depth=0, \
            prefetch=0, on_damage='error', _gpu=None, _min_device_bytes=None)",
    )]
    #[expect(clippy::too_many_arguments, reason = "the options of Python")]
    fn new(
        py: Python<'_>,
        dataset: &Bound<'_, PyAny>,
        batch_size: Natural<u32>,
        columns: Option<Bound<'_, PyAny>>,
        dtypes: Option<Dict<'_>>,
        pad: Option<Dict<'_>>,
        order: Option<&str>,
        window: Option<(Natural<u32>, Natural<u32>)>,
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
        let window = window.map(|(run, window)| (run.0, window.0));
        if order.is_some() || window.is_some() {
            options =
                options.order(parse_order(order.unwrap_or("windowed"), window, opened.dataset.window_sizes(), py)?);
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
        for (column, dtype) in arguments::dtypes(dtypes.as_ref())? {
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

    /// The epoch of the state, counted from 0: that of the batch which comes next if the loader
    /// goes on. After the last batch of an epoch, it is the next one. A new ``for`` goes on in it
    /// only if a state was loaded or all batches were taken; otherwise it begins the next epoch.
    #[getter]
    fn epoch(&self) -> u64 {
        let cursor = lock(&self.cursor);
        cursor.reached.or(cursor.loaded).map_or(cursor.epoch, |state| state.epoch)
    }

    /// Makes the next iteration begin at the start of an epoch. After ``load_state_dict``, that is
    /// not needed: the next iteration goes on where the state is.
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
        let text = c"set_epoch begins the epoch of the loaded state again, so samples repeat; to go on in it, do not call set_epoch before the first iteration";
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), text, 1)
    }

    /// Returns where the loader is: after the batches that were taken. The dict can be pickled or
    /// written as JSON. All ranks have the same, but for their receipts.
    fn state_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.state();
        let dict = PyDict::new(py);
        dict.set_item("tensilo", 1)?;
        dict.set_item("epoch", state.epoch)?;
        dict.set_item("position", state.position)?;
        dict.set_item("state", hex(&state.to_bytes()))?;
        Ok(dict)
    }

    /// Makes the next iteration go on where a loader of the same dataset was, of any batch size and
    /// any number of ranks.
    ///
    /// Raises:
    ///     ValueError: the state is of another dataset, order or seed, or is damaged.
    fn load_state_dict(&self, py: Python<'_>, state_dict: &Bound<'_, PyDict>) -> PyResult<()> {
        let wrong = || PyValueError::new_err("this is no state of a loader: pass what state_dict() has returned");
        let text: String = state_dict.get_item("state")?.ok_or_else(wrong)?.extract()?;
        let bytes = unhex(&text).ok_or_else(wrong)?;
        let state = State::from_bytes(&bytes).or_raise(py)?;
        py.detach(|| self.loader.check(&state)).or_raise(py)?;
        let mut cursor = lock(&self.cursor);
        (cursor.epoch, cursor.loaded, cursor.reached, cursor.has_taken) = (state.epoch, Some(state), None, false);
        Ok(())
    }

    /// Returns the numbers of the samples that this rank takes in a step of the current epoch,
    /// counted from 0 at its beginning, or at a position.
    #[pyo3(signature = (step, *, position=Natural(0)), text_signature = "($self, step, *, position=0)")]
    fn samples(&self, py: Python<'_>, step: Natural<u64>, position: Natural<u64>) -> PyResult<Array> {
        let epoch = self.epoch();
        let (step, position) = (step.0, position.0);
        let steps = step.saturating_mul(u64::from(self.batch_size)).saturating_mul(self.world_size.into());
        let position = position.saturating_add(steps);
        let samples = py.detach(|| self.loader.samples(epoch, position)).or_raise(py)?;
        let samples = samples.into_iter().map(i64::try_from).collect::<Result<_, _>>()?;
        Ok(Array::from_numbers(samples))
    }

    /// Returns what the loader did in the last iteration, and a sentence on what to do, "verdict".
    /// Times are in seconds.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = lock(&self.cursor).metrics.unwrap_or_default();
        let dict = PyDict::new(py);
        dict.set_item("batches", metrics.batches)?;
        dict.set_item("samples", metrics.samples)?;
        dict.set_item("value_bytes", metrics.value_bytes)?;
        dict.set_item("read_bytes", metrics.read_bytes)?;
        dict.set_item("substitutes", metrics.substitutes)?;
        dict.set_item("elapsed", metrics.elapsed.as_secs_f64())?;
        dict.set_item("waited", metrics.waited.as_secs_f64())?;
        dict.set_item("first_batch", metrics.first_batch.as_secs_f64())?;
        dict.set_item("planning", metrics.planning.as_secs_f64())?;
        dict.set_item("fetching", metrics.fetching.as_secs_f64())?;
        dict.set_item("decoding", metrics.decoding.as_secs_f64())?;
        dict.set_item("copied_bytes", metrics.copied_bytes)?;
        dict.set_item("copying", metrics.copying.as_secs_f64())?;
        dict.set_item("device_decoding", metrics.device_decoding.as_secs_f64())?;
        dict.set_item("device_waited", metrics.device_waited.as_secs_f64())?;
        dict.set_item("verdict", metrics.verdict())?;
        Ok(dict)
    }

    /// Returns a reader of any samples with the columns, dtypes and paddings of this loader. It has
    /// no threads.
    fn reader(&self, py: Python<'_>) -> LoaderReader {
        LoaderReader { process: process::id(), reader: Mutex::new(py.detach(|| self.loader.reader())) }
    }

    /// The number of batches from a position of an epoch to its end.
    fn _batches_from(&self, position: u64) -> u64 {
        self.loader.batches_from(position)
    }

    /// The number of batches that the next ``for`` delivers: fewer than ``len`` after a state
    /// inside of an epoch was loaded.
    #[getter]
    fn batches_left(&self) -> u64 {
        self.loader.batches_from(lock(&self.cursor).next_position())
    }

    /// The number of batches of a whole epoch.
    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.loader.batches_per_epoch())?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<LoaderIterator> {
        let (batches, iteration) = self.begin(py)?;
        Ok(LoaderIterator(Iteration::new(batches, &self.cursor, iteration)))
    }

    /// As ``iter``, with batches that the GPU of the loader decodes to memory that ``allocate``
    /// returns for a number of bytes: anything with the method ``data_ptr``. An item is the batch,
    /// in which some columns have no values, and the memory.
    ///
    /// The memory belongs to ``stream``, or was used on it last.
    fn _iter_on_device(&self, py: Python<'_>, allocate: Py<PyAny>, stream: u64) -> PyResult<DeviceIterator> {
        let (batches, iteration) = self.begin(py)?;
        let batches = batches.on_device(PythonAllocator { allocate, stream });
        Ok(DeviceIterator(Iteration::new(batches, &self.cursor, iteration)))
    }

    fn __repr__(&self) -> String {
        format!(
            "Loader({} samples in batches of {}, epoch {}, {} batches)",
            self.opened.view.n(),
            self.batch_size,
            self.epoch(),
            self.loader.batches_per_epoch()
        )
    }
}

/// Reads samples as a loader delivers them, by the thread that calls it.
#[pyclass(frozen, module = "tensilo")]
pub struct LoaderReader {
    process: u32,
    reader: Mutex<SampleReader>,
}

impl LoaderReader {
    fn check_process(&self) -> PyResult<()> {
        match self.process == process::id() {
            true => Ok(()),
            false => {
                Err(PyRuntimeError::new_err("this process was forked after the reader was made: make another one"))
            }
        }
    }
}

#[pymethods]
impl LoaderReader {
    /// Reads samples, in this order, and repeated ones each time.
    fn take(&self, py: Python<'_>, indices: Bound<'_, PyAny>) -> PyResult<Batch> {
        self.check_process()?;
        let samples = indices::from_object(&indices, u64::MAX)?;
        let read = || self.reader.lock().unwrap_or_else(PoisonError::into_inner).take(&samples);
        Ok(Batch::new(py.detach(read).or_raise(py)?))
    }

    /// As ``take``, with samples that the GPU of the loader decodes, see
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

/// Returns the paddings that a caller asks for.
fn paddings(pad: Option<&Dict<'_>>) -> PyResult<Vec<(String, Padding)>> {
    let Some(pad) = pad else { return Ok(Vec::new()) };
    let padding = |(name, how): (String, Bound<'_, PyAny>)| {
        let wrong = |_| PyTypeError::new_err("pad: a dict from names to values, or to (value, multiple)");
        let (value, multiple) = match how.extract::<(PaddingValue, u32)>() {
            Ok(both) => both,
            Err(_) => (how.extract().map_err(wrong)?, 1),
        };
        Ok((name, Padding::new().value(value.0).multiple(multiple)))
    };
    members(pad)?.into_iter().map(padding).collect()
}

fn parse_order(order: &str, window: Option<(u32, u32)>, of_dataset: WindowSizes, py: Python<'_>) -> PyResult<Order> {
    match (order, window) {
        ("windowed", Some((run, window))) => WindowSizes::new(run, window).or_raise(py).map(Order::Windowed),
        ("windowed", None) => Ok(Order::Windowed(of_dataset)),
        (_, Some(_)) => Err(PyValueError::new_err("window is for order=\"windowed\"")),
        ("shuffled", None) => Ok(Order::Shuffled),
        ("sequential", None) => Ok(Order::Sequential),
        (other, None) => {
            Err(PyValueError::new_err(format!("{other:?} is no order; there are windowed, shuffled and sequential")))
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
        "error" => Ok(OnDamage::Fail),
        "substitute" => Ok(OnDamage::Substitute),
        other => Err(PyValueError::new_err(format!("on_damage={other:?}: pass \"error\" or \"substitute\""))),
    }
}

/// Returns the bytes of hexadecimal digits.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
