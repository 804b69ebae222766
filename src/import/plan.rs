//! Which columns a file will have, from the schemas of the sources.

use super::shape::ShapeFinder;
use super::source::{Source, located};
use super::types::{Kind, kind_of};
use super::{ConvertOptions, extension, metadata, select};
use crate::{Advice, DType, Error, Metadata, Result, Shape, display_path, limits};
use arrow_schema::{DataType, Field, Schema};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// One column of the file to be.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
    pub metadata: Metadata,
    /// What its values are rounded to, if it is not what they are.
    pub cast: Option<DType>,
    /// Its shape, if the caller knows it or the first pass has found it.
    pub shape: Option<Shape>,
    /// Whether a source has the column in the unit that its metadata says; else INT96 timestamps
    /// may choose one.
    pub unit_is_given: bool,
}

impl Column {
    /// Its shape; what nobody knows varies.
    pub(super) fn shape(&self) -> Shape {
        match &self.shape {
            Some(shape) => shape.clone(),
            None if self.kind.dtype.is_string() => Shape::ragged(),
            None => ShapeFinder::new(&self.kind).shape(&self.kind),
        }
    }
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
    let mut differences = Differences::default();
    for (source, candidates) in sources.iter().copied().zip(candidates) {
        let chosen = select::choose(candidates, options).map_err(|error| located(error, source))?;
        let found = storable(chosen).map_err(|error| located(error, source))?;
        if plan.paths.is_empty() {
            let (columns, paths) = found.into_iter().unzip();
            (plan.columns, plan.metadata) = (columns, metadata::of_file(source.schema()));
            plan.paths.push(paths);
        } else {
            let paths = merge(&mut plan.columns, found).unwrap_or_else(|found| {
                differences.add(source, found);
                Vec::new()
            });
            plan.paths.push(paths);
        }
    }
    differences.refuse(sources)?;
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
fn storable(chosen: Vec<Candidate>) -> Result<Vec<(Column, FieldPath)>> {
    let mut same_name: HashMap<&str, usize> = HashMap::new();
    for candidate in &chosen {
        *same_name.entry(&candidate.name).or_default() += 1;
    }
    let mut refused: Vec<(&str, String)> = Vec::new();
    for Candidate { name, kind, .. } in &chosen {
        let same_name = same_name.remove(name.as_str()).unwrap_or(1); // said once
        let reasons = [
            kind.as_ref().err().cloned(),
            (!is_name(name)).then(|| "a name has 1 to 1,024 bytes and no control characters".to_owned()),
            (same_name > 1).then(|| format!("{same_name} columns have this name")),
        ];
        refused.extend(reasons.into_iter().flatten().map(|reason| (name.as_str(), reason)));
    }
    match refused.as_slice() {
        [] => {}
        [(name, reason)] => {
            let error = Error::bad_input(format!("cannot be stored: {reason}")).with_column(name);
            return Err(error.with_advice([Advice::SkipColumns]));
        }
        several => {
            let list: Vec<String> = several.iter().map(|(name, reason)| format!("{name:?} ({reason})")).collect();
            let error = Error::bad_input(format!("these columns cannot be stored: {}", list.join(", ")));
            return Err(error.with_advice([Advice::SkipColumns]));
        }
    }
    let column = |candidate: Candidate| {
        let Candidate { name, path, kind, nullable, metadata } = candidate;
        let kind = kind.ok()?;
        let unit_is_given = !kind.int96;
        Some((Column { name, kind, nullable, metadata, cast: None, shape: None, unit_is_given }, path))
    };
    Ok(chosen.into_iter().filter_map(column).collect())
}

/// Whether the format allows this name of a column.
fn is_name(name: &str) -> bool {
    (1..=limits::NAME_BYTES).contains(&name.len()) && !name.contains(|c: char| c.is_ascii_control())
}

/// Finds the columns in another source, in any order; what may be null in one of them may be null
/// in the file.
///
/// `Err`: all that differs.
fn merge(columns: &mut [Column], found: Vec<(Column, FieldPath)>) -> std::result::Result<Vec<FieldPath>, Vec<String>> {
    let mut differences = Vec::new();
    let mut paths = Vec::with_capacity(columns.len());
    let mut found: BTreeMap<String, (Column, FieldPath)> =
        found.into_iter().map(|found| (found.0.name.clone(), found)).collect();
    for column in columns {
        let Some((other, path)) = found.remove(&column.name) else {
            differences.push(format!("column {:?} is missing", column.name));
            continue;
        };
        let (here, there) = (describe(&other), describe(column));
        if here != there {
            differences.push(format!("column {:?} is {here}, not {there}", column.name));
        }
        column.nullable |= other.nullable;
        column.unit_is_given |= other.unit_is_given;
        column.kind.int96 |= other.kind.int96;
        paths.push(path);
    }
    differences.extend(found.keys().map(|name| format!("column {name:?} is not there")));
    if differences.is_empty() { Ok(paths) } else { Err(differences) }
}

/// How sources differ from the first.
#[derive(Default)]
struct Differences {
    /// The first that differs.
    path: Option<PathBuf>,
    listed: Vec<String>,
    count: usize,
}

impl Differences {
    fn add(&mut self, source: &dyn Source, differences: Vec<String>) {
        const LISTED: usize = 50;
        self.count += differences.len();
        let room = LISTED.saturating_sub(self.listed.len());
        let mut differences = differences.into_iter().take(room);
        if self.listed.is_empty() {
            self.path = source.path().map(Path::to_path_buf); // the error begins with it
        } else if let Some(difference) = differences.next() {
            self.listed.push(format!("in {}, {difference}", name(source)));
        }
        self.listed.extend(differences);
    }

    /// Refuses sources that differ, naming all differences that there is room for.
    fn refuse(&self, sources: &[&dyn Source]) -> Result<()> {
        let Some(first) = sources.first().filter(|_| self.count > 0) else { return Ok(()) };
        let more = match self.count - self.listed.len() {
            0 => String::new(),
            more => format!("; and {more} more differences"),
        };
        let message = format!("the columns are not those of {}: {}{more}", name(*first), self.listed.join("; "));
        let error = Error::bad_input(message).with_advice([Advice::SkipColumns]);
        Err(match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        })
    }
}

fn name(source: &dyn Source) -> String {
    source.path().map_or_else(|| "another source".to_owned(), |path| display_path(path).to_string())
}

/// The type of a column as far as it must be the same in all sources.
pub(super) fn describe(column: &Column) -> String {
    let kind = &column.kind;
    let levels: Vec<String> = kind.levels.iter().map(|level| format!("{level}")).collect();
    let arrow = column.metadata.get(crate::arrow_type::KEY).map(|text| format!(" ({text})"));
    let variable = if kind.variable_tensor { " variable-shape tensor" } else { "" };
    format!("{}{}{variable}{}", kind.dtype, levels.concat(), arrow.unwrap_or_default())
}
