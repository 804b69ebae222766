//! Options of conversions, their progress, and conversions to several files, each of which another
//! process can write.

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

/// What conversions and appends are both told: of inputs, null elements, and the writer.
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

/// The setters of [`InputOptions`], which are methods of the options around them.
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
        /// If they have more than one [thread](WriterOptions::threads), as many other threads read,
        /// but at most 8 and at most one for each row group of a Parquet file.
        pub fn writer(mut self, options: WriterOptions) -> Self {
            self.input.writer = options;
            self
        }

        /// Sets whether an input called `-` is the standard input, as on a command line, and not a
        /// file of that name (default: no).
        pub fn dash_is_stdin(mut self, dash_is_stdin: bool) -> Self {
            self.input.dash_is_stdin = dash_is_stdin;
            self
        }

        /// Sets formats that inputs may have beside those of this crate, which are looked at first
        /// (default: none).
        #[cfg(feature = "arrow")]
        pub fn formats(mut self, formats: impl IntoIterator<Item = Arc<dyn super::InputFormat>>) -> Self {
            self.input.formats = CustomFormats::new(formats);
            self
        }

        /// Sets a store that has the inputs whose paths it knows (default: none).
        pub fn store(mut self, store: Arc<dyn InputStore>) -> Self {
            self.input.store = OptionalStore(Some(store));
            self
        }
    };
}

/// The options of a conversion, see [`convert`](super::convert).
///
/// Columns are named as in the output, before [`renames`](Self::renames). The name of a struct
/// selects all columns in it, except in [`casts`](Self::casts) and [`shapes`](Self::shapes), which
/// name single columns.
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
    /// Returns the defaults: all columns, nothing rounded, shapes found in the inputs, null
    /// elements kept, the defaults of [`WriterOptions`], no file replaced.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether all float columns, scalars included, are rounded to bf16 (default: no). Columns
    /// that [`casts`](Self::casts) names are excepted.
    pub fn bf16(mut self, bf16: bool) -> Self {
        self.bf16 = bf16;
        self
    }

    /// Sets the columns whose numbers or decimals become another type of numbers. The default is
    /// none. Floats are rounded to nearest, ties to even, and the file records the errors. Integers
    /// are exact: a value that is not whole, or out of range, is an error. Dates, times,
    /// timestamps, durations and intervals become the counts that they are stored as. A column that
    /// has the type already stays unchanged.
    pub fn casts(mut self, casts: impl IntoIterator<Item = (impl Into<String>, DType)>) -> Self {
        self.casts = casts.into_iter().map(|(column, dtype)| (column.into(), dtype)).collect();
        self
    }

    /// Sets the columns that are converted, and their order. The default is all, in the order of
    /// the first input.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the columns that are left out. The default is none.
    pub fn skip(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.skip = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the shapes of list columns that are known beforehand. The default is none: shapes are
    /// found in the inputs. A sample of another shape is an error.
    pub fn shapes(mut self, shapes: impl IntoIterator<Item = (impl Into<String>, Shape)>) -> Self {
        self.shapes = shapes.into_iter().map(|(column, shape)| (column.into(), shape)).collect();
        self
    }

    /// Sets other names for columns or structs: pairs of name and new name. A field stays in its
    /// struct: `("a.b", "a.c")`. An export has the new names.
    pub fn renames(mut self, renames: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> Self {
        self.renames = renames.into_iter().map(|(from, to)| (from.into(), to.into())).collect();
        self
    }

    /// Sets whether nulls may be where the statistics of an input deny them (default: no). Then
    /// every struct and list that may have nulls by its type is looked at in a first pass.
    /// [`convert`](super::convert) and [`convert_with`](super::convert_with) do that by themselves
    /// when they meet such a null; [`convert_into`](super::convert_into) cannot begin again.
    pub fn ignore_statistics(mut self, ignore: bool) -> Self {
        self.ignore_statistics = ignore;
        self
    }

    /// Sets whether a file at the destination is replaced (default: no).
    pub fn overwrite(mut self, overwrite: bool) -> Self {
        self.overwrite = overwrite;
        self
    }

    input_setters!(
        "Sets the options of the writer. A conversion sets their [origin](WriterOptions::origin) from the inputs."
    );
}

/// The options of an append, see [`append`](fn@super::append).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AppendOptions {
    pub(super) skip_extra_columns: bool,
    pub(super) input: InputOptions,
}

impl AppendOptions {
    /// Returns the defaults: columns that the file does not have and null elements are refused, and
    /// the defaults of [`WriterOptions`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether columns of an input that the file does not have are left out (default: no, they
    /// are an error).
    pub fn skip_extra_columns(mut self, skip_extra_columns: bool) -> Self {
        self.skip_extra_columns = skip_extra_columns;
        self
    }

    input_setters!("Sets the options of the writer, see [`Writer::append`](crate::Writer::append).");
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

/// The files of a conversion to several files.
pub trait ShardFiles {
    /// The destination of a file.
    type Sink: Sink;

    /// The error of the caller, which ends the conversion.
    type Error: From<Error>;

    /// Begins the next file.
    fn begin(&mut self) -> Result<Self::Sink, Self::Error>;

    /// Takes a file that is complete.
    fn finished(&mut self, file: Summary<Self::Sink>) -> Result<(), Self::Error>;
}

/// The files of a conversion to several files, see [`plan_shards`](super::plan_shards).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardPlan {
    /// The inputs, in the order of their rows.
    pub inputs: Vec<PlannedInput>,
    /// The columns and the metadata of each file.
    pub schema: Schema,
    /// The files, in the order of their samples.
    pub shards: Vec<PlannedShard>,
}

/// An input of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedInput {
    /// The path.
    pub path: PathBuf,
    /// The number of its rows.
    pub rows: u64,
    /// A digest of its length and metadata. If that is another one when the input is converted, the
    /// input was replaced since it was planned, and is refused.
    pub digest: [u8; 16],
}

/// A file of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedShard {
    /// Its samples, among those of all inputs.
    pub rows: Range<u64>,
    /// Its id.
    pub file_id: FileId,
}
