//! Columns that are fields of the same struct, joined again (chapter 3.4 of the specification).

use crate::format::path::{self, Component};
use crate::{ColumnSchema, Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A field of the exported schema, or of a struct in it.
pub(super) enum Node {
    /// The column of this number, as a field of this name.
    Column { number: usize, name: String },
    /// A struct in so many levels of lists.
    Struct {
        name: String,
        lists: usize,
        /// The number of the column with its nulls.
        nulls: Option<usize>,
        children: Vec<Node>,
    },
}

/// A column, and where it is in the exported schema.
struct Place {
    number: usize,
    path: Vec<Component>,
    is_struct: bool,
}

/// Returns the fields that columns become, in their order. A struct is where its first column is.
pub(super) fn nodes<'a>(columns: impl Iterator<Item = &'a ColumnSchema> + Clone) -> Vec<Node> {
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
        let path = path.unwrap_or_else(|| vec![Component { name: column.name.clone(), lists: column.levels.len() }]);
        insert(&mut nodes, Place { number, path, is_struct }, 0);
    }
    nodes
}

fn text_of(column: &ColumnSchema) -> Option<&str> {
    column.metadata.get(path::KEY).map(String::as_str)
}

/// Inserts a column into the fields of the struct that the first `depth` names of its path lead to.
fn insert(nodes: &mut Vec<Node>, place: Place, depth: usize) {
    let Some(first) = place.path.get(depth) else { return };
    let is_last = place.path.len() == depth + 1;
    if is_last && !place.is_struct {
        nodes.push(Node::Column { number: place.number, name: first.name.clone() });
        return;
    }
    let is_same =
        |node: &Node| matches!(node, Node::Struct { name, lists, .. } if *name == first.name && *lists == first.lists);
    let at = nodes.iter().position(is_same).unwrap_or_else(|| {
        nodes.push(Node::Struct { name: first.name.clone(), lists: first.lists, nulls: None, children: Vec::new() });
        nodes.len() - 1
    });
    match nodes.get_mut(at) {
        Some(Node::Struct { nulls, .. }) if is_last => *nulls = Some(place.number),
        Some(Node::Struct { children, .. }) => insert(children, place, depth + 1),
        _ => {}
    }
}

impl Node {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Column { name, .. } | Self::Struct { name, .. } => name,
        }
    }

    /// Returns the field, inside `depth` levels of lists. `columns` are the fields of all columns.
    pub(super) fn field(&self, columns: &[FieldRef], depth: usize) -> Option<FieldRef> {
        match self {
            Self::Column { number, name } => {
                let column = columns.get(*number)?;
                let mut metadata = column.metadata().clone();
                metadata.remove(path::KEY);
                let (data_type, nullable) = member(column, depth)?;
                Some(Arc::new(Field::new(name, data_type.clone(), nullable).with_metadata(metadata)))
            }
            Self::Struct { name, lists, nulls, children } => {
                let inner = depth.checked_add(*lists)?;
                let fields: Option<Fields> = children.iter().map(|child| child.field(columns, inner)).collect();
                let fields = fields?;
                let column = columns.get(self.first()?)?;
                let mut nullable = match nulls {
                    Some(number) => member(columns.get(*number)?, inner)?.1,
                    None => fields.iter().all(|field| field.is_nullable()),
                };
                let mut data_type = DataType::Struct(fields);
                for level in (depth..inner).rev() {
                    data_type = DataType::List(Arc::new(Field::new("item", data_type, nullable)));
                    nullable = member(column, level)?.1;
                }
                Some(Arc::new(Field::new(name, data_type, nullable)))
            }
        }
    }

    /// Returns the array of the field. `columns` are the arrays of all columns, as fields have it.
    pub(super) fn array(&self, field: &Field, columns: &[ArrayRef], depth: usize) -> Result<ArrayRef> {
        let Self::Struct { name, lists, nulls, children } = self else {
            let Self::Column { number, .. } = self else { return Err(mismatch()) };
            return columns.get(*number).and_then(|column| entries(column, depth)).ok_or_else(mismatch);
        };
        let inner = depth.saturating_add(*lists);
        let mut data_type = field.data_type();
        let mut items: Vec<&FieldRef> = Vec::with_capacity(*lists);
        for _ in 0..*lists {
            let DataType::List(item) = data_type else { return Err(mismatch()) };
            items.push(item);
            data_type = item.data_type();
        }
        let DataType::Struct(fields) = data_type else { return Err(mismatch()) };
        let arrays = children.iter().zip(fields).map(|(child, field)| child.array(field, columns, inner));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let own =
            nulls.map(|number| columns.get(number).and_then(|column| entries(column, inner)).ok_or_else(mismatch));
        let own = own.transpose()?;
        let count = own.as_ref().or(arrays.first()).map_or(0, |array| array.len());
        let nulls = own.and_then(|own| own.nulls().cloned());
        let structs = StructArray::try_new_with_length(fields.clone(), arrays, nulls, count);
        let mut array: ArrayRef = Arc::new(structs.map_err(|error| self.unfit(&error.to_string()))?);
        for (level, item) in (depth..inner).zip(items).rev() {
            let lists = self.lists(name, columns, level)?;
            let wrapped = ListArray::try_new(item.clone(), lists.offsets().clone(), array, lists.nulls().cloned());
            array = Arc::new(wrapped.map_err(|error| self.unfit(&error.to_string()))?);
        }
        Ok(array)
    }

    /// Returns the lists of a level, which all columns of the struct share.
    fn lists(&self, name: &str, columns: &[ArrayRef], level: usize) -> Result<ListArray> {
        let mut shared: Option<ListArray> = None;
        for number in self.numbers() {
            let array = columns.get(number).and_then(|column| entries(column, level)).ok_or_else(mismatch)?;
            let lists = array.as_list_opt::<i32>().ok_or_else(mismatch)?;
            let is_same = shared
                .as_ref()
                .is_none_or(|shared| shared.offsets() == lists.offsets() && shared.nulls() == lists.nulls());
            if !is_same {
                let message = format!("the fields of the struct {name:?} have lists of different lengths");
                return Err(Error::bad_input(message));
            }
            shared.get_or_insert_with(|| lists.clone());
        }
        shared.ok_or_else(mismatch)
    }

    /// Returns the numbers of the columns.
    pub(super) fn numbers(&self) -> Vec<usize> {
        match self {
            Self::Column { number, .. } => vec![*number],
            Self::Struct { nulls, children, .. } => {
                nulls.iter().copied().chain(children.iter().flat_map(Self::numbers)).collect()
            }
        }
    }

    /// Returns the error about columns that are no fields of one struct, whatever their paths say.
    fn unfit(&self, error: &str) -> Error {
        let (Self::Column { name, .. } | Self::Struct { name, .. }) = self;
        Error::bad_input(format!("the fields of the struct {name:?} do not fit together: {error}"))
    }

    fn first(&self) -> Option<usize> {
        self.numbers().first().copied()
    }
}

/// Returns the type of the entries of a column inside `depth` levels of lists, and whether they may
/// be null.
fn member(column: &Field, depth: usize) -> Option<(&DataType, bool)> {
    let (mut data_type, mut nullable) = (column.data_type(), column.is_nullable());
    for _ in 0..depth {
        let DataType::List(item) = data_type else { return None };
        (data_type, nullable) = (item.data_type(), item.is_nullable());
    }
    Some((data_type, nullable))
}

/// Returns the entries of a column inside `depth` levels of lists.
fn entries(column: &ArrayRef, depth: usize) -> Option<ArrayRef> {
    (0..depth).try_fold(column.clone(), |array, _| Some(array.as_list_opt::<i32>()?.values().clone()))
}

#[cold]
fn mismatch() -> Error {
    Error::internal("a column is not what the path in its metadata says")
}
