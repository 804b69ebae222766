//! Chapter 3.4: the columns whose paths are followed.

use super::path;
use super::schema::ColumnSchema;
use std::collections::{HashMap, HashSet};

/// The path of a column that is followed.
pub(crate) struct FollowedPath<'a> {
    /// The number of each name in the tree of all paths, outermost first.
    pub nodes: Vec<usize>,
    pub text: &'a str,
    /// Whether the column has the nulls of a struct. Otherwise it is a field.
    pub is_struct: bool,
}

/// Returns the path of each column, or `None` if it has none, or one that is not followed.
pub(crate) fn followed_paths<'a>(
    columns: impl Iterator<Item = &'a ColumnSchema> + Clone,
) -> Vec<Option<FollowedPath<'a>>> {
    let mut same_text: HashMap<&str, usize> = HashMap::new();
    for text in columns.clone().filter_map(ColumnSchema::path) {
        *same_text.entry(text).or_default() += 1;
    }
    let mut tree = Tree::default();
    let mut paths: Vec<_> = columns
        .map(|column| {
            let text = column.path().filter(|text| same_text.get(text) == Some(&1))?;
            let lists: usize = path::parse(text)?.iter().map(|name| name.lists).sum();
            let is_struct = column.is_struct_nulls();
            (lists == column.levels.len()).then(|| FollowedPath { nodes: tree.add(text), text, is_struct })
        })
        .collect();
    for path in &mut paths {
        // that of a struct, and the column does not have its nulls
        path.take_if(|path| !path.is_struct && path.nodes.last().is_some_and(|node| tree.structs.contains(node)));
    }
    paths
}

/// The names of all paths. The root has the number 0.
#[derive(Default)]
struct Tree<'a> {
    /// The numbers of names, by that of the name before and by their text.
    numbers: HashMap<(usize, &'a str), usize>,
    /// The names after which a path goes on.
    structs: HashSet<usize>,
}

impl<'a> Tree<'a> {
    /// Adds a path. Returns the number of each name.
    fn add(&mut self, text: &'a str) -> Vec<usize> {
        let mut before = 0;
        let mut nodes = Vec::new();
        for segment in path::segments(text) {
            if before != 0 {
                self.structs.insert(before);
            }
            let next = self.numbers.len() + 1; // names are in memory
            before = *self.numbers.entry((before, segment)).or_insert(next);
            nodes.push(before);
        }
        nodes
    }
}
