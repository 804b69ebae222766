//! The columns that the fields of a schema become.

use super::kinds::kind_of;
use super::rows::{ColumnPath, Step};
use super::types::{decoded, is_null, is_nullable, marked_type};
use super::{extension, metadata};
use crate::arrow_type::members;
use crate::format::{ListLevel, path};
use crate::import::input_column::{ColumnKind, InputColumn, StructNulls};
use crate::{Error, Metadata, limits};
use arrow_schema::{DataType, Field, FieldRef, Schema};
use std::result::Result;

/// The way from the schema to a field, and to the columns inside it.
#[derive(Clone)]
pub(super) struct FieldWay<'a> {
    name: String,
    path: String,
    /// The field of the schema, then fields of structs.
    fields: Vec<usize>,
    /// The steps behind, if there are lists on the way.
    steps: Vec<Step>,
    levels: Vec<ListLevel>,
    /// Whether samples may be null: the first list or what is before it.
    nullable: bool,
    in_struct: bool,
    /// The outermost of the lists that the field is in, unless there is a struct between them.
    list: Option<&'a Field>,
}

/// Refuses a schema whose columns would take too much memory: a file of some megabytes can have
/// very many in a struct of a long name, which each of them repeats.
pub(super) fn check_columns(schema: &Schema) -> crate::Result<()> {
    const MOST_BYTES: usize = 256 << 20;
    let fields = schema.fields().iter();
    let bytes = fields.fold(0_usize, |bytes, field| bytes.saturating_add(column_bytes(field, 0)));
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(Error::bad_input(format!("the schema has too many columns: their names and types take {bytes} bytes")))
}

/// Returns about the bytes of the columns of a field, behind a name of `outer` bytes. Every reader
/// bounds the depth of schemas.
fn column_bytes(field: &Field, outer: usize) -> usize {
    /// Of what is not the name, which is there twice.
    const COLUMN_BYTES: usize = 512;
    let name = outer.saturating_add(field.name().len()).min(limits::NAME_BYTES);
    let own = name.saturating_mul(2).saturating_add(COLUMN_BYTES);
    let children = match decoded(field.data_type()) {
        DataType::Struct(fields) => fields.as_ref(),
        other => members(other).map_or(&[][..], std::slice::from_ref),
    };
    children.iter().fold(own, |bytes, child| bytes.saturating_add(column_bytes(child, name)))
}

impl<'a> FieldWay<'a> {
    /// Begins with a field of the schema.
    pub(super) fn to(i: usize, field: &'a Field) -> Self {
        Self {
            name: field.name().clone(),
            path: path::escaped(field.name()),
            fields: vec![i],
            steps: Vec::new(),
            levels: Vec::new(),
            nullable: is_nullable(field),
            in_struct: false,
            list: None,
        }
    }

    /// Finds the columns that a field becomes, with the way to each. The way leads to the field.
    pub(super) fn enter(self, field: &'a Field, found: &mut Vec<(InputColumn, ColumnPath)>) {
        match decoded(field.data_type()) {
            DataType::Struct(fields) if !extension::is_variable_tensor(field) => {
                found.push(self.clone().struct_column(field, !fields.is_empty()));
                for (i, child) in fields.iter().enumerate() {
                    self.to_child(i, child).enter(child, found);
                }
            }
            other => match members(other).filter(|_| is_nested(field)) {
                Some(item) => self.enter_lists(field, item, found),
                None => found.push(self.column(field)),
            },
        }
    }

    /// Goes to a field of a struct. Names that are too long for a column do not grow, because each
    /// of very many fields has them.
    fn to_child(&self, i: usize, child: &Field) -> Self {
        let mut way = self.clone();
        (way.name, way.path) = if self.name.len() > limits::NAME_BYTES {
            (refused(&self.name).to_owned(), refused(&self.path).to_owned())
        } else {
            let name = refused(child.name());
            (format!("{}.{name}", self.name), format!("{}.{}", self.path, path::escaped(name)))
        };
        way.in_struct = true;
        way.list = None;
        match way.levels.last_mut() {
            Some(level) => level.nullable |= is_nullable(child),
            None => way.nullable |= is_nullable(child),
        }
        if way.levels.is_empty() {
            way.fields.push(i);
        } else {
            way.steps.push(Step::Field(i));
        }
        way
    }

    fn enter_lists(mut self, list: &'a Field, item: &'a Field, found: &mut Vec<(InputColumn, ColumnPath)>) {
        self.list = self.list.or(Some(list));
        self.path.push_str("[]");
        self.steps.push(Step::List);
        self.levels.push(ListLevel { nullable: is_nullable(item) });
        self.enter(item, found);
    }

    /// Returns the column of a field that is no struct.
    fn column(mut self, field: &Field) -> (InputColumn, ColumnPath) {
        let nullable = self.levels.last_mut().map_or(&mut self.nullable, |level| &mut level.nullable);
        *nullable |= is_null(field.data_type());
        let kind = kind_of(field, !self.levels.is_empty(), self.list.and_then(marked_type));
        let mut column = self.input_column(kind, metadata::of_column(field, self.list));
        // tensors of bools that have no element would be taken for a struct
        if self.in_struct && !column.kind.as_ref().is_ok_and(ColumnKind::is_like_struct_nulls) {
            column.metadata.insert(path::KEY.to_owned(), self.path);
        }
        (column, ColumnPath { fields: self.fields, steps: self.steps, is_struct: false })
    }

    /// Returns the column of the nulls of a struct.
    fn struct_column(self, field: &Field, has_fields: bool) -> (InputColumn, ColumnPath) {
        let mut column = self.input_column(Ok(ColumnKind::struct_nulls(Vec::new())), Metadata::new());
        column.struct_nulls = Some(StructNulls::new(has_fields, is_nullable(field)));
        column.metadata.insert(path::KEY.to_owned(), self.path);
        (column, ColumnPath { fields: self.fields, steps: self.steps, is_struct: true })
    }

    fn input_column(&self, kind: Result<ColumnKind, String>, metadata: Metadata) -> InputColumn {
        let name_count = path::segments(&self.path).count();
        let kind = match kind {
            Ok(_) if name_count > limits::PATH_NAMES => {
                Err(format!("a path of {name_count} names, of which the format allows {}", limits::PATH_NAMES))
            }
            Ok(_) if self.levels.len() > limits::LEVELS => {
                Err(format!("{} levels of lists, of which the format allows {}", self.levels.len(), limits::LEVELS))
            }
            kind => kind.map(|kind| ColumnKind { lists: self.levels.clone(), ..kind }),
        };
        let (name, nullable) = (self.name.clone(), self.nullable);
        InputColumn { name, kind, nullable, metadata, stored: None, struct_nulls: None }
    }
}

/// Returns so much of a name or path as shows that it is too long for a column.
fn refused(name: &str) -> &str {
    let is_longer = |(at, _): &(usize, char)| *at > limits::NAME_BYTES;
    name.char_indices().find(is_longer).and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

/// Returns whether lists have members that are no elements of a tensor.
fn is_nested(field: &Field) -> bool {
    let data_type = decoded(field.data_type());
    let is_no_element = |item: &FieldRef| match decoded(item.data_type()) {
        DataType::Struct(_) => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary => true,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) | DataType::Null => true,
        _ => is_nested(item),
    };
    matches!(data_type, DataType::Map(..)) || members(data_type).is_some_and(is_no_element)
}
