//! Chapter 3.4: columns that are fields of the same struct, joined.

use super::path::{self, Component};
use super::schema::ColumnSchema;
use std::collections::{HashMap, HashSet};

/// A field of samples: a column, or a struct whose fields are columns or structs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldNode {
    /// A column, as a field of this name.
    #[non_exhaustive]
    Column {
        /// The name of the field.
        name: String,
        /// The number of the column.
        number: usize,
    },
    /// A struct.
    #[non_exhaustive]
    Struct {
        /// The name of the field.
        name: String,
        /// The levels of lists around the struct, inside those of the structs around it.
        lists: usize,
        /// The number of the column that has its nulls. Without one, no struct is null.
        nulls: Option<usize>,
        /// Its fields.
        children: Vec<FieldNode>,
    },
}

/// A column, and where it is in the tree.
struct Place {
    number: usize,
    path: Vec<Component>,
    is_struct: bool,
}

impl FieldNode {
    /// Returns the fields that columns become, in their order. A struct is where its first column
    /// is. A column without a path, or with one that is not its own, is a field of its own name.
    ///
    /// The depth of a tree is at most 128.
    pub fn of_columns<'a>(columns: impl Iterator<Item = &'a ColumnSchema> + Clone) -> Vec<Self> {
        let mut same_path: HashMap<&str, usize> = HashMap::new();
        let mut structs: HashSet<&str> = HashSet::new();
        for text in columns.clone().filter_map(text_of) {
            *same_path.entry(text).or_default() += 1;
            structs.extend(path::around(text));
        }
        let mut nodes = Vec::new();
        for (number, column) in columns.enumerate() {
            let text = text_of(column).filter(|text| same_path.get(text) == Some(&1));
            let text = text.filter(|text| column.is_struct_nulls() || !structs.contains(text));
            let path = text.and_then(path::parse);
            let path = path.filter(|path| path.iter().map(|c| c.lists).sum::<usize>() == column.levels.len());
            let is_struct = path.is_some() && column.is_struct_nulls();
            let whole = || vec![Component { name: column.name.clone(), lists: column.levels.len() }];
            insert(&mut nodes, Place { number, path: path.unwrap_or_else(whole), is_struct }, 0);
        }
        nodes
    }

    /// Returns the struct of this name, and the levels of lists around it: its own, and those of
    /// the structs around it. The name has dots, as names of columns do: `box.corner`.
    pub fn named<'a>(nodes: &'a [Self], name: &str) -> Option<(&'a Self, usize)> {
        nodes.iter().find_map(|node| {
            let Self::Struct { name: own, lists, children, .. } = node else { return None };
            match name.strip_prefix(own.as_str())? {
                "" => Some((node, *lists)),
                rest => {
                    let (found, inner) = Self::named(children, rest.strip_prefix('.')?)?;
                    Some((found, lists.saturating_add(inner)))
                }
            }
        })
    }

    /// Returns the name of the field.
    pub fn name(&self) -> &str {
        let (Self::Column { name, .. } | Self::Struct { name, .. }) = self;
        name
    }

    /// Returns the numbers of all columns in the field: for a struct, that of its nulls first.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            Self::Column { number, .. } => vec![*number],
            Self::Struct { nulls, children, .. } => {
                nulls.iter().copied().chain(children.iter().flat_map(Self::columns)).collect()
            }
        }
    }
}

fn text_of(column: &ColumnSchema) -> Option<&str> {
    column.metadata.get(path::KEY).map(String::as_str)
}

/// Inserts a column into the fields of the struct that the first `depth` names of its path lead to.
fn insert(nodes: &mut Vec<FieldNode>, place: Place, depth: usize) {
    let Some(first) = place.path.get(depth) else { return };
    let is_last = place.path.len() == depth + 1;
    if is_last && !place.is_struct {
        nodes.push(FieldNode::Column { number: place.number, name: first.name.clone() });
        return;
    }
    let is_same = |node: &FieldNode| match node {
        FieldNode::Struct { name, lists, .. } => *name == first.name && *lists == first.lists,
        FieldNode::Column { .. } => false,
    };
    let at = nodes.iter().position(is_same).unwrap_or(nodes.len());
    if at == nodes.len() {
        let (name, lists) = (first.name.clone(), first.lists);
        nodes.push(FieldNode::Struct { name, lists, nulls: None, children: Vec::new() });
    }
    match nodes.get_mut(at) {
        Some(FieldNode::Struct { nulls, .. }) if is_last => *nulls = Some(place.number),
        Some(FieldNode::Struct { children, .. }) => insert(children, place, depth + 1),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Extent, Shape};

    fn column(name: &str, path: &str, shape: &[u32]) -> ColumnSchema {
        let shape = Shape::new(shape.iter().map(|&extent| Extent::Fixed(extent)));
        let mut column = ColumnSchema::tensor(name, DType::Bool, shape);
        column.metadata.insert(path::KEY.to_owned(), path.to_owned());
        column
    }

    fn text(nodes: &[FieldNode]) -> String {
        let one = |node: &FieldNode| match node {
            FieldNode::Column { name, number } => format!("{name}={number}"),
            FieldNode::Struct { name, nulls, children, .. } => format!("{name}{nulls:?}({})", text(children)),
        };
        nodes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn joined(columns: &[ColumnSchema]) -> String {
        text(&FieldNode::of_columns(columns.iter()))
    }

    #[test]
    fn columns_of_one_struct_are_joined_where_the_first_is() {
        let all = [column("a.x", "a.x", &[]), column("b", "b", &[]), column("a", "a", &[0]), column("a.y", "a.y", &[])];
        assert_eq!(joined(&all), "aSome(2)(x=0 y=3) b=1");
    }

    #[test]
    fn paths_that_are_not_a_columns_own_are_passed_over() {
        // twice the same
        assert_eq!(joined(&[column("x", "a.x", &[]), column("y", "a.x", &[])]), "x=0 y=1");
        // a struct that has elements
        assert_eq!(joined(&[column("n", "a", &[2]), column("x", "a.x", &[])]), "n=0 aNone(x=1)");
        // lists that the column does not have, and no path
        assert_eq!(joined(&[column("x", "a[].x", &[]), column("y", "a[", &[0])]), "x=0 y=1");
    }
}
