//! The type that all values of a member have.

use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::sync::Arc;
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::limits;

/// Integers up to this one are exact in 64-bit floats.
const EXACT: i128 = 1 << 53;

/// A type, as far as the values so far tell it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Kind {
    /// Nulls only.
    #[default]
    Unknown,
    Bool,
    /// Integers, the least and the largest of them.
    Integer(i128, i128),
    Float,
    Text,
    List(Box<Member>),
    Object(Members),
}

/// A member of objects or of lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Member {
    kind: Kind,
    /// Whether it is null somewhere.
    nullable: bool,
    /// The number of objects that have it.
    count: u64,
}

impl Member {
    /// Takes a value into account. The error says what contradicts what was known.
    pub(super) fn observe(&mut self, value: &Value) -> Result<(), String> {
        match (&mut self.kind, value) {
            (_, Value::Null) => self.nullable = true,
            (Kind::List(member), Value::Array(values)) => {
                values.iter().try_for_each(|value| member.observe(value)).map_err(|what| format!("[]{what}"))?;
            }
            (Kind::Object(members), Value::Object(values)) => members.observe(values)?,
            (Kind::Unknown, Value::Array(values)) => {
                let mut member = Member::default();
                values.iter().try_for_each(|value| member.observe(value)).map_err(|what| format!("[]{what}"))?;
                self.kind = Kind::List(Box::new(member));
            }
            (Kind::Unknown, Value::Object(values)) => {
                let mut members = Members::default();
                members.observe(values)?;
                self.kind = Kind::Object(members);
            }
            (Kind::Unknown, Value::Bool(_)) => self.kind = Kind::Bool,
            (Kind::Unknown, Value::String(_)) => self.kind = Kind::Text,
            (Kind::Bool, Value::Bool(_)) | (Kind::Text, Value::String(_)) => {}
            (kind, Value::Number(number)) => observe_number(kind, number)?,
            (kind, value) => return Err(format!(": {} after {}", name_of(value), kind.name())),
        }
        Ok(())
    }

    /// Returns the field of the member.
    pub(super) fn field(&self, name: &str) -> Result<Field, String> {
        let at = |what: String| format!("{name:?}: {what}");
        let data_type = match &self.kind {
            Kind::Unknown => DataType::Null,
            Kind::Bool => DataType::Boolean,
            Kind::Integer(least, most) => integer_type(*least, *most).map_err(at)?,
            Kind::Float => DataType::Float64,
            Kind::Text => DataType::Utf8,
            // an empty list tells no type of its members
            Kind::List(member) if member.kind == Kind::Unknown => {
                DataType::List(Arc::new(Field::new_list_field(DataType::Int64, true)))
            }
            Kind::List(member) => DataType::List(Arc::new(member.field("item").map_err(at)?)),
            Kind::Object(members) => DataType::Struct(members.fields().map_err(at)?.into()),
        };
        Ok(Field::new(name, data_type, self.nullable || self.kind == Kind::Unknown))
    }
}

/// The members of objects, in the order in which they come first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Members {
    list: Vec<(String, Member)>,
    numbers: HashMap<String, usize>,
    object_count: u64,
}

impl Members {
    /// Takes an object into account.
    pub(super) fn observe(&mut self, values: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in values {
            let number = match self.numbers.get(name) {
                Some(number) => *number,
                None if self.list.len() >= limits::COLUMNS => {
                    return Err(format!(": more than {} members", limits::COLUMNS));
                }
                None => {
                    self.numbers.insert(name.clone(), self.list.len());
                    self.list.push((name.clone(), Member::default()));
                    self.list.len() - 1
                }
            };
            if let Some((_, member)) = self.list.get_mut(number) {
                member.count = member.count.saturating_add(1);
                member.observe(value).map_err(|what| format!(".{name}{what}"))?;
            }
        }
        self.object_count = self.object_count.saturating_add(1);
        Ok(())
    }

    /// Returns the number of objects.
    pub(super) fn object_count(&self) -> u64 {
        self.object_count
    }

    /// Returns the fields. Those that not all objects have are nullable.
    pub(super) fn fields(&self) -> Result<Vec<Field>, String> {
        let field = |(name, member): &(String, Member)| {
            let field = member.field(name)?;
            let nullable = field.is_nullable() || member.count < self.object_count;
            Ok(field.with_nullable(nullable))
        };
        self.list.iter().map(field).collect()
    }
}

fn observe_number(kind: &mut Kind, number: &Number) -> Result<(), String> {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let inexact = || format!(": an integer beyond 2^53 among floats, of which none is equal to it ({number})");
    match (&mut *kind, integer) {
        (Kind::Unknown, Some(integer)) => *kind = Kind::Integer(integer, integer),
        (Kind::Unknown, None) => *kind = Kind::Float,
        (Kind::Integer(least, most), Some(integer)) => {
            *least = integer.min(*least);
            *most = integer.max(*most);
        }
        (Kind::Integer(least, most), None) if *least >= -EXACT && *most <= EXACT => *kind = Kind::Float,
        (Kind::Float, Some(integer)) if integer.abs() > EXACT => return Err(inexact()),
        (Kind::Integer(..), None) => {
            return Err(": a float among integers beyond 2^53, of which none is equal to it".to_owned());
        }
        (Kind::Float, _) => {}
        _ => return Err(format!(": a number after {}", kind.name())),
    }
    Ok(())
}

fn integer_type(least: i128, most: i128) -> Result<DataType, String> {
    match (i64::try_from(least), i64::try_from(most)) {
        (Ok(_), Ok(_)) => Ok(DataType::Int64),
        (Ok(0..), Err(_)) => Ok(DataType::UInt64),
        _ if least > 0 => Ok(DataType::UInt64),
        _ => Err(format!("integers from {least} to {most}, which no type of 64 bits has")),
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "nulls",
            Self::Bool => "booleans",
            Self::Integer(..) => "integers",
            Self::Float => "floats",
            Self::Text => "texts",
            Self::List(_) => "arrays",
            Self::Object(_) => "objects",
        }
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "a null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(values: &[Value]) -> Result<DataType, String> {
        let mut member = Member::default();
        values.iter().try_for_each(|value| member.observe(value))?;
        Ok(member.field("a")?.data_type().clone())
    }

    #[test]
    fn numbers_are_floats_only_if_all_stay_equal() {
        let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(field(&[number("1"), number("-2")]), Ok(DataType::Int64));
        assert_eq!(field(&[number("1"), number("18446744073709551615")]), Ok(DataType::UInt64));
        assert_eq!(field(&[number("1"), number("0.5"), number("9007199254740992")]), Ok(DataType::Float64));
        for texts in [["9007199254740993", "0.5"], ["0.5", "9007199254740993"], ["-1", "18446744073709551615"]] {
            assert!(field(&texts.map(number)).is_err(), "{texts:?}");
        }
    }

    #[test]
    fn types_that_contradict_are_named_with_their_path() {
        let objects = [serde_json::json!({"a": {"b": [1]}}), serde_json::json!({"a": {"b": ["x"]}})];
        let error = field(&objects).unwrap_err();
        assert_eq!(error, ".a.b[]: a text after integers");
    }

    #[test]
    fn what_is_missing_somewhere_is_nullable() {
        let mut members = Members::default();
        for text in [r#"{"a": 1, "c": 0}"#, r#"{"b": null, "c": 1}"#, r#"{"b": "x", "c": 2}"#] {
            members.observe(&serde_json::from_str(text).unwrap()).unwrap();
        }
        let fields = members.fields().unwrap();
        let found: Vec<(&str, bool)> =
            fields.iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(found, [("a", true), ("c", false), ("b", true)]);
        assert_eq!(fields[2].data_type(), &DataType::Utf8);
    }
}
