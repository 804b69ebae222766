//! The caller's options about columns.

use super::column::Column;
use super::rename::{Renames, selects};
use super::structs;
use crate::import::input_column::{InputColumn, Level};
use crate::import::options::ConvertOptions;
use crate::import::source::BatchSource;
use crate::names::no_column;
use crate::{DType, Error, Extent, Result, Shape};
use std::collections::HashMap;

/// Refuses names that no source has.
pub(super) fn check_names(sources: &[&dyn BatchSource], options: &ConvertOptions, renames: &Renames) -> Result<()> {
    let selectors = options.columns.iter().flatten().chain(&options.skip);
    let named = options.casts.iter().map(|(name, _)| name).chain(options.shapes.iter().map(|(name, _)| name));
    let columns = || {
        let columns = sources.iter().flat_map(|source| source.columns());
        columns.filter(|column| !column.follows_fields())
    };
    let unknown = |name: &str| {
        let names = sources.first().into_iter().flat_map(|source| source.columns());
        let names = names.filter(|column| !column.follows_fields());
        no_column(name, names.map(|column| column.name.as_str()))
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

/// Returns the columns asked for, in the order asked for, with their positions. Before them are the
/// nulls of the structs around them.
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
        return Err(Error::bad_argument("no column is left to convert"));
    }
    Ok(structs::with_nulls(&structs, chosen))
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

/// Applies casts and known shapes. `new_names` maps the names of renamed columns to
/// their new names.
pub(super) fn apply_options(
    columns: &mut [Column],
    options: &ConvertOptions,
    new_names: &HashMap<String, String>,
) -> Result<()> {
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
        let lists = column.kind.rank().saturating_sub(shape.rank());
        if column.kind.can_unfold(lists) {
            column.unfold(lists);
        }
        check_shape(column, shape).map_err(|error| error.with_column(name))?;
        column.set_shape(shape.clone());
    }
    Ok(())
}

fn find<'a>(columns: &'a mut [Column], name: &str) -> Result<&'a mut Column> {
    let position = columns.iter().position(|column| column.name == name && !column.follows_fields());
    let error = || no_column(name, columns.iter().map(|column| column.name.as_str()));
    let position = position.ok_or_else(error)?;
    columns.get_mut(position).ok_or_else(|| Error::bad_argument(format!("there is no column {name:?}")))
}

/// Refuses to round values that were rounded before: a file keeps the facts of one cast.
fn check_rounded(column: &Column) -> Result<()> {
    match column.rounded {
        Some((spec, _)) if column.cast.is_some() || column.value_cast.is_some() => {
            let stored = column.value_cast.map_or(column.kind.dtype, |cast| cast.source);
            let message = format!(
                "a cast of values that were rounded from {} to {stored} before; convert the original instead",
                spec.source
            );
            Err(Error::bad_argument(message))
        }
        _ => Ok(()),
    }
}

/// Refuses a shape that the column's type rules out.
pub(in crate::import) fn check_shape(column: &Column, shape: &Shape) -> Result<()> {
    let mut due: Vec<Option<u32>> = Vec::new();
    for level in &column.kind.levels {
        match level {
            Level::Open => due.push(None),
            Level::Fixed(extents) => due.extend(extents.iter().map(|&extent| Some(extent))),
        }
    }
    let fits = |(due, extent): (&Option<u32>, &Extent)| due.is_none_or(|due| *extent == Extent::Fixed(due));
    if column.kind.dtype.is_string() || due.len() != shape.rank() || !due.iter().zip(shape.extents()).all(fits) {
        let levels: Vec<String> = column.kind.levels.iter().map(ToString::to_string).collect();
        let message = format!("the shape {shape} does not fit the type {}{}", column.kind.dtype, levels.concat());
        return Err(Error::bad_argument(message));
    }
    Ok(())
}
