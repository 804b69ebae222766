//! Options and progress of conversions, and plans of conversions to several files.
//!
//! [`ConvertOptions`] and [`AppendOptions`] share the settings of inputs and of the writer: one
//! struct, [`InputOptions`], and one macro for its setters. A [`ShardPlan`] fixes the samples and
//! id of each output file in advance, so that different processes can write different files.

#[cfg(feature = "arrow")]
use super::custom_formats::CustomFormats;
use super::input::file::{InputStore, OptionalStore};
use super::rows::NullElements;
use crate::format::FileId;
use crate::write::Sink;
use crate::{DType, Error, Schema, Shape, Summary, WriterOptions};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The settings shared by conversions and appends: inputs, null elements, and the writer.
#[derive(Clone, Debug, Default)]
pub(super) struct InputOptions {
    /// Whether `-` is the standard input.
    pub dash_is_stdin: bool,
    #[cfg(feature = "arrow")]
    pub formats: CustomFormats,
    pub store: OptionalStore,
    pub null_elements: NullElements,
    pub writer: WriterOptions,
}

/// The setters of [`InputOptions`], as methods of the enclosing options.
macro_rules! input_setters {
    ($writer:literal) => {
        /// Sets the treatment of null elements inside tensors. The default is
        /// [`NullElements::Keep`].
        pub fn null_elements(mut self, treatment: NullElements) -> Self {
            self.input.null_elements = treatment;
            self
        }

        #[doc = $writer]
        ///
        /// If there is more than one [thread](WriterOptions::threads), the same number of
        /// additional threads read the inputs: at most 8, and at most one for each row group of a
        /// Parquet file.
        pub fn writer(mut self, options: WriterOptions) -> Self {
            self.input.writer = options;
            self
        }

        /// Sets whether an input called `-` is standard input, as on a command line, rather than a
        /// file of that name (default: no).
        pub fn dash_is_stdin(mut self, dash_is_stdin: bool) -> Self {
            self.input.dash_is_stdin = dash_is_stdin;
            self
        }

        /// Sets input formats in addition to the built-in formats (default: none). The built-in
        /// formats are tried first, except Arrow IPC streams, which have no magic bytes.
        #[cfg(feature = "arrow")]
        pub fn formats(mut self, formats: impl IntoIterator<Item = Arc<dyn super::InputFormat>>) -> Self {
            self.input.formats = CustomFormats::new(formats);
            self
        }

        /// Sets a store for the inputs whose paths it recognizes (default: none).
        pub fn store(mut self, store: Arc<dyn InputStore>) -> Self {
            self.input.store = OptionalStore(Some(store));
            self
        }
    };
}

/// The options of a conversion; see [`convert`](super::convert).
///
/// The options name columns as in the output, before [`renames`](Self::renames) are applied. The
/// name of a struct selects all columns in it, except in [`casts`](Self::casts) and
/// [`shapes`](Self::shapes), which name single columns.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ConvertOptions {
    pub(super) bf16: bool,
    pub(super) casts: Vec<(String, DType)>,
    pub(super) columns: Option<Vec<String>>,
    pub(super) skip: Vec<String>,
    pub(super) renames: Vec<(String, String)>,
    pub(super) shapes: Vec<(String, Shape)>,
    pub(super) ignore_statistics: bool,
    pub(super) overwrite: bool,
    pub(super) input: InputOptions,
}

impl ConvertOptions {
    /// Returns the default options. All columns are converted, no value is rounded, shapes are
    /// found in the inputs, null elements are kept, and existing files are not replaced. The writer
    /// has the defaults of [`WriterOptions`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether all float columns, including scalars, are rounded to bf16 (default: no).
    /// Columns named in [`casts`](Self::casts) are excluded.
    pub fn bf16(mut self, bf16: bool) -> Self {
        self.bf16 = bf16;
        self
    }

    /// Sets which columns of numbers or decimals are cast to another numeric type (default: none).
    /// Casts to floats round to nearest, ties to even, and the file records the rounding errors.
    /// Casts to integers are exact: a value that is fractional or out of range is an error. Dates,
    /// times, timestamps, durations and intervals are cast from the numbers that are stored for
    /// them. A column that already has the type stays unchanged.
    pub fn casts(mut self, casts: impl IntoIterator<Item = (impl Into<String>, DType)>) -> Self {
        self.casts = casts.into_iter().map(|(column, dtype)| (column.into(), dtype)).collect();
        self
    }

    /// Sets the columns to convert, and their order (default: all, in the order of the first
    /// input).
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the columns to leave out (default: none).
    pub fn skip(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.skip = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Declares the shapes of list columns (default: none; shapes are found in the inputs). A
    /// sample of a different shape is an error.
    pub fn shapes(mut self, shapes: impl IntoIterator<Item = (impl Into<String>, Shape)>) -> Self {
        self.shapes = shapes.into_iter().map(|(column, shape)| (column.into(), shape)).collect();
        self
    }

    /// Sets new names for columns or structs, as pairs of the old and the new name. A field can be
    /// renamed only within its struct, as in `("a.b", "a.c")`. An export uses the new names.
    pub fn renames(mut self, renames: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        self.renames = renames.into_iter().map(|(from, to)| (from.into(), to.into())).collect();
        self
    }

    /// Sets whether the null statistics of inputs are ignored (default: no). If so, a first pass
    /// examines every struct and list whose type allows nulls. If [`convert`](super::convert) or
    /// [`convert_with`](super::convert_with) finds a null that contradicts the statistics, it
    /// starts over with this option. [`convert_into`](super::convert_into) cannot start over, and
    /// fails.
    pub fn ignore_statistics(mut self, ignore: bool) -> Self {
        self.ignore_statistics = ignore;
        self
    }

    /// Sets whether an existing file at the destination is replaced (default: no).
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    input_setters!(
        "Sets the options of the writer. A conversion sets their [origin](WriterOptions::origin) from the inputs."
    );
}

/// The options of an append; see [`append`](fn@super::append).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AppendOptions {
    pub(super) skip_extra_columns: bool,
    pub(super) input: InputOptions,
}

impl AppendOptions {
    /// Returns the default options. Additional columns are refused. Null elements are stored if the
    /// column holds lists, and refused if the file fixes it to tensors ([`NullElements::Keep`]).
    /// The writer has the defaults of [`WriterOptions`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether input columns that the file does not have are skipped (default: no; such a
    /// column is an error).
    pub fn skip_extra_columns(mut self, skip_extra_columns: bool) -> Self {
        self.skip_extra_columns = skip_extra_columns;
        self
    }

    input_setters!("Sets the options of the writer; see [`Writer::append`](crate::Writer::append).");
}

/// The progress of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// The first pass, which finds shapes.
    Scanning {
        /// The number of samples read so far.
        done: u64,
        /// The number of samples of all inputs, if it is known.
        total: Option<u64>,
    },
    /// The second pass, which writes.
    Converting {
        /// The number of samples written so far.
        done: u64,
        /// The number of samples of all inputs, if it is known.
        total: Option<u64>,
    },
}

/// Receives the files of a conversion to several files.
pub trait ShardFiles {
    /// The destination of a file.
    type Sink: Sink;

    /// The caller's error type. An error ends the conversion.
    type Error: From<Error>;

    /// Returns the sink of the next file.
    fn begin(&mut self) -> Result<Self::Sink, Self::Error>;

    /// Receives a completed file.
    fn finished(&mut self, file: Summary<Self::Sink>) -> Result<(), Self::Error>;
}

/// The plan of a conversion to several files; see [`plan_shards`](super::plan_shards).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardPlan {
    /// The inputs, in the order of their rows.
    pub inputs: Vec<PlannedInput>,
    /// The columns and metadata of every file.
    pub schema: Schema,
    /// The files, in the order of their samples.
    pub shards: Vec<PlannedShard>,
}

/// An input of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedInput {
    /// The path.
    pub path: PathBuf,
    /// The number of rows.
    pub rows: u64,
    /// A digest of the length and metadata of the input. If the digest differs when the input is
    /// converted, the input was replaced after planning, and is refused.
    pub digest: [u8; 16],
}

/// A file of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedShard {
    /// The samples of the file, numbered across all inputs.
    pub rows: Range<u64>,
    /// The id of the file.
    pub file_id: FileId,
}
