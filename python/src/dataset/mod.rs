//! `Dataset`: one or more files as one sequence of samples.
//!
//! The Python object has a source and is unopened, open or closed. An unpickled dataset opens its
//! files on first use, so it is cheap to send to a process that may never read from it. When it
//! opens the files, it compares the id of the dataset with the id in the pickle.
//!
//! In this folder, `source` describes where a dataset comes from and which subset of it is read.
//! `opened` has the open dataset with its pool of readers, and `column` a single column.

pub mod column;
pub mod opened;
pub mod source;

use crate::arguments::{self, Dict, Natural};
use crate::array::indices;
use crate::batch::Batch;
use crate::batch::arrow;
use crate::dataset::column::Column;
use crate::dataset::opened::{OpenDataset, Selection, find_column, named_columns};
use crate::dataset::source::{Source, Subset, Uri};
use crate::error::OrRaise;
use crate::schema::{Schema, hex};
use crate::work::wait_for;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PySlice, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum number of list members that are searched for column names.
const MAX_NAMES: usize = 64;

/// A versioned dataset, a file, or a list of files, read as one sequence of samples.
///
/// ``len(dataset)`` is the number of samples. ``dataset[17]`` is one sample as a dict,
/// ``dataset[1000:1256]`` a ``Batch``, and ``dataset["mel"]`` a ``Column``. Threads can share a
/// dataset, and it works in forked processes. ``with tensilo.open(path) as dataset`` closes it at
/// the end of the block; a file is closed once no array is a view of it. The pickle of a dataset
/// that was opened from a path is smaller than 1 KB, because a process that unpickles it opens the
/// files again on first use.
#[pyclass(frozen, module = "tensilo", weakref)]
pub struct Dataset {
    source: Source,
    subset: Subset,
    /// The id that the dataset had when it was pickled.
    expected_id: Option<String>,
    state: Mutex<State>,
}

/// Whether a dataset is open.
enum State {
    /// Opened on first use.
    Unopened,
    Open(Arc<OpenDataset>),
    Closed,
}

impl Dataset {
    /// Opens a source.
    pub fn open(py: Python<'_>, source: Source) -> PyResult<Self> {
        let this = Self { source, subset: Subset::All, expected_id: None, state: Mutex::new(State::Unopened) };
        this.opened(py)?;
        Ok(this)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        matches!(*self.state(), State::Closed)
    }

    /// Returns the open dataset, and opens it if necessary.
    pub fn opened(&self, py: Python<'_>) -> PyResult<Arc<OpenDataset>> {
        match &*self.state() {
            State::Open(opened) => return Ok(Arc::clone(opened)),
            State::Closed => return Err(closed()),
            State::Unopened => {}
        }
        let source = self.source.clone();
        let dataset = wait_for(py, move || source.open())?;
        if let Some(expected_id) = &self.expected_id {
            let found = hex(&dataset.id());
            if found != *expected_id {
                let path = self.source.uri.text();
                return Err(PyValueError::new_err(format!(
                    "{path}: not the dataset that was pickled: expected id {expected_id}, found {found}"
                )));
            }
        }
        // if two threads open it at once, the first to store its result wins
        let opened = py.detach(|| OpenDataset::new(dataset, &self.subset)).or_raise(py)?;
        let mut state = self.state();
        match &*state {
            State::Open(other) => return Ok(Arc::clone(other)),
            State::Closed => return Err(closed()),
            State::Unopened => *state = State::Open(Arc::clone(&opened)),
        }
        Ok(opened)
    }

    /// Returns a subset of the whole dataset.
    fn subset(&self, py: Python<'_>, subset: Subset) -> PyResult<Self> {
        let dataset = self.opened(py)?.dataset.clone();
        let opened = py.detach(|| OpenDataset::new(dataset, &subset)).or_raise(py)?;
        let version = opened.dataset.version();
        let source = Source { version: (version > 0).then_some(version), ..self.source.clone() };
        Ok(Self { source, subset, expected_id: None, state: Mutex::new(State::Open(opened)) })
    }
}

#[cold]
fn closed() -> PyErr {
    PyValueError::new_err("the dataset is closed: open it again")
}

/// Returns an error if a key is a sequence that contains column names.
fn column_name_error(key: &Bound<'_, PyAny>) -> PyResult<Option<PyErr>> {
    if !key.is_instance_of::<PyList>() && !key.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let members: Vec<Bound<'_, PyAny>> = key.try_iter()?.take(MAX_NAMES).collect::<PyResult<_>>()?;
    let is_name = |member: &Bound<'_, PyAny>| member.is_instance_of::<PyString>();
    let message = match members.as_slice() {
        [number, name] | [name, number] if is_name(name) && !is_name(number) => {
            let (name, number) = (name.repr()?, number.repr()?);
            format!(
                "index the sample and the column in two steps: dataset[{number}][{name}] or dataset[{name}][{number}]"
            )
        }
        names if names.iter().any(is_name) => {
            "column names are not indices: use dataset.take(indices, columns=[...])".to_owned()
        }
        _ => return Ok(None),
    };
    Ok(Some(PyTypeError::new_err(message)))
}

#[pymethods]
impl Dataset {
    /// The columns: a mapping from names to ``ColumnType``.
    #[getter]
    fn schema(&self, py: Python<'_>) -> PyResult<Schema> {
        Ok(Schema(self.opened(py)?.dataset.schema().clone()))
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.opened(py)?.dataset.schema().columns.iter().map(|column| column.name.clone()).collect())
    }

    /// The metadata of the dataset: a dict of strings.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metadata = PyDict::new(py);
        for (key, value) in &self.opened(py)?.dataset.schema().metadata {
            metadata.set_item(key, value)?;
        }
        Ok(metadata)
    }

    /// The id of the dataset: 32 hexadecimal digits. It is the same for all versions of a dataset
    /// with a manifest. Without a manifest, it depends on the content of the files.
    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<String> {
        Ok(hex(&self.opened(py)?.dataset.id()))
    }

    /// The version, counted from 1; 0 for files without a manifest.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.opened(py)?.dataset.version())
    }

    /// The path or list of paths that the dataset was opened from.
    #[getter]
    fn uri<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.source.uri.to_object(py)
    }

    /// The I/O method and the reason for it, such as
    /// ("pread", "chosen by the caller").
    #[getter]
    fn io(&self, py: Python<'_>) -> PyResult<(&'static str, &'static str)> {
        let opened = self.opened(py)?;
        let dataset = &opened.dataset;
        Ok((dataset.io().name(), dataset.io_reason()))
    }

    /// Returns the version numbers in the folder, oldest first. The list is empty without a
    /// manifest.
    fn versions(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let opened = self.opened(py)?;
        py.detach(|| opened.dataset.versions()).or_raise(py)
    }

    /// Reads samples in the order of ``indices``, which may contain duplicates.
    ///
    /// Args:
    ///     indices: the sample indices: a list, a range, an array or a tensor of integers, or a
    ///         boolean mask. Negative indices count from the end.
    ///     columns (list of str, optional): the columns to read, in the order of the batch.
    ///         Default: all columns.
    ///     casts (dict, optional): the dtypes to convert columns to, such as ``{"mel": "f32"}``.
    ///         Default: the stored dtypes.
    ///
    /// Raises:
    ///     IndexError: a sample does not exist.
    ///     KeyError: a column does not exist.
    ///     CorruptionError: a sample is damaged.
    ///
    /// Cost: decodes the samples, without the GIL. The size of the dataset does not matter.
    #[pyo3(signature = (indices, columns=None, *, casts=None))]
    fn take(
        &self,
        py: Python<'_>,
        indices: Bound<'_, PyAny>,
        columns: Option<Bound<'_, PyAny>>,
        casts: Option<Dict<'_>>,
    ) -> PyResult<Batch> {
        let opened = self.opened(py)?;
        let samples = indices::from_object(&indices, opened.view.sample_count())?;
        let columns = named_columns(columns, &opened)?;
        let selection = Selection { columns, casts: arguments::casts(casts.as_ref())?, has_out: false };
        Ok(Batch::new(opened.take(py, &selection, &samples)?))
    }

    /// Splits the dataset into disjoint random subsets with these fractions of its samples, for
    /// example ``train, validation = dataset.split([0.95, 0.05])``.
    ///
    /// The subset of a sample depends only on the seed and the index of the sample. So adding
    /// samples later never moves existing samples to another subset, and the fractions are exact
    /// only on average. Each subset has its own sample indices, starting at 0.
    ///
    /// Args:
    ///     fractions (list of float): the fractions, each above 0, with a sum of at most 1.
    ///     seed (int, optional): the seed of the split. Default: 0.
    ///
    /// Cost: 10 ns and 1.1 bits per sample of the dataset.
    #[pyo3(signature = (fractions, *, seed=Natural(0)), text_signature = "($self, fractions, *, seed=0)")]
    fn split(&self, py: Python<'_>, fractions: Vec<f64>, seed: Natural<u64>) -> PyResult<Vec<Self>> {
        if !self.subset.is_all() {
            return Err(PyValueError::new_err("this is already a subset: split the whole dataset"));
        }
        Subset::from_fractions(&fractions, seed.0)?.into_iter().map(|subset| self.subset(py, subset)).collect()
    }

    /// Returns a dataset of these samples, in this order. Also works on subsets.
    ///
    /// Args:
    ///     indices: the sample indices, as in ``take``.
    fn select(&self, py: Python<'_>, indices: Bound<'_, PyAny>) -> PyResult<Self> {
        let opened = self.opened(py)?;
        let view = &opened.view;
        let samples = indices::from_object(&indices, view.sample_count())?;
        let samples: Vec<u64> = py.detach(|| samples.into_iter().filter_map(|i| view.sample(i)).collect());
        self.subset(py, Subset::List(samples.into()))
    }

    /// Returns a column by name.
    fn column(slf: &Bound<'_, Self>, name: &str) -> PyResult<Column> {
        let opened = slf.get().opened(slf.py())?;
        Column::new(slf.as_any(), opened, name)
    }

    /// Returns a stream of all samples, with the Arrow types that the dataset was imported from.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // only a hint: the consumer casts
        if !self.subset.is_all() {
            return Err(PyTypeError::new_err(
                "a subset cannot be exported as an Arrow stream: export its batches, as in pa.table(subset[0:1000])",
            ));
        }
        arrow::dataset_stream(py, self.opened(py)?.for_this_process(), None)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(usize::try_from(self.opened(py)?.view.sample_count())?)
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let opened = self.opened(py)?;
        Ok(find_column(&opened, name).is_ok())
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Ok(name) = key.cast::<PyString>() {
            return Ok(Self::column(slf, name.to_str()?)?.into_pyobject(py)?.into_any());
        }
        let opened = this.opened(py)?;
        let selection = Selection { columns: None, casts: Vec::new(), has_out: false };
        if let Some(index) = indices::single(&key)? {
            let n = opened.view.sample_count();
            let sample = indices::wrapped(index, n).ok_or_else(|| {
                PyIndexError::new_err(format!("sample index {index} is out of range for {n} samples"))
            })?;
            let batch = Batch::new(opened.take(py, &selection, &[sample])?);
            return Ok(batch.row(py, 0)?.into_any());
        }
        let is_sequence = key.is_instance_of::<PySlice>() || key.hasattr("__len__")?;
        if !is_sequence {
            let name = key.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a dataset is indexed by an integer, a slice, a list of integers, a mask or a column name, not {name}"
            )));
        }
        if let Some(error) = column_name_error(&key)? {
            return Err(error);
        }
        let samples = indices::from_object(&key, opened.view.sample_count())?;
        Ok(Batch::new(opened.take(py, &selection, &samples)?).into_pyobject(py)?.into_any())
    }

    /// Closes the dataset. Batches and arrays that were read from it stay valid.
    fn close(&self, py: Python<'_>) {
        let state = std::mem::replace(&mut *self.state(), State::Closed);
        py.detach(|| drop(state)); // closing files can block
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _exception: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> bool {
        self.close(py);
        false
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._rows")?.call_method1("rows", (slf,))
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._show")?.call_method1("dataset_text", (slf, slf.get().is_closed()))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tensilo._show")?.call_method1("dataset_html", (slf, slf.get().is_closed()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("tensilo._tensilo")?.getattr("_reopened")?;
        let opened = self.opened(py)?;
        let (uri, options) = self.source.arguments(py)?;
        let (split, list) = self.subset.to_pickle();
        options.set_item("split", split)?;
        options.set_item("list", list.map(|list| PyBytes::new(py, &list)))?;
        if opened.dataset.version() > 0 {
            options.set_item("version", opened.dataset.version())?;
        }
        Ok((make, (uri, options, hex(&opened.dataset.id())).into_pyobject(py)?))
    }
}

/// Opens a dataset: a file, a folder with a manifest or with ``*.tsl`` files, a pattern such as
/// ``"train/shard-*.tsl"``, or a list of files, which are read as one sequence of samples.
///
/// Args:
///     source (path or list of paths): the file, folder, pattern or list of files.
///     version (int, optional): the version of a dataset with a manifest. Default: the newest.
///     io (str, optional): how files are read. "auto" maps files on a local disk into memory if
///         they fill at most half of it, and otherwise chooses "io_uring" or "pread". "mmap" maps
///         files of any size. "pread" reads one range after another. On Linux, "io_uring" reads all
///         ranges of a batch at the same time, and "direct" also bypasses the page cache, for
///         shuffled datasets larger than memory. Default: "auto".
///     max_open_files (int, optional): the maximum number of files that stay open. Raise it for
///         shuffled datasets of many files. Default: half of the number that the system allows this
///         process to open, but at most 256; 4,096 in an object store.
///
/// While a file is mapped, no process may change or truncate it: the system kills a process that
/// reads truncated pages. Replacing whole files, as tensilo does, is safe. "pread" has no such
/// restriction.
///
/// Raises:
///     FileNotFoundError: the source does not exist.
///     CorruptionError: a file is damaged, or not a tensilo file.
///     UnsupportedError: a file needs a different version or build of this package.
///
/// Cost: reads one manifest, or opens all files if there is none.
#[pyfunction]
#[pyo3(signature = (source, *, version=None, io="auto", max_open_files=None))]
pub fn open(
    py: Python<'_>,
    source: Bound<'_, PyAny>,
    version: Option<Natural<u64>>,
    io: &str,
    max_open_files: Option<Natural<usize>>,
) -> PyResult<Dataset> {
    let uri = Uri::from_object(&source)?;
    let (version, max_open_files) = (version.map(|version| version.0), max_open_files.map(|count| count.0));
    Dataset::open(py, Source::new(uri, version, io.to_owned(), max_open_files)?)
}

/// Restores a dataset from a pickle. It is opened on first use.
#[pyfunction]
pub fn _reopened(source: Bound<'_, PyAny>, options: &Bound<'_, PyDict>, id: String) -> PyResult<Dataset> {
    let option = |name: &str| options.get_item(name).map(|value| value.filter(|value| !value.is_none()));
    let source = Source::new(
        Uri::from_object(&source)?,
        option("version")?.map(|value| value.extract()).transpose()?,
        option("io")?.map(|value| value.extract()).transpose()?.unwrap_or_else(|| "auto".to_owned()),
        option("max_open_files")?.map(|value| value.extract()).transpose()?,
    )?;
    let list = option("list")?;
    let list = list.as_ref().map(|list| list.cast::<PyBytes>()).transpose()?;
    let subset = Subset::from_pickle(
        option("split")?.map(|value| value.extract()).transpose()?,
        list.map(|list| list.as_bytes()),
    );
    Ok(Dataset { source, subset, expected_id: Some(id), state: Mutex::new(State::Unopened) })
}
