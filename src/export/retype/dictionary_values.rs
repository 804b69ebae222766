//! The values of a dictionary.

use super::texts;
use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The most bytes of values, of which each counts [`VALUE_BYTES`] more.
const DICTIONARY_BYTES: usize = 256 << 20;
/// The bytes of a value's end, hash and key.
const VALUE_BYTES: usize = 32;

/// Values, all different, in the order of their keys.
#[derive(Default)]
pub(super) struct DictionaryValues {
    hasher: RandomState,
    /// The key of the value of each hash. Of two values with one hash, the later has the next hash
    /// that is free.
    keys: HashMap<u64, usize>,
    /// The bytes of the values that [`Self::array`] had.
    built: Buffer,
    /// The bytes of those that followed.
    added: Vec<u8>,
    /// The end of each value.
    ends: Vec<i32>,
    array: Option<ArrayRef>,
}

impl DictionaryValues {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the key of a value, which is added if it is new.
    pub(super) fn key_of(&mut self, value: &[u8]) -> Result<usize, ArrowError> {
        let mut hash = self.hasher.hash_one(value);
        while let Some(key) = self.keys.get(&hash) {
            if self.value(*key) == Some(value) {
                return Ok(*key);
            }
            hash = hash.wrapping_add(1);
        }
        let key = self.ends.len();
        let bytes = self.built.len().saturating_add(self.added.len()).saturating_add(value.len());
        if key.saturating_mul(VALUE_BYTES).saturating_add(bytes) > DICTIONARY_BYTES {
            let message = format!("a dictionary of more than {} MiB", DICTIONARY_BYTES >> 20);
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
            // a value is in one of them
            Some(start) => self.added.get(start..end.checked_sub(self.built.len())?),
            None => self.built.get(start..end),
        }
    }

    /// Returns the values as an array of type `to`. Those of type `plain` have any number of bytes
    /// each if it has offsets.
    pub(super) fn array(&mut self, plain: &DataType, to: &DataType) -> Result<ArrayRef, ArrowError> {
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
        let values = if plain == to { values } else { texts::relaid(&values, to)? };
        self.array = Some(values.clone());
        Ok(values)
    }
}
