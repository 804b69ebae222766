//! Formats that a program adds to those of this crate.

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

/// A format of files that a program adds to those that this crate reads, see
/// [`ConvertOptions::formats`](super::ConvertOptions::formats).
///
/// Everything that a conversion does with Parquet files holds for the files of the format too:
/// columns, casts, shapes, several inputs, appends, progress, errors that name the file.
///
/// ```
/// use std::sync::Arc;
/// use tensilo::import::arrow::array::{ArrayRef, RecordBatch, UInt8Array};
/// use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
/// use tensilo::import::{FormatFile, InputFormat, RecordSource};
/// use tensilo::{Error, Result};
/// use std::io::Read;
///
/// /// Files `*.u8`: a number in each byte.
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
    /// Returns what the files of the format are called in messages, such as `NumPy arrays (.npy)`.
    fn name(&self) -> &str;

    /// Opens a file. Returns `None` if it is of another format.
    ///
    /// Files of this crate's own formats do not come here. The first bytes of a file tell its
    /// format better than its name: a pipe has none.
    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>>;
}

/// The content of a file of an [`InputFormat`]: record batches, which can be read from the start as
/// often as needed.
///
/// Errors need no path: the conversion adds it. A panic becomes an error.
pub trait RecordSource: Send + Sync {
    /// Returns the schema, which does not change. Types become columns as
    /// [the module](super#arrow-types-and-tensilo-types) says. [`mark_dtype`] declares types that
    /// Arrow lacks, and [`refused_field`] what cannot be stored.
    fn schema(&self) -> SchemaRef;

    /// Returns the number of rows, if it is known before reading.
    fn row_count(&self) -> Option<u64> {
        None
    }

    /// Returns how the types of the schema are known. If several inputs differ a little, that tells
    /// what they can have in common.
    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::Declared
    }

    /// Begins a pass over only these fields of the schema, in ascending order. A conversion makes
    /// one or two. A batch should take a few MiB at most, or one row. `fields` may be empty: then
    /// batches have only a number of rows (`RecordBatchOptions::with_row_count` of Arrow).
    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>>;

    /// Returns whether the tensilo file keeps the schema, so that an export restores its types
    /// (default: no). That is of use if Arrow's types are those of the data, and not only of this
    /// reader.
    fn preserves_schema(&self) -> bool {
        false
    }
}

/// Marks a field whose elements have the bits of a type that Arrow lacks: `UInt16` of bf16, `UInt8`
/// of a [small](DType::is_small) number, and `Float32` of complex numbers, whose innermost
/// dimension is a list of two. The field can also be the item of lists. A mark that does not fit
/// its type is ignored.
pub fn mark_dtype(field: Field, dtype: DType) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(DTYPE.to_owned(), dtype.name().to_owned());
    field.with_metadata(metadata)
}

/// Returns a field whose values cannot be stored, for `reason`. A conversion that leaves the column
/// out succeeds; any other fails with the reason, and advises to leave it out. The field is never
/// asked for in [`RecordSource::record_batches`].
pub fn refused_field(name: &str, reason: &str) -> Field {
    // a type that no other one becomes
    let none = DataType::Union(UnionFields::empty(), UnionMode::Sparse);
    Field::new(name, none, true).with_metadata([(REFUSED, reason)])
}

/// A file that an [`InputFormat`] reads. Clones are of the same file.
///
/// A pipe has been copied to a temporary file. If the file is changed while it is read, the
/// conversion ends with an error.
#[derive(Clone)]
pub struct FormatFile {
    file: Arc<InputFile>,
    /// The store that companions may be in.
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

    /// Returns a reader, from the start of the file.
    pub fn reader(&self) -> Result<InputReader> {
        self.file.reader()
    }

    /// Opens another file that belongs to this one, such as the data beside an index. The
    /// conversion watches it for changes, too.
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

    /// Opens a file that one of the formats takes.
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

/// The records of a file of another format.
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
