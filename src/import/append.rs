//! Appending to a file: the file says which columns there are and what they are.

use super::plan::{Candidate, Column, FieldPath, candidates, describe};
use super::run::{Copy, total_rows};
use super::select::check_shape;
use super::source::{Source, check_unchanged, located};
use super::{AppendOptions, Progress, input};
use crate::error::go_on;
use crate::open::FileIdentity;
use crate::{AppendedFile, ColumnSchema, Error, Result, Schema, Writer, arrow_type, display_path};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// See [`append`](fn@super::append).
pub(super) fn append(
    inputs: &[PathBuf],
    file: &Path,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<u64> {
    let mut inputs = input::open_all(inputs, options.dash_is_stdin)?;
    input::check_output(&inputs, FileIdentity::at(file).ok().flatten(), Some(file))?;
    let mut writer = Writer::append(file, &options.writer)?;
    input::adapt_partitions(&mut inputs, writer.schema());
    let sources: Vec<&dyn Source> = inputs.iter().map(input::OpenInput::source).collect();
    let plan = |source: &&dyn Source| {
        let plan = Plan::of(*source, writer.schema(), options.skip_others);
        plan.map_err(|differences| located(refusal(&differences, file), *source))
    };
    let plans: Vec<Plan> = sources.iter().map(plan).collect::<Result<_>>()?;
    let before = writer.sample_count();
    copy_all(&sources, &plans, &mut writer, options, progress)?;
    let appended = writer.sample_count().saturating_sub(before);
    check_unchanged(&sources)?;
    writer.finish()?;
    Ok(appended)
}

fn copy_all(
    sources: &[&dyn Source],
    plans: &[Plan],
    writer: &mut Writer<AppendedFile>,
    options: &AppendOptions,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<()> {
    let (before, total) = (writer.sample_count(), total_rows(sources));
    go_on(progress(Progress::Converting(0, total)))?; // before anything is written
    for (source, Plan { columns, paths }) in sources.iter().zip(plans) {
        let copy = Copy { paths, columns, null_elements: options.null_elements };
        copy.all(*source, writer, &mut |samples| {
            progress(Progress::Converting(samples.saturating_sub(before), total))
        })?;
    }
    Ok(())
}

/// Where one source has the columns of the file, in the order of the file.
struct Plan {
    columns: Vec<Column>,
    paths: Vec<FieldPath>,
}

impl Plan {
    /// `Err`: all that differs.
    fn of(source: &dyn Source, schema: &Schema, skip_others: bool) -> std::result::Result<Self, Vec<String>> {
        let mut candidates = candidates(source.schema());
        let mut plan = Self { columns: Vec::new(), paths: Vec::new() };
        let mut differences = Vec::new();
        for due in &schema.columns {
            let (found, rest) = candidates.into_iter().partition(|candidate| candidate.name == due.name);
            candidates = rest;
            match column(due, found) {
                Ok((column, path)) => {
                    plan.columns.push(column);
                    plan.paths.push(path);
                }
                Err(difference) => differences.push(format!("column {:?} {difference}", due.name)),
            }
        }
        if !skip_others {
            let other = |candidate: &Candidate| format!("column {:?} is not in the file", candidate.name);
            differences.extend(candidates.iter().map(other));
        }
        if differences.is_empty() { Ok(plan) } else { Err(differences) }
    }
}

/// The column that is to be appended to `due`; or how it differs.
fn column(due: &ColumnSchema, mut found: Vec<Candidate>) -> std::result::Result<(Column, FieldPath), String> {
    let Some(Candidate { name, path, kind, metadata, .. }) = found.pop() else {
        return Err("is missing".to_owned());
    };
    if !found.is_empty() {
        return Err("is there twice".to_owned());
    }
    let kind = kind.map_err(|found| format!("is {found}, which cannot be stored"))?;
    // nulls are refused where they are met: an input may say that there could be some, and have none
    let column = Column {
        name,
        kind,
        nullable: due.nullable,
        metadata,
        cast: due.cast.map(|_| due.dtype),
        shape: Some(due.shape.clone()),
    };
    let arrow = |metadata: &crate::Metadata| metadata.get(arrow_type::KEY).cloned();
    let same_type = column.kind.dtype == due.pushed_dtype() && arrow(&column.metadata) == arrow(&due.metadata);
    let same_shape = column.kind.dtype.is_string() || check_shape(&column, &due.shape).is_ok();
    if same_type && same_shape {
        return Ok((column, path));
    }
    Err(format!("is {}, and {} in the file", describe(&column), describe_due(due)))
}

/// As `describe` does for an input.
fn describe_due(due: &ColumnSchema) -> String {
    let shape = if due.dtype.is_string() || due.shape.rank() == 0 { String::new() } else { due.shape.to_string() };
    let arrow = due.metadata.get(arrow_type::KEY).map(|text| format!(" ({text})"));
    let cast = due.cast.map(|_| format!(" (rounded to {})", due.dtype));
    format!("{}{shape}{}{}", due.pushed_dtype(), arrow.unwrap_or_default(), cast.unwrap_or_default())
}

fn refusal(differences: &[String], file: &Path) -> Error {
    const LISTED: usize = 50;
    let more = if differences.len() > LISTED { "; ..." } else { "" };
    let listed: Vec<&str> = differences.iter().take(LISTED).map(String::as_str).collect();
    let others = differences.iter().any(|difference| difference.ends_with("is not in the file"));
    let hint = if others {
        "; columns that the file does not have are left out with --skip-others (`AppendOptions::skip_others`)"
    } else {
        ""
    };
    Error::bad_input(format!("the columns are not those of {}: {}{more}{hint}", display_path(file), listed.join("; ")))
}
