//! Input formats that a program adds to the built-in ones.
//!
//! An [`InputFormat`] recognizes its files, and a [`RecordSource`] reads them as Arrow record
//! batches. The batches are then handled like the batches of a Parquet file: [`CustomRecords`]
//! implements [`Records`], which an [`ArrowSource`] reads. So shapes, casts, several inputs and
//! appends work for every format.

use super::arrow::records::{ArrowSource, RecordBatches, Records};
use super::arrow::types::REFUSED;
use super::arrow::unified::TypeOrigin;
use super::input::file::OptionalStore;
use super::input::file::{InputFile, InputReader};
use super::source::PassRows;
use crate::logical::arrow_type::DTYPE;
use crate::{DType, Result};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef, UnionFields, UnionMode};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A file format that a program adds to the built-in ones; see
/// [`ConvertOptions::formats`](super::ConvertOptions::formats).
///
/// A conversion supports files of the format in the same way as Parquet files: columns, casts,
/// shapes, several inputs, appends, progress, and errors that name the file.
///
/// ```
/// use std::sync::Arc;
/// use tensilo::import::arrow::array::{ArrayRef, RecordBatch, UInt8Array};
/// use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
/// use tensilo::import::{FormatFile, InputFormat, RecordSource};
/// use tensilo::{Error, Result};
/// use std::io::Read;
///
/// /// Files `*.u8`: each byte is a number.
/// struct Bytes;
///
/// impl InputFormat for Bytes {
///     fn name(&self) -> &str {
///         "files of bytes (.u8)"
///     }
///
///     fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
///         let is_one = file.path().extension().is_some_and(|extension| extension == "u8");
///         Ok(is_one.then(|| Box::new(BytesFile(file.clone())) as Box<dyn RecordSource>))
///     }
/// }
///
/// struct BytesFile(FormatFile);
///
/// impl RecordSource for BytesFile {
///     fn schema(&self) -> SchemaRef {
///         Arc::new(Schema::new(vec![Field::new("byte", DataType::UInt8, false)]))
///     }
///
///     fn record_batches(
///         &self,
///         fields: &[usize],
///     ) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
///         let (schema, fields) = (self.schema(), fields.to_vec());
///         let mut reader = self.0.reader()?;
///         Ok(Box::new(std::iter::from_fn(move || {
///             let mut bytes = Vec::new();
///             match (&mut reader).take(1 << 16).read_to_end(&mut bytes) {
///                 Ok(0) => None,
///                 Ok(_) => {
///                     let bytes: ArrayRef = Arc::new(UInt8Array::from(bytes));
///                     let batch = RecordBatch::try_new(schema.clone(), vec![bytes]);
///                     let batch = batch.and_then(|batch| batch.project(&fields));
///                     Some(batch.map_err(|error| Error::bad_input(error.to_string())))
///                 }
///                 Err(error) => Some(Err(Error::io("reading the file", error))),
///             }
///         })))
///     }
/// }
/// ```
pub trait InputFormat: Send + Sync {
    /// Returns the name of the format for messages, such as `NumPy arrays (.npy)`.
    fn name(&self) -> &str;

    /// Opens a file. Returns `None` if it has another format.
    ///
    /// This method is not called for files of the built-in formats. Recognize a file by its first
    /// bytes rather than by its name, because a pipe has no name.
    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>>;
}

/// The content of a file of an [`InputFormat`]: record batches that can be read repeatedly, each
/// time from the start.
///
/// Errors need not name the path, because the conversion adds it. Panics become errors.
pub trait RecordSource: Send + Sync {
    /// Returns the schema, which does not change. [The module](super#arrow-types-and-tensilo-types)
    /// says how types become columns. [`mark_dtype`] declares types that Arrow does not have, and
    /// [`refused_field`] marks values that cannot be stored.
    fn schema(&self) -> SchemaRef;

    /// Returns the number of rows, if it is known before reading.
    fn row_count(&self) -> Option<u64> {
        None
    }

    /// Returns how the types of the schema were determined. The answer determines which differences
    /// between inputs are allowed.
    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::Declared
    }

    /// Starts a pass that reads only these fields of the schema. `fields` are in ascending order. A
    /// conversion makes one or two passes. A batch should take at most a few MiB, unless it has
    /// only one row. If `fields` is empty, batches have only a row count
    /// (`RecordBatchOptions::with_row_count` of Arrow).
    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>>;

    /// Returns whether the tensilo file stores the schema, so that an export restores its types
    /// (default: no). This is useful if the data itself is defined in Arrow types. It is not useful
    /// if the Arrow types are only this reader's choice.
    fn preserves_schema(&self) -> bool {
        false
    }
}

/// Marks a field whose elements hold the bits of a type that Arrow does not have: `UInt16` for
/// bf16, `UInt8` for a [small](DType::is_small) number, and `Float32` for complex numbers, whose
/// innermost dimension is a list of two. The field can also be the item field of a list. A mark
/// that does not fit the field's type is ignored.
pub fn mark_dtype(field: Field, dtype: DType) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(DTYPE.to_owned(), dtype.name().to_owned());
    field.with_metadata(metadata)
}

/// Returns a field whose values cannot be stored. `reason` says why. A conversion that skips the
/// column succeeds. Any other conversion fails, and the error states the reason and advises to skip
/// the column. The field is never requested from [`RecordSource::record_batches`].
pub fn refused_field(name: &str, reason: &str) -> Field {
    // a column of a union is always refused, so the type of the values does not matter
    let none = DataType::Union(UnionFields::empty(), UnionMode::Sparse);
    Field::new(name, none, true).with_metadata([(REFUSED, reason)])
}

/// A file that an [`InputFormat`] reads. Clones refer to the same file.
///
/// If the input is a pipe, it has already been copied to a temporary file. If the file changes
/// while it is read, the conversion fails.
#[derive(Clone)]
pub struct FormatFile {
    file: Arc<InputFile>,
    /// The store for companion files.
    store: OptionalStore,
}

impl FormatFile {
    fn new(file: &Arc<InputFile>, store: &OptionalStore) -> Self {
        Self { file: Arc::clone(file), store: store.clone() }
    }

    /// Returns the path, or `standard input`.
    pub fn path(&self) -> &Path {
        self.file.name()
    }

    /// Returns a reader that starts at the beginning of the file.
    pub fn reader(&self) -> Result<InputReader> {
        self.file.reader()
    }

    /// Opens another file that belongs to this one, such as the data file of an index. The
    /// conversion also watches that file for changes.
    pub fn companion(&self, path: &Path) -> Result<Self> {
        let file = Arc::new(InputFile::open(path, &self.store)?);
        self.file.add_companion(Arc::clone(&file));
        Ok(Self { file, store: self.store.clone() })
    }
}

impl fmt::Debug for FormatFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FormatFile").field(&self.path()).finish()
    }
}

/// The formats that a program has added.
#[derive(Clone, Default)]
pub(super) struct CustomFormats(Vec<Arc<dyn InputFormat>>);

impl CustomFormats {
    pub(super) fn new(formats: impl IntoIterator<Item = Arc<dyn InputFormat>>) -> Self {
        Self(formats.into_iter().collect())
    }

    /// Opens a file with the first format that recognizes it.
    pub(super) fn open(
        &self,
        file: &Arc<InputFile>,
        store: &OptionalStore,
    ) -> Result<Option<ArrowSource<CustomRecords>>> {
        for format in &self.0 {
            let file = FormatFile::new(file, store);
            if let Some(content) = format.open(&file)? {
                let schema = content.schema();
                return ArrowSource::new(&schema, CustomRecords { file, content }).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the names of the formats, for messages.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|format| format.name())
    }
}

impl fmt::Debug for CustomFormats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// The records of a file in a custom format.
pub(super) struct CustomRecords {
    file: FormatFile,
    content: Box<dyn RecordSource>,
}

impl Records for CustomRecords {
    fn path(&self) -> Option<&Path> {
        Some(self.file.path())
    }

    fn row_count(&self) -> Option<u64> {
        self.content.row_count()
    }

    fn record_batches(&self, fields: &[usize], _: PassRows) -> Result<RecordBatches<'_>> {
        self.content.record_batches(fields)
    }

    fn preserves_schema(&self) -> bool {
        self.content.preserves_schema()
    }

    fn own_marks(&self) -> &[&str] {
        &[REFUSED]
    }

    fn type_origin(&self) -> TypeOrigin {
        self.content.type_origin()
    }
}
