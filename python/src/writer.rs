//! `Writer`: samples of Python to a file or a dataset.

use crate::convert::{DEFAULT_SHARD_BYTES, has_manifest, is_folder, publish};
use crate::error::{OrRaise, Result};
use crate::input::Input;
use crate::options::{ByteCount, Threads, writer_options};
use crate::schema::schema_of;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensilo::nested::ListBatch;
use tensilo::sink::AtomicFile;
use tensilo::{ColumnBatch, Metadata, Schema, WriterOptions};
use tensilo_data::{Changes, DataError, Dataset};

/// Writes samples to a new file, or to the folder of a dataset.
///
/// Use it in a ``with`` statement: the file, or the version of the dataset, appears when the block
/// ends, and nothing is left if the block raises. A folder that has a dataset gets a new version
/// with the samples added.
///
/// Args:
///     path: a file, or a folder: one that is there, a path that ends in a slash, or any with
///         ``shard_bytes``.
///     schema: a dict from names to types, as ``tensor``, ``utf8``, ``bytes`` and ``list`` return
///         them.
///     shard_bytes: the raw bytes of a data file of a dataset, such as "1GiB", which is the
///         default.
///     profile: "balanced", "fast" to read, "small", "raw" for views, or "bitshuffle-zstd".
///     metadata: a dict of texts.
///     threads: how many encode.
///     overwrite: whether a file that is there is replaced.
#[pyclass(frozen, module = "tensilo")]
pub struct Writer {
    schema: Schema,
    state: Mutex<Option<State>>,
}

/// What is being written.
enum State {
    File(Box<tensilo::Writer<AtomicFile>>),
    Folder(Box<FolderState>),
}

/// A dataset that is being written, data file by data file.
struct FolderState {
    changes: Changes,
    schema: Schema,
    options: WriterOptions,
    shard_bytes: u64,
    shard: Option<Shard>,
    is_new: bool,
}

struct Shard {
    path: PathBuf,
    writer: tensilo::Writer<AtomicFile>,
    bytes: u64,
}

impl FolderState {
    fn new(folder: &Path, schema: Schema, options: WriterOptions, shard_bytes: u64) -> Result<Self> {
        let has_manifest = has_manifest(folder);
        let mut changes = if has_manifest { Dataset::open(folder)?.change()? } else { Dataset::create(folder)? };
        if !has_manifest {
            changes.declare(&schema)?;
        }
        Ok(Self { changes, schema, options, shard_bytes, shard: None, is_new: !has_manifest })
    }

    fn push(&mut self, batches: &[ColumnBatch<'_>], bytes: u64) -> Result<()> {
        let mut shard = match self.shard.take() {
            Some(shard) => shard,
            None => {
                let path = self.changes.next_path()?;
                let writer = tensilo::Writer::create(&path, self.schema.clone(), &self.options)?;
                Shard { path, writer, bytes: 0 }
            }
        };
        shard.writer.push_batch(batches)?;
        shard.bytes = shard.bytes.saturating_add(bytes);
        self.shard = Some(shard);
        if self.shard.as_ref().is_some_and(|shard| shard.bytes >= self.shard_bytes) { self.end_shard() } else { Ok(()) }
    }

    fn end_shard(&mut self) -> Result<()> {
        let Some(shard) = self.shard.take() else { return Ok(()) };
        shard.writer.finish()?;
        self.changes.append(&shard.path)
    }

    fn finish(mut self) -> Result<()> {
        self.end_shard()?;
        if self.changes.sample_count() == 0 {
            return Err(DataError::BadArgument("no samples were written, of which a dataset could be made".to_owned()));
        }
        publish(self.changes, if self.is_new { "write" } else { "append" })
    }
}

impl State {
    fn push(&mut self, batches: &[ColumnBatch<'_>], bytes: u64) -> Result<()> {
        match self {
            Self::File(writer) => Ok(writer.push_batch(batches)?),
            Self::Folder(folder) => folder.push(batches, bytes),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Self::File(writer) => Ok(writer.finish().map(|_| ())?),
            Self::Folder(folder) => folder.finish(),
        }
    }
}

impl Writer {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, py: Python<'_>, inputs: &[Input]) -> PyResult<()> {
        let bytes = inputs.iter().map(|input| input.byte_count() as u64).fold(0, u64::saturating_add); // exact
        py.detach(|| {
            let lists: Vec<Vec<ListBatch<'_>>> = inputs.iter().map(Input::lists).collect();
            let batches = inputs.iter().zip(&self.schema.columns).zip(&lists);
            let batches: Vec<_> = batches.map(|((input, column), lists)| input.batch(column, lists)).collect();
            self.lock().as_mut().map(|state| state.push(&batches, bytes))
        })
        .ok_or_else(closed)?
        .or_raise(py)
    }
}

#[cold]
fn closed() -> PyErr {
    PyValueError::new_err("the writer is closed")
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (
        path, schema, *, shard_bytes=None, profile="balanced", metadata=None, threads=Threads(0), overwrite=false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the options of Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        schema: Bound<'_, PyAny>,
        shard_bytes: Option<ByteCount>,
        profile: &str,
        metadata: Option<Metadata>,
        threads: Threads,
        overwrite: bool,
    ) -> PyResult<Self> {
        let mut schema = schema_of(&schema)?;
        schema.metadata.extend(metadata.unwrap_or_default());
        let options = writer_options(profile, &threads)?;
        let is_folder = shard_bytes.is_some() || is_folder(&path);
        if is_folder && overwrite {
            return Err(PyValueError::new_err("a dataset is not overwritten: choose another folder, or remove it"));
        }
        let shard_bytes = shard_bytes.map_or(DEFAULT_SHARD_BYTES, |count| count.0);
        let begin = || -> Result<State> {
            Ok(match is_folder {
                true => State::Folder(Box::new(FolderState::new(&path, schema.clone(), options, shard_bytes)?)),
                false => {
                    let sink = AtomicFile::create(&path, overwrite)?;
                    State::File(Box::new(tensilo::Writer::new(sink, schema.clone(), &options)?))
                }
            })
        };
        let state = py.detach(begin).or_raise(py)?;
        Ok(Self { schema, state: Mutex::new(Some(state)) })
    }

    /// Writes samples: for each column an array whose first dimension is the sample, or a list of
    /// samples, None for nulls. All have the same number of samples.
    ///
    /// Arrays are of NumPy, PyTorch, or any library with DLPack or the buffer protocol, of the type
    /// of the column, or the type that it is rounded from.
    ///
    /// Raises:
    ///     KeyError: a column that does not exist.
    ///     TypeError, ValueError: samples that do not fit; nothing of the call is written.
    #[pyo3(signature = (**columns))]
    fn write(&self, py: Python<'_>, columns: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let none = PyDict::new(py);
        let columns = columns.unwrap_or(&none);
        let names = || self.schema.columns.iter().map(|column| column.name.as_str());
        for name in columns.keys() {
            let name: String = name.extract()?;
            if !names().any(|known| known == name) {
                let all = names().collect::<Vec<_>>().join(", ");
                return Err(pyo3::exceptions::PyKeyError::new_err(format!("no column {name:?}; there are {all}")));
            }
        }
        let mut inputs = Vec::new();
        for column in &self.schema.columns {
            let samples = columns.get_item(&column.name)?.ok_or_else(|| {
                PyTypeError::new_err(format!("column {:?} is missing: samples have all columns", column.name))
            })?;
            inputs.push(Input::new(column, &samples)?);
        }
        let counts: Vec<usize> = inputs.iter().map(Input::sample_count).collect();
        if counts.iter().any(|count| Some(count) != counts.first()) {
            let counts: Vec<String> = names().zip(&counts).map(|(name, count)| format!("{name} {count}")).collect();
            return Err(PyValueError::new_err(format!(
                "columns with different numbers of samples: {}",
                counts.join(", ")
            )));
        }
        self.push(py, &inputs)
    }

    /// Finishes the file or the version, which appears now. ``with`` calls it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().take().map(State::finish)).unwrap_or(Ok(())).or_raise(py)
    }

    /// Gives up what was written: nothing is left of it.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| drop(self.lock().take()));
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        match exception {
            Some(_) => self.abort(py),
            None => self.close(py)?,
        }
        Ok(false)
    }
}
