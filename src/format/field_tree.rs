//! Chapter 3.4: columns that are fields of the same struct, joined.

use super::followed_paths::{FollowedPath, followed_paths};
use super::path;
use super::schema::ColumnSchema;
use std::collections::HashMap;

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

impl FieldNode {
    /// Returns the fields that columns become, in their order. A struct is where its first column
    /// is. A column without a path, or with one that is not followed, is a field of its own name.
    ///
    /// The depth of a tree is at most [`limits::PATH_NAMES`](crate::limits::PATH_NAMES). Cost:
    /// linear in the length of all paths.
    pub fn of_columns<'a>(columns: impl Iterator<Item = &'a ColumnSchema> + Clone) -> Vec<Self> {
        let mut fields = JoinedFields::default();
        for ((number, column), path) in columns.clone().enumerate().zip(followed_paths(columns)) {
            match path {
                Some(path) => fields.insert(number, &path),
                None => fields.all.push(Self::Column { number, name: column.name.clone() }),
            }
        }
        fields.all
    }

    /// Returns the struct of this name, and the levels of lists around it: its own, and those of
    /// the structs around it. The name has dots, as names of columns do: `box.corner`. Of several
    /// structs that it fits, the first.
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

    /// Returns the numbers of all columns in the field, in the order of the tree: for a struct,
    /// that of its nulls first. They are positions in the iterator of [`FieldNode::of_columns`].
    pub fn columns(&self) -> Vec<usize> {
        match self {
            Self::Column { number, .. } => vec![*number],
            Self::Struct { nulls, children, .. } => {
                nulls.iter().copied().chain(children.iter().flat_map(Self::columns)).collect()
            }
        }
    }
}

/// The fields of some columns.
#[derive(Default)]
struct JoinedFields {
    all: Vec<FieldNode>,
    /// The positions of structs among the fields of the struct around them, by their numbers.
    positions: HashMap<usize, usize>,
}

impl JoinedFields {
    /// Inserts a column into the struct that its path leads to.
    fn insert(&mut self, number: usize, path: &FollowedPath<'_>) {
        let mut fields = &mut self.all;
        let mut left = path.nodes.len();
        for (segment, node) in path::segments(path.text).zip(&path.nodes) {
            left = left.saturating_sub(1);
            let name = || path::component(segment).unwrap_or_default(); // it was parsed before
            if left == 0 && !path.is_struct {
                fields.push(FieldNode::Column { number, name: name().name });
                return;
            }
            let at = *self.positions.entry(*node).or_insert(fields.len());
            if at == fields.len() {
                let path::Component { name, lists } = name();
                fields.push(FieldNode::Struct { name, lists, nulls: None, children: Vec::new() });
            }
            let Some(FieldNode::Struct { nulls, children, .. }) = fields.get_mut(at) else { return };
            if left == 0 {
                *nulls = Some(number);
            }
            fields = children;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Extent, Shape, limits};
    use std::time::Instant;

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

    #[test]
    fn paths_that_are_not_followed_make_no_structs() {
        let own = |path| [column("n", "a", &[]), column("x", path, &[]), column("y", path, &[])];
        // `a` is the path of one column alone, and that of no struct
        assert_eq!(joined(&own("a.x")), "a=0 x=1 y=2", "the same path twice");
        assert_eq!(joined(&own("a.x[]")[..2]), "a=0 x=1", "lists that the column does not have");
        assert_eq!(joined(&own("a.x[")[..2]), "a=0 x=1", "not well formed");
        let deep = format!("a{}", ".b".repeat(128));
        assert_eq!(joined(&own(&deep)[..2]), "a=0 x=1", "129 names");
    }

    /// Compared with columns of one struct, whose number of fields was never looked through.
    #[test]
    #[cfg_attr(miri, ignore = "large")]
    fn structs_of_the_most_columns_take_no_longer_than_their_names() {
        let time = |path: &dyn Fn(usize) -> String| {
            let columns: Vec<ColumnSchema> =
                (0..limits::COLUMNS).map(|i| column(&i.to_string(), &path(i), &[])).collect();
            let start = Instant::now();
            let nodes = FieldNode::of_columns(columns.iter());
            let taken = start.elapsed();
            assert_eq!(nodes.iter().map(|node| node.columns().len()).sum::<usize>(), limits::COLUMNS);
            taken
        };
        let one_struct = time(&|i| format!("a.x{i}"));
        let deep = ".b".repeat(10);
        for (what, path) in [
            ("a struct for each", &(|i| format!("a{i}.x")) as &dyn Fn(usize) -> String),
            ("a struct in a struct for each", &|i| format!("a.b{i}.x")),
            ("deep structs", &|i| format!("a{deep}.x{i}")),
        ] {
            let taken = time(path);
            assert!(taken < one_struct * 50, "{what}: {taken:?}, one struct: {one_struct:?}");
        }
    }
}
