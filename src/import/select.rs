//! What the caller's options say about columns.

use super::ConvertOptions;
use super::plan::{Candidate, Column};
use super::types::Level;
use crate::names::no_column;
use crate::{DType, Error, Extent, Result, Shape};

/// Whether `selector` is the name of a column or of a struct around it.
fn selects(selector: &str, name: &str) -> bool {
    name.strip_prefix(selector).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Refuses names that no source has.
pub(super) fn check_names(sources: &[Vec<Candidate>], options: &ConvertOptions) -> Result<()> {
    let selectors = options.columns.iter().flatten().chain(&options.skip);
    let named = options.casts.iter().map(|(name, _)| name).chain(options.shapes.iter().map(|(name, _)| name));
    for selector in selectors.chain(named) {
        let mut names = sources.iter().flatten().map(|candidate| candidate.name.as_str());
        if !names.any(|name| selects(selector, name)) {
            let names = sources.first().into_iter().flatten().map(|candidate| candidate.name.as_str());
            return Err(no_column(selector, names));
        }
    }
    Ok(())
}

/// The columns asked for, in the order asked for.
pub(super) fn choose(candidates: Vec<Candidate>, options: &ConvertOptions) -> Result<Vec<Candidate>> {
    let mut chosen = match &options.columns {
        None => candidates,
        Some(selectors) => in_order(candidates, selectors),
    };
    chosen.retain(|candidate| !options.skip.iter().any(|selector| selects(selector, &candidate.name)));
    if chosen.is_empty() {
        return Err(Error::bad_argument("no column is left to convert"));
    }
    Ok(chosen)
}

fn in_order(mut candidates: Vec<Candidate>, selectors: &[String]) -> Vec<Candidate> {
    let mut chosen = Vec::new();
    for selector in selectors {
        let (selected, rest) = candidates.into_iter().partition(|candidate| selects(selector, &candidate.name));
        chosen.extend::<Vec<_>>(selected);
        candidates = rest;
    }
    chosen
}

/// Casts and known shapes.
pub(super) fn apply_options(columns: &mut [Column], options: &ConvertOptions) -> Result<()> {
    if options.bf16 {
        for column in columns.iter_mut().filter(|column| column.kind.dtype.is_float()) {
            column.cast = Some(DType::Bf16);
        }
    }
    for (name, target) in &options.casts {
        let column = find(columns, name)?;
        check_cast(column.kind.dtype, *target).map_err(|error| error.with_column(name))?;
        column.cast = (column.kind.dtype != *target).then_some(*target);
    }
    for (name, shape) in &options.shapes {
        let column = find(columns, name)?;
        check_shape(column, shape).map_err(|error| error.with_column(name))?;
        column.shape = Some(shape.clone());
    }
    Ok(())
}

fn find<'a>(columns: &'a mut [Column], name: &str) -> Result<&'a mut Column> {
    let position = columns.iter().position(|column| column.name == name);
    let error = || no_column(name, columns.iter().map(|column| column.name.as_str()));
    let position = position.ok_or_else(error)?;
    columns.get_mut(position).ok_or_else(|| Error::bad_argument(format!("there is no column {name:?}")))
}

fn check_cast(source: DType, target: DType) -> Result<()> {
    if !matches!(target, DType::Bf16 | DType::F16 | DType::F32) {
        return Err(Error::bad_argument(format!("a cast to {target}: it is to bf16, f16 or f32")));
    }
    if !source.is_float() {
        return Err(Error::bad_argument(format!("a cast of {source} values: only floats are rounded")));
    }
    Ok(())
}

/// Refuses a shape that the column's type rules out.
pub(super) fn check_shape(column: &Column, shape: &Shape) -> Result<()> {
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
