//! `Writer`: samples of Python to a file or a dataset.
//!
//! A file, or a version of a dataset, appears when the writer is closed, and nothing is left if the
//! block of its `with` raises. A dataset gets data files of `shard_bytes`, one after the other.
//! If one of them cannot be finished, its samples are lost, so nothing is published any more.
//!
//! A writer belongs to the process that has made it: one that was forked has the same open files,
//! and must not touch them.

use crate::arguments::{ByteCount, Threads};
use crate::error::{OrRaise, Result};
use crate::schema::schema_of;
use crate::write::options::{
    DEFAULT_SHARD_BYTES, Profiles, has_manifest, is_folder, publish, source_date_epoch, writer_options,
};
use crate::write::samples::Input;
use pyo3::exceptions::{PyResourceWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tensilo::nested::ListBatch;
use tensilo::{ColumnBatch, Metadata, Schema, WriterOptions};
use tensilo_data::{Changes, DataError, DataFile, Dataset};

/// Writes samples to a new file, or to the folder of a dataset.
///
/// Use it in a ``with`` statement: the file, or the version of the dataset, appears when the block
/// ends, and nothing is left if the block raises. A folder that has a dataset gets a new version
/// with the samples added.
///
/// Args:
///     path: a file, or a folder: one that is there, a path that ends in a slash, or any with
///         ``shard_bytes``.
///     schema: a dict from names to types, as ``tensor``, ``utf8``, ``binary`` and ``list_``
///         return them.
///     shard_bytes: the raw bytes of a data file of a dataset, such as "1GiB", which is the
///         default.
///     profile: "balanced" (the default), "fast" to read, "small", "raw" for views, or
///         "bitshuffle-zstd". A dict from names to profiles chooses them for these columns; the
///         others have the default.
///     metadata: a dict of texts.
///     threads: how many encode.
///     overwrite: whether a file that is there is replaced.
#[pyclass(frozen, module = "tensilo")]
pub struct Writer {
    schema: Schema,
    process: u32,
    state: Mutex<Option<State>>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        let Ok(state) = self.state.get_mut().map(Option::take) else { return };
        if self.process != process::id() {
            // the files are those of the process that was forked
            std::mem::forget(state);
        } else if state.is_some() {
            // at the end of the interpreter nothing can be attached
            Python::try_attach(warn_of_loss);
        }
    }
}

fn warn_of_loss(py: Python<'_>) {
    // a writer may be dropped because it raised: the warning must not replace the exception
    let raised = PyErr::take(py);
    let text =
        c"a tensilo.Writer was dropped without close(), so that nothing of it is left; use it in a with statement";
    let warned = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), text, 1);
    warned.unwrap_or_else(|error| error.write_unraisable(py, None));
    if let Some(raised) = raised {
        raised.restore(py);
    }
}

/// What is being written.
enum State {
    File(Box<tensilo::Writer<DataFile>>),
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
    /// The time to record in place of now.
    time: Option<u64>,
    /// Whether a data file could not be finished.
    has_lost: bool,
}

struct Shard {
    path: PathBuf,
    writer: tensilo::Writer<DataFile>,
    bytes: u64,
}

impl FolderState {
    fn new(folder: &Path, schema: Schema, options: WriterOptions, shard_bytes: u64) -> Result<Self> {
        let time = source_date_epoch()?;
        let has_manifest = has_manifest(folder);
        let mut changes = if has_manifest { Dataset::open(folder)?.change()? } else { Dataset::create(folder)? };
        if has_manifest {
            check_schema(folder, &schema, &changes.schema())?;
            check_metadata(folder, &schema, &changes.schema())?;
        } else {
            changes.declare(&schema)?;
        }
        Ok(Self { changes, schema, options, shard_bytes, shard: None, is_new: !has_manifest, time, has_lost: false })
    }

    fn push(&mut self, batches: &[ColumnBatch<'_>], bytes: u64) -> Result<()> {
        self.check()?;
        let shard = match &mut self.shard {
            Some(shard) => shard,
            None => {
                let file = self.changes.next_file()?;
                let path = file.path().to_path_buf();
                let writer = tensilo::Writer::new(file, self.schema.clone(), &self.options)?;
                self.shard.insert(Shard { path, writer, bytes: 0 })
            }
        };
        // samples that are refused leave those before as they are
        shard.writer.push_batch(batches)?;
        shard.bytes = shard.bytes.saturating_add(bytes);
        if shard.bytes >= self.shard_bytes { self.end_shard() } else { Ok(()) }
    }

    /// Fails if samples were lost before: nothing must be published without them.
    fn check(&self) -> Result<()> {
        if !self.has_lost {
            return Ok(());
        }
        Err(DataError::BadArgument("a write failed before, so that samples are missing: begin again".to_owned()))
    }

    fn end_shard(&mut self) -> Result<()> {
        let Some(shard) = self.shard.take() else { return Ok(()) };
        let ended = shard.writer.finish().map_err(DataError::from).and_then(|_| self.changes.append(&shard.path));
        self.has_lost = ended.is_err();
        ended
    }

    fn finish(mut self) -> Result<()> {
        self.check()?;
        self.end_shard()?;
        if self.changes.sample_count() == 0 {
            return Err(DataError::BadArgument("no samples were written, of which a dataset could be made".to_owned()));
        }
        publish(self.changes, if self.is_new { "write" } else { "append" }, self.time)
    }
}

/// Refuses metadata that the dataset does not have: samples that are appended change none.
fn check_metadata(folder: &Path, schema: &Schema, expected: &Schema) -> Result<()> {
    match schema.metadata.iter().find(|(key, value)| expected.metadata.get(*key) != Some(value)) {
        Some((key, _)) => Err(DataError::BadArgument(format!(
            "{}: the metadata {key:?} is not that of the dataset that is there, which cannot be changed",
            folder.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses to append samples whose columns are not those of the dataset, before any is written.
fn check_schema(folder: &Path, schema: &Schema, expected: &Schema) -> Result<()> {
    let folder = folder.display();
    let refused = |message: String| Err(DataError::BadArgument(format!("{folder}: {message}")));
    for column in &schema.columns {
        let Some(expected) = expected.columns.iter().find(|expected| expected.name == column.name) else {
            return refused(format!("the dataset that is there has no column {:?}", column.name));
        };
        if (column.dtype, &column.shape, &column.levels) != (expected.dtype, &expected.shape, &expected.levels) {
            let (expected, found) = (expected.type_name(), column.type_name());
            return refused(format!(
                "column {:?} of the dataset that is there is {expected}, not {found}",
                column.name
            ));
        }
    }
    match expected
        .columns
        .iter()
        .find(|expected| !expected.nullable && !schema.columns.iter().any(|own| own.name == expected.name))
    {
        Some(missing) => refused(format!("the dataset that is there has a column {:?}, too", missing.name)),
        None => Ok(()),
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
    /// Locks the state, which belongs to the process that has made it.
    fn lock(&self) -> Result<MutexGuard<'_, Option<State>>> {
        if self.process == process::id() {
            return Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Err(DataError::BadArgument("the writer belongs to the process that was forked; make another one".to_owned()))
    }

    fn push(&self, py: Python<'_>, inputs: &[Input]) -> PyResult<()> {
        let bytes = inputs.iter().map(|input| input.byte_count() as u64).fold(0, u64::saturating_add); // exact
        py.detach(|| {
            let lists: Vec<Vec<ListBatch<'_>>> = inputs.iter().map(Input::lists).collect();
            let batches = inputs.iter().zip(&self.schema.columns).zip(&lists);
            let batches: Vec<_> = batches.map(|((input, column), lists)| input.batch(column, lists)).collect();
            self.lock().and_then(|mut state| state.as_mut().ok_or_else(closed)?.push(&batches, bytes))
        })
        .or_raise(py)
    }
}

#[cold]
fn closed() -> DataError {
    DataError::BadArgument("the writer is closed".to_owned())
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (
        path, schema, *, shard_bytes=None, profile=Profiles::default(), metadata=None, threads=Threads(0), overwrite=false,
    ))]
    #[expect(clippy::too_many_arguments, reason = "the options of Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        schema: Bound<'_, PyAny>,
        shard_bytes: Option<ByteCount>,
        profile: Profiles,
        metadata: Option<Metadata>,
        threads: Threads,
        overwrite: bool,
    ) -> PyResult<Self> {
        let mut schema = schema_of(&schema)?;
        schema.metadata.extend(metadata.unwrap_or_default());
        let options = writer_options(&profile, &threads)?;
        let is_folder = shard_bytes.is_some() || is_folder(&path);
        if is_folder && overwrite {
            return Err(PyValueError::new_err("a dataset is not overwritten: choose another folder, or remove it"));
        }
        let shard_bytes = shard_bytes.map_or(DEFAULT_SHARD_BYTES, |count| count.0);
        let begin = || -> Result<State> {
            Ok(match is_folder {
                true => State::Folder(Box::new(FolderState::new(&path, schema.clone(), options, shard_bytes)?)),
                false => {
                    let sink = DataFile::create(&path, overwrite)?;
                    State::File(Box::new(tensilo::Writer::new(sink, schema.clone(), &options)?))
                }
            })
        };
        let state = py.detach(begin).or_raise(py)?;
        Ok(Self { schema, process: process::id(), state: Mutex::new(Some(state)) })
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
        py.detach(|| self.lock()?.take().map_or(Ok(()), State::finish)).or_raise(py)
    }

    /// Gives up what was written: nothing is left of it.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().map(|mut state| drop(state.take()))).or_raise(py)
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
            Some(_) => self.abort(py)?,
            None => self.close(py)?,
        }
        Ok(false)
    }
}
