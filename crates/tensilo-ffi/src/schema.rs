//! Facts about columns: the types of elements, the schema, and metadata.
//!
//! A type has the same number as in the file format. A [`tensilo_schema`] belongs to the file,
//! dataset or batch that returned it. All its strings and arrays are made once, so calls return
//! pointers into it.

use crate::boundary::call::{call, fill, shared, text, write};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::{Output, Text};
use std::ffi::c_char;
use tensilo::{ColumnSchema, DType, Extent, Metadata, Schema};

/// The type of the elements. Its values are the numbers of the types in the file format. Later
/// releases may add values.
pub type tensilo_dtype = u32;

/// bfloat16, the upper half of a `float`: 1 sign bit, 8 exponent bits and 7 mantissa bits.
pub const TENSILO_DTYPE_BF16: tensilo_dtype = 1;
/// IEEE 754 binary16.
pub const TENSILO_DTYPE_F16: tensilo_dtype = 2;
/// `float`.
pub const TENSILO_DTYPE_F32: tensilo_dtype = 3;
/// `double`.
pub const TENSILO_DTYPE_F64: tensilo_dtype = 4;
/// `int8_t`.
pub const TENSILO_DTYPE_I8: tensilo_dtype = 5;
/// `int16_t`.
pub const TENSILO_DTYPE_I16: tensilo_dtype = 6;
/// `int32_t`.
pub const TENSILO_DTYPE_I32: tensilo_dtype = 7;
/// `int64_t`.
pub const TENSILO_DTYPE_I64: tensilo_dtype = 8;
/// `uint8_t`.
pub const TENSILO_DTYPE_U8: tensilo_dtype = 9;
/// `uint16_t`.
pub const TENSILO_DTYPE_U16: tensilo_dtype = 10;
/// `uint32_t`.
pub const TENSILO_DTYPE_U32: tensilo_dtype = 11;
/// `uint64_t`.
pub const TENSILO_DTYPE_U64: tensilo_dtype = 12;
/// One byte, 0 or 1.
pub const TENSILO_DTYPE_BOOL: tensilo_dtype = 13;
/// A byte string for each item.
pub const TENSILO_DTYPE_BYTES: tensilo_dtype = 14;
/// UTF-8 text for each item, without a NUL at the end.
pub const TENSILO_DTYPE_UTF8: tensilo_dtype = 15;
/// An 8-bit float: 4 exponent and 3 mantissa bits, no infinities.
pub const TENSILO_DTYPE_F8_E4M3FN: tensilo_dtype = 16;
/// An 8-bit float: 4 exponent and 3 mantissa bits, one NaN, no infinities, no -0.
pub const TENSILO_DTYPE_F8_E4M3FNUZ: tensilo_dtype = 17;
/// An 8-bit float: 5 exponent and 2 mantissa bits.
pub const TENSILO_DTYPE_F8_E5M2: tensilo_dtype = 18;
/// An 8-bit float: 5 exponent and 2 mantissa bits, one NaN, no infinities, no -0.
pub const TENSILO_DTYPE_F8_E5M2FNUZ: tensilo_dtype = 19;
/// An 8-bit scale: a power of two, or NaN.
pub const TENSILO_DTYPE_F8_E8M0FNU: tensilo_dtype = 20;
/// A 6-bit float in a byte: 2 exponent and 3 mantissa bits.
pub const TENSILO_DTYPE_F6_E2M3: tensilo_dtype = 21;
/// A 6-bit float in a byte: 3 exponent and 2 mantissa bits.
pub const TENSILO_DTYPE_F6_E3M2: tensilo_dtype = 22;
/// A 4-bit float in a byte: 2 exponent bits and 1 mantissa bit.
pub const TENSILO_DTYPE_F4_E2M1: tensilo_dtype = 23;
/// A 4-bit signed integer in a byte. The upper bits of the byte are zero: -1 is 0x0F.
pub const TENSILO_DTYPE_I4: tensilo_dtype = 24;
/// A 4-bit unsigned integer in a byte.
pub const TENSILO_DTYPE_U4: tensilo_dtype = 25;
/// Two `float` values: the real and the imaginary part.
pub const TENSILO_DTYPE_COMPLEX64: tensilo_dtype = 26;

/// Returns the number of a type; 0 for a type newer than this crate.
pub(crate) fn dtype_number(dtype: DType) -> tensilo_dtype {
    DType::ALL.iter().zip(1..).find(|(known, _)| **known == dtype).map_or(0, |(_, number)| number)
}

fn known(number: tensilo_dtype) -> Option<DType> {
    let index = usize::try_from(number).ok()?.checked_sub(1)?;
    DType::ALL.get(index).copied()
}

/// Returns the type with a number.
pub(crate) fn dtype_from_number(number: tensilo_dtype) -> Result<DType> {
    known(number).ok_or_else(|| tensilo_error::bad_argument(format!("{number} is not a valid tensilo_dtype")))
}

/// Returns the name of a type, such as `bf16`, or NULL if there is no such type. The string is
/// static: do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn tensilo_dtype_name(dtype: tensilo_dtype) -> *const c_char {
    let name = known(dtype).map(|dtype| match dtype {
        DType::Bf16 => c"bf16",
        DType::F16 => c"f16",
        DType::F32 => c"f32",
        DType::F64 => c"f64",
        DType::I8 => c"i8",
        DType::I16 => c"i16",
        DType::I32 => c"i32",
        DType::I64 => c"i64",
        DType::U8 => c"u8",
        DType::U16 => c"u16",
        DType::U32 => c"u32",
        DType::U64 => c"u64",
        DType::Bool => c"bool",
        DType::Bytes => c"bytes",
        DType::Utf8 => c"utf8",
        DType::F8E4M3Fn => c"f8_e4m3fn",
        DType::F8E4M3Fnuz => c"f8_e4m3fnuz",
        DType::F8E5M2 => c"f8_e5m2",
        DType::F8E5M2Fnuz => c"f8_e5m2fnuz",
        DType::F8E8M0Fnu => c"f8_e8m0fnu",
        DType::F6E2M3 => c"f6_e2m3",
        DType::F6E3M2 => c"f6_e3m2",
        DType::F4E2M1 => c"f4_e2m1",
        DType::I4 => c"i4",
        DType::U4 => c"u4",
        DType::Complex64 => c"complex64",
        _ => c"unknown", // newer than this crate, so it has no number here
    });
    name.map_or(std::ptr::null(), |name| name.as_ptr())
}

/// Returns the size of one element in bytes: 1 for bytes and text, 0 if there is no such type.
#[unsafe(no_mangle)]
pub extern "C" fn tensilo_dtype_bytes(dtype: tensilo_dtype) -> usize {
    known(dtype).map_or(0, DType::element_bytes)
}

/// The columns and metadata of a file, a dataset or a batch.
///
/// Threads: any number may read a schema at the same time. It belongs to the handle that returned
/// it, and lives as long as that handle.
pub struct tensilo_schema {
    schema: Schema,
    columns: Vec<NamedColumn>,
    metadata: Vec<Entry>,
}

/// One column: the type and shape of its items, and the lists around them.
///
/// If `level_count` is 0, a sample is an item. Otherwise it is a list of items, or of nested lists.
/// Pointers live as long as the schema.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_column_info {
    /// `sizeof(tensilo_column_info)`, set by the caller.
    pub struct_size: usize,
    /// The name, which contains no NUL.
    pub name: *const c_char,
    /// The type of the samples as text, such as `list<utf8>`.
    pub type_name: *const c_char,
    /// The type of the elements.
    pub dtype: tensilo_dtype,
    /// The number of dimensions of an item: 0 for a number, 1 for text and bytes.
    pub ndim: u32,
    /// The `ndim` extents of an item, outermost first. A varying extent is -1.
    pub extents: *const i64,
    /// The number of varying extents; 0 for a fixed shape.
    pub varying_count: u32,
    /// The number of levels of lists around an item.
    pub level_count: u32,
    /// For each level, outermost first, whether the members of its lists may be null.
    pub level_nullable: *const bool,
    /// Whether samples may be null.
    pub nullable: bool,
    /// Whether all samples have `sample_bytes` bytes: the shape is fixed and there are no lists.
    pub is_fixed: bool,
    /// The size of one sample in bytes, if `is_fixed`; otherwise 0.
    pub sample_bytes: usize,
    /// The number of metadata entries of the column.
    pub metadata_count: usize,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_column_info {}

/// A metadata entry. Both strings end with a NUL, and may contain other NULs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_metadata {
    /// The key.
    pub key: *const c_char,
    /// The length of the key in bytes.
    pub key_bytes: usize,
    /// The value.
    pub value: *const c_char,
    /// The length of the value in bytes.
    pub value_bytes: usize,
}

/// Selects the metadata of the file or dataset itself, instead of a column.
// cbindgen cannot write this value, so `cbindgen.toml` defines the constant in the header
pub const TENSILO_NO_COLUMN: usize = usize::MAX;

struct NamedColumn {
    name: Text,
    type_name: Text,
    extents: Vec<i64>,
    levels: Vec<bool>,
    metadata: Vec<Entry>,
}

struct Entry {
    key: Text,
    value: Text,
}

fn entries(metadata: &Metadata) -> Vec<Entry> {
    let entry =
        |(key, value): (&String, &String)| Entry { key: Text::new(key.as_str()), value: Text::new(value.as_str()) };
    metadata.iter().map(entry).collect()
}

/// Returns the size of one sample of a column in bytes, if all samples have the same size.
pub(crate) fn sample_bytes(column: &ColumnSchema) -> Option<usize> {
    if column.shape.is_ragged() || !column.levels.is_empty() {
        return None;
    }
    usize::try_from(column.shape.inner_elements()?).ok()?.checked_mul(column.dtype.element_bytes())
}

impl tensilo_schema {
    pub(crate) fn new(schema: Schema) -> Self {
        let named = |column: &ColumnSchema| NamedColumn {
            name: Text::new(column.name.as_str()),
            type_name: Text::new(column.type_name()),
            extents: extents(column),
            levels: column.levels.iter().map(|level| level.nullable).collect(),
            metadata: entries(&column.metadata),
        };
        let (columns, metadata) = (schema.columns.iter().map(named).collect(), entries(&schema.metadata));
        Self { schema, columns, metadata }
    }

    /// Returns facts about a column.
    fn column_info(&self, index: usize) -> Result<tensilo_column_info> {
        let found = self.schema.columns.get(index).zip(self.columns.get(index));
        let (column, named) = found.ok_or_else(|| no_column(index, self.columns.len()))?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX); // exact: at most 16
        let sample_bytes = sample_bytes(column);
        Ok(tensilo_column_info {
            struct_size: 0,
            name: named.name.pointer(),
            type_name: named.type_name.pointer(),
            dtype: dtype_number(column.dtype),
            ndim: count(column.shape.ndim()),
            extents: named.extents.as_ptr(),
            varying_count: count(column.shape.varying_count()),
            level_count: count(column.levels.len()),
            level_nullable: named.levels.as_ptr(),
            nullable: column.nullable,
            is_fixed: sample_bytes.is_some(),
            sample_bytes: sample_bytes.unwrap_or(0),
            metadata_count: column.metadata.len(),
        })
    }

    fn entries(&self, column: usize) -> Result<&[Entry]> {
        if column == TENSILO_NO_COLUMN {
            return Ok(&self.metadata);
        }
        let found = self.columns.get(column).ok_or_else(|| no_column(column, self.columns.len()))?;
        Ok(&found.metadata)
    }
}

fn extents(column: &ColumnSchema) -> Vec<i64> {
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => i64::from(*extent),
        Extent::Varying => -1,
    };
    column.shape.extents().iter().map(extent).collect()
}

#[cold]
pub(crate) fn no_column(index: usize, count: usize) -> Box<tensilo_error> {
    tensilo_error::bad_argument(format!("column {index} is out of range: there are {count} columns, counted from 0"))
}

/// Returns the number of columns; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_schema_column_count(schema: *const tensilo_schema) -> usize {
    // SAFETY: NULL or a schema, by the rules in `tensilo.h`.
    unsafe { schema.as_ref() }.map_or(0, |schema| schema.columns.len())
}

/// Fills `info` with facts about column number `index`, counted from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_schema_get_column(
    schema: *const tensilo_schema,
    index: usize,
    info: *mut tensilo_column_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { call(error, || fill(info, shared(schema, "schema")?.column_info(index)?, "info")) }
}

/// Sets `*index` to the number of the column with this name. If there is no such column, the error
/// names the most similar one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_schema_find_column(
    schema: *const tensilo_schema,
    name: *const c_char,
    index: *mut usize,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let (found, _) = shared(schema, "schema")?.schema.find_column(text(name, "name")?)?;
            write(index, found, "index")
        })
    }
}

/// Returns the number of metadata entries of a column, or of the file or dataset if `column` is
/// `TENSILO_NO_COLUMN`. Returns 0 if there is no such column, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_schema_metadata_count(schema: *const tensilo_schema, column: usize) -> usize {
    // SAFETY: NULL or a schema, by the rules in `tensilo.h`.
    let schema = unsafe { schema.as_ref() };
    schema.and_then(|schema| schema.entries(column).ok()).map_or(0, <[Entry]>::len)
}

/// Fills `metadata` with metadata entry number `index` of a column, or of the file or dataset if
/// `column` is `TENSILO_NO_COLUMN`. Entries are sorted by key, and live as long as the schema.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_schema_get_metadata(
    schema: *const tensilo_schema,
    column: usize,
    index: usize,
    metadata: *mut tensilo_metadata,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let entries = shared(schema, "schema")?.entries(column)?;
            let Entry { key, value } = entries.get(index).ok_or_else(|| {
                tensilo_error::bad_argument(format!(
                    "metadata entry {index} is out of range: there are {} entries, counted from 0",
                    entries.len()
                ))
            })?;
            let found = tensilo_metadata {
                key: key.pointer(),
                key_bytes: key.byte_count(),
                value: value.pointer(),
                value_bytes: value.byte_count(),
            };
            write(metadata, found, "metadata")
        })
    }
}
