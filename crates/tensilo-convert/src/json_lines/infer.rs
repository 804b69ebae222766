//! Infers the types of members from all values of a file.
//!
//! A type starts unknown, and each value narrows or widens it: integers widen to the 64-bit type
//! that holds their range, and to floats if a float occurs. No integer is rounded: every integer
//! among floats must equal an `f64`. A member whose values contradict each other is refused, with a
//! message that names its path; the other members are still read.

use super::value::{Json, Object, is_exact_f64};
use indexmap::IndexMap;
use std::sync::Arc;
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::refused_field;
use tensilo::limits;

/// A type that is inferred from the values read so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum InferredType {
    /// Nulls only.
    #[default]
    Unknown,
    Bool,
    Integer(IntegerRange),
    Float,
    Text,
    List(Box<Member>),
    Object(Members),
}

/// Integers that fit one 64-bit type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct IntegerRange {
    min: i128,
    max: i128,
    /// The first integer that no `f64` equals.
    inexact: Option<i128>,
}

/// A member of objects, or the elements of lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Member {
    kind: InferredType,
    /// Whether any value is null.
    nullable: bool,
    /// The number of objects that have the member.
    count: u64,
    /// Why a member that becomes a column cannot be stored.
    refused: Option<String>,
}

impl Member {
    /// Updates the type with a value. An error message begins with the path of the value, and says
    /// how the value contradicts earlier values.
    pub(super) fn observe(&mut self, value: &Json) -> Result<(), String> {
        match (&mut self.kind, value) {
            (_, Json::Null) => self.nullable = true,
            (_, Json::Refused(reason)) => return Err(format!(": {reason}")),
            (InferredType::List(member), Json::Array(values)) => {
                values.iter().try_for_each(|value| member.observe(value)).map_err(|what| format!("[]{what}"))?;
            }
            (InferredType::Object(members), Json::Object(values)) => members.observe(values)?,
            (InferredType::Unknown, Json::Array(values)) => {
                let mut member = Member::default();
                values.iter().try_for_each(|value| member.observe(value)).map_err(|what| format!("[]{what}"))?;
                self.kind = InferredType::List(Box::new(member));
            }
            (InferredType::Unknown, Json::Object(values)) => {
                let mut members = Members::default();
                members.observe(values)?;
                self.kind = InferredType::Object(members);
            }
            (InferredType::Unknown, Json::Bool(_)) => self.kind = InferredType::Bool,
            (InferredType::Unknown, Json::Text(_)) => self.kind = InferredType::Text,
            (InferredType::Bool, Json::Bool(_)) | (InferredType::Text, Json::Text(_)) => {}
            (kind, Json::Integer(integer)) => observe_integer(kind, *integer)?,
            (kind, Json::Float(_)) => observe_float(kind)?,
            (kind, value) => return Err(format!(": found {}, but earlier values are {}", name_of(value), kind.name())),
        }
        Ok(())
    }

    /// Returns the field of the member. The elements of lists that are always empty have type null.
    pub(super) fn field(&self, name: &str) -> Field {
        let data_type = match &self.kind {
            InferredType::Unknown => DataType::Null,
            InferredType::Bool => DataType::Boolean,
            InferredType::Integer(integers) => integers.data_type(),
            InferredType::Float => DataType::Float64,
            InferredType::Text => DataType::Utf8,
            InferredType::List(member) => DataType::List(Arc::new(member.field("item"))),
            InferredType::Object(members) => DataType::Struct(members.fields().into()),
        };
        Field::new(name, data_type, self.nullable)
    }
}

/// The members of objects, in order of first occurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Members {
    members: IndexMap<String, Member>,
    object_count: u64,
}

impl Members {
    /// Updates the members with an object.
    fn observe(&mut self, values: &Object) -> Result<(), String> {
        self.observe_each(values, |member, name, value| member.observe(value).map_err(|what| format!(".{name}{what}")))
    }

    /// Updates the members with an object whose members become columns. If the values of a member
    /// contradict each other, only that member is refused; `reason` adds the position of the object
    /// to the message.
    pub(super) fn observe_columns(&mut self, values: &Object, reason: impl Fn(&str) -> String) -> Result<(), String> {
        self.observe_each(values, |member, name, value| {
            if member.refused.is_none() {
                member.refused = member.observe(value).err().map(|what| reason(&format!("{name}{what}")));
            }
            Ok(())
        })
    }

    fn observe_each(
        &mut self,
        values: &Object,
        mut observe: impl FnMut(&mut Member, &str, &Json) -> Result<(), String>,
    ) -> Result<(), String> {
        for (name, value) in values {
            if self.members.len() >= limits::COLUMNS && !self.members.contains_key(name) {
                return Err(format!(": more than {} members", limits::COLUMNS));
            }
            let member = match self.members.get_mut(name) {
                Some(member) => member,
                None => self.members.entry(name.clone()).or_default(),
            };
            member.count = member.count.saturating_add(1);
            observe(member, name, value)?;
        }
        self.object_count = self.object_count.saturating_add(1);
        Ok(())
    }

    /// Returns the number of objects.
    pub(super) fn object_count(&self) -> u64 {
        self.object_count
    }

    /// Returns the fields. A member that some objects do not have is nullable.
    pub(super) fn fields(&self) -> Vec<Field> {
        let field = |(name, member): (&String, &Member)| {
            if let Some(reason) = &member.refused {
                return refused_field(name, reason);
            }
            let field = member.field(name);
            let nullable = field.is_nullable() || member.count < self.object_count;
            field.with_nullable(nullable)
        };
        self.members.iter().map(field).collect()
    }
}

/// Updates the type with an integer. Integers that do not fit one 64-bit type become floats if
/// every one of them equals an `f64`.
fn observe_integer(kind: &mut InferredType, integer: i128) -> Result<(), String> {
    let inexact = Some(integer).filter(|integer| !is_exact_f64(*integer));
    match kind {
        InferredType::Unknown => *kind = InferredType::Integer(IntegerRange { min: integer, max: integer, inexact }),
        InferredType::Integer(integers) => {
            integers.min = integer.min(integers.min);
            integers.max = integer.max(integers.max);
            integers.inexact = integers.inexact.or(inexact);
            match integers.inexact {
                _ if integers.fits_64_bits() => {}
                None => *kind = InferredType::Float,
                Some(_) => {
                    let IntegerRange { min, max, .. } = integers;
                    return Err(format!(": integers from {min} to {max} do not fit one 64-bit type"));
                }
            }
        }
        InferredType::Float => {
            if let Some(integer) = inexact {
                return Err(format!(": found the integer {integer} among floats, but no f64 represents it exactly"));
            }
        }
        _ => return Err(format!(": found a number, but earlier values are {}", kind.name())),
    }
    Ok(())
}

/// Updates the type with a float.
fn observe_float(kind: &mut InferredType) -> Result<(), String> {
    match kind {
        InferredType::Integer(IntegerRange { inexact: Some(integer), .. }) => {
            Err(format!(": found a float, but no f64 represents the earlier integer {integer} exactly"))
        }
        InferredType::Unknown | InferredType::Integer(_) | InferredType::Float => {
            *kind = InferredType::Float;
            Ok(())
        }
        _ => Err(format!(": found a number, but earlier values are {}", kind.name())),
    }
}

impl IntegerRange {
    fn fits_64_bits(&self) -> bool {
        self.min >= 0 || self.max <= i64::MAX.into()
    }

    fn data_type(&self) -> DataType {
        if self.max <= i64::MAX.into() { DataType::Int64 } else { DataType::UInt64 }
    }
}

impl InferredType {
    fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "nulls",
            Self::Bool => "booleans",
            Self::Integer(_) => "integers",
            Self::Float => "floats",
            Self::Text => "strings",
            Self::List(_) => "arrays",
            Self::Object(_) => "objects",
        }
    }
}

fn name_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "a null",
        Json::Bool(_) => "a boolean",
        Json::Integer(_) | Json::Float(_) => "a number",
        Json::Text(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
        Json::Refused(_) => "a value that cannot be stored",
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Parser;
    use super::*;

    fn json(text: &str) -> Json {
        Parser::new(text.as_bytes()).value().unwrap()
    }

    fn field(texts: &[&str]) -> Result<DataType, String> {
        let mut member = Member::default();
        texts.iter().try_for_each(|text| member.observe(&json(text)))?;
        Ok(member.field("a").data_type().clone())
    }

    #[test]
    fn numbers_are_floats_only_if_all_stay_equal() {
        assert_eq!(field(&["1", "-2"]), Ok(DataType::Int64));
        assert_eq!(field(&["1", "18446744073709551615"]), Ok(DataType::UInt64));
        assert_eq!(field(&["18446744073709551615", "1"]), Ok(DataType::UInt64));
        assert_eq!(field(&["1", "0.5", "9007199254740992"]), Ok(DataType::Float64));
        // equal to floats, although beyond 2^53
        assert_eq!(field(&["9007199254740994", "0.5"]), Ok(DataType::Float64));
        assert_eq!(field(&["-1", "9223372036854775808"]), Ok(DataType::Float64));
        assert_eq!(field(&["1", "18446744073709551616"]), Ok(DataType::Float64));
        assert_eq!(field(&["NaN", "3"]), Ok(DataType::Float64));
        for texts in [
            ["9007199254740993", "0.5"],
            ["0.5", "9007199254740993"],
            ["-1", "18446744073709551615"],
            ["18446744073709551616", "18446744073709551615"],
            ["NaN", "9007199254740993"],
        ] {
            assert!(field(&texts).is_err(), "{texts:?}");
        }
    }

    #[test]
    fn types_that_contradict_are_named_with_their_path() {
        let error = field(&[r#"{"a": {"b": [1]}}"#, r#"{"a": {"b": ["x"]}}"#]).unwrap_err();
        assert_eq!(error, ".a.b[]: found a string, but earlier values are integers");
        let error = field(&[r#"{"a": {"b": [1, 1e400]}}"#]).unwrap_err();
        assert_eq!(error, ".a.b[]: the number 1e400 is beyond the range of f64");
    }

    #[test]
    fn what_is_missing_somewhere_is_nullable() {
        let mut members = Members::default();
        for text in [r#"{"a": 1, "c": 0}"#, r#"{"b": null, "c": 1}"#, r#"{"b": "x", "c": 2}"#] {
            members.observe(json(text).as_object().unwrap()).unwrap();
        }
        let fields = members.fields();
        let found: Vec<(&str, bool)> =
            fields.iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        assert_eq!(found, [("a", true), ("c", false), ("b", true)]);
        assert_eq!(fields[2].data_type(), &DataType::Utf8);
    }
}
