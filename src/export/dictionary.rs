//! Encodes arrays as dictionaries, and converts strings to other layouts.
//!
//! A [`DictionaryEncoder`] gives each new value the next key. The first keys belong to the values
//! with which the dictionary of the source began. In an Arrow IPC file, each dictionary extends the
//! previous one. In a Parquet file, each batch has its own dictionary.
//!
//! The values are stored only once, in the buffer that the arrays share, and are found by their
//! hash. A map from values to keys would store them a second time. The total size of the values is
//! bounded.

use super::field::Repetition;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ByteArrayType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, DictionaryArray, GenericByteArray, LargeBinaryArray, LargeStringArray,
    PrimitiveArray, StringViewArray, make_array,
};
use arrow_buffer::{ArrowNativeType, Buffer, MutableBuffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Encodes arrays as dictionaries. Values get keys in the order of their first occurrence.
pub(super) struct DictionaryEncoder {
    key: DataType,
    value: DataType,
    /// The type of the arrays to encode.
    plain: DataType,
    /// The number of values if they are ordered; `None` if they are not.
    ordered: Option<usize>,
    /// Whether each dictionary extends the previous one, rather than starting with no values.
    grows: bool,
    values: DictionaryValues,
}

impl DictionaryEncoder {
    /// Creates an encoder from arrays of type `plain` to dictionaries of type `to`. `values` is a
    /// JSON array of the values with which the dictionary of the source began. Returns `None` if
    /// arrays of type `plain` cannot be encoded as type `to`.
    pub(super) fn new(
        plain: &DataType,
        to: &DataType,
        ordered: bool,
        values: Option<&str>,
        repetition: Repetition,
    ) -> Option<Self> {
        let DataType::Dictionary(key, value) = to else { return None };
        let fits = plain == value.as_ref() || can_change_layout(plain, value);
        let is_text = matches!(plain, DataType::Utf8 | DataType::Binary);
        if !fits || !(is_text || width(plain).is_some()) {
            return None;
        }
        let mut this = Self {
            key: key.as_ref().clone(),
            value: value.as_ref().clone(),
            plain: plain.clone(),
            ordered: None,
            grows: repetition == Repetition::Required,
            values: DictionaryValues::default(),
        };
        // not in Parquet, because its writer does not preserve the order
        this.ordered = (this.grows && this.set_initial_values(values) && ordered).then(|| this.values.len());
        Some(this)
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.ordered.is_some()
    }

    /// Adds the initial values. Returns whether there are initial values, and all of them are
    /// different.
    fn set_initial_values(&mut self, values: Option<&str>) -> bool {
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
            let message = "a value is not in the ordered dictionary of the source";
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

    /// Returns the key of each value; `None` for a null.
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
                // the width is not 0
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
        let message = format!("keys of type {} are too small for {count} dictionary values", K::DATA_TYPE);
        ArrowError::InvalidArgumentError(message)
    })
}

/// Returns the size of an element in bytes; `None` unless all elements have the same whole number
/// of bytes.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).ok().filter(|bytes| *bytes > 0),
        other => other.primitive_width(),
    }
}

/// Returns the bytes of a dictionary value.
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

/// The maximum total size of the values in bytes. Each value counts as its length plus
/// [`VALUE_OVERHEAD_BYTES`].
const MAX_DICTIONARY_BYTES: usize = 256 << 20;
/// The approximate number of bytes that the end, the hash and the key of a value take.
const VALUE_OVERHEAD_BYTES: usize = 32;

/// The different values of a dictionary, in the order of their keys.
#[derive(Default)]
struct DictionaryValues {
    hasher: RandomState,
    /// Maps the hash of each value to its key. If two values have the same hash, the later value
    /// gets the next free hash.
    keys: HashMap<u64, usize>,
    /// The bytes of the values that the last call of [`Self::array`] returned.
    built: Buffer,
    /// The bytes of the values that were added since then.
    added: Vec<u8>,
    /// The end of each value.
    ends: Vec<i32>,
    array: Option<ArrayRef>,
}

impl DictionaryValues {
    /// Returns the number of values.
    fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the key of a value, and adds the value if it is new.
    fn key_of(&mut self, value: &[u8]) -> Result<usize, ArrowError> {
        let mut hash = self.hasher.hash_one(value);
        while let Some(key) = self.keys.get(&hash) {
            if self.value(*key) == Some(value) {
                return Ok(*key);
            }
            hash = hash.wrapping_add(1);
        }
        let key = self.ends.len();
        let bytes = self.built.len().saturating_add(self.added.len()).saturating_add(value.len());
        if key.saturating_mul(VALUE_OVERHEAD_BYTES).saturating_add(bytes) > MAX_DICTIONARY_BYTES {
            let message = format!("the dictionary has more than {} MiB", MAX_DICTIONARY_BYTES >> 20);
            return Err(ArrowError::InvalidArgumentError(message));
        }
        self.ends.push(i32::try_from(bytes).map_err(|_| ArrowError::OffsetOverflowError(bytes))?);
        self.keys.insert(hash, key);
        self.added.extend_from_slice(value);
        self.array = None;
        Ok(key)
    }

    fn value(&self, key: usize) -> Option<&[u8]> {
        let end = |key: usize| usize::try_from(*self.ends.get(key)?).ok();
        let start = key.checked_sub(1).map_or(Some(0), end)?;
        let end = end(key)?;
        match start.checked_sub(self.built.len()) {
            // a value is entirely in one of the two buffers
            Some(start) => self.added.get(start..end.checked_sub(self.built.len())?),
            None => self.built.get(start..end),
        }
    }

    /// Returns the values as an array of type `to`. `plain` is the type in which they are stored.
    fn array(&mut self, plain: &DataType, to: &DataType) -> Result<ArrayRef, ArrowError> {
        if let Some(array) = &self.array {
            return Ok(array.clone());
        }
        if !self.added.is_empty() {
            let mut bytes = MutableBuffer::with_capacity(self.built.len().saturating_add(self.added.len()));
            bytes.extend_from_slice(&self.built);
            bytes.extend_from_slice(&self.added);
            (self.built, self.added) = (bytes.into(), Vec::new());
        }
        let data = ArrayData::builder(plain.clone()).len(self.ends.len());
        let data = if matches!(plain, DataType::Utf8 | DataType::Binary) {
            let offsets: Vec<i32> = std::iter::once(&0).chain(&self.ends).copied().collect();
            data.add_buffer(Buffer::from_vec(offsets))
        } else {
            data
        };
        let values = make_array(data.add_buffer(self.built.clone()).build()?);
        let values = if plain == to { values } else { with_layout(&values, to)? };
        self.array = Some(values.clone());
        Ok(values)
    }
}

pub(super) fn can_change_layout(from: &DataType, to: &DataType) -> bool {
    matches!(
        (from, to),
        (DataType::Utf8, DataType::LargeUtf8 | DataType::Utf8View)
            | (DataType::Binary, DataType::LargeBinary | DataType::BinaryView)
    )
}

/// Returns strings or binaries in the layout of a type, without copying their bytes.
pub(super) fn with_layout(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    let mismatch = || mismatch(array, to);
    Ok(match to {
        DataType::LargeUtf8 => {
            let texts = array.as_string_opt::<i32>().ok_or_else(mismatch)?;
            Arc::new(LargeStringArray::try_new(wide(texts), texts.values().clone(), texts.nulls().cloned())?)
        }
        DataType::LargeBinary => {
            let bytes = array.as_binary_opt::<i32>().ok_or_else(mismatch)?;
            Arc::new(LargeBinaryArray::try_new(wide(bytes), bytes.values().clone(), bytes.nulls().cloned())?)
        }
        DataType::Utf8View => Arc::new(StringViewArray::from(array.as_string_opt::<i32>().ok_or_else(mismatch)?)),
        DataType::BinaryView => Arc::new(BinaryViewArray::from(array.as_binary_opt::<i32>().ok_or_else(mismatch)?)),
        _ => return Err(mismatch()),
    })
}

fn wide<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> OffsetBuffer<i64> {
    // the offsets are still in ascending order
    OffsetBuffer::new(array.value_offsets().iter().map(|&offset| i64::from(offset)).collect())
}

/// Returns the error for an array that does not have the type of its field.
#[cold]
pub(super) fn mismatch(array: &ArrayRef, expected: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("an array of type {} cannot become {expected}", array.data_type()))
}
