//! Dictionary encoding.

use super::dictionary_values::DictionaryValues;
use super::mismatch::mismatch;
use super::texts;
use crate::export::field::Parts;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray};
use arrow_buffer::{ArrowNativeType, Buffer};
use arrow_schema::{ArrowError, DataType};
use serde_json::Value;
use std::sync::Arc;

/// Makes dictionaries of arrays. Values get keys in the order in which they are met.
///
/// In an Arrow IPC file each dictionary begins with the one before. In a Parquet file each batch
/// has its own.
pub(super) struct DictionaryEncoder {
    key: DataType,
    value: DataType,
    /// The type of arrays to encode.
    plain: DataType,
    /// The number of values that are ordered: all. `None` if they are not.
    ordered: Option<usize>,
    grows: bool,
    values: DictionaryValues,
}

impl DictionaryEncoder {
    /// Makes the encoder of arrays of a type; `values`, a JSON array, are those with which the
    /// dictionary of the source began.
    pub(super) fn new(
        plain: &DataType,
        to: &DataType,
        ordered: bool,
        values: Option<&str>,
        parts: Parts,
    ) -> Option<Self> {
        let DataType::Dictionary(key, value) = to else { return None };
        let fits = plain == value.as_ref() || texts::can_relay(plain, value);
        let is_text = matches!(plain, DataType::Utf8 | DataType::Binary);
        if !fits || !(is_text || width(plain).is_some()) {
            return None;
        }
        let mut this = Self {
            key: key.as_ref().clone(),
            value: value.as_ref().clone(),
            plain: plain.clone(),
            ordered: None,
            grows: parts == Parts::Required,
            values: DictionaryValues::default(),
        };
        // Parquet's writer keeps no order: that of a dictionary would be another
        this.ordered = (this.grows && this.begin(values) && ordered).then(|| this.values.len());
        Some(this)
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.ordered.is_some()
    }

    /// Adds the first values. Returns whether there are some, all different.
    fn begin(&mut self, values: Option<&str>) -> bool {
        let values: Option<Value> = values.and_then(|text| serde_json::from_str(text).ok());
        let bytes = values
            .as_ref()
            .and_then(Value::as_array)
            .and_then(|values| values.iter().map(|value| bytes_of(value, &self.plain)).collect::<Option<Vec<_>>>());
        let Some(values) = bytes.filter(|_| self.grows) else { return false };
        for (number, value) in values.iter().enumerate() {
            if self.values.key_of(value).ok() != Some(number) {
                self.values = DictionaryValues::default();
                return false;
            }
        }
        true
    }

    pub(super) fn encode(&mut self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        if *array.data_type() != self.plain {
            return Err(mismatch(array, &self.plain));
        }
        if !self.grows {
            self.values = DictionaryValues::default();
        }
        let keys = self.keys(array)?;
        if self.ordered.is_some_and(|count| self.values.len() > count) {
            let message = "a value that the ordered dictionary of the source did not begin with";
            return Err(ArrowError::InvalidArgumentError(message.to_owned()));
        }
        let values = self.values.array(&self.plain, &self.value)?;
        match self.key.clone() {
            DataType::Int8 => encoded::<Int8Type>(&keys, values),
            DataType::Int16 => encoded::<Int16Type>(&keys, values),
            DataType::Int32 => encoded::<Int32Type>(&keys, values),
            DataType::Int64 => encoded::<Int64Type>(&keys, values),
            DataType::UInt8 => encoded::<UInt8Type>(&keys, values),
            DataType::UInt16 => encoded::<UInt16Type>(&keys, values),
            DataType::UInt32 => encoded::<UInt32Type>(&keys, values),
            DataType::UInt64 => encoded::<UInt64Type>(&keys, values),
            other => Err(mismatch(array, &other)),
        }
    }

    /// Returns the key of each value, `None` for nulls.
    fn keys(&mut self, array: &ArrayRef) -> Result<Vec<Option<usize>>, ArrowError> {
        let values = &mut self.values;
        let mut key = |i: usize, value: &[u8]| array.is_valid(i).then(|| values.key_of(value)).transpose();
        match array.data_type() {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                (0..texts.len()).map(|i| key(i, texts.value(i).as_bytes())).collect()
            }
            DataType::Binary => {
                let binaries = array.as_binary::<i32>();
                (0..binaries.len()).map(|i| key(i, binaries.value(i))).collect()
            }
            _ => {
                let data = array.to_data();
                let bytes = data.buffers().first().map_or(&[][..], Buffer::as_slice);
                // not 0
                let width = width(&self.plain).ok_or_else(|| mismatch(array, array.data_type()))?;
                let values = bytes.chunks_exact(width).skip(data.offset()).take(data.len());
                values.enumerate().map(|(i, value)| key(i, value)).collect()
            }
        }
    }
}

fn encoded<K: ArrowDictionaryKeyType>(keys: &[Option<usize>], values: ArrayRef) -> Result<ArrayRef, ArrowError> {
    let key = |key: &Option<usize>| key.map(|key| narrowed::<K>(key, values.len())).transpose();
    let keys: PrimitiveArray<K> = keys.iter().map(key).collect::<Result<_, ArrowError>>()?;
    Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
}

fn narrowed<K: ArrowDictionaryKeyType>(key: usize, count: usize) -> Result<K::Native, ArrowError> {
    K::Native::from_usize(key).ok_or_else(|| {
        let message = format!("a dictionary of {count} values, which keys of type {} do not number", K::DATA_TYPE);
        ArrowError::InvalidArgumentError(message)
    })
}

/// Returns the bytes of an element, if it has any number of whole bytes.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).ok().filter(|bytes| *bytes > 0),
        other => other.primitive_width(),
    }
}

/// Returns the bytes of a value of a dictionary.
fn bytes_of(value: &Value, data_type: &DataType) -> Option<Vec<u8>> {
    Some(match data_type {
        DataType::Utf8 => value.as_str()?.as_bytes().to_vec(),
        DataType::Int8 => i8::try_from(value.as_i64()?).ok()?.to_ne_bytes().to_vec(),
        DataType::Int16 => i16::try_from(value.as_i64()?).ok()?.to_ne_bytes().to_vec(),
        DataType::Int32 => i32::try_from(value.as_i64()?).ok()?.to_ne_bytes().to_vec(),
        DataType::Int64 => value.as_i64()?.to_ne_bytes().to_vec(),
        DataType::UInt8 => u8::try_from(value.as_u64()?).ok()?.to_ne_bytes().to_vec(),
        DataType::UInt16 => u16::try_from(value.as_u64()?).ok()?.to_ne_bytes().to_vec(),
        DataType::UInt32 => u32::try_from(value.as_u64()?).ok()?.to_ne_bytes().to_vec(),
        DataType::UInt64 => value.as_u64()?.to_ne_bytes().to_vec(),
        _ => return None,
    })
}
