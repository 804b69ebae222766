//! Paths from a schema to its columns, and the positions of fields in per-field metadata.
//!
//! Files list facts about the fields of a schema in depth-first order: the null counts of all
//! fields (Arrow IPC), or the statistics of leaf fields (Parquet). [`SchemaOrder`] maps a
//! [path](ColumnPath) to positions in such a list.

use crate::logical::arrow_type::members;
use arrow_schema::{DataType, Schema};
use std::iter;
use std::ops::Range;

/// A step from an array to an array inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Step {
    /// To the members of lists.
    List,
    /// To a field of a struct.
    Field(usize),
}

/// The path from a record batch to the array of a column.
#[derive(Clone)]
pub(in crate::import) struct ColumnPath {
    /// The index of the field in the schema, followed by the index of a field in each struct.
    pub fields: Vec<usize>,
    /// The steps from the first list onward, if the column is inside lists.
    pub steps: Vec<Step>,
    /// Whether the path ends at a struct. Only the nulls of this struct are stored.
    pub is_struct: bool,
}

impl ColumnPath {
    /// Returns whether the path leads through the struct at `around`.
    pub(super) fn is_in(&self, around: &Self) -> bool {
        let is_longer = self.fields.len() > around.fields.len() || self.steps.len() > around.steps.len();
        // the steps start only after the last field
        let is_same = self.fields == around.fields || around.steps.is_empty();
        is_longer && is_same && self.fields.starts_with(&around.fields) && self.steps.starts_with(&around.steps)
    }
}

/// Which fields a file lists.
#[derive(Clone, Copy)]
pub(in crate::import) enum FieldListing {
    /// Only fields without inner fields (Parquet).
    #[cfg(feature = "parquet")]
    Leaves,
    /// All fields. A struct or list precedes its contents (Arrow IPC).
    Nodes,
}

/// Maps the fields of a schema to their positions in a file's per-field metadata.
#[derive(Default)]
pub(in crate::import) struct SchemaOrder {
    fields: Vec<FieldRange>,
    /// The number of positions.
    pub count: usize,
}

/// A field of the schema, and its positions in the list.
struct FieldRange {
    /// The positions of the field, and of all fields inside it.
    range: Range<usize>,
    /// The fields of a struct, or the members of a list.
    inside: Vec<Self>,
}

impl SchemaOrder {
    pub(in crate::import) fn of(schema: &Schema, listing: FieldListing) -> Self {
        let mut count = 0;
        let fields = schema.fields().iter().map(|field| FieldRange::of(field.data_type(), listing, &mut count));
        Self { fields: fields.collect(), count }
    }

    /// Returns the positions of the field at a path and of all fields inside it.
    pub(in crate::import) fn range(&self, path: &ColumnPath) -> Option<Range<usize>> {
        let (&root, inner) = path.fields.split_first()?;
        let steps = inner.iter().map(|&field| Step::Field(field)).chain(path.steps.iter().copied());
        let mut field = self.fields.get(root)?;
        for step in steps {
            field = match step {
                Step::Field(i) => field.inside.get(i)?,
                Step::List => field.inside.first()?,
            };
        }
        Some(field.range.clone())
    }
}

impl FieldRange {
    /// Creates the range of the next field, which starts at position `count`, and advances `count`
    /// past it. The recursion is as deep as the schema, whose depth the decoder has limited.
    fn of(data_type: &DataType, listing: FieldListing, count: &mut usize) -> Self {
        let start = *count;
        let mut of_all = |types: &mut dyn Iterator<Item = &DataType>| -> Vec<Self> {
            *count += listing.own(); // no overflow: all fields are in memory
            types.map(|data_type| Self::of(data_type, listing, count)).collect()
        };
        let inside = match data_type {
            DataType::Struct(fields) => of_all(&mut fields.iter().map(|field| field.data_type())),
            DataType::RunEndEncoded(ends, values) if listing.own() > 0 => {
                of_all(&mut [ends.data_type(), values.data_type()].into_iter());
                // the counts do not include the nulls in the values, so they are not used
                return Self { range: start..start, inside: Vec::new() };
            }
            // no path leads into the fields of a union
            DataType::Union(fields, _) if listing.own() > 0 => {
                of_all(&mut fields.iter().map(|(_, field)| field.data_type()));
                Vec::new()
            }
            other => match members(other) {
                Some(item) => of_all(&mut iter::once(item.data_type())),
                None => {
                    *count += 1;
                    Vec::new()
                }
            },
        };
        Self { range: start..*count, inside }
    }
}

impl FieldListing {
    /// Returns how many positions a field with inner fields has in addition to the positions of the
    /// inner fields.
    fn own(self) -> usize {
        usize::from(matches!(self, Self::Nodes))
    }
}
