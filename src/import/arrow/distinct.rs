//! Names for fields that have none of their own: a column is found by its name.

use super::types::decoded;
use crate::arrow_type::{members, with_members};
use crate::limits;
use crate::saved_schema::NAME;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns a schema with the same fields, in which no two of a struct have one name, and no two
/// columns. The second `a` is named `a#2`, and a field without a name `#1`; so is the second of a
/// column `a.b` and a field `b` of a struct `a`. The metadata keep the name that it had.
pub(super) fn distinct(schema: &Schema) -> Schema {
    let mut columns = Columns::default();
    schema.fields().iter().for_each(|field| columns.collect(field, ""));
    let fields = columns.all(schema.fields(), None);
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The names of the columns of a schema.
#[derive(Default)]
struct Columns {
    /// Those of the source.
    known: HashSet<String>,
    /// Those given so far.
    taken: HashSet<String>,
}

impl Columns {
    /// Collects the columns of a field behind the names of the structs around it.
    fn collect(&mut self, field: &Field, outer: &str) {
        let name = joined(outer, field.name());
        match inner_fields(field.data_type()) {
            Some(fields) => fields.iter().for_each(|field| self.collect(field, &name)),
            None if is_too_long(outer) => {}
            None => drop(self.known.insert(name.into_owned())),
        }
    }

    /// Renames the fields of a struct, or of a schema, whose fields need names. `outer` are the
    /// names of the struct and of those around it.
    fn all(&mut self, fields: &Fields, outer: Option<&str>) -> Fields {
        let around = outer.unwrap_or_default();
        let known: HashSet<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let mut taken: HashSet<String> = HashSet::new();
        let mut named: Vec<FieldRef> = Vec::with_capacity(fields.len());
        // where the search of a free number goes on: many fields may have one name
        let mut next: HashMap<&str, u64> = HashMap::new();
        for field in fields {
            let name: &str = field.name();
            // all columns below a name that is too long have that name, and are refused later
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
                new = free.map(|(_, name)| name); // one of so many is free
            }
            let column = joined(around, new.as_deref().unwrap_or(name));
            if is_column {
                self.taken.insert(column.clone().into_owned());
            }
            let renamed = self.one(field, new.as_deref(), &column);
            named.push(renamed);
        }
        named.into()
    }

    /// Returns a field with another name, if it needs one, and the fields inside it with distinct
    /// names, behind `outer`.
    fn one(&mut self, field: &FieldRef, name: Option<&str>, outer: &str) -> FieldRef {
        let data_type = self.inside(field.data_type(), outer);
        if data_type.is_none() && name.is_none() && !field.metadata().contains_key(NAME) {
            return field.clone();
        }
        let mut renamed = Field::clone(field);
        renamed.metadata_mut().remove(NAME); // the importer's word, not the input's
        if let Some(name) = name {
            renamed.metadata_mut().insert(NAME.to_owned(), field.name().clone());
            renamed.set_name(name);
        }
        Arc::new(match data_type {
            Some(data_type) => renamed.with_data_type(data_type),
            None => renamed,
        })
    }

    /// Returns a type whose fields have distinct names. `None`: it has no fields.
    fn inside(&mut self, data_type: &DataType, outer: &str) -> Option<DataType> {
        Some(match data_type {
            DataType::Struct(fields) => DataType::Struct(self.all(fields, Some(outer))),
            DataType::Dictionary(keys, values) => {
                DataType::Dictionary(keys.clone(), Box::new(self.inside(values, outer)?))
            }
            DataType::RunEndEncoded(ends, values) => {
                DataType::RunEndEncoded(ends.clone(), self.one(values, None, outer))
            }
            _ => return with_members(data_type, |item| self.one(item, None, outer)),
        })
    }
}

/// Returns the name of a field of a struct. Names that are too long for a column do not grow,
/// because each of very many fields has them.
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

/// Returns the fields of a struct, or of the structs in lists. `None`: the field is a column.
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
        let schema = distinct(&Schema::new(fields(&["a", "", "a", "a#2", "a", "", "b"])));
        assert_eq!(names(schema.fields()), ["a", "#1", "a#3", "a#2", "a#4", "#2", "b"]);
        assert_eq!(schema.field(2).metadata()[NAME], "a");
        assert!(schema.field(0).metadata().is_empty() && schema.field(3).metadata().is_empty());
    }

    #[test]
    fn fields_of_structs_are_named_wherever_they_are() {
        let pair = DataType::Struct(fields(&["a", "a", ""]));
        let list = DataType::new_list(DataType::Dictionary(Box::new(DataType::Int8), Box::new(pair)), true);
        let schema = distinct(&Schema::new(vec![Field::new("x", list, true)]));
        let DataType::List(item) = schema.field(0).data_type() else { panic!() };
        let DataType::Dictionary(_, pair) = item.data_type() else { panic!() };
        let DataType::Struct(fields) = pair.as_ref() else { panic!() };
        assert_eq!(names(fields), ["a", "a#2", ""]);
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let a = |names| Field::new("a", DataType::Struct(fields(names)), true);
        let plain = |name: &str| Field::new(name, DataType::Int8, true);
        let schema = distinct(&Schema::new(vec![a(&["b", "c"]), plain("a.b"), plain("a.d"), plain("a.b#2")]));
        assert_eq!(names(schema.fields()), ["a", "a.b#3", "a.d", "a.b#2"]);
        assert_eq!(schema.field(1).metadata()[NAME], "a.b");
        let list = Field::new("a", DataType::new_list(DataType::Struct(fields(&["b", "c"])), true), true);
        let schema = distinct(&Schema::new(vec![plain("a.b"), list]));
        let DataType::List(item) = schema.field(1).data_type() else { panic!() };
        let DataType::Struct(fields) = item.data_type() else { panic!() };
        assert_eq!(names(fields), ["b#2", "c"]);
    }

    #[test]
    fn names_of_an_input_are_not_believed() {
        let field = Field::new("a", DataType::Int8, true).with_metadata([(NAME, "b")]);
        assert!(distinct(&Schema::new(vec![field])).field(0).metadata().is_empty());
    }
}
