//! The inputs of a conversion: paths, or Arrow data in this process.
//!
//! A conversion reads its inputs twice: the first pass finds shapes, the second writes. A table in
//! memory is read in place, as often as needed. A stream, such as a query result, can be read only
//! once, so it is copied to a temporary file. That file has no name (or is unlinked at once where
//! the system requires a name), so the system frees it when the process ends, even after a signal.
//!
//! The crates identify inputs by path. So Arrow data gets a path such as `<pyarrow.Table>`, which
//! errors show, and [`ArrowInput`] is the store that serves this path. For a table, it is also the
//! input format.

use crate::batch::arrow::STREAM;
use crate::error::{OrRaise, os_error};
use crate::write::options::paths;
use arrow_select::dictionary::garbage_collect_any_dictionary;
use arrow_select::take::take;
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyType};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tensilo::import::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array, make_array,
};
use tensilo::import::arrow::datatypes::{DataType, SchemaRef};
use tensilo::import::arrow::error::ArrowError;
use tensilo::import::arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use tensilo::import::arrow::ipc::writer::StreamWriter;
use tensilo::import::{FormatFile, InputFormat, InputStore, RecordSource};
use tensilo::source::{InMemory, PositionedFile, Source};
use tensilo::{Error, Result};
use tensilo_convert::FormatOptions;
use tensilo_object::{Address, ObjectInputs, ObjectOptions, UNREADABLE_KEY};

/// The approximate number of bytes at each end of a table that determine the id of the file.
const FINGERPRINT_BYTES: usize = 64 << 10;

/// The inputs of a conversion.
pub struct Inputs {
    pub paths: Vec<PathBuf>,
    pub unreadable: UnreadableObjects,
    arrow: Option<Arc<ArrowInput>>,
}

impl Inputs {
    /// Returns the inputs for a path, a list of paths or an Arrow object. A stream is copied to an
    /// unnamed file next to `output`.
    pub fn from_object(object: &Bound<'_, PyAny>, output: &Path) -> PyResult<Self> {
        if !object.hasattr("__arrow_c_stream__")? {
            return Ok(Self { paths: paths(object)?, unreadable: UnreadableObjects::default(), arrow: None });
        }
        let input = ArrowInput::from_object(object, output)?;
        let (paths, unreadable) = (vec![input.path.clone()], UnreadableObjects::default());
        Ok(Self { paths, unreadable, arrow: Some(Arc::new(input)) })
    }

    /// Returns the additional formats of the inputs.
    pub fn formats(&self, file_is_sample: bool) -> Vec<Arc<dyn InputFormat>> {
        match &self.arrow {
            Some(input) => vec![Arc::<ArrowInput>::clone(input)],
            None => formats(file_is_sample),
        }
    }

    /// Returns the store of inputs that are not files.
    pub fn store(&self) -> Arc<dyn InputStore> {
        match &self.arrow {
            Some(input) => Arc::<ArrowInput>::clone(input),
            None => self.unreadable.store(),
        }
    }
}

/// Returns the input formats other than Parquet, Arrow and tensilo files.
pub fn formats(file_is_sample: bool) -> Vec<Arc<dyn InputFormat>> {
    tensilo_convert::input_formats(FormatOptions::new().file_is_sample(file_is_sample))
}

/// The addresses of unreadable objects that a conversion skipped.
#[derive(Clone, Default)]
pub struct UnreadableObjects(Arc<Mutex<BTreeSet<String>>>);

impl UnreadableObjects {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the store of inputs in object stores. It records the objects that it cannot read.
    pub fn store(&self) -> Arc<dyn InputStore> {
        let noted = self.clone();
        let note = move |address: &str| {
            noted.lock().insert(address.to_owned());
        };
        Arc::new(ObjectInputs::new(ObjectOptions::new()).skip_unreadable(note))
    }

    /// Warns about skipped objects after a conversion, and returns its result. If a warning filter
    /// raises an exception, an error of the conversion takes precedence over it.
    pub fn warned<T>(&self, py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
        let addresses = std::mem::take(&mut *self.lock());
        let warned = addresses.iter().try_for_each(|address| {
            let text = CString::new(format!("{address}: skipped: {UNREADABLE_KEY}"));
            let text = text.unwrap_or_default(); // control characters are escaped
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)
        });
        let value = result?;
        warned.map(|()| value)
    }
}

/// Arrow data in this process as an input.
struct ArrowInput {
    path: PathBuf,
    /// The bytes at the path: the fingerprint of a table, or an Arrow IPC stream.
    bytes: Arc<dyn Source>,
    table: Option<Table>,
}

/// Record batches in memory.
#[derive(Clone)]
struct Table {
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
}

impl ArrowInput {
    fn from_object(object: &Bound<'_, PyAny>, output: &Path) -> PyResult<Self> {
        let path = PathBuf::from(format!("<{}>", type_name(&object.get_type())?));
        let reader = stream_of(object, &path)?;
        if is_in_memory(object)? {
            let table = Table::new(object.py(), reader, &path)?;
            let fingerprint = table.fingerprint().map_err(|error| refused(&path, &error))?;
            return Ok(Self { path, bytes: Arc::new(InMemory(fingerprint)), table: Some(table) });
        }
        let folder = folder_beside(output);
        let file = copied(object.py(), reader, &path, &folder)?;
        Ok(Self { path, bytes: Arc::new(file), table: None })
    }
}

impl InputStore for ArrowInput {
    fn contains(&self, input: &Path) -> bool {
        input == self.path
    }

    fn list_prefix(&self, _prefix: &Path) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn open(&self, _input: &Path) -> Result<Arc<dyn Source>> {
        Ok(Arc::clone(&self.bytes))
    }
}

impl InputFormat for ArrowInput {
    fn name(&self) -> &str {
        "a table in memory"
    }

    fn open(&self, _file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        Ok(self.table.clone().map(|table| Box::new(table) as Box<dyn RecordSource>))
    }
}

impl RecordSource for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.batches.iter().map(|batch| batch.num_rows() as u64).fold(0, u64::saturating_add)) // exact
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let fields = fields.to_vec();
        Ok(Box::new(
            self.batches
                .iter()
                .map(move |batch| batch.project(&fields).map_err(|error| Error::bad_input(error.to_string()))),
        ))
    }

    fn preserves_schema(&self) -> bool {
        true
    }
}

impl Table {
    /// Reads all batches, and validates them, because later code relies on valid UTF-8 and on
    /// offsets within bounds.
    fn new(py: Python<'_>, reader: RecordBatchStreamReader, path: &Path) -> PyResult<Self> {
        let (schema, mut batches) = (reader.schema(), Vec::new());
        for batch in reader {
            py.check_signals()?;
            let batch = batch.map_err(|error| refused(path, &error))?;
            let check = || batch.columns().iter().try_for_each(|column| column.to_data().validate_full());
            py.detach(check).map_err(|error| refused(path, &error))?;
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
        Ok(Self { schema, batches: batches.into() })
    }

    /// Returns the bytes that determine the id of the file: the schema, the row count, and some
    /// rows at each end.
    fn fingerprint(&self) -> std::result::Result<Vec<u8>, ArrowError> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        if let (Some(first), Some(last)) = (self.batches.first(), self.batches.last()) {
            // the size of the first row is representative of all rows
            let mut one = StreamWriter::try_new(Vec::new(), &self.schema)?;
            one.write(&rows_of(first, 0..1)?)?;
            let rows = FINGERPRINT_BYTES.checked_div(one.get_ref().len()).unwrap_or(0).max(1);
            writer.write(&rows_of(first, 0..rows.min(first.num_rows()))?)?;
            writer.write(&rows_of(last, last.num_rows().saturating_sub(rows)..last.num_rows())?)?;
        }
        let mut bytes = writer.into_inner()?;
        bytes.extend(self.row_count().unwrap_or(0).to_le_bytes());
        Ok(bytes)
    }
}

/// Copies rows of a batch, without any other values. A slice is not enough, because view and
/// dictionary arrays can keep values that no row uses, and Arrow IPC would also write those values.
fn rows_of(batch: &RecordBatch, rows: Range<usize>) -> std::result::Result<RecordBatch, ArrowError> {
    let numbers = UInt64Array::from_iter_values(rows.clone().map(|row| row as u64)); // exact
    let columns = batch.columns().iter().map(|column| match take(column, &numbers, None) {
        Ok(taken) => compact(&taken),
        Err(_) => Ok(column.slice(rows.start, rows.len())), // `take` does not support the type
    });
    let columns = columns.collect::<std::result::Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

/// Removes the values of an array that no row uses.
fn compact(array: &dyn Array) -> std::result::Result<ArrayRef, ArrowError> {
    let array: ArrayRef = match array.data_type() {
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        DataType::Dictionary(..) => garbage_collect_any_dictionary(array.as_any_dictionary())?,
        _ => make_array(array.to_data()),
    };
    let data = array.to_data();
    if data.child_data().is_empty() {
        return Ok(array);
    }
    let children = data.child_data().iter().map(|child| Ok(compact(&make_array(child.clone()))?.to_data()));
    let children = children.collect::<std::result::Result<_, ArrowError>>()?;
    Ok(make_array(data.into_builder().child_data(children).build()?))
}

/// Returns the stream that an object exports.
fn stream_of(object: &Bound<'_, PyAny>, path: &Path) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule =
        capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("__arrow_c_stream__ did not return a capsule"))?;
    let stream = capsule.pointer_checked(Some(STREAM))?.as_ptr().cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to a stream, which `from_raw` moves out of it.
    unsafe { RecordBatchStreamReader::from_raw(stream) }.map_err(|error| refused(path, &error))
}

/// Returns whether an object keeps its data in memory anyway, so retaining the data costs nothing.
fn is_in_memory(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.hasattr("__arrow_c_array__")? {
        return Ok(true);
    }
    for class in object.get_type().mro() {
        let name = type_name(class.cast::<PyType>()?)?;
        if matches!(name.as_str(), "pyarrow.Table" | "pandas.DataFrame" | "polars.DataFrame") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the name of a class with its top-level package: `pyarrow.Table` for `pyarrow.lib.Table`.
fn type_name(class: &Bound<'_, PyType>) -> PyResult<String> {
    let module = class.module()?;
    let package = module.to_str()?.split('.').next().unwrap_or_default();
    Ok(format!("{package}.{}", class.name()?))
}

/// Returns the closest existing ancestor folder of an output.
fn folder_beside(output: &Path) -> PathBuf {
    if Address::is_url_path(output) {
        return std::env::temp_dir();
    }
    let named = |folder: &Path| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() };
    output.ancestors().skip(1).map(named).find(|folder| folder.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// Copies a stream to an unnamed file in a folder.
fn copied(py: Python<'_>, reader: RecordBatchStreamReader, path: &Path, folder: &Path) -> PyResult<PositionedFile> {
    let failed = |error: &io::Error| os_error(error, "copying the Arrow stream to an unnamed file", Some(folder));
    let stopped = |error: &ArrowError| match error {
        ArrowError::IoError(_, source) => failed(source),
        error => refused(path, error),
    };
    let file = tempfile::tempfile_in(folder).map_err(|error| failed(&error))?;
    let written = file.try_clone().map_err(|error| failed(&error))?;
    let mut writer =
        StreamWriter::try_new(BufWriter::new(written), &reader.schema()).map_err(|error| stopped(&error))?;
    // a Python library produces the batches and may need the GIL to do so
    for batch in reader {
        py.check_signals()?;
        let batch = batch.map_err(|error| refused(path, &error))?;
        py.detach(|| writer.write(&batch)).map_err(|error| stopped(&error))?;
    }
    py.detach(|| writer.finish().and_then(|()| Ok(writer.get_mut().flush()?))).map_err(|error| stopped(&error))?;
    PositionedFile::from_file(file).or_raise(py)
}

fn refused(path: &Path, error: &ArrowError) -> PyErr {
    let text = error.to_string();
    // the prefix names an internal detail of the Arrow library
    let text = text.strip_prefix("Invalid argument error: ").unwrap_or(&text);
    PyValueError::new_err(format!("{}: {text}", path.display()))
}
