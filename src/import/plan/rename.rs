//! Other names for columns and structs.
//!
//! A field stays in its struct, so only the last name of its path changes. The names in all other
//! options are those of the inputs.

use crate::format::path::{self, Component};
use crate::import::input_column::InputColumn;
use crate::import::options::ConvertOptions;
use crate::{Error, Metadata, Result, saved_schema};
use std::borrow::Cow;

/// Returns whether `selector` is the name of a column or of a struct around it.
pub(super) fn selects(selector: &str, name: &str) -> bool {
    name.strip_prefix(selector).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the new name of a column.
pub(super) fn new_name<'a>(name: &'a str, options: &ConvertOptions) -> Cow<'a, str> {
    match options.renames.iter().find(|(from, _)| selects(from, name)) {
        Some((from, to)) => format!("{to}{}", name.get(from.len()..).unwrap_or_default()).into(),
        None => name.into(),
    }
}

/// Returns a column with its new name and path.
pub(super) fn renamed<'a>(column: &'a InputColumn, options: &ConvertOptions) -> Result<Cow<'a, InputColumn>> {
    let Some((from, to)) = options.renames.iter().find(|(from, _)| selects(from, &column.name)) else {
        return Ok(Cow::Borrowed(column));
    };
    let mut renamed = column.clone();
    renamed.name = new_name(&column.name, options).into_owned();
    if let Some((mut components, number)) = column.path().and_then(|path| position(path, from)) {
        let last = last_name(&components, number, to)?.to_owned();
        components.get_mut(number).into_iter().for_each(|component| component.name.clone_from(&last));
        renamed.metadata.insert(path::KEY.to_owned(), path::text(&components));
    }
    Ok(Cow::Owned(renamed))
}

/// Returns the metadata of a source whose saved schema has the new names.
pub(super) fn renamed_metadata<'a>(
    metadata: &'a Metadata,
    columns: &[InputColumn],
    options: &ConvertOptions,
) -> Result<Cow<'a, Metadata>> {
    let mut fields = Vec::new();
    for (from, to) in &options.renames {
        let Some(column) = columns.iter().find(|column| selects(from, &column.name)) else { continue };
        fields.push(match column.path().and_then(|path| position(path, from)) {
            Some((components, number)) => {
                let last = last_name(&components, number, to)?;
                (components.into_iter().take(number + 1).map(|component| component.name).collect(), last)
            }
            None => (vec![from.clone()], to.as_str()),
        });
    }
    if fields.is_empty() {
        return Ok(Cow::Borrowed(metadata));
    }
    let mut renamed = metadata.clone();
    saved_schema::rename(&mut renamed, &fields);
    Ok(Cow::Owned(renamed))
}

/// Refuses to rename a column twice, or a struct together with a field of it.
pub(super) fn check(options: &ConvertOptions) -> Result<()> {
    let mut names: Vec<&str> = options.renames.iter().map(|(from, _)| from.as_str()).collect();
    names.sort_unstable_by_key(|name| name.split('.').collect::<Vec<_>>());
    match names.iter().zip(names.iter().skip(1)).find(|(name, next)| selects(name, next)) {
        Some((name, next)) => Err(Error::bad_argument(format!(
            "{name:?} and {next:?} are renamed, and the one is or has the other; rename one of them"
        ))),
        None => Ok(()),
    }
}

/// Returns the names of a path, and the number of the last one of `from`, if that is in the path.
fn position(path: &str, from: &str) -> Option<(Vec<Component>, usize)> {
    let components = path::parse(path)?;
    let mut rest = from;
    for (number, component) in components.iter().enumerate() {
        rest = rest.strip_prefix(component.name.as_str())?;
        if rest.is_empty() {
            return Some((components, number));
        }
        rest = rest.strip_prefix('.')?;
    }
    None
}

/// Returns the last name of `to`, behind the names of the struct around it.
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
