//! The open inputs of a conversion.
//!
//! An [`OpenInput`] combines the columns of a file with the columns from its folder names. Before
//! that, the columns of inputs that differ only slightly are unified. Every pass is
//! watched: if the file changes before the end of the pass, the pass ends with an error.

use super::file::InputFile;
use super::find::{files, stored_inputs};
use super::partition::Partition;
use super::{formats, partition, threads};
use crate::bytes::le::u64_of;
#[cfg(feature = "arrow")]
use crate::import::arrow::unified::{TypeOrigin, UnifiedSchema, aligned, column_count, fields_of_file};
use crate::import::options::InputOptions;
use crate::import::plan::input_column::{ColumnRequest, InputColumn};
use crate::import::rows::{Batch, ColumnRows, Outline};
use crate::import::source::{Batches, PassRows, RowSource, SharedSource, catch_panic};
use crate::open::{FileIdentity, default_open_files, refuse_same};
use crate::write::hash_id;
use crate::{Error, Metadata, Result, Schema};
#[cfg(feature = "arrow")]
use arrow_schema::{Fields, SchemaRef};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens all inputs. The files of a folder or pattern are consecutive. If `options.dash_is_stdin`
/// is set, `-` is standard input. If `threads` is more than 1, additional threads read the inputs.
///
/// At most [`default_open_files`] files stay open. Further inputs are closed after their schema has
/// been read, and reopened for each pass.
pub(in crate::import) fn open_all(
    inputs: &[PathBuf],
    options: &InputOptions,
    threads: usize,
) -> Result<Vec<OpenInput>> {
    let is_stdin = |input: &Path| options.dash_is_stdin && input == Path::new("-");
    if inputs.iter().filter(|input| is_stdin(input)).count() > 1 {
        return Err(Error::bad_argument("standard input is named twice, but can be read only once"));
    }
    let mut left = default_open_files();
    let mut out = Vec::new();
    for input in inputs {
        if is_stdin(input) {
            out.push(OpenInput::standard_input(options)?);
            continue;
        }
        let paths = match options.store.of(input) {
            Some(store) => stored_inputs(input, &**store)?,
            None => files(input)?,
        };
        for path in paths {
            let input = OpenInput::open(&path, options)?;
            match left.checked_sub(input.file_count()) {
                Some(rest) => left = rest,
                None => input.release(),
            }
            out.push(input);
        }
    }
    if out.is_empty() {
        return Err(Error::bad_argument("there is no input"));
    }
    unify(&mut out)?;
    partition::infer_types(out.iter_mut().map(OpenInput::partition_mut));
    out.iter_mut().for_each(OpenInput::complete_columns);
    out.iter_mut().for_each(|input| input.set_threads(threads));
    Ok(out)
}

/// Gives inputs that differ only slightly their unified columns.
#[cfg(feature = "arrow")]
fn unify(inputs: &mut [OpenInput]) -> Result<()> {
    let schemas = with_columns(inputs).into_iter().filter_map(OpenInput::own_schema);
    let unified = schemas.fold(None, |unified: Option<UnifiedSchema>, (schema, origin)| match unified {
        None => Some(UnifiedSchema::new(schema, origin)),
        Some(mut unified) => {
            unified.join(schema, origin);
            Some(unified)
        }
    });
    let Some(unified) = unified else { return Ok(()) };
    align(inputs, &unified.into_fields())
}

/// Aligns the inputs with these fields. Refuses more columns than memory can hold, because each
/// input has a description of every column, even of a column that it does not have.
#[cfg(feature = "arrow")]
fn align(inputs: &mut [OpenInput], fields: &Fields) -> Result<()> {
    /// The maximum number of missing columns in all inputs together. A missing column takes about
    /// 1 KiB.
    const MAX_MISSING_COLUMNS: usize = 4 << 20;
    let all = column_count(fields);
    let own = inputs.iter().filter_map(|input| Some(column_count(input.own_schema()?.0.fields())));
    let added = own.fold(0_usize, |added, own| added.saturating_add(all.saturating_sub(own)));
    if added > MAX_MISSING_COLUMNS {
        return Err(Error::bad_input(format!(
            "{} inputs have {all} columns in total, and most inputs do not have most of these columns; convert fewer \
             inputs at once, or store keys that vary from row to row as values rather than as column names",
            inputs.len()
        )));
    }
    inputs.iter_mut().try_for_each(|input| input.align(fields))
}

#[cfg(not(feature = "arrow"))]
fn unify(_: &mut [OpenInput]) -> Result<()> {
    Ok(())
}

/// Gives inputs the columns of a tensilo file, if their own columns differ only slightly. Columns
/// from folder names get the type that they have in that file.
pub(in crate::import) fn adapt(inputs: &mut [OpenInput], schema: &Schema) -> Result<()> {
    #[cfg(feature = "arrow")]
    align(inputs, &fields_of_file(schema))?;
    for input in inputs {
        input.partition_mut().adapt(schema);
        input.complete_columns();
    }
    Ok(())
}

/// Returns the inputs that have samples. The columns of other inputs do not matter.
pub(in crate::import) fn with_samples(inputs: &[OpenInput]) -> Vec<&OpenInput> {
    inputs.iter().filter(|input| input.has_samples()).collect()
}

/// Returns the inputs that determine the columns of a new file: the inputs with samples. If there
/// are none, returns the inputs with columns. If there are none of these either, returns the first
/// input.
pub(in crate::import) fn with_columns(inputs: &[OpenInput]) -> Vec<&OpenInput> {
    let with_samples = with_samples(inputs);
    if !with_samples.is_empty() {
        return with_samples;
    }
    let has_columns = |input: &&OpenInput| !input.source().columns().is_empty();
    let with_columns: Vec<&OpenInput> = inputs.iter().filter(has_columns).collect();
    if with_columns.is_empty() { inputs.iter().take(1).collect() } else { with_columns }
}

/// Refuses an output that is one of the inputs.
pub(in crate::import) fn check_output(
    inputs: &[OpenInput],
    output: Option<FileIdentity>,
    path: Option<&Path>,
) -> Result<()> {
    refuse_same(output, path, inputs.iter().map(|input| (input.identity().cloned(), Some(input.name()))))
}

/// Returns the bytes from which the ids of output files are derived: the origins of the
/// inputs, including the folder names that become columns.
pub(in crate::import) fn origin(inputs: &[OpenInput]) -> Vec<u8> {
    let mut out = Vec::new();
    for origin in inputs.iter().map(OpenInput::origin) {
        out.extend(u64_of(origin.len()).to_le_bytes());
        out.extend(origin);
    }
    out
}

/// Returns the identity of the file that standard input is redirected from.
fn standard_input_identity() -> Option<FileIdentity> {
    #[cfg(unix)]
    let stdin = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned();
    #[cfg(windows)]
    let stdin = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned();
    FileIdentity::of(&std::fs::File::from(stdin.ok()?)).ok().flatten()
}

/// The maximum size of an origin, in bytes. A longer origin, such as a footer with megabytes of
/// metadata, is replaced with a digest.
const MAX_ORIGIN_BYTES: usize = 4 << 20;

/// A source that is watched for changes. The columns of its [`Partition`] follow the columns of the
/// file.
pub(in crate::import) struct OpenInput {
    file: Arc<InputFile>,
    content: SharedSource,
    origin: Vec<u8>,
    partition: Partition,
    columns: Vec<InputColumn>,
    /// The number of threads of the conversion. If it is more than 1, the same number of additional
    /// threads read the input.
    threads: usize,
}

impl OpenInput {
    pub(super) fn open(path: &Path, options: &InputOptions) -> Result<Self> {
        Self::of(InputFile::open(path, &options.store)?, Partition::from_path(path)?, options)
    }

    fn standard_input(options: &InputOptions) -> Result<Self> {
        let file = InputFile::copied(Path::new("standard input"), io::stdin().lock())?;
        Self::of(file.copy_of(standard_input_identity()), Partition::default(), options)
    }

    fn of(file: InputFile, mut partition: Partition, options: &InputOptions) -> Result<Self> {
        let file = Arc::new(file);
        let recognized = catch_panic(|| formats::open(&file, options));
        let (content, mut origin) = recognized.map_err(|error| root_cause(&file, error).with_path(file.name()))?;
        if origin.len() > MAX_ORIGIN_BYTES {
            origin = hash_id(&origin).to_vec();
        }
        partition.add_to_origin(&mut origin);
        partition.find_own(content.columns());
        let columns = content.columns().to_vec();
        Ok(Self { file, content, origin, partition, columns, threads: 1 })
    }

    pub(in crate::import) fn source(&self) -> &dyn RowSource {
        self
    }

    pub(in crate::import) fn name(&self) -> &Path {
        self.file.name()
    }

    pub(super) fn identity(&self) -> Option<&FileIdentity> {
        self.file.identity()
    }

    pub(super) fn origin(&self) -> &[u8] {
        &self.origin
    }

    /// Returns a digest of the bytes from which ids of files are derived.
    pub(in crate::import) fn digest(&self) -> [u8; 16] {
        hash_id(&self.origin)
    }

    /// Sets the number of threads for later passes.
    fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Watches a pass over the content. `complete` is applied to each batch.
    fn watch<'a, T: 'a>(
        &'a self,
        content: Result<Batches<'a, T>>,
        complete: impl FnMut(Batch<T>) -> Result<Batch<T>> + 'a,
    ) -> Result<Batches<'a, T>> {
        let content = content.map_err(|error| root_cause(&self.file, error))?;
        let (held, complete) = (self.file.hold()?, Box::new(complete));
        Ok(Box::new(WatchedPass { content, complete, input: self, is_done: false, _held: held }))
    }

    /// Returns the number of files: the input and its companions.
    fn file_count(&self) -> usize {
        self.file.companions().len().saturating_add(1)
    }

    pub(super) fn release(&self) {
        self.file.release();
    }

    fn partition_mut(&mut self) -> &mut Partition {
        &mut self.partition
    }

    /// Returns whether the columns of the input matter. Returns `false` only if the input is known,
    /// before reading, to have no samples. Returns `true` for any tensilo file, because it states
    /// shapes even without samples.
    fn has_samples(&self) -> bool {
        self.row_count() != Some(0) || self.is_tensilo()
    }

    /// Aligns the file's own columns with `unified`, as far as the values of the file allow.
    /// Columns from folder names are left out.
    #[cfg(feature = "arrow")]
    pub(super) fn align(&mut self, unified: &Fields) -> Result<()> {
        let Some((own, origin)) = self.content.own_schema() else { return Ok(()) };
        let fields = aligned(own.fields(), unified, origin, &|name| !self.partition.has(name));
        // no pass has started yet, so the content is not shared
        if let Some(content) = Arc::get_mut(&mut self.content) {
            content.adopt(fields).map_err(|error| error.with_path(self.file.name()))?;
        }
        self.partition.find_own(self.content.columns());
        Ok(())
    }

    #[cfg(feature = "arrow")]
    pub(super) fn own_schema(&self) -> Option<(&SchemaRef, TypeOrigin)> {
        self.content.own_schema()
    }

    /// Sets the columns, once the types of the partition's columns are known.
    pub(super) fn complete_columns(&mut self) {
        self.columns = self.partition.complete_columns(self.content.columns());
    }
}

/// Returns the error that caused `error`: a change to the file, or a failed read. If there was
/// neither, returns `error` itself.
fn root_cause(file: &InputFile, error: Error) -> Error {
    file.check_unchanged().err().unwrap_or_else(|| file.or_read_error(error))
}

impl RowSource for OpenInput {
    fn columns(&self) -> &[InputColumn] {
        &self.columns
    }

    fn metadata(&self) -> &Metadata {
        self.content.metadata()
    }

    fn path(&self) -> Option<&Path> {
        Some(self.file.name())
    }

    fn row_count(&self) -> Option<u64> {
        self.content.row_count()
    }

    fn is_tensilo(&self) -> bool {
        self.content.is_tensilo()
    }

    fn batches(&self, columns: &[ColumnRequest], rows: PassRows) -> Result<Batches<'_, ColumnRows>> {
        let _held = self.file.hold()?; // keeps the file open until the pass has its own handle
        let own_count = self.content.columns().len();
        let own: Vec<ColumnRequest> = columns.iter().copied().filter(|column| column.position < own_count).collect();
        let first = if let PassRows::From(first) = rows { first } else { 0 };
        let mut completion = self.partition.completion(self.content.columns(), columns, first);
        let content = match (self.threads, rows) {
            (2.., PassRows::All) => threads::pass(&self.content, self.threads, move |content, row_group| {
                content.batches(&own, PassRows::RowGroup(row_group))
            }),
            _ => self.content.batches(&own, rows),
        };
        self.watch(content, move |batch| completion.complete(batch))
    }

    fn outlines(&self, columns: &[usize], rows: PassRows) -> Result<Batches<'_, Outline>> {
        let _held = self.file.hold()?; // keeps the file open until the pass has its own handle
        let content = match (self.threads, rows) {
            (2.., PassRows::All) => {
                let columns = columns.to_vec(); // all are in the content: folder columns have no outlines
                threads::pass(&self.content, self.threads, move |content, row_group| {
                    content.outlines(&columns, PassRows::RowGroup(row_group))
                })
            }
            _ => self.content.outlines(columns, rows),
        };
        self.watch(content, Ok)
    }

    fn can_skip_rows(&self) -> bool {
        self.content.can_skip_rows()
    }

    fn may_have_nulls(&self, column: usize) -> bool {
        self.content.may_have_nulls(column) // folder columns come last, and none is a struct
    }

    fn contradicts_statistics(&self) -> bool {
        self.content.contradicts_statistics()
    }

    fn ignore_statistics(&self) {
        self.content.ignore_statistics();
    }

    fn check_unchanged(&self) -> Result<()> {
        self.file.check_unchanged()
    }
}

/// A pass over an input. If the file changes before the end of the pass, the pass ends with an
/// error.
struct WatchedPass<'a, T> {
    content: Batches<'a, T>,
    complete: Box<dyn FnMut(Batch<T>) -> Result<Batch<T>> + 'a>,
    input: &'a OpenInput,
    is_done: bool,
    /// Keeps the file open for the whole pass.
    _held: Arc<dyn crate::open::Source>,
}

impl<T> Iterator for WatchedPass<'_, T> {
    type Item = Result<Batch<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let next = self.content.next().map(|batch| (self.complete)(batch?));
        if let Some(Ok(_)) = next {
            return next;
        }
        self.is_done = true;
        match next {
            Some(Err(error)) => Some(Err(root_cause(&self.input.file, error))),
            _ => self.input.check_unchanged().err().map(Err),
        }
    }
}
