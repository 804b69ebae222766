//! Which columns a file will have, from the schemas of the sources.

use super::source::{Source, located};
use super::types::{Kind, kind_of};
use super::{ConvertOptions, extension, metadata, select};
use crate::{DType, Error, Metadata, Result, Shape, limits};
use arrow::datatypes::{DataType, Field, Schema};
use std::collections::HashSet;

/// One column of the file to be.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
    pub metadata: Metadata,
    /// What its values are rounded to, if it is not what they are.
    pub cast: Option<DType>,
    /// Its shape, if the caller knows it.
    pub shape: Option<Shape>,
}

/// What is to be done.
pub(super) struct Plan {
    pub columns: Vec<Column>,
    pub metadata: Metadata,
    /// For each source, where each column is found in its schema.
    pub paths: Vec<Vec<FieldPath>>,
}

/// A field of the schema, then fields of structs.
pub(super) type FieldPath = Vec<usize>;

/// A column as the schema of one source has it.
pub(super) struct Candidate {
    pub name: String,
    pub path: FieldPath,
    /// `Err`: a type that cannot be stored.
    pub kind: std::result::Result<Kind, String>,
    pub nullable: bool,
    pub metadata: Metadata,
}

/// Plans the conversion of sources that must have the same columns.
pub(super) fn of(sources: &[&dyn Source], options: &ConvertOptions) -> Result<Plan> {
    let candidates: Vec<Vec<Candidate>> = sources.iter().map(|source| candidates(source.schema())).collect();
    select::check_names(&candidates, options)?;
    let mut plan = Plan { columns: Vec::new(), metadata: Metadata::new(), paths: Vec::new() };
    let mut first: Option<&dyn Source> = None;
    for (source, candidates) in sources.iter().copied().zip(candidates) {
        let chosen = select::choose(candidates, options).map_err(|error| located(error, source))?;
        plan.paths.push(chosen.iter().map(|candidate| candidate.path.clone()).collect());
        let columns = storable(chosen).map_err(|error| located(error, source))?;
        match first {
            None => {
                plan.columns = columns;
                plan.metadata = metadata::of_file(source.schema());
                first = Some(source);
            }
            Some(first) => merge(&mut plan.columns, &columns, first).map_err(|error| located(error, source))?,
        }
    }
    select::apply_options(&mut plan.columns, options)?;
    Ok(plan)
}

/// All columns of a schema, those inside structs under dotted names.
pub(super) fn candidates(schema: &Schema) -> Vec<Candidate> {
    let mut out = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        collect(field, field.name().clone(), vec![i], false, &mut out);
    }
    out
}

fn collect(field: &Field, name: String, path: FieldPath, nullable: bool, out: &mut Vec<Candidate>) {
    let nullable = nullable || field.is_nullable();
    match field.data_type() {
        DataType::Struct(fields) if !fields.is_empty() && !extension::is_variable_tensor(field) => {
            for (i, child) in fields.iter().enumerate() {
                let mut path = path.clone();
                path.push(i);
                collect(child, format!("{name}.{}", child.name()), path, nullable, out);
            }
        }
        _ => out.push(Candidate { name, path, kind: kind_of(field), nullable, metadata: metadata::of_column(field) }),
    }
}

/// Refuses columns that cannot be stored, naming all of them.
fn storable(chosen: Vec<Candidate>) -> Result<Vec<Column>> {
    let refused: Vec<String> = chosen
        .iter()
        .filter_map(|candidate| Some(format!("{:?} ({})", candidate.name, candidate.kind.as_ref().err()?)))
        .collect();
    if !refused.is_empty() {
        let message = format!(
            "these columns cannot be stored: {}; leave them out with --skip NAME (`ConvertOptions::skip`)",
            refused.join(", ")
        );
        return Err(Error::bad_input(message));
    }
    if let Some(bad) = chosen.iter().find(|candidate| !is_name(&candidate.name)) {
        let message = "a column's name has 1 to 1,024 bytes and no control characters; leave it out with --skip";
        return Err(Error::bad_input(message).with_column(&bad.name));
    }
    let mut names = HashSet::new();
    if let Some(twice) = chosen.iter().find(|candidate| !names.insert(candidate.name.as_str())) {
        return Err(Error::bad_input("two columns have this name").with_column(&twice.name));
    }
    let column = |candidate: Candidate| {
        let Candidate { name, kind, nullable, metadata, .. } = candidate;
        Some(Column { name, kind: kind.ok()?, nullable, metadata, cast: None, shape: None })
    };
    Ok(chosen.into_iter().filter_map(column).collect())
}

/// Whether the format allows this name of a column.
fn is_name(name: &str) -> bool {
    (1..=limits::NAME_BYTES).contains(&name.len()) && !name.contains(|c: char| c.is_ascii_control())
}

/// Refuses columns that differ from those of the first source; what may be null in one of them may be null in the file.
fn merge(columns: &mut [Column], others: &[Column], first: &dyn Source) -> Result<()> {
    let first = first.path().map_or_else(|| "the first source".to_owned(), |path| path.display().to_string());
    let missing = columns.iter().find(|column| !others.iter().any(|other| other.name == column.name));
    if let Some(column) = missing {
        return Err(Error::bad_input(format!("there is no such column, and {first} has it")).with_column(&column.name));
    }
    let extra = others.iter().find(|other| !columns.iter().any(|column| column.name == other.name));
    if let Some(column) = extra {
        return Err(Error::bad_input(format!("{first} has no such column")).with_column(&column.name));
    }
    for (column, other) in columns.iter_mut().zip(others) {
        if column.name != other.name {
            let message = format!("stands where {first} has column {:?}; the inputs have one schema", column.name);
            return Err(Error::bad_input(message).with_column(&other.name));
        }
        let (here, there) = (describe(other), describe(column));
        if here != there {
            let message = format!("is {here}, but {there} in {first}; the inputs have one schema");
            return Err(Error::bad_input(message).with_column(&column.name));
        }
        column.nullable |= other.nullable;
    }
    Ok(())
}

/// The type of a column as far as it must be the same in all sources.
pub(super) fn describe(column: &Column) -> String {
    let kind = &column.kind;
    let levels: Vec<String> = kind.levels.iter().map(|level| format!("{level}")).collect();
    let arrow = column.metadata.get(crate::arrow_type::KEY).map(|text| format!(" ({text})"));
    let variable = if kind.variable_tensor { " variable-shape tensor" } else { "" };
    format!("{}{}{variable}{}", kind.dtype, levels.concat(), arrow.unwrap_or_default())
}
