//! `Writer`: writes Python samples to a file or a dataset.
//!
//! The file, or the version of the dataset, appears when the writer is closed. If the `with` block
//! raises, nothing is left behind. The samples of a dataset are written to one data file after
//! another, each with a raw size of about `shard_bytes`. If a data file cannot be finished, its
//! samples are lost, so the writer refuses to publish.
//!
//! A writer belongs to the process that created it: a forked child shares its open files and must
//! not touch them.

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
/// ends, and nothing is left behind if the block raises. If the folder already contains a dataset,
/// the samples are appended as a new version.
///
/// Args:
///     path (path): a file, or a folder. A path is a folder if it is an existing folder, if it ends
///         in a slash, if it is a URL that does not end in ``.tsl``, or if ``shard_bytes`` is
///         given.
///     schema (dict or Schema): a dict from column names to types, as returned by ``tensor``,
///         ``utf8``, ``binary`` and ``list_``.
///     shard_bytes (int or str, optional): the raw size of a data file of a dataset: a number of
///         bytes, or a string such as "1GiB". Default: "1GiB".
///     profile (str or dict, optional): "balanced", "fast" (to decode), "small", "raw" (zero-copy),
///         or "bitshuffle-zstd"; or a dict from column names to profiles, where columns that are
///         not listed have the default profile. Default: "balanced".
///     metadata (dict, optional): strings to store with the file. Default: none.
///     threads (int or "auto", optional): the number of threads that encode. Default: "auto", all
///         CPUs.
///     overwrite (bool, optional): whether to replace an existing file. Default: False.
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
            // the files belong to the parent process
            std::mem::forget(state);
        } else if state.is_some() {
            // attaching fails while the interpreter shuts down
            Python::try_attach(warn_of_loss);
        }
    }
}

fn warn_of_loss(py: Python<'_>) {
    // an exception may have caused the drop: the warning must not replace it
    let raised = PyErr::take(py);
    let text = c"a tensilo.Writer was dropped without close(), so its samples are lost; use it in a with statement";
    let warned = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), text, 1);
    warned.unwrap_or_else(|error| error.write_unraisable(py, None));
    if let Some(raised) = raised {
        raised.restore(py);
    }
}

/// The target of a writer.
enum State {
    File(Box<tensilo::Writer<DataFile>>),
    Folder(Box<FolderState>),
}

/// A dataset under construction, written data file by data file.
struct FolderState {
    changes: Changes,
    schema: Schema,
    options: WriterOptions,
    shard_bytes: u64,
    shard: Option<Shard>,
    is_new: bool,
    /// The time to record instead of the current time.
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
        // a refused batch does not affect earlier batches
        shard.writer.push_batch(batches)?;
        shard.bytes = shard.bytes.saturating_add(bytes);
        if shard.bytes >= self.shard_bytes { self.end_shard() } else { Ok(()) }
    }

    /// Fails if samples were lost: the dataset must not be published without them.
    fn check(&self) -> Result<()> {
        if !self.has_lost {
            return Ok(());
        }
        Err(DataError::BadArgument(
            "an earlier write failed and lost samples: start again with a new writer".to_owned(),
        ))
    }

    fn end_shard(&mut self) -> Result<()> {
        let Some(shard) = self.shard.take() else { return Ok(()) };
        let ended = shard.writer.finish().map_err(DataError::from).and_then(|_| self.changes.add_file(&shard.path));
        self.has_lost = ended.is_err();
        ended
    }

    fn finish(mut self) -> Result<()> {
        self.check()?;
        self.end_shard()?;
        if self.changes.sample_count() == 0 {
            return Err(DataError::BadArgument(
                "no samples were written, so there is no dataset to publish".to_owned(),
            ));
        }
        publish(self.changes, if self.is_new { "write" } else { "append" }, self.time)
    }
}

/// Refuses metadata that the dataset does not have, because an append cannot change metadata.
fn check_metadata(folder: &Path, schema: &Schema, expected: &Schema) -> Result<()> {
    match schema.metadata.iter().find(|(key, value)| expected.metadata.get(*key) != Some(value)) {
        Some((key, _)) => Err(DataError::BadArgument(format!(
            "{}: metadata {key:?} does not have this value in the existing dataset, and an append cannot change it",
            folder.display()
        ))),
        None => Ok(()),
    }
}

/// Refuses to append samples if their columns differ from the columns of the dataset. Nothing has
/// been written at this point.
fn check_schema(folder: &Path, schema: &Schema, expected: &Schema) -> Result<()> {
    let folder = folder.display();
    let refused = |message: String| Err(DataError::BadArgument(format!("{folder}: {message}")));
    for column in &schema.columns {
        let Some(expected) = expected.columns.iter().find(|expected| expected.name == column.name) else {
            return refused(format!("the existing dataset has no column {:?}", column.name));
        };
        if (column.dtype, &column.shape, &column.levels) != (expected.dtype, &expected.shape, &expected.levels) {
            let (expected_type, found_type) = (expected.type_name(), column.type_name());
            return refused(format!(
                "column {:?} of the existing dataset is {expected_type} {}, not {found_type} {}",
                column.name, expected.shape, column.shape
            ));
        }
    }
    match expected
        .columns
        .iter()
        .find(|expected| !expected.nullable && !schema.columns.iter().any(|own| own.name == expected.name))
    {
        Some(missing) => refused(format!("the schema lacks column {:?} of the existing dataset", missing.name)),
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
    /// Locks the state; fails in a forked process.
    fn lock(&self) -> Result<MutexGuard<'_, Option<State>>> {
        if self.process == process::id() {
            return Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        Err(DataError::BadArgument(
            "the writer belongs to the parent process: create another one after the fork".to_owned(),
        ))
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
    #[expect(clippy::too_many_arguments, reason = "one parameter per Python argument")]
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
            return Err(PyValueError::new_err(
                "overwrite=True does not apply to datasets: choose another folder, or delete the existing dataset first",
            ));
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

    /// Writes samples: for each column, an array whose first dimension is the sample index, or a
    /// list of samples with None for nulls. All columns must have the same number of samples.
    ///
    /// Arrays may come from NumPy, PyTorch, or any library with DLPack or the buffer protocol.
    /// Their dtype is the dtype of the column, or the dtype that the column is rounded from.
    ///
    /// Args:
    ///     **columns: the samples of each column, by name.
    ///
    /// Raises:
    ///     KeyError: a column does not exist.
    ///     TypeError, ValueError: samples do not match the type of the column; nothing is written.
    #[pyo3(signature = (**columns))]
    fn write(&self, py: Python<'_>, columns: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let none = PyDict::new(py);
        let columns = columns.unwrap_or(&none);
        let names = || self.schema.columns.iter().map(|column| column.name.as_str());
        for name in columns.keys() {
            let name: String = name.extract()?;
            if !names().any(|known| known == name) {
                let all = names().collect::<Vec<_>>().join(", ");
                return Err(pyo3::exceptions::PyKeyError::new_err(format!(
                    "no column {name:?}: the columns are {all}"
                )));
            }
        }
        let mut inputs = Vec::new();
        for column in &self.schema.columns {
            let samples = columns.get_item(&column.name)?.ok_or_else(|| {
                PyTypeError::new_err(format!("column {:?} is missing: pass samples for all columns", column.name))
            })?;
            inputs.push(Input::new(column, &samples)?);
        }
        let counts: Vec<usize> = inputs.iter().map(Input::sample_count).collect();
        if counts.iter().any(|count| Some(count) != counts.first()) {
            let counts: Vec<String> = names().zip(&counts).map(|(name, count)| format!("{name} {count}")).collect();
            return Err(PyValueError::new_err(format!(
                "columns have different numbers of samples: {}",
                counts.join(", ")
            )));
        }
        self.push(py, &inputs)
    }

    /// Finishes the file or the version, and publishes it. Called at the end of a
    /// ``with`` block.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock()?.take().map_or(Ok(()), State::finish)).or_raise(py)
    }

    /// Discards everything that was written.
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
