//! Applies the caller's options to columns: selection, new names, casts and shapes.
//!
//! All options use the names in the inputs, so they can be checked before anything is merged. A
//! field stays in its struct, so a rename changes only the last name of its path.

use super::column::Column;
use crate::format::path::{self, Component};
use crate::import::options::ConvertOptions;
use crate::import::plan::input_column::{InputColumn, Level};
use crate::import::source::RowSource;
use crate::logical::saved_schema;
use crate::{DType, Error, Extent, Metadata, Result, Shape};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Refuses names that are in none of the sources.
pub(super) fn check_names(sources: &[&dyn RowSource], options: &ConvertOptions, renames: &Renames) -> Result<()> {
    let selectors = options.columns.iter().flatten().chain(&options.skip);
    let named = options.casts.iter().map(|(name, _)| name).chain(options.shapes.iter().map(|(name, _)| name));
    let columns = || {
        let columns = sources.iter().flat_map(|source| source.columns());
        columns.filter(|column| !column.follows_fields())
    };
    let unknown = |name: &str| {
        let names = sources.first().into_iter().flat_map(|source| source.columns());
        let names = names.filter(|column| !column.follows_fields());
        Error::unknown_column(name, names.map(|column| column.name.as_str()))
    };
    for selector in selectors.chain(named) {
        if !columns().any(|column| selects(selector, &column.name)) {
            return Err(unknown(selector));
        }
    }
    match renames.unknown(columns())?.iter().min() {
        Some(name) => Err(unknown(name)),
        None => Ok(()),
    }
}

/// Returns the selected columns with their positions, in the requested order. Each column is
/// preceded by the nulls of its enclosing structs, unless they precede an earlier column.
pub(super) fn choose<'a>(
    columns: &'a [InputColumn],
    options: &ConvertOptions,
) -> Result<Vec<(usize, &'a InputColumn)>> {
    if columns.is_empty() {
        return Err(Error::bad_input("the input has no columns, so nothing can be converted"));
    }
    let (structs, columns): (Vec<_>, Vec<_>) = columns.iter().enumerate().partition(|(_, c)| c.follows_fields());
    let mut chosen = match &options.columns {
        None => columns,
        Some(selectors) => in_order(columns, selectors),
    };
    chosen.retain(|(_, column)| !options.skip.iter().any(|selector| selects(selector, &column.name)));
    if chosen.is_empty() {
        return Err(Error::bad_argument(
            "no column is left to convert: the options select none of the columns, or skip all of them",
        ));
    }
    Ok(with_nulls(&structs, chosen))
}

fn in_order<'a>(mut columns: Vec<(usize, &'a InputColumn)>, selectors: &[String]) -> Vec<(usize, &'a InputColumn)> {
    let mut chosen = Vec::new();
    for selector in selectors {
        let (selected, rest) = columns.into_iter().partition(|(_, column)| selects(selector, &column.name));
        chosen.extend::<Vec<_>>(selected);
        columns = rest;
    }
    chosen
}

/// Adds the nulls of the structs that enclose the columns. The nulls of a struct precede the first
/// chosen field of that struct.
fn with_nulls<'a>(
    structs: &[(usize, &'a InputColumn)],
    chosen: Vec<(usize, &'a InputColumn)>,
) -> Vec<(usize, &'a InputColumn)> {
    let by_path = structs.iter().filter_map(|found| Some((found.1.path()?, *found)));
    let mut left: HashMap<&str, (usize, &InputColumn)> = by_path.collect();
    let mut all = Vec::with_capacity(chosen.len());
    for column in chosen {
        let enclosing = column.1.path().into_iter().flat_map(path::enclosing);
        all.extend(enclosing.filter_map(|path| left.remove(path)));
        all.push(column);
    }
    all
}

/// Applies casts, rounding to bf16, and declared shapes. `new_names` maps the names of renamed
/// columns to their new names.
pub(super) fn apply_options(
    columns: &mut [Column],
    options: &ConvertOptions,
    new_names: &HashMap<String, String>,
) -> Result<()> {
    refuse_repeated("cast", &options.casts)?;
    refuse_repeated("shape", &options.shapes)?;
    let new_name = |name: &'_ String| new_names.get(name).unwrap_or(name).clone();
    if options.bf16 {
        for column in columns.iter_mut().filter(|column| column.kind.dtype.is_float()) {
            column.cast = (column.kind.dtype != DType::Bf16).then_some(DType::Bf16);
        }
    }
    for (name, target) in &options.casts {
        let column = find(columns, &new_name(name))?;
        column.cast_to(*target).map_err(|error| error.with_column(name))?;
    }
    for column in columns.iter() {
        check_rounded(column).map_err(|error| error.with_column(&column.name))?;
    }
    for (name, shape) in &options.shapes {
        let column = find(columns, &new_name(name))?;
        let lists = column.kind.ndim().saturating_sub(shape.ndim());
        if column.kind.can_unfold(lists) {
            column.unfold(lists);
        }
        check_shape(column, shape).map_err(|error| error.with_column(name))?;
        column.set_shape(shape.clone());
    }
    Ok(())
}

/// Refuses two options for one column, because the second would apply to the result of the first.
fn refuse_repeated<T>(option: &str, options: &[(String, T)]) -> Result<()> {
    let mut names = HashSet::new();
    match options.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(Error::bad_argument(format!("a {option} is given twice")).with_column(name)),
        None => Ok(()),
    }
}

fn find<'a>(columns: &'a mut [Column], name: &str) -> Result<&'a mut Column> {
    let position = columns.iter().position(|column| column.name == name && !column.follows_fields());
    let error = || Error::unknown_column(name, columns.iter().map(|column| column.name.as_str()));
    let position = position.ok_or_else(error)?;
    columns.get_mut(position).ok_or_else(|| Error::bad_argument(format!("there is no column {name:?}")))
}

/// Refuses to round values that are already rounded, because a file records the facts of only one
/// cast.
fn check_rounded(column: &Column) -> Result<()> {
    match column.rounded {
        Some((spec, _)) if column.cast.is_some() || column.value_cast.is_some() => {
            let stored = column.value_cast.map_or(column.kind.dtype, |cast| cast.source);
            let message = format!(
                "the values are already rounded from {} to {stored}; cast the original input instead",
                spec.source
            );
            Err(Error::bad_argument(message))
        }
        _ => Ok(()),
    }
}

/// Refuses a shape that contradicts the column's type.
pub(in crate::import) fn check_shape(column: &Column, shape: &Shape) -> Result<()> {
    let mut expected: Vec<Option<u32>> = Vec::new();
    for level in &column.kind.levels {
        match level {
            Level::Open => expected.push(None),
            Level::Fixed(extents) => expected.extend(extents.iter().map(|&extent| Some(extent))),
        }
    }
    let fits = |(expected, extent): (&Option<u32>, &Extent)| {
        expected.is_none_or(|expected| *extent == Extent::Fixed(expected))
    };
    if column.kind.dtype.is_string()
        || expected.len() != shape.ndim()
        || !expected.iter().zip(shape.extents()).all(fits)
    {
        let levels: Vec<String> = column.kind.levels.iter().map(ToString::to_string).collect();
        let message = format!("the shape {shape} does not fit the type {}{}", column.kind.dtype, levels.concat());
        return Err(Error::bad_argument(message));
    }
    Ok(())
}

/// Returns whether `selector` is the name of a column or of an enclosing struct.
fn selects(selector: &str, name: &str) -> bool {
    name.strip_prefix(selector).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The new names of columns and structs, keyed by their names in the inputs.
pub(super) struct Renames<'a>(HashMap<&'a str, &'a str>);

/// The rename of a column, or of an enclosing struct.
struct Rename<'a> {
    from: &'a str,
    to: &'a str,
    /// The names in the path of the column, and the index of the name that changes. `None` if the
    /// column has no path.
    path_position: Option<(Vec<Component>, usize)>,
}

impl<'a> Renames<'a> {
    /// Collects the renames. Refuses to rename a column twice.
    pub(super) fn new(options: &'a ConvertOptions) -> Result<Self> {
        let mut names = HashMap::new();
        for (from, to) in &options.renames {
            if names.insert(from.as_str(), to.as_str()).is_some() {
                return Err(overlapping_renames(from, from));
            }
        }
        Ok(Self(names))
    }

    /// Returns the names that match no column and no enclosing struct of a column.
    pub(super) fn unknown<'b>(&'b self, columns: impl Iterator<Item = &'b InputColumn>) -> Result<Vec<&'a str>> {
        let mut unknown: HashSet<&str> = self.0.keys().copied().collect();
        for column in columns {
            if let Some(rename) = self.of(column)? {
                unknown.remove(rename.from);
            }
        }
        Ok(unknown.into_iter().collect())
    }

    /// Returns the rename of a column, or of a struct that contains it. Refuses to rename both a
    /// struct and one of its fields.
    fn of(&self, column: &InputColumn) -> Result<Option<Rename<'a>>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let Some(components) = column.path().and_then(path::parse) else {
            let own = self.0.get_key_value(column.name.as_str());
            return Ok(own.map(|(from, to)| Rename { from, to, path_position: None }));
        };
        let mut found: Option<(&str, &str, usize)> = None;
        let mut name = String::new();
        for (number, component) in components.iter().enumerate() {
            name.push_str(if number > 0 { "." } else { "" });
            name.push_str(&component.name);
            let Some((from, to)) = self.0.get_key_value(name.as_str()).filter(|_| selects(&name, &column.name)) else {
                continue;
            };
            if let Some((outer, ..)) = found.replace((from, to, number)) {
                return Err(overlapping_renames(outer, from));
            }
        }
        Ok(found.map(|(from, to, number)| Rename { from, to, path_position: Some((components, number)) }))
    }

    /// Returns a column with its new name and path.
    pub(super) fn renamed<'b>(&self, column: &'b InputColumn) -> Result<Cow<'b, InputColumn>> {
        let Some(Rename { from, to, path_position }) = self.of(column)? else { return Ok(Cow::Borrowed(column)) };
        let mut renamed = column.clone();
        renamed.name = format!("{to}{}", column.name.get(from.len()..).unwrap_or_default());
        if let Some((mut components, number)) = path_position {
            let last = last_name(&components, number, to)?.to_owned();
            components.get_mut(number).into_iter().for_each(|component| component.name.clone_from(&last));
            renamed.metadata.insert(path::KEY.to_owned(), path::text(&components));
        }
        Ok(Cow::Owned(renamed))
    }

    /// Returns the metadata of a source, with the new names in its saved schema.
    pub(super) fn renamed_metadata<'b>(
        &self,
        metadata: &'b Metadata,
        columns: &[InputColumn],
    ) -> Result<Cow<'b, Metadata>> {
        let mut known = HashSet::new();
        let mut fields = Vec::new();
        for column in columns {
            let Some(Rename { from, to, path_position }) = self.of(column)?.filter(|rename| known.insert(rename.from))
            else {
                continue;
            };
            fields.push(match path_position {
                Some((components, number)) => {
                    let last = last_name(&components, number, to)?;
                    (components.into_iter().take(number + 1).map(|component| component.name).collect(), last)
                }
                None => (vec![from.to_owned()], to),
            });
        }
        if fields.is_empty() {
            return Ok(Cow::Borrowed(metadata));
        }
        let mut renamed = metadata.clone();
        saved_schema::rename(&mut renamed, &fields);
        Ok(Cow::Owned(renamed))
    }
}

#[cold]
fn overlapping_renames(name: &str, next: &str) -> Error {
    if name == next {
        return Error::bad_argument(format!("{name:?} is renamed twice"));
    }
    Error::bad_argument(format!("{next:?} is inside the struct {name:?}; rename only one of them"))
}

/// Returns the last name of `to`, without the names of the enclosing structs.
fn last_name<'a>(components: &[Component], number: usize, to: &'a str) -> Result<&'a str> {
    let outer: String = components.iter().take(number).map(|component| format!("{}.", component.name)).collect();
    to.strip_prefix(outer.as_str()).filter(|last| !last.is_empty()).ok_or_else(|| {
        let from: Vec<&str> = components.iter().take(number + 1).map(|component| component.name.as_str()).collect();
        let from = from.join(".");
        Error::bad_argument(format!(
            "{from:?} cannot be renamed to {to:?}: a field stays in its struct; write {outer}NAME"
        ))
    })
}
