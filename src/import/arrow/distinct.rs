//! Names for fields that have none of their own: a column is found by its name.

use super::types::with_members;
use crate::saved_schema::NAME;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Returns a schema with the same fields, in which no two of a struct have one name. The second `a`
/// is named `a#2`, and a field without a name `#1`. The metadata keep the name that it had.
pub(super) fn distinct(schema: &Schema) -> Schema {
    let fields = all(schema.fields(), true);
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// Renames the fields of a struct, or of a schema, whose fields need names.
fn all(fields: &Fields, is_schema: bool) -> Fields {
    let known: HashSet<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let mut named: Vec<FieldRef> = Vec::with_capacity(fields.len());
    // where the search of a free number goes on: many fields may have one name
    let mut next: HashMap<&str, u64> = HashMap::new();
    for field in fields {
        let name: &str = field.name();
        let is_named = !(is_schema && name.is_empty()) && taken.insert(name.to_owned());
        if is_named {
            named.push(one(field, None));
            continue;
        }
        let number = next.entry(name).or_insert(if name.is_empty() && is_schema { 1 } else { 2 });
        let mut names = (*number..).map(|number| (number, format!("{name}#{number}")));
        let free = names.find(|(_, name)| !known.contains(name.as_str()) && taken.insert(name.clone()));
        *number = free.as_ref().map_or(*number, |(number, _)| *number);
        named.push(one(field, free.map(|(_, name)| name))); // one of so many is free
    }
    named.into()
}

/// Returns a field with another name, if it needs one, and the fields inside it with distinct
/// names.
fn one(field: &FieldRef, name: Option<String>) -> FieldRef {
    let data_type = inside(field.data_type());
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
fn inside(data_type: &DataType) -> Option<DataType> {
    let item = |item: &FieldRef| one(item, None);
    Some(match data_type {
        DataType::Struct(fields) => DataType::Struct(all(fields, false)),
        DataType::Dictionary(keys, values) => DataType::Dictionary(keys.clone(), Box::new(inside(values)?)),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), item(values)),
        _ => return with_members(data_type, item),
    })
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
    fn names_of_an_input_are_not_believed() {
        let field = Field::new("a", DataType::Int8, true).with_metadata([(NAME, "b")]);
        assert!(distinct(&Schema::new(vec![field])).field(0).metadata().is_empty());
    }
}
