//! Casts that an import makes, because the writer cannot: of decimals, for which there is no type
//! of elements, and to integers, which are exact or refused.

use super::column::Column;
use crate::arrow_type::{self, ArrowType, CAST_TYPE};
use crate::cast::{Caster, Number};
use crate::decimal::Decimal;
use crate::format::CastFacts;
use crate::import::input_column::Level;
use crate::{CastSource, CastSpec, DType, Error, Metadata, Result, Shape};
use std::fmt;
use std::iter;

/// A cast of the values of a column before they are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) struct ValueCast {
    /// The type of the stored elements in the source.
    pub source: DType,
    /// The scale, if values are decimals.
    scale: Option<i8>,
    /// The stored elements that a value has in the source: the bytes of a wide decimal, or one.
    pub extent: usize,
    target: DType,
}

impl ValueCast {
    /// Returns what the schema records of the cast.
    pub(super) fn spec(&self) -> Option<CastSpec> {
        let is_rounded = self.scale.is_some() && self.target.is_float();
        is_rounded.then_some(CastSpec { source: CastSource::Decimal })
    }
}

impl Column {
    /// Makes its values numbers of another type. A date, time, timestamp, duration or interval
    /// becomes the counts that it is stored as.
    pub(in crate::import) fn cast_to(&mut self, target: DType) -> Result<()> {
        let source = self.kind.dtype;
        if !target.is_number() {
            return Err(Error::bad_argument(format!("a cast to {target}: it is to a type of numbers, such as f32")));
        }
        if !source.is_number() {
            return Err(Error::bad_argument(format!("a cast of {source} values: only numbers are cast")));
        }
        (self.cast, self.value_cast) = (None, None);
        let kept = self.metadata.get(arrow_type::KEY).cloned();
        if let Some((scale, extent)) = self.decimals() {
            self.value_cast = Some(ValueCast { source, scale: Some(scale), extent, target });
            if extent > 1 {
                self.drop_innermost();
            }
            self.kind.dtype = target;
        } else if source != target && target.is_float() {
            self.cast = Some(target);
        } else if source != target {
            self.value_cast = Some(ValueCast { source, scale: None, extent: 1, target });
            self.kind.dtype = target;
        }
        let changed = self.value_cast.map(|_| source.name().to_owned());
        self.source_type = kept.or(changed);
        Ok(())
    }

    /// Returns the scale of its decimals, and the elements that each is stored as. `None`: they are
    /// no decimals.
    fn decimals(&self) -> Option<(i8, usize)> {
        let kept = ArrowType::of(&self.metadata)?;
        let ArrowType::Decimal(_, _, scale) = kept else { return None };
        let stored = kept.stored_element().filter(|stored| stored.dtype == self.kind.dtype)?;
        match stored.extent {
            None => Some((scale, 1)),
            Some(extent) if self.kind.levels.last() == Some(&Level::Fixed(vec![extent])) => {
                Some((scale, usize::try_from(extent).ok()?))
            }
            Some(_) => None,
        }
    }

    /// Drops the dimension of the bytes of a decimal.
    fn drop_innermost(&mut self) {
        self.kind.levels.pop();
        self.kind.element_extent = None;
        if let Some(shape) = &mut self.shape {
            let outer = shape.extents().split_last().map_or(&[][..], |(_, outer)| outer);
            *shape = Shape::new(outer.iter().copied());
        }
    }

    /// Casts the values as those of a file's column with these metadata were cast, if they are of
    /// the same type, or decimals too.
    pub(in crate::import) fn cast_like(&mut self, metadata: &Metadata, target: DType) {
        let Some(text) = metadata.get(CAST_TYPE) else { return };
        let own = self.metadata.get(arrow_type::KEY).map_or(self.kind.dtype.name(), String::as_str);
        let is_decimal = |text: &str| matches!(ArrowType::from_text(text), Some(ArrowType::Decimal(..)));
        if own == text || (is_decimal(own) && is_decimal(text)) {
            // a type that cannot be cast is then reported as another one
            let _ = self.cast_to(target);
        }
    }
}

/// Casts values, and records the errors.
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

    /// Returns the errors, if the cast is one that is recorded.
    pub(in crate::import) fn facts(&self) -> Option<CastFacts> {
        self.cast.spec().map(|_| self.caster.facts)
    }

    /// Adds a value, given as its stored elements in memory order; zero for `None`.
    pub(in crate::import) fn push(&mut self, elements: Option<&[u8]>) -> std::result::Result<(), String> {
        let Some(elements) = elements else {
            self.out.extend(iter::repeat_n(0, self.cast.target.element_bytes()));
            return Ok(());
        };
        let value = self.value(elements);
        if self.cast.target.is_float() {
            let number = match value {
                Value::Integer(value) => value.into(),
                Value::Float(value) => value.into(),
                Value::Decimal(value) => value.to_number(),
            };
            self.caster.numbers(iter::once::<Number>(number), f64::MIN_POSITIVE, &mut self.out);
            return Ok(());
        }
        let whole = match value {
            Value::Integer(value) => Some(value),
            // saturates, and no integer type has the ends of i128
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
            format!("the value {value} is not an integer of type {target}, and a cast to an integer is exact")
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

/// Appends an integer as an element. `None`: it is out of the range of its type.
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
