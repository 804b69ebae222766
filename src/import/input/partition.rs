//! Columns from folder names, as Hive writes them: `year=2024/month=07/part.parquet`.
//!
//! If the file itself has a column of the same name, that column is used, and must have the
//! folder's value in every row. So values of any type are compared with the text in the folder
//! name.

use crate::bytes::le::u64_of;
use crate::import::plan::input_column::{ColumnKind, ColumnRequest, InputColumn};
use crate::import::rows::{Batch, Bitmap, ColumnRows, ItemBytes, SharedBytes};
use crate::logical::arrow_type;
use crate::logical::arrow_type::{ArrowType, TimeUnit};
use crate::{DType, Error, Metadata, Result, Schema};
use half::{bf16, f16};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path};

/// The folder value that stands for a null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The folders `key=value` of a path, outermost first.
#[derive(Default)]
pub(in crate::import) struct Partition {
    keys: Vec<Key>,
}

struct Key {
    name: String,
    /// `None` stands for null.
    value: Option<String>,
    is_integer: bool,
    /// The position of the file's own column of this name, if there is one. That column is used
    /// instead, and must have the folder's value in every row.
    own: Option<usize>,
}

impl Partition {
    /// Parses the folders of a path exactly as given, without resolving links. The file name is
    /// ignored.
    pub(super) fn from_path(path: &Path) -> Result<Self> {
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
            let value = value.get(1..).unwrap_or_default(); // without the `=`
            let refuse = || {
                let message = format!("the folder {folder:?} names a column and a value, but is not UTF-8");
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

    /// Adds the keys and values to an origin, so that files in different folders have different
    /// origins.
    pub(super) fn add_to_origin(&self, origin: &mut Vec<u8>) {
        for key in &self.keys {
            for text in [&key.name, key.value.as_deref().unwrap_or(NULL)] {
                origin.extend(u64_of(text.len()).to_le_bytes());
                origin.extend(text.as_bytes());
            }
        }
    }

    /// Returns whether a folder has this key.
    #[cfg(feature = "arrow")]
    pub(super) fn has(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name == name)
    }

    /// Records for which keys the file has columns.
    pub(super) fn find_own(&mut self, own: &[InputColumn]) {
        for key in &mut self.keys {
            key.own = own.iter().position(|column| column.name == key.name && !column.follows_fields());
        }
    }

    /// Gives a key the type text if its column in this schema is text. Other keys keep their type.
    pub(super) fn adapt(&mut self, schema: &Schema) {
        let is_text =
            |name: &str| schema.columns.iter().any(|expected| expected.name == name && expected.dtype == DType::Utf8);
        for key in self.keys.iter_mut().filter(|key| is_text(&key.name)) {
            key.is_integer = false;
        }
    }

    /// Returns the columns of the file, followed by the columns from folder names.
    pub(super) fn complete_columns(&self, own: &[InputColumn]) -> Vec<InputColumn> {
        own.iter().cloned().chain(self.added().map(Key::column)).collect()
    }

    fn added(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().filter(|key| key.own.is_none())
    }

    /// Prepares the completion of batches in a pass over these columns. `own` are the columns of
    /// the file, and `first` is the index of the pass's first row.
    pub(super) fn completion<'a>(
        &'a self,
        own: &[InputColumn],
        columns: &[ColumnRequest],
        first: u64,
    ) -> Completion<'a> {
        let added: Vec<&Key> = self.added().collect();
        let added = |column: &ColumnRequest| added.get(column.position.checked_sub(own.len())?).copied();
        let checked = self.keys.iter().filter_map(|key| {
            let number = columns.iter().position(|column| Some(column.position) == key.own)?;
            let stated = own.get(key.own?)?.metadata.get(arrow_type::KEY).cloned();
            let found = columns.get(number)?.unit.map(|unit| ArrowType::Timestamp(unit, None).to_string());
            Some(CheckedKey { number, arrow_type: found.or(stated), key })
        });
        Completion { added: columns.iter().map(added).collect(), checked: checked.collect(), rows: first }
    }
}

/// Decides which keys are integers. A key is an integer if all its values, in all inputs, are
/// canonical decimal integers of 64 bits.
pub(super) fn infer_types<'a>(partitions: impl Iterator<Item = &'a mut Partition>) {
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
    fn dtype(&self) -> DType {
        if self.is_integer { DType::I64 } else { DType::Utf8 }
    }

    fn column(&self) -> InputColumn {
        let kind = Ok(ColumnKind::scalar(self.dtype()));
        let nullable = self.value.is_none();
        let (name, metadata) = (self.name.clone(), Metadata::new());
        InputColumn { name, kind, nullable, metadata, stored: None, struct_nulls: None }
    }

    /// Returns `count` rows that all have the value.
    fn rows(&self, count: usize) -> ColumnRows {
        let validity = self.value.is_none().then(|| Bitmap::of(count, |_| false));
        let text = self.value.as_deref().unwrap_or_default();
        if self.is_integer {
            let number: i64 = text.parse().unwrap_or(0);
            let values = SharedBytes::new(number.to_ne_bytes().repeat(count));
            return ColumnRows::scalars(DType::I64, count, values, validity);
        }
        ColumnRows {
            extents: vec![u32::try_from(text.len()).unwrap_or(u32::MAX); count], // folder names are short
            item_bytes: ItemBytes::Equal(text.len()),
            ..ColumnRows::scalars(DType::Utf8, count, SharedBytes::new(text.repeat(count)), validity)
        }
    }

    /// Refuses a column of the file that contradicts the folder. `first` is the index of the first
    /// row of `column`.
    fn check(&self, column: &ColumnRows, arrow_type: Option<&str>, first: u64) -> Result<()> {
        if !column.lists.is_empty() || !(column.extents.is_empty() || column.dtype.is_string()) {
            return Err(self.disagrees("its samples are tensors or lists"));
        }
        for (row, number) in (0..column.item_count).zip(first..) {
            let bytes = column.item(row).filter(|_| !column.is_null(row));
            let value = bytes.map(|bytes| ElementText { dtype: column.dtype, arrow_type, bytes });
            let agrees = match (&value, &self.value) {
                (Some(found), Some(expected)) => found.is(expected),
                (found, expected) => found.is_none() && expected.is_none(),
            };
            if !agrees {
                let text = value.as_ref().map_or(Some("a null".into()), ElementText::text);
                return Err(self.disagrees(&format!("row {number} has {}", text.unwrap_or("another value".into()))));
            }
        }
        Ok(())
    }

    fn disagrees(&self, how: &str) -> Error {
        let folder = format!("{}={}", self.name, self.value.as_deref().unwrap_or(NULL));
        let message = format!(
            "the file has this column, but it contradicts the folder {folder:?}: {how}; skip the column, or rename \
             the folder"
        );
        Error::bad_input(message).with_column(&self.name)
    }
}

/// Adds the columns from folder names to the batches of one pass.
pub(super) struct Completion<'a> {
    /// For each column of the pass, the key that it comes from, or `None` if the file has the
    /// column.
    added: Vec<Option<&'a Key>>,
    checked: Vec<CheckedKey<'a>>,
    /// The index of the next row in the file.
    rows: u64,
}

/// A key for which the file has a column.
struct CheckedKey<'a> {
    /// The position of the column in the pass.
    number: usize,
    arrow_type: Option<String>,
    key: &'a Key,
}

impl Completion<'_> {
    /// Returns a batch with all columns, in the order of the pass.
    pub(super) fn complete(&mut self, batch: Batch<ColumnRows>) -> Result<Batch<ColumnRows>> {
        let row_count = batch.row_count;
        let mut own = batch.columns.into_iter();
        let column = |key: &Option<&Key>| key.map_or_else(|| own.next(), |key| Some(Ok(key.rows(row_count))));
        let columns: Vec<_> = self.added.iter().filter_map(column).collect();
        for CheckedKey { number, arrow_type, key } in &self.checked {
            if let Some(Ok(column)) = columns.get(*number) {
                key.check(column, arrow_type.as_deref(), self.rows)?;
            }
        }
        self.rows = self.rows.saturating_add(u64_of(row_count));
        Ok(Batch { row_count, columns })
    }
}

/// Replaces `%41` by `A`. A `%` without two hexadecimal digits stays unchanged. Returns `None` if
/// the result is not UTF-8.
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
                rest = after.get(2..).unwrap_or_default(); // in bounds: two digits follow
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).ok()
}

/// An element or a string that is compared with text.
struct ElementText<'a> {
    dtype: DType,
    /// The Arrow type of the column, as in the column's metadata.
    arrow_type: Option<&'a str>,
    bytes: &'a [u8],
}

impl<'a> ElementText<'a> {
    /// Returns whether this is the value of a folder name: the same number, or the same text.
    fn is(&self, name: &str) -> bool {
        match (self.float(), self.integer(), self.arrow_type) {
            (Some(float), ..) => match self.dtype {
                DType::F32 => name.parse().is_ok_and(|expected: f32| f64::from(expected).total_cmp(&float).is_eq()),
                _ => name.parse().is_ok_and(|expected: f64| expected.total_cmp(&float).is_eq()),
            },
            (None, Some(integer), None) => name.parse() == Ok(integer),
            _ => self.text().is_some_and(|text| text == name),
        }
    }

    /// Returns the value as text. Returns `None` if its type has no text form, or if the string is
    /// not UTF-8.
    fn text(&self) -> Option<Cow<'a, str>> {
        if self.dtype.is_string() {
            return std::str::from_utf8(self.bytes).ok().map(Cow::Borrowed);
        }
        if self.dtype == DType::Bool {
            return Some(Cow::Borrowed(if self.bytes == [0] { "false" } else { "true" }));
        }
        if let Some(float) = self.float() {
            return Some(Cow::Owned(float.to_string()));
        }
        let integer = self.integer()?;
        match self.arrow_type {
            None => Some(Cow::Owned(integer.to_string())),
            Some(text) => instant(integer, &ArrowType::from_text(text)?).map(Cow::Owned),
        }
    }

    fn float(&self) -> Option<f64> {
        Some(match (self.dtype, self.bytes) {
            (DType::F64, bytes) => f64::from_ne_bytes(bytes.try_into().ok()?),
            (DType::F32, bytes) => f32::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::F16, bytes) => f16::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::Bf16, bytes) => bf16::from_ne_bytes(bytes.try_into().ok()?).into(),
            _ => return None,
        })
    }

    fn integer(&self) -> Option<i128> {
        Some(match (self.dtype, self.bytes) {
            (DType::I8, bytes) => i8::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::I16, bytes) => i16::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::I32, bytes) => i32::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::I64, bytes) => i64::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U8, bytes) => u8::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U16, bytes) => u16::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U32, bytes) => u32::from_ne_bytes(bytes.try_into().ok()?).into(),
            (DType::U64, bytes) => u64::from_ne_bytes(bytes.try_into().ok()?).into(),
            _ => return None,
        })
    }
}

const DAY_NS: i128 = 86_400_000_000_000;

/// Returns a date, a time or both in ISO 8601 notation, or `None` for other types. Values have at
/// most 64 bits, so their nanoseconds fit in 128 bits.
fn instant(value: i128, data_type: &ArrowType) -> Option<String> {
    match data_type {
        ArrowType::Date32 => Some(date(value)),
        ArrowType::Date64 => Some(date_time(value, TimeUnit::Millisecond)),
        ArrowType::Time32(unit) | ArrowType::Time64(unit) => Some(time(value * unit.nanoseconds())),
        ArrowType::Timestamp(unit, None) => Some(date_time(value, *unit)),
        ArrowType::Timestamp(unit, Some(zone)) if matches!(zone.as_str(), "UTC" | "Z" | "+00:00") => {
            Some(format!("{}Z", date_time(value, *unit)))
        }
        _ => None,
    }
}

fn date_time(value: i128, unit: TimeUnit) -> String {
    let nanoseconds = value * unit.nanoseconds();
    format!("{}T{}", date(nanoseconds.div_euclid(DAY_NS)), time(nanoseconds.rem_euclid(DAY_NS)))
}

/// Returns the date of a day counted from 1970, by Howard Hinnant's algorithm `civil_from_days`.
fn date(day: i128) -> String {
    let day = day + 719_468; // days since 1 March of year 0
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Returns a time of day with the number of fractional digits that it needs: 0, 3, 6 or 9.
fn time(nanoseconds: i128) -> String {
    let (seconds, fraction) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
    let whole = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match fraction {
        0 => whole,
        _ if fraction % 1_000_000 == 0 => format!("{whole}.{:03}", fraction / 1_000_000),
        _ if fraction % 1_000 == 0 => format!("{whole}.{:06}", fraction / 1_000),
        _ => format!("{whole}.{fraction:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(path: &str) -> Vec<(String, Option<String>)> {
        Partition::from_path(Path::new(path)).unwrap().keys.into_iter().map(|key| (key.name, key.value)).collect()
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
        assert!(Partition::from_path(Path::new("a=%FF/f")).is_err());
    }

    fn text(dtype: DType, arrow_type: Option<&str>, bytes: &[u8]) -> Option<String> {
        ElementText { dtype, arrow_type, bytes }.text().map(Cow::into_owned)
    }

    #[test]
    fn dates_and_times_are_written_as_in_iso_8601() {
        let cases = [
            (19_782, "date32", "2024-02-29"),
            (-1, "date32", "1969-12-31"),
            (1_709_164_800_000, "date64", "2024-02-29T00:00:00"),
            (-1, "timestamp[ms]", "1969-12-31T23:59:59.999"),
            (1, "timestamp[us, UTC]", "1970-01-01T00:00:00.000001Z"),
            (951_782_400, "timestamp[s]", "2000-02-29T00:00:00"),
            (3_661, "time32[s]", "01:01:01"),
            (1, "time64[ns]", "00:00:00.000000001"),
        ];
        for (value, data_type, expected) in cases {
            let found = text(DType::I64, Some(data_type), &i64::to_ne_bytes(value));
            assert_eq!(found.as_deref(), Some(expected), "{value} {data_type}");
        }
        for (value, data_type) in [(i64::MIN, "timestamp[s]"), (i64::MAX, "date32"), (i64::MIN, "time32[s]")] {
            // without overflow
            assert!(text(DType::I64, Some(data_type), &value.to_ne_bytes()).is_some());
        }
        assert_eq!(text(DType::I64, Some("duration[s]"), &[0; 8]), None);
        assert_eq!(text(DType::Bytes, None, &[0xFF]), None);
    }

    #[test]
    fn numbers_are_compared_as_numbers() {
        let is = |dtype, bytes: &[u8], name| ElementText { dtype, arrow_type: None, bytes }.is(name);
        assert!(is(DType::I32, &7_i32.to_ne_bytes(), "07") && !is(DType::I32, &7_i32.to_ne_bytes(), "8"));
        assert!(is(DType::F32, &0.1_f32.to_ne_bytes(), "0.1") && is(DType::F64, &1_f64.to_ne_bytes(), "1"));
        assert!(!is(DType::F64, &1_f64.to_ne_bytes(), "x"));
        assert!(is(DType::Bool, &[1], "true") && is(DType::U64, &u64::MAX.to_ne_bytes(), "18446744073709551615"));
        assert!(is(DType::Utf8, b"07", "07") && !is(DType::Utf8, b"07", "7"));
    }
}
