//! Chapter 3.4: paths, which name the structs and lists that contained the values of a column.
//!
//! Nested data is stored as one column for each leaf. The metadata of a column can state its path,
//! such as `box.corner[].x`. This file parses paths and rebuilds the tree of fields ([`FieldNode`])
//! from the columns of a file.
//!
//! Paths are hints, and must never make a file unreadable. [`field_paths`] uses a path only if
//! nothing contradicts it. The path must be well formed, no other column may have the same path,
//! and it must have as many lists as the column has levels. It must not be the path of a struct,
//! unless the column has the nulls of the struct. A column whose path is ignored becomes a field
//! with the name of the column.
//!
//! All of this takes time linear in the total length of the paths, because a file can have very
//! many of them.

use super::schema::ColumnSchema;
use crate::limits;
use std::collections::{HashMap, HashSet};

pub(crate) use super::schema::PATH_KEY as KEY;

/// A name in a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Component {
    pub name: String,
    /// The number of list levels after the name.
    pub lists: usize,
}

/// Escapes a name for a path.
#[cfg(feature = "import")]
pub(crate) fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '\\' | '.' | '[') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the paths of the structs that contain a column, outermost first.
#[cfg(feature = "import")]
pub(crate) fn enclosing(path: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    let dots = path.bytes().enumerate().filter_map(move |(at, byte)| {
        let is_dot = byte == b'.' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_dot.then_some(at)
    });
    dots.take(limits::PATH_NAMES - 1).filter_map(|dot| path.get(..dot))
}

/// Splits a path at its unescaped dots. Returns the text of each name with its lists.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    path.split(move |c| {
        let is_dot = c == '.' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_dot
    })
}

/// Parses a path. Returns `None` if it is malformed or has too many names.
pub(crate) fn parse(text: &str) -> Option<Vec<Component>> {
    let has_few = segments(text).nth(limits::PATH_NAMES).is_none();
    has_few.then(|| segments(text).map(component).collect())?
}

/// Returns the path with these names.
#[cfg(feature = "import")]
pub(crate) fn text(components: &[Component]) -> String {
    let segments =
        components.iter().map(|component| format!("{}{}", escaped(&component.name), "[]".repeat(component.lists)));
    segments.collect::<Vec<_>>().join(".")
}

/// Parses a segment of a path. Returns `None` if it is malformed.
pub(crate) fn component(segment: &str) -> Option<Component> {
    let mut component = Component::default();
    let mut rest = segment.chars().peekable();
    while let Some(c) = rest.next_if(|&c| c != '[') {
        component.name.push(if c == '\\' { rest.next().filter(|c| matches!(c, '\\' | '.' | '['))? } else { c });
    }
    while rest.next_if_eq(&'[').is_some() {
        rest.next_if_eq(&']')?;
        component.lists += 1;
    }
    rest.next().is_none().then_some(component)
}

/// A path that is not ignored.
pub(crate) struct FieldPath<'a> {
    /// For each name, outermost first, its node in the tree of all paths.
    pub nodes: Vec<usize>,
    pub text: &'a str,
    /// Whether the column has the nulls of a struct and is not a field itself.
    pub is_struct: bool,
}

/// Returns the path of each column; `None` if the column has no path, or if its path is ignored.
pub(crate) fn field_paths<'a>(columns: impl Iterator<Item = &'a ColumnSchema> + Clone) -> Vec<Option<FieldPath<'a>>> {
    let mut same_text: HashMap<&str, usize> = HashMap::new();
    for text in columns.clone().filter_map(ColumnSchema::path) {
        *same_text.entry(text).or_default() += 1;
    }
    let mut tree = Tree::default();
    let mut paths: Vec<_> = columns
        .map(|column| {
            let text = column.path().filter(|text| same_text.get(text) == Some(&1))?;
            let lists: usize = parse(text)?.iter().map(|name| name.lists).sum();
            let is_struct = column.is_struct_nulls();
            (lists == column.levels.len()).then(|| FieldPath { nodes: tree.add(text), text, is_struct })
        })
        .collect();
    for path in &mut paths {
        // removes the path of a struct if the column does not have the nulls of the struct
        path.take_if(|path| !path.is_struct && path.nodes.last().is_some_and(|node| tree.structs.contains(node)));
    }
    paths
}

/// The names of all paths as a tree. The root is node 0.
#[derive(Default)]
struct Tree<'a> {
    /// The node of each name. The key is the node of the name's parent and the text of the name.
    numbers: HashMap<(usize, &'a str), usize>,
    /// The nodes that have children.
    structs: HashSet<usize>,
}

impl<'a> Tree<'a> {
    /// Adds a path. Returns the node of each of its names.
    fn add(&mut self, text: &'a str) -> Vec<usize> {
        let mut before = 0;
        let mut nodes = Vec::new();
        for segment in segments(text) {
            if before != 0 {
                self.structs.insert(before);
            }
            let next = self.numbers.len() + 1; // no overflow: all names are in memory
            before = *self.numbers.entry((before, segment)).or_insert(next);
            nodes.push(before);
        }
        nodes
    }
}

/// A field of the samples: a column, or a struct whose fields are columns or structs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldNode {
    /// A column.
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
        /// The number of list levels between the struct and its enclosing struct.
        lists: usize,
        /// The number of the column that has the nulls of the struct. If `None`, the struct is
        /// never null.
        nulls: Option<usize>,
        /// The fields of the struct.
        children: Vec<FieldNode>,
    },
}

impl FieldNode {
    /// Returns the fields that the columns form, in order. A struct has the position of its first
    /// column. A column whose path is missing or ignored becomes a field with the name of the
    /// column.
    ///
    /// The depth of a tree is at most [`limits::PATH_NAMES`].
    ///
    /// Cost: linear in the total length of all paths.
    pub fn of_columns<'a>(columns: impl Iterator<Item = &'a ColumnSchema> + Clone) -> Vec<Self> {
        let mut fields = FieldTreeBuilder::default();
        for ((number, column), path) in columns.clone().enumerate().zip(field_paths(columns)) {
            match path {
                Some(path) => fields.insert(number, &path),
                None => fields.all.push(Self::Column { number, name: column.name.clone() }),
            }
        }
        fields.all
    }

    /// Finds a struct by its name, which has dots like the names of columns, such as `box.corner`.
    /// Returns the first match, and the total number of list levels around it, including the lists
    /// around its enclosing structs.
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

    /// Returns the numbers of all columns in the field, in tree order. The column with the nulls of
    /// a struct comes before its fields. The numbers are positions in the iterator that was passed
    /// to [`FieldNode::of_columns`].
    pub fn columns(&self) -> Vec<usize> {
        match self {
            Self::Column { number, .. } => vec![*number],
            Self::Struct { nulls, children, .. } => {
                nulls.iter().copied().chain(children.iter().flat_map(Self::columns)).collect()
            }
        }
    }
}

/// A tree of fields under construction.
#[derive(Default)]
struct FieldTreeBuilder {
    all: Vec<FieldNode>,
    /// For each node of a struct, the position of the struct among the fields of its parent.
    positions: HashMap<usize, usize>,
}

impl FieldTreeBuilder {
    /// Inserts a column into the struct to which its path leads.
    fn insert(&mut self, number: usize, path: &FieldPath<'_>) {
        let mut fields = &mut self.all;
        let mut left = path.nodes.len();
        for (segment, node) in segments(path.text).zip(&path.nodes) {
            left = left.saturating_sub(1);
            let name = || component(segment).unwrap_or_default(); // never the default: the path was parsed before
            if left == 0 && !path.is_struct {
                fields.push(FieldNode::Column { number, name: name().name });
                return;
            }
            let at = *self.positions.entry(*node).or_insert(fields.len());
            if at == fields.len() {
                let Component { name, lists } = name();
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
    #[cfg(feature = "import")]
    use proptest::prelude::*;
    use std::time::Instant;

    #[test]
    fn paths_are_parsed_as_the_specification_says() {
        let path = |text: &str| parse(text).map(|all| all.into_iter().map(|c| (c.name, c.lists)).collect::<Vec<_>>());
        let named =
            |all: &[(&str, usize)]| Some(all.iter().map(|(name, lists)| ((*name).to_owned(), *lists)).collect());
        assert_eq!(path("messages[].role"), named(&[("messages", 1), ("role", 0)]));
        assert_eq!(path(r"a\.b[][].\[c"), named(&[("a.b", 2), ("[c", 0)]));
        assert_eq!(path("tags[]"), named(&[("tags", 1)]));
        for wrong in ["a[", "a[b]", "a[]b", r"a\", r"a\b"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }

    #[test]
    #[cfg(feature = "import")]
    fn structs_around_a_column_are_the_starts_of_its_path() {
        let all = |path| enclosing(path).collect::<Vec<_>>();
        assert_eq!(all(r"a\.b[].c\\.d"), [r"a\.b[]", r"a\.b[].c\\"]);
        assert_eq!(all("tags[]"), [""; 0]);
        let deep = ["a"; limits::PATH_NAMES + 1].join(".");
        assert_eq!((all(&deep).len(), parse(&deep)), (limits::PATH_NAMES - 1, None));
        assert!(parse(&["a"; limits::PATH_NAMES].join(".")).is_some());
    }

    #[cfg(feature = "import")]
    proptest! {
        #[test]
        fn escaped_names_are_parsed_again(names in prop::collection::vec(r"[a\\.\[\]]{0,5}", 1..4)) {
            let text: Vec<String> = names.iter().map(|name| escaped(name)).collect();
            let parsed = parse(&text.join(".")).map(|all| all.into_iter().map(|c| c.name).collect::<Vec<_>>());
            prop_assert_eq!(parsed, Some(names));
        }
    }

    fn column(name: &str, path: &str, shape: &[u32]) -> ColumnSchema {
        let shape = Shape::new(shape.iter().map(|&extent| Extent::Fixed(extent)));
        let mut column = ColumnSchema::tensor(name, DType::Bool, shape);
        column.metadata.insert(KEY.to_owned(), path.to_owned());
        column
    }

    fn text(nodes: &[FieldNode]) -> String {
        let one = |node: &FieldNode| match node {
            FieldNode::Column { name, number } => format!("{name}={number}"),
            FieldNode::Struct { name, nulls, children, .. } => format!("{name}{nulls:?}({})", text(children)),
        };
        nodes.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn field_tree(columns: &[ColumnSchema]) -> String {
        text(&FieldNode::of_columns(columns.iter()))
    }

    #[test]
    fn columns_of_one_struct_are_joined_where_the_first_is() {
        let all = [column("a.x", "a.x", &[]), column("b", "b", &[]), column("a", "a", &[0]), column("a.y", "a.y", &[])];
        assert_eq!(field_tree(&all), "aSome(2)(x=0 y=3) b=1");
    }

    #[test]
    fn paths_that_are_not_a_columns_own_are_passed_over() {
        // two columns have the same path
        assert_eq!(field_tree(&[column("x", "a.x", &[]), column("y", "a.x", &[])]), "x=0 y=1");
        // column `n` has the path of the struct `a`, but it has elements, so it cannot be the nulls
        // of the struct
        assert_eq!(field_tree(&[column("n", "a", &[2]), column("x", "a.x", &[])]), "n=0 aNone(x=1)");
        // one path has lists that its column does not have, and the other path is malformed
        assert_eq!(field_tree(&[column("x", "a[].x", &[]), column("y", "a[", &[0])]), "x=0 y=1");
    }

    #[test]
    fn paths_that_are_not_followed_make_no_structs() {
        let own = |path| [column("n", "a", &[]), column("x", path, &[]), column("y", path, &[])];
        // ignored paths must not make `a` the path of a struct
        assert_eq!(field_tree(&own("a.x")), "a=0 x=1 y=2", "the same path twice");
        assert_eq!(field_tree(&own("a.x[]")[..2]), "a=0 x=1", "lists that the column does not have");
        assert_eq!(field_tree(&own("a.x[")[..2]), "a=0 x=1", "not well formed");
        let deep = format!("a{}", ".b".repeat(128));
        assert_eq!(field_tree(&own(&deep)[..2]), "a=0 x=1", "129 names");
    }

    /// The times are compared with the time for one struct that contains all columns.
    #[test]
    #[cfg_attr(miri, ignore = "large")]
    fn structs_of_max_columns_take_linear_time() {
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
