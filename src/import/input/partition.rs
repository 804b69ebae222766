//! Columns that the names of folders tell: `year=2024/month=07/part.parquet`, as Hive writes them.

use crate::import::column::Values;
use crate::import::source::malformed;
use crate::import::value_text::StoredValue;
use crate::{DType, Error, Result, Schema};
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    new_null_array,
};
use arrow_schema::{DataType, Field, SchemaRef};
use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::Arc;

/// The name of a folder whose rows have no value.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The folders `key=value` of a path, outermost first.
#[derive(Default)]
pub(in crate::import) struct Partition {
    keys: Vec<Key>,
}

struct Key {
    name: String,
    /// `None`: null.
    value: Option<String>,
    is_integer: bool,
    /// Which field of the file has the same name, if one has. It must have the same value in every
    /// row, and is kept.
    own: Option<usize>,
}

impl Partition {
    /// Reads the folders of a path as it is written; the file's own name is none of them.
    pub(super) fn of_path(path: &Path) -> Result<Self> {
        let mut folders = Vec::new();
        for component in path.parent().into_iter().flat_map(Path::components) {
            match component {
                Component::ParentDir => drop(folders.pop()),
                other => folders.push(other),
            }
        }
        let mut keys = Vec::new();
        for folder in folders.iter().map(|folder| folder.as_os_str()) {
            let bytes = folder.as_encoded_bytes();
            let Some(equals) = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0) else { continue };
            let (name, value) = bytes.split_at(equals);
            let value = value.get(1..).unwrap_or_default(); // it begins with the sign
            let refuse = || {
                let message = format!("the folder {folder:?} would become a column, and is not UTF-8");
                Error::bad_input(message).with_path(path)
            };
            let name = percent_decoded(name).ok_or_else(refuse)?;
            let value = match value == NULL.as_bytes() {
                true => None,
                false => Some(percent_decoded(value).ok_or_else(refuse)?),
            };
            keys.push(Key { name, value, is_integer: false, own: None });
        }
        Ok(Self { keys })
    }

    /// Makes files of other folders other origins.
    pub(super) fn add_to_origin(&self, origin: &mut Vec<u8>) {
        for key in &self.keys {
            for text in [&key.name, key.value.as_deref().unwrap_or(NULL)] {
                origin.extend((text.len() as u64).to_le_bytes()); // exact: usize has at most 64 bits
                origin.extend(text.as_bytes());
            }
        }
    }

    /// Notes which keys the file has columns for.
    pub(super) fn find_own(&mut self, own: &SchemaRef) {
        for key in &mut self.keys {
            key.own = own.column_with_name(&key.name).map(|(field, _)| field);
        }
    }

    /// Makes keys text that are text in this file; others stay what they are.
    pub(super) fn adapt(&mut self, schema: &Schema) {
        let is_text = |name: &str| schema.columns.iter().any(|due| due.name == name && due.dtype == DType::Utf8);
        for key in self.keys.iter_mut().filter(|key| is_text(&key.name)) {
            key.is_integer = false;
        }
    }

    /// The schema of the file, with the columns of the folders behind.
    pub(super) fn complete_schema(&self, own: &SchemaRef) -> SchemaRef {
        if self.added().next().is_none() {
            return own.clone();
        }
        let mut schema = own.as_ref().clone();
        schema.fields = schema.fields.iter().cloned().chain(self.added().map(|key| Arc::new(key.field()))).collect();
        Arc::new(schema)
    }

    fn added(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(|key| key.own.is_none())
    }

    /// Completes batches of these fields of the file by these columns of the folders.
    pub(super) fn completion(&self, own: &[usize], added: &[usize]) -> Completion<'_> {
        let all: Vec<&Key> = self.added().collect();
        let position = |key: &Key| own.iter().position(|field| Some(*field) == key.own);
        let checked = self.keys.iter().filter_map(|key| Some((position(key)?, key))).collect();
        Completion { added: added.iter().filter_map(|&i| all.get(i).copied()).collect(), checked, rows: 0 }
    }
}

/// Decides which keys are integers: those of which all values, of all inputs, are canonical
/// decimals of 64 bits.
pub(super) fn settle_types<'a>(partitions: impl Iterator<Item = &'a mut Partition>) {
    let mut partitions: Vec<&mut Partition> = partitions.collect();
    let mut are_integers: HashMap<String, bool> = HashMap::new();
    for key in partitions.iter().flat_map(|partition| &partition.keys) {
        let Some(value) = &key.value else { continue };
        let is_integer = value.parse::<i64>().is_ok_and(|number| number.to_string() == *value);
        let all = are_integers.entry(key.name.clone()).or_insert(true);
        *all &= is_integer;
    }
    for key in partitions.iter_mut().flat_map(|partition| &mut partition.keys) {
        key.is_integer = are_integers.get(&key.name).is_some_and(|all| *all);
    }
}

impl Key {
    /// Text is a dictionary of one value, so that a large batch takes little memory.
    fn field(&self) -> Field {
        let text = || DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let data_type = if self.is_integer { DataType::Int64 } else { text() };
        Field::new(&self.name, data_type, self.value.is_none())
    }

    fn array(&self, rows: usize) -> Result<ArrayRef> {
        let Some(value) = &self.value else { return Ok(new_null_array(self.field().data_type(), rows)) };
        if let Some(number) = value.parse().ok().filter(|_| self.is_integer) {
            return Ok(Arc::new(Int64Array::from_value(number, rows)));
        }
        let values = Arc::new(StringArray::from(vec![value.as_str()]));
        let array = DictionaryArray::<Int8Type>::try_new(Int8Array::from_value(0, rows), values);
        Ok(Arc::new(array.map_err(|error| malformed(&error))?))
    }

    /// Refuses a column of the file that has another value than the folder; `first` is the number
    /// of its first row.
    fn check(&self, column: &ArrayRef, first: u64) -> Result<()> {
        // a type without text agrees with nothing
        let values = Values::of(column).map_err(|problem| self.disagrees(&problem.message))?;
        for (row, number) in (0..column.len()).zip(first..) {
            let value = values.get(row);
            let agrees = match (&value, &self.value) {
                (Some(found), Some(due)) => found.is(due),
                (found, due) => found.is_none() && due.is_none(),
            };
            if !agrees {
                let text = value.as_ref().map_or(Some("a null".into()), StoredValue::text);
                return Err(self.disagrees(&format!("row {number} has {}", text.unwrap_or("another value".into()))));
            }
        }
        Ok(())
    }

    fn disagrees(&self, how: &str) -> Error {
        let folder = format!("{}={}", self.name, self.value.as_deref().unwrap_or(NULL));
        let message = format!(
            "the file has this column, and the folder is called {folder:?}, but {how}; leave the column out, or rename \
             the folder"
        );
        Error::bad_input(message).with_column(&self.name)
    }
}

/// Adds the columns of the folders to the batches of one pass.
pub(super) struct Completion<'a> {
    added: Vec<&'a Key>,
    /// Keys that the file has columns for, and which of the batch those are.
    checked: Vec<(usize, &'a Key)>,
    rows: u64,
}

impl Completion<'_> {
    pub(super) fn complete(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        for (position, key) in &self.checked {
            batch.columns().get(*position).map_or(Ok(()), |column| key.check(column, self.rows))?;
        }
        let rows = batch.num_rows();
        self.rows = self.rows.saturating_add(rows as u64); // exact: usize has at most 64 bits
        if self.added.is_empty() {
            return Ok(batch);
        }
        let mut schema = batch.schema().as_ref().clone();
        let fields = self.added.iter().map(|key| Arc::new(key.field()));
        schema.fields = schema.fields.iter().cloned().chain(fields).collect();
        let mut columns = batch.columns().to_vec();
        for key in &self.added {
            columns.push(key.array(rows)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(schema), columns, &options).map_err(|error| malformed(&error))
    }
}

/// Replaces `%41` by `A`; a `%` that no two digits follow stays. `None`: the result is not UTF-8.
fn percent_decoded(text: &[u8]) -> Option<String> {
    let digit =
        |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%').then(|| digit(after.first()).zip(digit(after.get(1)))).flatten();
        match code {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = after.get(2..).unwrap_or_default(); // two digits
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(path: &str) -> Vec<(String, Option<String>)> {
        Partition::of_path(Path::new(path)).unwrap().keys.into_iter().map(|key| (key.name, key.value)).collect()
    }

    fn key(name: &str, value: &str) -> (String, Option<String>) {
        (name.to_owned(), Some(value.to_owned()))
    }

    #[test]
    fn keys_are_the_folders_of_a_path() {
        assert_eq!(keys("a=1/b/c=x=y/d=4.parquet"), [key("a", "1"), key("c", "x=y")]);
        assert_eq!(keys("/a=/=b/./a=2/../c=3/f"), [key("a", ""), key("c", "3")]);
        assert_eq!(keys("a=__HIVE_DEFAULT_PARTITION__/f"), [("a".to_owned(), None)]);
        assert_eq!(keys("f=1"), []);
    }

    #[test]
    fn names_and_values_are_percent_decoded() {
        assert_eq!(keys("a%20b=x%2Fy%c3%A4%/f"), [key("a b", "x/yä%")]);
        assert_eq!(keys("a=%4/b=%zz%41/f"), [key("a", "%4"), key("b", "%zzA")]);
        assert!(Partition::of_path(Path::new("a=%FF/f")).is_err());
    }
}
