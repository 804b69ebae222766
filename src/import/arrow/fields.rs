//! Finds the columns of a schema, and gives its fields unique names.
//!
//! Columns are looked up by name. So [`with_distinct_names`] first renames fields until no two
//! columns share a name. Then [`FieldPath`] descends through structs, and through lists whose
//! members are not elements of a tensor. Every leaf becomes a column, and so do the nulls of every
//! struct.

use super::metadata;
use super::paths::{ColumnPath, Step};
use super::types::{MARKS, decoded, is_null, is_nullable, is_variable_tensor, kind_of, marked_type};
use crate::format::{ListLevel, path};
use crate::import::plan::input_column::{ColumnKind, InputColumn, StructNulls};
use crate::logical::arrow_type::{members, with_members};
use crate::logical::saved_schema::NAME;
use crate::{Error, Metadata, limits};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::result::Result;
use std::sync::Arc;

/// The path from the schema to a field. It is extended to reach the columns inside the field.
#[derive(Clone)]
pub(super) struct FieldPath<'a> {
    name: String,
    path: String,
    /// The index of the field in the schema, followed by the index of a field in each struct.
    fields: Vec<usize>,
    /// The steps from the first list onward, if the path enters lists.
    steps: Vec<Step>,
    levels: Vec<ListLevel>,
    /// Whether the outermost list or an enclosing struct is nullable.
    nullable: bool,
    in_struct: bool,
    /// The outermost list around the field, with no struct between the list and the field.
    list: Option<&'a Field>,
}

/// Refuses a schema whose columns would take too much memory. For example, a file of a few
/// megabytes can declare a struct with a long name and very many fields, and the name of each
/// field's column begins with that long name.
pub(super) fn check_columns(schema: &Schema) -> crate::Result<()> {
    const MAX_BYTES: usize = 256 << 20;
    let fields = schema.fields().iter();
    let bytes = fields.fold(0_usize, |bytes, field| bytes.saturating_add(column_bytes(field, 0)));
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Error::bad_input(format!(
        "the schema has too many columns: their names and types take {bytes} bytes, but the maximum is {MAX_BYTES}"
    )))
}

/// Returns approximately how many bytes the columns of a field take in memory. The name of the
/// enclosing struct has `outer` bytes. The recursion is bounded, because every reader limits the
/// depth of schemas.
fn column_bytes(field: &Field, outer: usize) -> usize {
    /// The overhead per column, in addition to the name, which is stored twice.
    const COLUMN_BYTES: usize = 512;
    let name = outer.saturating_add(field.name().len()).min(limits::NAME_BYTES);
    let own = name.saturating_mul(2).saturating_add(field.name().len()).saturating_add(COLUMN_BYTES);
    let children = match decoded(field.data_type()) {
        DataType::Struct(fields) => fields.as_ref(),
        other => members(other).map_or(&[][..], std::slice::from_ref),
    };
    children.iter().fold(own, |bytes, child| bytes.saturating_add(column_bytes(child, name)))
}

impl<'a> FieldPath<'a> {
    /// Starts at a field of the schema.
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

    /// Collects the columns of a field, with the path to each. `self` is the path to the field.
    pub(super) fn enter(self, field: &'a Field, found: &mut Vec<(InputColumn, ColumnPath)>) {
        match decoded(field.data_type()) {
            DataType::Struct(fields) if !is_variable_tensor(field) => {
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

    /// Descends into a field of a struct. A name that is too long for a column does not grow
    /// further, because a file can have very many such fields.
    fn to_child(&self, i: usize, child: &Field) -> Self {
        let mut child_path = self.clone();
        (child_path.name, child_path.path) = if self.name.len() > limits::NAME_BYTES {
            (truncated(&self.name).to_owned(), truncated(&self.path).to_owned())
        } else {
            let name = truncated(child.name());
            (format!("{}.{name}", self.name), format!("{}.{}", self.path, path::escaped(name)))
        };
        child_path.in_struct = true;
        child_path.list = None;
        match child_path.levels.last_mut() {
            Some(level) => level.nullable |= is_nullable(child),
            None => child_path.nullable |= is_nullable(child),
        }
        if child_path.levels.is_empty() {
            child_path.fields.push(i);
        } else {
            child_path.steps.push(Step::Field(i));
        }
        child_path
    }

    fn enter_lists(mut self, list: &'a Field, item: &'a Field, found: &mut Vec<(InputColumn, ColumnPath)>) {
        self.list = self.list.or(Some(list));
        self.path.push_str("[]");
        self.steps.push(Step::List);
        self.levels.push(ListLevel { nullable: is_nullable(item) });
        self.enter(item, found);
    }

    /// Returns the column of a field that is not a struct.
    fn column(mut self, field: &Field) -> (InputColumn, ColumnPath) {
        let nullable = self.levels.last_mut().map_or(&mut self.nullable, |level| &mut level.nullable);
        *nullable |= is_null(field.data_type());
        let kind = kind_of(field, !self.levels.is_empty(), self.list.and_then(marked_type));
        let mut column = self.input_column(kind, metadata::of_column(field, self.list));
        // with a path, a tensor of bools without elements would be mistaken for the nulls of a
        // struct
        if self.in_struct && !column.kind.as_ref().is_ok_and(ColumnKind::is_like_struct_nulls) {
            column.metadata.insert(path::KEY.to_owned(), self.path);
        }
        (column, ColumnPath { fields: self.fields, steps: self.steps, is_struct: false })
    }

    /// Returns the column for the nulls of a struct.
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
                Err(format!("a path of {name_count} names, but the format allows {}", limits::PATH_NAMES))
            }
            Ok(_) if self.levels.len() > limits::LEVELS => {
                Err(format!("{} levels of lists, but the format allows {}", self.levels.len(), limits::LEVELS))
            }
            kind => kind.map(|kind| ColumnKind { lists: self.levels.clone(), ..kind }),
        };
        let (name, nullable) = (self.name.clone(), self.nullable);
        InputColumn { name, kind, nullable, metadata, stored: None, struct_nulls: None }
    }
}

/// Returns a prefix of a name or path that is still too long for a column.
fn truncated(name: &str) -> &str {
    let is_longer = |(at, _): &(usize, char)| *at > limits::NAME_BYTES;
    name.char_indices().find(is_longer).and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

/// Returns whether a field has lists whose members are not elements of a tensor.
fn is_nested(field: &Field) -> bool {
    let data_type = decoded(field.data_type());
    let is_not_element = |item: &FieldRef| match decoded(item.data_type()) {
        DataType::Struct(_) => true,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary => true,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) | DataType::Null => true,
        _ => is_nested(item),
    };
    matches!(data_type, DataType::Map(..)) || members(data_type).is_some_and(is_not_element)
}

/// Returns the schema with unique names: no two fields of a struct and no two columns share a name.
/// A second field `a` becomes `a#2`, and a field without a name becomes `#1`. If both a column
/// `a.b` and a field `b` of a struct `a` exist, the later one is renamed in the same way. The
/// metadata records the original name. Fields retain only the [`MARKS`] that are in `own_marks`.
pub(super) fn with_distinct_names(schema: &Schema, own_marks: &[&str]) -> Schema {
    let mut columns = ColumnNames { own_marks, ..ColumnNames::default() };
    schema.fields().iter().for_each(|field| columns.collect(field, ""));
    let fields = columns.rename_fields(schema.fields(), None);
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The names of the columns of a schema.
#[derive(Default)]
struct ColumnNames<'a> {
    own_marks: &'a [&'a str],
    /// The names in the source.
    known: HashSet<String>,
    /// The names assigned so far.
    taken: HashSet<String>,
}

impl ColumnNames<'_> {
    /// Collects the names of the columns of a field. `outer` is the name of the enclosing struct.
    fn collect(&mut self, field: &Field, outer: &str) {
        let name = joined(outer, field.name());
        match inner_fields(field.data_type()) {
            Some(fields) => fields.iter().for_each(|field| self.collect(field, &name)),
            None if is_too_long(outer) => {}
            None => drop(self.known.insert(name.into_owned())),
        }
    }

    /// Gives the fields of a struct or schema unique names. `outer` is the dotted name of the
    /// struct, including its enclosing structs.
    fn rename_fields(&mut self, fields: &Fields, outer: Option<&str>) -> Fields {
        let around = outer.unwrap_or_default();
        let known: HashSet<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let mut taken: HashSet<String> = HashSet::new();
        let mut named: Vec<FieldRef> = Vec::with_capacity(fields.len());
        // for each name, the number at which the search for a free name resumes: many fields can
        // share a name, and starting over would take quadratic time
        let mut next: HashMap<&str, u64> = HashMap::new();
        for field in fields {
            let name: &str = field.name();
            // all columns below a name that is too long share that name, and are refused later
            let is_column = inner_fields(field.data_type()).is_none() && !is_too_long(around);
            let has_no_name = outer.is_none() && name.is_empty();
            let is_free = !is_column || !self.taken.contains(&*joined(around, name));
            let mut new = None;
            if has_no_name || !is_free || !taken.insert(name.to_owned()) {
                let number = next.entry(name).or_insert(if has_no_name { 1 } else { 2 });
                let mut names = (*number..).map(|number| (number, format!("{name}#{number}")));
                let free = names.find(|(_, name)| {
                    let column = joined(around, name);
                    let is_free = !is_column || !(self.known.contains(&*column) || self.taken.contains(&*column));
                    is_free && !known.contains(name.as_str()) && taken.insert(name.clone())
                });
                *number = free.as_ref().map_or(*number, |(number, _)| *number);
                new = free.map(|(_, name)| name); // always found: only finitely many names are taken
            }
            let column = joined(around, new.as_deref().unwrap_or(name));
            if is_column {
                self.taken.insert(column.clone().into_owned());
            }
            let renamed = self.rename_field(field, new.as_deref(), &column);
            named.push(renamed);
        }
        named.into()
    }

    /// Returns a field with a new name, if given, and with unique names for the fields inside it.
    /// `outer` is the column name of the field.
    fn rename_field(&mut self, field: &FieldRef, name: Option<&str>, outer: &str) -> FieldRef {
        let data_type = self.rename_type(field.data_type(), outer);
        let is_foreign = |mark: &&str| !self.own_marks.contains(mark) && field.metadata().contains_key(mark);
        let foreign: Vec<&str> = MARKS.into_iter().filter(is_foreign).collect();
        if data_type.is_none() && name.is_none() && foreign.is_empty() {
            return field.clone();
        }
        let mut renamed = Field::clone(field);
        for mark in foreign {
            renamed.metadata_mut().remove(mark);
        }
        if let Some(name) = name {
            renamed.metadata_mut().insert(NAME.to_owned(), field.name().clone());
            renamed.set_name(name);
        }
        Arc::new(match data_type {
            Some(data_type) => renamed.with_data_type(data_type),
            None => renamed,
        })
    }

    /// Returns a type whose fields have unique names, or `None` if it has no fields.
    fn rename_type(&mut self, data_type: &DataType, outer: &str) -> Option<DataType> {
        Some(match data_type {
            DataType::Struct(fields) => DataType::Struct(self.rename_fields(fields, Some(outer))),
            DataType::Dictionary(keys, values) => {
                DataType::Dictionary(keys.clone(), Box::new(self.rename_type(values, outer)?))
            }
            DataType::RunEndEncoded(ends, values) => {
                DataType::RunEndEncoded(ends.clone(), self.rename_field(values, None, outer))
            }
            _ => return with_members(data_type, |item| self.rename_field(item, None, outer)),
        })
    }
}

/// Returns the dotted name of a field of a struct. A name that is too long for a column does not
/// grow further, because a file can have very many such fields.
pub(super) fn joined<'a>(outer: &'a str, name: &'a str) -> Cow<'a, str> {
    match outer {
        "" => name.into(),
        _ if is_too_long(outer) => outer.into(),
        _ => format!("{outer}.{name}").into(),
    }
}

/// Returns whether a name is too long for a column.
fn is_too_long(name: &str) -> bool {
    name.len() > limits::NAME_BYTES
}

/// Returns the fields of a struct, or of the structs inside lists. Returns `None` if the field is
/// stored as one column.
fn inner_fields(data_type: &DataType) -> Option<&Fields> {
    match decoded(data_type) {
        DataType::Struct(fields) => (!fields.is_empty()).then_some(fields),
        other => inner_fields(members(other)?.data_type()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(fields: &Fields) -> Vec<&str> {
        fields.iter().map(|field| field.name().as_str()).collect()
    }

    fn fields(names: &[&str]) -> Fields {
        names.iter().map(|name| Field::new(*name, DataType::Int8, true)).collect()
    }

    #[test]
    fn the_first_of_several_fields_keeps_its_name() {
        let schema = with_distinct_names(&Schema::new(fields(&["a", "", "a", "a#2", "a", "", "b"])), &[]);
        assert_eq!(names(schema.fields()), ["a", "#1", "a#3", "a#2", "a#4", "#2", "b"]);
        assert_eq!(schema.field(2).metadata()[NAME], "a");
        assert!(schema.field(0).metadata().is_empty() && schema.field(3).metadata().is_empty());
    }

    #[test]
    fn fields_of_structs_are_named_wherever_they_are() {
        let pair = DataType::Struct(fields(&["a", "a", ""]));
        let list = DataType::new_list(DataType::Dictionary(Box::new(DataType::Int8), Box::new(pair)), true);
        let schema = with_distinct_names(&Schema::new(vec![Field::new("x", list, true)]), &[]);
        let DataType::List(item) = schema.field(0).data_type() else { panic!() };
        let DataType::Dictionary(_, pair) = item.data_type() else { panic!() };
        let DataType::Struct(fields) = pair.as_ref() else { panic!() };
        assert_eq!(names(fields), ["a", "a#2", ""]);
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let a = |names| Field::new("a", DataType::Struct(fields(names)), true);
        let plain = |name: &str| Field::new(name, DataType::Int8, true);
        let schema =
            with_distinct_names(&Schema::new(vec![a(&["b", "c"]), plain("a.b"), plain("a.d"), plain("a.b#2")]), &[]);
        assert_eq!(names(schema.fields()), ["a", "a.b#3", "a.d", "a.b#2"]);
        assert_eq!(schema.field(1).metadata()[NAME], "a.b");
        let list = Field::new("a", DataType::new_list(DataType::Struct(fields(&["b", "c"])), true), true);
        let schema = with_distinct_names(&Schema::new(vec![plain("a.b"), list]), &[]);
        let DataType::List(item) = schema.field(1).data_type() else { panic!() };
        let DataType::Struct(fields) = item.data_type() else { panic!() };
        assert_eq!(names(fields), ["b#2", "c"]);
    }

    #[test]
    fn names_of_an_input_are_not_believed() {
        let field = Field::new("a", DataType::Int8, true).with_metadata([(NAME, "b")]);
        assert!(with_distinct_names(&Schema::new(vec![field]), &[]).field(0).metadata().is_empty());
    }
}
