//! Casts that an import makes before it pushes values.
//!
//! The writer itself rounds integers and wider floats to a float type. It cannot cast decimals,
//! because they are not an element type. It cannot cast to integers either, because such a cast
//! must be exact. This module makes these casts, value by value.

use crate::element::cast::Caster;
use crate::element::decimal::Decimal;
use crate::format::CastFacts;
use crate::{CastSource, CastSpec, DType};
use std::fmt;
use std::iter;

/// A cast of the values of a column before they are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) struct ValueCast {
    /// The type of the stored elements in the source.
    pub source: DType,
    /// The scale, if values are decimals.
    pub scale: Option<i8>,
    /// The number of stored elements per value in the source: the size of a wide decimal in bytes,
    /// or one.
    pub extent: usize,
    pub target: DType,
}

impl ValueCast {
    /// Returns the cast that the schema records, if it rounds decimals.
    pub(super) fn spec(&self) -> Option<CastSpec> {
        let is_rounded = self.scale.is_some() && self.target.is_float();
        is_rounded.then_some(CastSpec { source: CastSource::Decimal })
    }
}

/// Casts values and records the rounding errors.
pub(in crate::import) struct ValueCaster {
    cast: ValueCast,
    caster: Caster,
    /// The results, in memory order.
    pub out: Vec<u8>,
}

impl ValueCaster {
    pub(in crate::import) fn new(cast: ValueCast) -> Self {
        Self { cast, caster: Caster::new(cast.source, cast.target), out: Vec::new() }
    }

    /// Returns the facts about the cast, if the schema records it.
    pub(in crate::import) fn facts(&self) -> Option<CastFacts> {
        self.cast.spec().map(|_| self.caster.facts)
    }

    /// Adds a value, given as its stored elements in native byte order. `None` adds zero.
    pub(in crate::import) fn push(&mut self, elements: Option<&[u8]>) -> std::result::Result<(), String> {
        let Some(elements) = elements else {
            self.out.extend(iter::repeat_n(0, self.cast.target.element_bytes()));
            return Ok(());
        };
        let value = self.value(elements);
        // the writer casts other types to floats
        if let (Value::Decimal(value), true) = (&value, self.cast.target.is_float()) {
            self.caster.numbers(iter::once(value.to_number()), f64::MIN_POSITIVE, &mut self.out);
            return Ok(());
        }
        let whole = match value {
            Value::Integer(value) => Some(value),
            // `as` saturates, and no integer type reaches the limits of i128
            Value::Float(value) => (value.fract() == 0.0).then_some(value as i128),
            Value::Decimal(value) => value.to_integer(),
        };
        let pushed = whole.and_then(|whole| push_integer(whole, self.cast.target, &mut self.out));
        pushed.ok_or_else(|| self.refusal(&value))
    }

    #[cold]
    fn refusal(&self, value: &Value) -> String {
        let target = self.cast.target;
        let of = |value: &dyn fmt::Display| {
            format!("the value {value} cannot be stored as {target}; casts to integers must be exact")
        };
        match value {
            Value::Integer(value) => of(value),
            Value::Float(value) => of(value),
            Value::Decimal(value) => of(value),
        }
    }

    fn value(&self, elements: &[u8]) -> Value {
        let Some(scale) = self.cast.scale else { return number(self.cast.source, elements) };
        Value::Decimal(match number(self.cast.source, elements) {
            Value::Integer(value) if self.cast.extent == 1 => Decimal::from_le_bytes(&value.to_le_bytes(), scale),
            _ => Decimal::from_le_bytes(elements, scale),
        })
    }
}

enum Value {
    Integer(i128),
    Float(f64),
    Decimal(Decimal),
}

/// Returns an element as a number.
fn number(dtype: DType, bytes: &[u8]) -> Value {
    macro_rules! read {
        ($type:ty) => {
            <$type>::from_ne_bytes(bytes.first_chunk().copied().unwrap_or_default())
        };
    }
    match dtype {
        DType::Bf16 => Value::Float(read!(half::bf16).to_f64()),
        DType::F16 => Value::Float(read!(half::f16).to_f64()),
        DType::F32 => Value::Float(read!(f32).into()),
        DType::F64 => Value::Float(read!(f64)),
        DType::I8 => Value::Integer(read!(i8).into()),
        DType::I16 => Value::Integer(read!(i16).into()),
        DType::I32 => Value::Integer(read!(i32).into()),
        DType::I64 => Value::Integer(read!(i64).into()),
        DType::U16 => Value::Integer(read!(u16).into()),
        DType::U32 => Value::Integer(read!(u32).into()),
        DType::U64 => Value::Integer(read!(u64).into()),
        _ => Value::Integer(read!(u8).into()),
    }
}

/// Appends an integer as an element. Returns `None` if it is out of range.
fn push_integer(value: i128, dtype: DType, out: &mut Vec<u8>) -> Option<()> {
    macro_rules! push {
        ($type:ty) => {
            out.extend_from_slice(&<$type>::try_from(value).ok()?.to_ne_bytes())
        };
    }
    match dtype {
        DType::I8 => push!(i8),
        DType::I16 => push!(i16),
        DType::I32 => push!(i32),
        DType::I64 => push!(i64),
        DType::U8 => push!(u8),
        DType::U16 => push!(u16),
        DType::U32 => push!(u32),
        DType::U64 => push!(u64),
        _ => return None,
    }
    Some(())
}
