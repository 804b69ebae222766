//! Merges the schemas of all sources into the columns of a new file.
//!
//! All sources have the same columns, in any order. The columns of the file have the order of the
//! first source. A column that is nullable in one source is nullable in the file. All differences
//! are collected first, so that one error lists them.
//!
//! The nulls of a struct also form a column. This column is selected together with the fields of
//! the struct, and it is written if the first pass over the sources finds a null struct in any of
//! them. A column `a.b` can be the field `b` of a struct `a`, or a column whose name contains a
//! dot. If sources differ in this, the file stores a column without a path, that is, not as a field
//! of a struct, and the nulls of the struct have no column.

use super::column::{Column, describe};
use super::select::{Renames, apply_options, check_names, choose};
use crate::error::{Advice, display_path};
use crate::format::path;
use crate::import::options::ConvertOptions;
use crate::import::plan::input_column::InputColumn;
use crate::import::source::{RowSource, with_source_path};
use crate::logical::saved_schema;
use crate::{Error, Metadata, Result, limits};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The columns and metadata of the output file.
#[derive(Clone)]
pub(in crate::import) struct Plan {
    pub columns: Vec<Column>,
    pub metadata: Metadata,
    /// For each source, the position of every column in that source.
    pub positions: Vec<Vec<usize>>,
}

impl Plan {
    /// Removes the columns whose flag is `false`.
    fn retain_columns(&mut self, retained: &[bool]) {
        fn chosen<T>(all: &mut Vec<T>, retained: &[bool]) {
            let mut retained = retained.iter();
            all.retain(|_| retained.next().is_none_or(|retained| *retained));
        }
        chosen(&mut self.columns, retained);
        self.positions.iter_mut().for_each(|positions| chosen(positions, retained));
    }

    /// Removes the columns of struct nulls that are not written. This is called after the first
    /// pass, which decides which of them are written.
    pub(in crate::import) fn settle_structs(&mut self) -> Result<()> {
        let is_written = |column: &Column| column.struct_nulls.is_none_or(|nulls| nulls.is_written);
        let retained: Vec<bool> = self.columns.iter().map(is_written).collect();
        self.retain_columns(&retained);
        let values = self.columns.iter().filter(|column| !column.follows_fields());
        let mut names: HashSet<&str> = values.map(|column| column.name.as_str()).collect();
        for column in self.columns.iter().filter(|column| column.follows_fields()) {
            if !is_valid_name(&column.name) || !names.insert(&column.name) {
                return Err(struct_name_error(column));
            }
        }
        Ok(())
    }

    /// Decides to write the nulls of all structs that may be null.
    #[cfg(feature = "arrow")]
    pub(in crate::import) fn write_all_structs(&mut self) -> Result<()> {
        for nulls in self.columns.iter_mut().filter_map(|column| column.struct_nulls.as_mut()) {
            nulls.is_written |= nulls.may_be_null;
        }
        self.settle_structs()
    }
}

/// Plans the conversion of sources, which must have the same columns.
pub(in crate::import) fn of(sources: &[&dyn RowSource], options: &ConvertOptions) -> Result<Plan> {
    check_formats(sources)?;
    let renames = Renames::new(options)?;
    check_names(sources, options, &renames)?;
    let mut plan = Plan { columns: Vec::new(), metadata: Metadata::new(), positions: Vec::new() };
    let mut differences = SchemaDifferences::default();
    let mut new_names = HashMap::new();
    for source in sources.iter().copied() {
        let chosen = choose(source.columns(), options).map_err(|error| with_source_path(error, source))?;
        let mut named = Vec::with_capacity(chosen.len());
        for (position, column) in chosen {
            let renamed = renames.renamed(column)?;
            if let (Cow::Owned(renamed), false) = (&renamed, column.follows_fields()) {
                new_names.insert(column.name.clone(), renamed.name.clone());
            }
            named.push((position, renamed));
        }
        let found = storable(&named).map_err(|error| with_source_path(error, source))?;
        let metadata = renames.renamed_metadata(source.metadata(), source.columns())?;
        if plan.positions.is_empty() {
            let (columns, positions) = found.into_iter().unzip();
            (plan.columns, plan.metadata) = (columns, metadata.into_owned());
            plan.positions.push(positions);
        } else {
            saved_schema::join(&mut plan.metadata, &metadata);
            let positions = merge(&mut plan.columns, found).unwrap_or_else(|found| {
                differences.add(source, found);
                Vec::new()
            });
            plan.positions.push(positions);
        }
    }
    differences.refuse(sources)?;
    plan.retain_columns(&common(&plan.columns));
    apply_options(&mut plan.columns, options, &new_names)?;
    Ok(plan)
}

/// Refuses a mix of tensilo files and other formats. Tensilo files state shapes, but the shapes of
/// other formats are inferred.
fn check_formats(sources: &[&dyn RowSource]) -> Result<()> {
    let tensilo = sources.iter().find(|source| source.is_tensilo());
    let (Some(tensilo), Some(other)) = (tensilo, sources.iter().find(|source| !source.is_tensilo())) else {
        return Ok(());
    };
    let message = format!(
        "this is not a tensilo file, but {} is; convert the other files first, then merge all tensilo files",
        name(*tensilo)
    );
    Err(with_source_path(Error::bad_argument(message), *other))
}

/// Refuses columns that cannot be stored. The error names all of them.
fn storable(chosen: &[(usize, Cow<'_, InputColumn>)]) -> Result<Vec<(Column, usize)>> {
    let mut same_name: HashMap<&str, usize> = HashMap::new();
    // the names of struct nulls are checked after the first pass, which decides if they are written
    let named = || chosen.iter().map(|(_, column)| column.as_ref()).filter(|column| !column.follows_fields());
    for column in named() {
        *same_name.entry(&column.name).or_default() += 1;
    }
    let mut refused: Vec<(&str, String)> = Vec::new();
    let mut advice = vec![Advice::SkipColumns];
    for InputColumn { name, kind, .. } in named() {
        let same_name = same_name.remove(name.as_str()).unwrap_or(1); // report it once
        let reasons = [
            kind.as_ref().err().cloned(),
            (!is_valid_name(name)).then(|| "a name must have 1 to 1,024 bytes and no control characters".to_owned()),
            (same_name > 1).then(|| format!("{same_name} columns have this name")),
        ];
        if same_name > 1 || !is_valid_name(name) {
            advice = vec![Advice::SkipColumns, Advice::RenameColumns];
        }
        refused.extend(reasons.into_iter().flatten().map(|reason| (name.as_str(), reason)));
    }
    match refused.as_slice() {
        [] => {}
        [(name, reason)] => {
            let error = Error::bad_input(format!("cannot be stored: {reason}")).with_column(name);
            return Err(error.with_advice(advice));
        }
        several => {
            let list: Vec<String> = several.iter().map(|(name, reason)| format!("{name:?} ({reason})")).collect();
            let error = Error::bad_input(format!("these columns cannot be stored: {}", list.join(", ")));
            return Err(error.with_advice(advice));
        }
    }
    let column = |(position, column): &(usize, Cow<'_, InputColumn>)| Some((Column::of(column)?, *position));
    Ok(chosen.iter().filter_map(column).collect())
}

/// Returns whether the format allows this column name.
fn is_valid_name(name: &str) -> bool {
    (1..=limits::NAME_BYTES).contains(&name.len()) && !name.contains(|c: char| c.is_ascii_control())
}

/// Finds the columns of the plan in another source, in any order. A column that is nullable in one
/// source is nullable in the file.
///
/// # Errors
///
/// Returns all differences.
fn merge(columns: &mut [Column], found: Vec<(Column, usize)>) -> std::result::Result<Vec<usize>, Vec<String>> {
    let mut differences = Vec::new();
    let mut positions = Vec::with_capacity(columns.len());
    let (structs, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|(column, _)| column.follows_fields());
    let mut other_structs = OtherStructs::new(structs);
    let mut found: BTreeMap<String, (Column, usize)> =
        found.into_iter().map(|found| (found.0.name.clone(), found)).collect();
    for column in columns {
        if column.follows_fields() {
            match other_structs.join(column) {
                // a struct that the source does not have is removed later
                Ok(position) => positions.push(position.unwrap_or(usize::MAX)),
                Err(difference) => differences.push(difference),
            }
            continue;
        }
        let Some((other, position)) = found.remove(&column.name) else {
            differences.push(format!("column {:?} is missing", column.name));
            continue;
        };
        let (here, there) = (describe(&other), describe(column));
        if here != there {
            differences.push(format!("column {:?} is {here}, not {there}", column.name));
        }
        column.join(&other);
        positions.push(position);
    }
    let others = found.keys().map(String::as_str).chain(other_structs.needed());
    differences.extend(others.map(|name| format!("extra column {name:?}")));
    if differences.is_empty() { Ok(positions) } else { Err(differences) }
}

/// The differences between the first source and the other sources.
#[derive(Default)]
struct SchemaDifferences {
    /// The first source that differs.
    path: Option<PathBuf>,
    listed: Vec<String>,
    count: usize,
}

impl SchemaDifferences {
    fn add(&mut self, source: &dyn RowSource, differences: Vec<String>) {
        const MAX_LISTED: usize = 50;
        self.count += differences.len();
        let room = MAX_LISTED.saturating_sub(self.listed.len());
        let mut differences = differences.into_iter().take(room);
        if self.listed.is_empty() {
            self.path = source.path().map(Path::to_path_buf); // the error starts with this path
        } else if let Some(difference) = differences.next() {
            self.listed.push(format!("in {}, {difference}", name(source)));
        }
        self.listed.extend(differences);
    }

    /// Refuses sources that differ. The error lists the first differences, and counts the remaining
    /// ones.
    fn refuse(&self, sources: &[&dyn RowSource]) -> Result<()> {
        let Some(first) = sources.first().filter(|_| self.count > 0) else { return Ok(()) };
        let more = match self.count - self.listed.len() {
            0 => String::new(),
            more => format!("; and {more} more differences"),
        };
        let message = format!("the columns differ from {}: {}{more}", name(*first), self.listed.join("; "));
        let error = Error::bad_input(message).with_advice([Advice::SkipColumns]);
        Err(match &self.path {
            Some(path) => error.with_path(path),
            None => error,
        })
    }
}

fn name(source: &dyn RowSource) -> String {
    source.path().map_or_else(|| "another source".to_owned(), |path| display_path(path).to_string())
}

/// The nulls of structs in a source other than the first.
struct OtherStructs {
    by_path: HashMap<String, (Column, usize)>,
}

impl OtherStructs {
    fn new(structs: Vec<(Column, usize)>) -> Self {
        let by_path = structs.into_iter().filter_map(|found| Some((found.0.path()?.to_owned(), found)));
        Self { by_path: by_path.collect() }
    }

    /// Combines a column of the plan, which holds the nulls of a struct, with the nulls of the same
    /// struct in this source, and returns their position. If the source has no such struct, the
    /// column loses its path, so it is removed from the plan later. But if the column must be
    /// written, because a tensilo file has it, the missing struct is an error.
    fn join(&mut self, column: &mut Column) -> std::result::Result<Option<usize>, String> {
        match column.path().and_then(|path| self.by_path.remove(path)) {
            Some((other, position)) => {
                column.join(&other);
                Ok(Some(position))
            }
            None if is_written(column) => Err(format!("column {:?} is missing", column.name)),
            None => {
                column.metadata.remove(path::KEY);
                Ok(None)
            }
        }
    }

    /// Returns the names of the remaining columns that must be written, because a tensilo file has
    /// them. The plan has no such columns.
    fn needed(&self) -> impl Iterator<Item = &str> {
        self.by_path.values().map(|(column, _)| column).filter(|column| is_written(column)).map(|c| c.name.as_str())
    }
}

fn is_written(column: &Column) -> bool {
    column.struct_nulls.is_some_and(|nulls| nulls.is_written)
}

/// Returns, for each column, whether all sources have it. The other columns are the nulls of
/// structs whose fields have lost their path.
fn common(columns: &[Column]) -> Vec<bool> {
    let values = columns.iter().filter(|column| !column.follows_fields());
    let enclosing: HashSet<&str> = values.filter_map(Column::path).flat_map(path::enclosing).collect();
    let is_common = |column: &Column| column.path().is_some_and(|path| enclosing.contains(path));
    columns.iter().map(|column| !column.follows_fields() || is_common(column)).collect()
}

/// Returns the error about a struct whose name cannot be the name of the column for its nulls.
fn struct_name_error(column: &Column) -> Error {
    let message = "cannot be stored: the nulls of this struct need a column with the name of the struct, but \
                   another column has this name or the name is invalid; rename the struct";
    Error::bad_input(message).with_column(&column.name).with_advice([Advice::SkipColumns])
}
