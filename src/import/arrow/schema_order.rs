//! The order in which files list what they know of the fields of a schema: depth first.

use super::column_path::ColumnPath;
use super::nested::Step;
use arrow_schema::{DataType, FieldRef, Schema};
use std::ops::Range;

/// The fields that a file lists.
#[derive(Clone, Copy)]
pub(in crate::import) enum Listed {
    /// Fields without fields inside (Parquet).
    #[cfg(feature = "parquet")]
    Leaves,
    /// All fields; a struct or a list is before what is inside it (Arrow IPC).
    Nodes,
}

/// The positions of the fields of a schema in such a list.
pub(in crate::import) struct SchemaOrder {
    listed: Listed,
    /// The first position of each field.
    starts: Vec<usize>,
    /// The number of positions.
    pub count: usize,
}

impl SchemaOrder {
    pub(in crate::import) fn of(schema: &Schema, listed: Listed) -> Self {
        let mut this = Self { listed, starts: Vec::new(), count: 0 };
        for field in schema.fields() {
            this.starts.push(this.count);
            this.count += listed.count(field.data_type()); // no overflow: fields in memory
        }
        this
    }

    /// Returns the positions of what a path leads to, and of all that is inside it.
    pub(in crate::import) fn range(&self, schema: &Schema, path: &ColumnPath) -> Option<Range<usize>> {
        let (&root, inner) = path.fields.split_first()?;
        let steps = inner.iter().map(|&field| Step::Field(field)).chain(path.steps.iter().copied());
        let mut start = *self.starts.get(root)?;
        let mut data_type = schema.fields().get(root)?.data_type();
        for step in steps {
            start += self.listed.own();
            data_type = match (step, data_type) {
                (Step::Field(field), DataType::Struct(fields)) => {
                    start += self.listed.count_all(fields.get(..field)?);
                    fields.get(field)?.data_type()
                }
                (Step::List, list) => item(list)?,
                _ => return None,
            };
        }
        Some(start..start.checked_add(self.listed.count(data_type))?)
    }
}

impl Listed {
    /// Returns the positions of a struct or a list itself.
    fn own(self) -> usize {
        usize::from(matches!(self, Self::Nodes))
    }

    /// Returns the positions of a type. Its depth is that of the schema, which the decoder has
    /// bounded.
    fn count(self, data_type: &DataType) -> usize {
        match (data_type, item(data_type)) {
            (DataType::Struct(fields), _) => self.own() + self.count_all(fields),
            (_, Some(item)) => self.own() + self.count(item),
            _ => 1,
        }
    }

    fn count_all(self, fields: &[FieldRef]) -> usize {
        fields.iter().map(|field| self.count(field.data_type())).sum()
    }
}

fn item(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _) => Some(item.data_type()),
        _ => None,
    }
}
