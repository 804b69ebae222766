//! Appending to a tensilo file, and converting to files whose columns are given.
//!
//! The columns of a file or table are fixed, so each input is matched against them individually
//! ([`AppendPlan`]), and no first pass is needed. Values that contradict the columns are refused
//! when they are read. [`convert_rows`] writes one file of a [`ShardPlan`] in the same way.

use super::convert::SecondPass;
use super::diagnosis::Diagnosis;
use super::planned::PlannedSource;
use super::target::{SampleTarget, ShardWriter, divide};
use crate::error::check_cancelled;
use crate::error::{Advice, display_path};
use crate::format::{field_paths, path};
use crate::import::input::{self, OpenInput};
use crate::import::options::{AppendOptions, Progress};
use crate::import::options::{PlannedInput, ShardFiles, ShardPlan};
use crate::import::plan::input_column::{ColumnKind, InputColumn};
use crate::import::plan::{Column, check_shape, describe};
use crate::import::source::{RowSource, check_unchanged, total_rows, with_source_path};
use crate::logical::arrow_type::{self, ArrowType};
use crate::open::FileIdentity;
use crate::write::Sink;
use crate::{ColumnSchema, Error, Metadata, Result, Schema, Summary, Writer};
use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// Appends files to the tensilo file `file`, and returns the number of samples appended.
///
/// Inputs are the same as for [`convert`](fn@crate::import::convert). Each input must have the
/// columns of the file, in any order: the same names, types and shapes. If a column was rounded
/// when the file was written, the values of the inputs are rounded in the same way, from the same
/// type. An input may declare a column nullable even if the file's column is not, as long as the
/// input has no null in it. A nullable column may be missing, or have the type null. If the format
/// of an input does not declare types, the input's columns get the types of the file; see
/// [the module](crate::import#inputs). The Arrow type is the only metadata of a column that is
/// compared. If columns differ, the error lists all differences.
///
/// All samples become visible at once, after the last one has been written. After an error, the
/// file is unchanged, byte for byte. This includes the error
/// [`Cancelled`](crate::ErrorKind::Cancelled), which is returned if `progress` returns `Break`. An
/// input that is the file itself is refused. If the process is killed, the bytes written so far
/// follow the last commit. Readers ignore these bytes. The next [`append()`] fails, and its error
/// says what to do. [`Writer::append`](crate::Writer::append) lists the files that it refuses.
pub fn append(
    inputs: &[PathBuf],
    file: &Path,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64> {
    let mut inputs = input::open_all(inputs, &options.input, options.input.writer.thread_count())?;
    input::check_output(&inputs, FileIdentity::at(file).ok().flatten(), Some(file))?;
    let mut writer = Writer::append(file, &options.input.writer)?;
    input::adapt(&mut inputs, writer.schema())?;
    let planned = PlannedAppend::of(&input::with_samples(&inputs), writer.schema(), file, options)?;
    let before = writer.sample_count();
    planned.copy_to(&mut writer, progress)?;
    let count = writer.sample_count().saturating_sub(before);
    writer.finish()?;
    Ok(count)
}

/// Opens inputs for a file with given columns.
fn open_adapted(inputs: &[PathBuf], schema: &Schema, options: &AppendOptions) -> Result<Vec<OpenInput>> {
    let mut inputs = input::open_all(inputs, &options.input, options.input.writer.thread_count())?;
    input::adapt(&mut inputs, schema)?;
    Ok(inputs)
}

/// Converts inputs to several files, one after another, with the columns of an existing table.
///
/// The table has the columns of `schema`, and errors refer to the table by the path `table`. Inputs
/// are treated as in [`append()`], and divided among files as in
/// [`convert_shards`](crate::import::convert_shards). The files have the schema of the table. Each
/// file records the facts of its own casts.
pub fn append_shards<F: ShardFiles>(
    inputs: &[PathBuf],
    schema: &Schema,
    table: &Path,
    files: &mut F,
    shard_bytes: u64,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> std::result::Result<(), F::Error> {
    let inputs = open_adapted(inputs, schema, options)?;
    let writer = options.input.writer.clone().origin(input::origin(&inputs));
    let check = |sink: &F::Sink| input::check_output(&inputs, sink.identity(), sink.path());
    let mut target = ShardWriter::new(files, &check, shard_bytes, schema.clone(), writer);
    let planned = PlannedAppend::of(&input::with_samples(&inputs), schema, table, options)?;
    let copied = planned.copy_to(&mut target, progress).and_then(|()| target.finish());
    copied.map_err(|error| target.failed().unwrap_or_else(|| error.into()))
}

/// Plans the conversion of [`append_shards`], like [`plan_shards`](crate::import::plan_shards) for
/// [`convert_shards`](crate::import::convert_shards). The schema of the plan is the schema of the
/// table.
pub fn plan_appended_shards(
    inputs: &[PathBuf],
    schema: &Schema,
    table: &Path,
    shard_bytes: u64,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<ShardPlan> {
    let inputs = open_adapted(inputs, schema, options)?;
    let writer = options.input.writer.clone().origin(input::origin(&inputs));
    let inputs = input::with_samples(&inputs);
    let planned = PlannedAppend::of(&inputs, schema, table, options)?;
    let sources: Vec<PlannedSource<'_>> = planned.all().collect();
    divide(&inputs, &sources, (schema.clone(), shard_bytes), &writer, progress)
}

/// Converts some rows of planned inputs to one file.
///
/// `rows` are counted from the first row of the first input. Only inputs that have some of these
/// rows are opened. The file has the columns of `schema`, and errors name `table` as the path of
/// the table. The result is identical to the planned file if `schema` and `rows` are from a
/// [`ShardPlan`] and the options of the writer have the planned file id
/// ([`WriterOptions::file_id`](crate::WriterOptions::file_id)). Columns that the schema does not
/// have are refused, unless [`AppendOptions::skip_extra_columns`] is set.
///
/// Fails if an input differs from the planned one.
///
/// Cost: these rows are read. Earlier row groups of a Parquet file are not read. Earlier rows of an
/// Arrow or tensilo file are read and dropped.
pub fn convert_rows<K: Sink>(
    inputs: &[PlannedInput],
    rows: Range<u64>,
    schema: &Schema,
    table: &Path,
    sink: K,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<K>> {
    let mut ranges = Vec::new();
    let mut first = 0_u64;
    for input in inputs {
        let own = |row: u64| row.saturating_sub(first).min(input.rows);
        let own = own(rows.start)..own(rows.end);
        ranges.extend((!own.is_empty()).then_some((input, first, own)));
        first = first.saturating_add(input.rows);
    }
    let paths: Vec<PathBuf> = ranges.iter().map(|(input, ..)| input.path.clone()).collect();
    let mut opened = input::open_all(&paths, &options.input, 1)?;
    if opened.len() != ranges.len() {
        return Err(Error::bad_argument(
            "the number of inputs has changed: a planned path now names a folder or matches several files; plan again",
        ));
    }
    for (input, (planned, ..)) in opened.iter().zip(&ranges) {
        if input.digest() != planned.digest {
            let message = "the file was replaced after the conversion was planned; plan again";
            return Err(Error::bad_input(message).with_path(&planned.path));
        }
    }
    input::adapt(&mut opened, schema)?;
    input::check_output(&opened, sink.identity(), sink.path())?;
    let planned = PlannedAppend::of(&opened.iter().collect::<Vec<_>>(), schema, table, options)?;
    let mut writer = Writer::new(sink, schema.clone(), &options.input.writer)?;
    let total = Some(rows.end.saturating_sub(rows.start));
    for (planned, (_, first, own)) in planned.all().zip(&ranges) {
        let copy = SecondPass { planned, null_elements: options.input.null_elements };
        let mut report = |done| progress(Progress::Converting { done, total });
        copy.rows(own, *first, &mut writer, &mut report).map_err(with_append_advice)?;
    }
    check_unchanged(&planned.sources)?;
    if Some(writer.sample_count()) != total {
        let message = format!(
            "the inputs yielded {} samples, but samples {}..{} were planned; plan again",
            writer.sample_count(),
            rows.start,
            rows.end
        );
        return Err(Error::bad_input(message));
    }
    writer.finish()
}

/// Inputs to append to a table with given columns.
struct PlannedAppend<'a> {
    sources: Vec<&'a dyn RowSource>,
    /// One plan for each source.
    plans: Vec<AppendPlan>,
    options: &'a AppendOptions,
}

impl<'a> PlannedAppend<'a> {
    /// Plans an append of inputs to a table with this schema. `path` is the path of the table.
    fn of(inputs: &[&'a OpenInput], schema: &Schema, path: &Path, options: &'a AppendOptions) -> Result<Self> {
        let sources: Vec<&dyn RowSource> = inputs.iter().map(|input| input.source()).collect();
        let plan = |source: &&dyn RowSource| {
            let plan = AppendPlan::of(*source, schema, options.skip_extra_columns);
            plan.map_err(|differences| with_source_path(differences.refusal(path), *source))
        };
        let plans = sources.iter().map(plan).collect::<Result<_>>()?;
        Ok(Self { sources, plans, options })
    }

    fn all(&self) -> impl Iterator<Item = PlannedSource<'_>> {
        let planned = self.sources.iter().zip(&self.plans);
        planned.map(|(source, AppendPlan { columns, positions })| PlannedSource { source: *source, columns, positions })
    }

    /// Copies all rows.
    fn copy_to(
        &self,
        target: &mut impl SampleTarget,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let first_sample = target.sample_count();
        self.copy_all(target, progress).map_err(|error| {
            let (planned_sources, null_elements) = (self.all().collect(), self.options.input.null_elements);
            with_append_advice(Diagnosis { planned_sources, first_sample, null_elements }.complete(error))
        })?;
        check_unchanged(&self.sources)
    }

    fn copy_all(
        &self,
        target: &mut impl SampleTarget,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<()> {
        let (before, total) = (target.sample_count(), total_rows(&self.sources));
        check_cancelled(progress(Progress::Converting { done: 0, total }))?; // before anything is written
        for planned in self.all() {
            let copy = SecondPass { planned, null_elements: self.options.input.null_elements };
            copy.all(target, &mut |samples| {
                let done = samples.saturating_sub(before);
                progress(Progress::Converting { done, total })
            })?;
        }
        Ok(())
    }
}

/// Replaces the advice of an error with advice that applies to an append. In an append, the
/// columns and shapes are already fixed.
fn with_append_advice(error: Error) -> Error {
    error.advice().to_vec().iter().fold(error, |error, advice| match advice {
        Advice::SkipColumns => error.without_advice(advice),
        Advice::DeclareShape(extents) => {
            error.without_advice(advice).with_advice([Advice::ConvertAgain(extents.clone())])
        }
        _ => error,
    })
}

/// For one source: the columns of the file, in the order of the file, followed by the nulls of
/// structs that the file does not store.
struct AppendPlan {
    columns: Vec<Column>,
    positions: Vec<usize>,
}

impl AppendPlan {
    fn of(
        source: &dyn RowSource,
        schema: &Schema,
        skip_extra_columns: bool,
    ) -> std::result::Result<Self, FileDifferences> {
        let mut left: HashMap<(&str, bool), Vec<(usize, &InputColumn)>> = HashMap::new();
        for (position, column) in source.columns().iter().enumerate() {
            left.entry((&column.name, column.struct_nulls.is_some())).or_default().push((position, column));
        }
        let mut plan = Self { columns: Vec::new(), positions: Vec::new() };
        let mut differences = FileDifferences::default();
        for (file_column, path) in schema.columns.iter().zip(field_paths(schema.columns.iter())) {
            let is_struct = path.is_some_and(|path| path.is_struct);
            match column(file_column, left.remove(&(file_column.name.as_str(), is_struct)).unwrap_or_default()) {
                Ok((column, position)) => {
                    plan.columns.push(column);
                    plan.positions.push(position);
                }
                Err(ColumnDifference { text, advice }) => {
                    differences.list.push(format!("column {:?} {text}", file_column.name));
                    differences.advice.extend(advice);
                }
            }
        }
        let mut left: Vec<(usize, &InputColumn)> = left.into_values().flatten().collect();
        left.sort_unstable_by_key(|(position, _)| *position);
        let (structs, left): (Vec<_>, Vec<_>) = left.into_iter().partition(|(_, column)| column.follows_fields());
        plan.add_structs(schema, &structs);
        if !skip_extra_columns {
            let other = |(_, column): &(usize, &InputColumn)| format!("column {:?} is not in the file", column.name);
            differences.list.extend(left.iter().map(other));
            differences.advice.extend((!left.is_empty()).then_some(Advice::SkipExtraColumns));
        }
        if differences.list.is_empty() { Ok(plan) } else { Err(differences) }
    }

    /// Adds the nulls of each nullable struct that has fields in the file, but no column for its
    /// nulls. They are read only to refuse null structs.
    fn add_structs(&mut self, schema: &Schema, structs: &[(usize, &InputColumn)]) {
        let paths = field_paths(schema.columns.iter());
        let in_file: HashSet<&str> = paths.iter().flatten().flat_map(|path| path::enclosing(path.text)).collect();
        for (position, column) in structs {
            let may_be_null = column.struct_nulls.is_some_and(|nulls| nulls.may_be_null);
            let has_fields = column.path().is_some_and(|path| in_file.contains(path));
            if let Some(column) = Column::of(column).filter(|_| may_be_null && has_fields) {
                self.columns.push(column);
                self.positions.push(*position);
            }
        }
    }
}

/// The differences between a source and the file.
#[derive(Default)]
struct FileDifferences {
    list: Vec<String>,
    advice: Vec<Advice>,
}

/// How a column of a source differs from the column of the file.
struct ColumnDifference {
    text: String,
    advice: Option<Advice>,
}

impl From<&str> for ColumnDifference {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), advice: None }
    }
}

/// Returns the column to append to `file_column` and its position, or how it differs.
fn column(
    file_column: &ColumnSchema,
    mut found: Vec<(usize, &InputColumn)>,
) -> std::result::Result<(Column, usize), ColumnDifference> {
    let Some((position, input)) = found.pop() else {
        return Err("is missing".into());
    };
    if !found.is_empty() {
        return Err("occurs twice".into());
    }
    if let Err(found) = &input.kind {
        return Err(format!("cannot be stored: {found}").as_str().into());
    }
    let mut column = Column::of(input).ok_or_else(|| ColumnDifference::from("cannot be stored"))?;
    column.cast_like(&file_column.metadata, file_column.dtype);
    let lists = file_column.levels.len().saturating_sub(column.kind.lists.len());
    if column.kind.can_unfold(lists) {
        column.unfold(lists);
    }
    if column.kind.lists.len() != file_column.levels.len() {
        let text = format!("is {}, but {} in the file", describe(&column), file_column.type_name());
        return Err(text.as_str().into());
    }
    let kind = ColumnKind { lists: file_column.levels.clone(), ..column.kind };
    let column = Column {
        kind,
        // nulls are refused when they are read: an input may be nullable and have none
        nullable: file_column.nullable,
        cast: file_column.cast.and_then(|cast| cast.source.dtype()).map(|_| file_column.dtype),
        shape: Some(file_column.shape.clone()),
        has_explicit_unit: true,
        ..column
    };
    let column = in_unit_of(file_column, column);
    let arrow = |metadata: &Metadata| metadata.get(arrow_type::KEY).cloned();
    let same_type = column.kind.dtype == file_column.pushed_dtype()
        && arrow(&column.stored_metadata()) == arrow(&file_column.metadata);
    let same_shape = column.kind.dtype.is_string() || check_shape(&column, &file_column.shape).is_ok();
    if same_type && same_shape && column.rounded.is_none() {
        return Ok((column, position));
    }
    let text = format!("is {}, but {} in the file", describe(&column), describe_file_column(file_column));
    let varying = || vec![None; file_column.shape.ndim()];
    let same_ndim = column.kind.ndim() == file_column.shape.ndim();
    let advice = (same_type && same_ndim).then(|| Advice::ConvertAgain(varying()));
    Err(ColumnDifference { text, advice })
}

/// Assigns the unit of the file to timestamps without a stated unit, if both columns are timestamps
/// with the same time zone.
fn in_unit_of(file_column: &ColumnSchema, mut column: Column) -> Column {
    let zone = |metadata: &Metadata| match ArrowType::of(metadata)? {
        ArrowType::Timestamp(_, zone) => Some(zone),
        _ => None,
    };
    let (own, file_zone) = (zone(&column.metadata), zone(&file_column.metadata));
    if column.kind.instants && file_zone.is_some() && own == file_zone {
        let text = file_column.metadata.get(arrow_type::KEY).map(|text| (arrow_type::KEY.to_owned(), text.clone()));
        column.metadata.extend(text);
    }
    column
}

/// Describes a column of the file, like `describe` for a column of an input.
fn describe_file_column(file_column: &ColumnSchema) -> String {
    let shape = if file_column.dtype.is_string() || file_column.shape.ndim() == 0 {
        String::new()
    } else {
        file_column.shape.to_string()
    };
    let arrow = file_column.metadata.get(arrow_type::KEY).map(|text| format!(" ({text})"));
    let cast = file_column.cast.map(|_| format!(" (rounded to {})", file_column.dtype));
    format!("{}{shape}{}{}", file_column.pushed_dtype(), arrow.unwrap_or_default(), cast.unwrap_or_default())
}

impl FileDifferences {
    fn refusal(&self, file: &Path) -> Error {
        const MAX_LISTED: usize = 50;
        let more = if self.list.len() > MAX_LISTED { "; ..." } else { "" };
        let listed: Vec<&str> = self.list.iter().take(MAX_LISTED).map(String::as_str).collect();
        let message = format!("the columns differ from {}: {}{more}", display_path(file), listed.join("; "));
        Error::bad_input(message).with_advice(self.advice.iter().cloned())
    }
}
