//! Values of any type for tests of structs: from values to arrays, to a file, and back.

use super::common::*;
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{DataType, Field, Int32Type};
use tensilo::{Reader, export};

pub use Value::{List, Null, Number};

/// A value of any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Number(i32),
    Text(String),
    List(Vec<Value>),
    Struct(Vec<Value>),
}

/// Returns a struct of these values.
pub fn of(values: impl IntoIterator<Item = Value>) -> Value {
    Value::Struct(values.into_iter().collect())
}

/// Makes an array of a type. Below a null struct or list, everything is null or empty.
pub fn array(data_type: &DataType, values: &[Value]) -> ArrayRef {
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != Null));
    let nulls = (nulls.null_count() > 0).then_some(nulls);
    match data_type {
        DataType::Int32 => Arc::new(Int32Array::from_iter(values.iter().map(|value| match value {
            Number(number) => Some(*number),
            _ => None,
        }))),
        DataType::Utf8 => Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
            Value::Text(text) => Some(text),
            _ => None,
        }))),
        DataType::List(item) => {
            let members = |value: &Value| if let List(members) = value { members.clone() } else { Vec::new() };
            let offsets = OffsetBuffer::from_lengths(values.iter().map(|value| members(value).len()));
            let members: Vec<Value> = values.iter().flat_map(members).collect();
            Arc::new(ListArray::new(item.clone(), offsets, array(item.data_type(), &members), nulls))
        }
        DataType::Struct(fields) => {
            let field = |(i, field): (usize, &Arc<Field>)| {
                let value = |value: &Value| match value {
                    Value::Struct(values) => values[i].clone(),
                    _ if field.is_nullable() => Null,
                    _ => zero(field.data_type()),
                };
                array(field.data_type(), &values.iter().map(value).collect::<Vec<_>>())
            };
            let arrays = fields.iter().enumerate().map(field).collect();
            Arc::new(StructArray::try_new_with_length(fields.clone(), arrays, nulls, values.len()).unwrap())
        }
        other => panic!("{other}"),
    }
}

/// Returns a value that is not null.
pub fn zero(data_type: &DataType) -> Value {
    match data_type {
        DataType::Int32 => Number(0),
        DataType::Utf8 => Value::Text(String::new()),
        DataType::List(_) => List(Vec::new()),
        DataType::Struct(fields) => of(fields.iter().map(|field| zero(field.data_type()))),
        other => panic!("{other}"),
    }
}

pub fn values(array: &dyn Array) -> Vec<Value> {
    let value = |i: usize| match array.data_type() {
        _ if array.is_null(i) => Null,
        DataType::Int32 => Number(array.as_primitive::<Int32Type>().value(i)),
        DataType::Utf8 => Value::Text(array.as_string::<i32>().value(i).to_owned()),
        DataType::List(_) => List(values(&array.as_list::<i32>().value(i))),
        DataType::Struct(_) => {
            of(array.as_struct().columns().iter().map(|column| values(&column.slice(i, 1)).remove(0)))
        }
        other => panic!("{other}"),
    };
    (0..array.len()).map(value).collect()
}

pub fn structs(fields: Vec<(&str, DataType)>) -> DataType {
    let field = |(name, data_type)| Field::new(name, data_type, true);
    DataType::Struct(fields.into_iter().map(field).collect())
}

pub fn list(item_type: DataType) -> DataType {
    DataType::List(item(item_type))
}

/// Returns the type of a struct of two numbers.
pub fn pair() -> DataType {
    structs(vec![("a", DataType::Int32), ("b", DataType::Int32)])
}

/// Returns a batch of a column `x`.
pub fn batch_of(data_type: &DataType, values: &[Value]) -> RecordBatch {
    one(array(data_type, values))
}

/// Exports the only column of a file. Checks that an export of all its batches is one array.
pub fn exported_column(file: &Reader) -> ArrayRef {
    let mut batches: Vec<RecordBatch> = export::batches(file, None).unwrap().map(Result::unwrap).collect();
    assert_eq!((batches.len(), batches[0].num_columns()), (1, 1), "{:?}", batches[0].schema());
    batches.remove(0).column(0).clone()
}

pub fn names(file: &Reader) -> Vec<(&str, String)> {
    file.schema().columns.iter().map(|column| (column.name.as_str(), column.type_name())).collect()
}

/// Converts values and checks that they come back with their type. Returns the file.
#[track_caller]
pub fn round_trip(data_type: &DataType, all: &[Value]) -> Reader {
    let file = import(&batch_of(data_type, all));
    assert_eq!(&exported_column(&file), &array(data_type, all));
    assert_eq!(values(&exported_column(&file)), all);
    file
}
