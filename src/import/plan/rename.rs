//! Other names for columns and structs.
//!
//! A field stays in its struct, so only the last name of its path changes. The names in all other
//! options are those of the inputs.

use crate::format::path::{self, Component};
use crate::import::input_column::InputColumn;
use crate::import::options::ConvertOptions;
use crate::{Error, Metadata, Result, saved_schema};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Returns whether `selector` is the name of a column or of a struct around it.
pub(super) fn selects(selector: &str, name: &str) -> bool {
    name.strip_prefix(selector).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The new names of columns and structs, by the names that they have in the inputs.
pub(super) struct Renames<'a>(HashMap<&'a str, &'a str>);

/// The rename of a column, or of a struct around it.
struct Rename<'a> {
    from: &'a str,
    to: &'a str,
    /// The names of its path, and the number of the one that changes, if it has a path.
    place: Option<(Vec<Component>, usize)>,
}

impl<'a> Renames<'a> {
    /// Refuses to rename a column twice.
    pub(super) fn new(options: &'a ConvertOptions) -> Result<Self> {
        let mut names = HashMap::new();
        for (from, to) in &options.renames {
            if names.insert(from.as_str(), to.as_str()).is_some() {
                return Err(twice(from, from));
            }
        }
        Ok(Self(names))
    }

    /// Returns the names that columns do not have, nor structs around them.
    pub(super) fn unknown<'b>(&'b self, columns: impl Iterator<Item = &'b InputColumn>) -> Result<Vec<&'a str>> {
        let mut unknown: HashSet<&str> = self.0.keys().copied().collect();
        for column in columns {
            if let Some(rename) = self.of(column)? {
                unknown.remove(rename.from);
            }
        }
        Ok(unknown.into_iter().collect())
    }

    /// Returns the rename of a column, or of a struct that contains it.
    /// Refuses to rename a struct together with a field of it.
    fn of(&self, column: &InputColumn) -> Result<Option<Rename<'a>>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let Some(components) = column.path().and_then(path::parse) else {
            let own = self.0.get_key_value(column.name.as_str());
            return Ok(own.map(|(from, to)| Rename { from, to, place: None }));
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
                return Err(twice(outer, from));
            }
        }
        Ok(found.map(|(from, to, number)| Rename { from, to, place: Some((components, number)) }))
    }

    /// Returns a column with its new name and path.
    pub(super) fn renamed<'b>(&self, column: &'b InputColumn) -> Result<Cow<'b, InputColumn>> {
        let Some(Rename { from, to, place }) = self.of(column)? else { return Ok(Cow::Borrowed(column)) };
        let mut renamed = column.clone();
        renamed.name = format!("{to}{}", column.name.get(from.len()..).unwrap_or_default());
        if let Some((mut components, number)) = place {
            let last = last_name(&components, number, to)?.to_owned();
            components.get_mut(number).into_iter().for_each(|component| component.name.clone_from(&last));
            renamed.metadata.insert(path::KEY.to_owned(), path::text(&components));
        }
        Ok(Cow::Owned(renamed))
    }

    /// Returns the metadata of a source whose saved schema has the new names.
    pub(super) fn renamed_metadata<'b>(
        &self,
        metadata: &'b Metadata,
        columns: &[InputColumn],
    ) -> Result<Cow<'b, Metadata>> {
        let mut known = HashSet::new();
        let mut fields = Vec::new();
        for column in columns {
            let Some(Rename { from, to, place }) = self.of(column)?.filter(|rename| known.insert(rename.from)) else {
                continue;
            };
            fields.push(match place {
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
fn twice(name: &str, next: &str) -> Error {
    Error::bad_argument(format!("{next:?} is the same as {name:?}, or inside it; rename only one of them"))
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
