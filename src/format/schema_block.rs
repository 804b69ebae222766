//! Chapter 3.2: the schema of a file, and the schema block that encodes it.
//!
//! [`parse`] accepts exactly the schema blocks that [`to_bytes`] can write. Both check the same
//! limits and the same rules of chapter 3, so a writer cannot make a file that readers refuse. They
//! report the same mistake differently: in a caller's schema, it is a bad argument or an exceeded
//! limit; in a file, it is damage, and the error names the broken rule.
//!
//! Counts in a file are not trusted: the number of bytes left to parse limits how much memory is
//! allocated.

use super::schema::{CastSource, CastSpec, ColumnSchema, Extent, ListLevel, Metadata, Shape, nullable_levels};
use crate::bytes::le::{Fields, structure};
use crate::bytes::memory;
use crate::element::dtype::DType;
use crate::{Error, Result, limits};

structure! {
    /// Chapter 3.2: the fields of a column record after its name.
    mod column_record: 4 bytes {
        0 => DTYPE: u8,
        1 => COLUMN_FLAGS: u8,
        2 => RANK: u8,
        3 => ELEMENT_BYTES: u8,
    }
}

structure! {
    /// Chapter 3.2: the field `cast` of a column record.
    mod cast_field: 4 bytes {
        0 => SOURCE_DTYPE: u8,
        1 => ROUNDING: u8,
        2 => RESERVED: u16,
    }
}

structure! {
    /// Chapter 3.2: the field `nesting` of a column record.
    mod nesting_field: 4 bytes {
        0 => LEVELS: u8,
        1 => RESERVED: u8,
        2 => NULLABLE_LEVELS: u16,
    }
}

const NULLABLE: u8 = 1;
const CAST: u8 = 2;
/// The source dtype of a cast from decimals.
const DECIMAL: u8 = 0;
const NESTED: u8 = 4;
const VARYING: u32 = u32::MAX;
const TO_NEAREST_EVEN: u8 = 1;
/// The minimum length of a column record, in bytes: the record has no name, extents or metadata.
const MIN_COLUMN_BYTES: usize = 12;

/// The columns and metadata of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// The columns, in order.
    pub columns: Vec<ColumnSchema>,
    /// The file's own metadata.
    pub metadata: Metadata,
}

impl Schema {
    /// Returns a schema without metadata.
    pub fn new(columns: impl IntoIterator<Item = ColumnSchema>) -> Self {
        Self { columns: columns.into_iter().collect(), metadata: Metadata::new() }
    }

    /// Returns whether any column is nested.
    pub(crate) fn is_nested(&self) -> bool {
        self.columns.iter().any(|column| !column.levels.is_empty())
    }

    /// Returns the index of the column `name`. Cost: linear in the number of columns.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Returns the column `name` and its index. If there is no such column, the error suggests the
    /// most similar name.
    pub fn find_column(&self, name: &str) -> Result<(usize, &ColumnSchema)> {
        let found = self.columns.iter().enumerate().find(|(_, column)| column.name == name);
        found.ok_or_else(|| Error::unknown_column(name, self.columns.iter().map(|column| column.name.as_str())))
    }

    /// Checks that a file can have this schema: its names, types, shapes and metadata, and all
    /// limits of the format. Cost: linear in the total length of the names and the metadata.
    pub fn check(&self) -> Result<()> {
        to_bytes(self).map(drop)
    }
}

/// Returns the schema block of a schema. Fails if the schema breaks a rule of chapter 3 or a limit
/// of chapter 8.
pub(crate) fn to_bytes(schema: &Schema) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    put_length(&mut out, schema.columns.len(), limits::COLUMNS, "columns")?;
    put_metadata(&mut out, &schema.metadata)?;
    for column in &schema.columns {
        put_column(&mut out, column).map_err(|error| error.with_column(&column.name))?;
    }
    check(schema).map_err(as_argument)?;
    let limit = limits::SCHEMA_BYTES;
    if u32::try_from(out.len()).map_or(true, |bytes| bytes > limit) {
        let message = format!("the schema takes {} bytes, but the format allows at most {limit}", out.len());
        return Err(Error::over_limit(message));
    }
    Ok(out)
}

/// Converts an error about a file to an error about the caller's schema.
fn as_argument(error: Error) -> Error {
    let argument = Error::bad_argument(error.message());
    match error.column() {
        Some(column) => argument.with_column(column),
        None => argument,
    }
}

fn put_column(out: &mut Vec<u8>, column: &ColumnSchema) -> Result<()> {
    put_text(out, &column.name, limits::NAME_BYTES, "column name")?;
    column.layout()?; // before `check`, which would report an exceeded limit as a bad argument
    column.check_known()?; // the rules for the elements of an unknown type are unknown
    let nullable = if column.nullable { NULLABLE } else { 0 };
    let cast = if column.cast.is_some() { CAST } else { 0 };
    let nested = if column.levels.is_empty() { 0 } else { NESTED };
    let ndim = u8::try_from(column.shape.ndim())
        .ok()
        .filter(|&ndim| usize::from(ndim) <= limits::DIMENSIONS)
        .ok_or_else(|| over("dimensions in a shape", column.shape.ndim(), limits::DIMENSIONS))?;
    let mut record = [0; column_record::SIZE];
    column_record::DTYPE.put(&mut record, column.dtype.code());
    column_record::COLUMN_FLAGS.put(&mut record, nullable | cast | nested);
    column_record::RANK.put(&mut record, ndim);
    // at most 8
    column_record::ELEMENT_BYTES.put(&mut record, u8::try_from(column.dtype.element_bytes()).unwrap_or(0));
    out.extend(record);
    for extent in column.shape.extents() {
        let extent = match *extent {
            Extent::Fixed(VARYING) => return Err(Error::over_limit("an extent is 2^32 - 1, which exceeds the limit")),
            Extent::Fixed(extent) => extent,
            Extent::Varying => VARYING,
        };
        out.extend(extent.to_le_bytes());
    }
    if let Some(cast) = column.cast {
        let mut field = [0; cast_field::SIZE];
        cast_field::SOURCE_DTYPE.put(&mut field, cast.source.dtype().map_or(DECIMAL, DType::code));
        cast_field::ROUNDING.put(&mut field, TO_NEAREST_EVEN);
        out.extend(field);
    }
    if nested != 0 {
        let count = column.levels.len();
        let levels = u8::try_from(count).ok().filter(|_| count <= limits::LEVELS);
        let mut field = [0; nesting_field::SIZE];
        nesting_field::LEVELS.put(&mut field, levels.ok_or_else(|| over("levels of lists", count, limits::LEVELS))?);
        nesting_field::NULLABLE_LEVELS.put(&mut field, nullable_levels(&column.levels));
        out.extend(field);
    }
    put_metadata(out, &column.metadata)
}

fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata) -> Result<()> {
    put_length(out, metadata.len(), limits::METADATA_ENTRIES, "metadata entries")?;
    for (key, value) in metadata {
        put_text(out, key, limits::METADATA_KEY_BYTES, "metadata key")?;
        put_text(out, value, limits::METADATA_VALUE_BYTES, "metadata value")?;
    }
    Ok(())
}

fn put_text(out: &mut Vec<u8>, text: &str, limit: usize, what: &str) -> Result<()> {
    put_length(out, text.len(), limit, &format!("bytes in a {what}"))?;
    out.extend(text.as_bytes());
    Ok(())
}

fn put_length(out: &mut Vec<u8>, length: usize, limit: usize, what: &str) -> Result<()> {
    let field = u32::try_from(length).ok().filter(|_| length <= limit);
    out.extend(field.ok_or_else(|| over(what, length, limit))?.to_le_bytes());
    Ok(())
}

fn over(what: &str, found: usize, limit: usize) -> Error {
    Error::over_limit(format!("found {found} {what}, but the format allows at most {limit}"))
}

/// Parses a schema block, and checks rules, except for the flags of the file header.
pub(crate) fn parse(block: &[u8]) -> Result<Schema> {
    let fields = &mut Fields::new(block);
    let count = usize::try_from(fields.u32().ok_or_else(short)?).map_err(|_| short())?;
    if count > limits::COLUMNS {
        let message = format!("the schema has {count} columns, but the format allows at most {}", limits::COLUMNS);
        return Err(Error::corrupt("R-3.6", message));
    }
    let metadata = metadata(fields)?;
    // allocate no more columns than the remaining bytes can describe
    let mut columns = memory::with_capacity(count.min(fields.remaining() / MIN_COLUMN_BYTES))?;
    for _ in 0..count {
        columns.push(column(fields)?);
    }
    if fields.remaining() != 0 {
        let message = format!("the schema block has {} bytes after its last field", fields.remaining());
        return Err(Error::corrupt("R-3.3", message));
    }
    let schema = Schema { columns, metadata };
    check(&schema)?;
    Ok(schema)
}

fn short() -> Error {
    Error::corrupt("R-3.3", "the schema block ends within a field")
}

fn length(fields: &mut Fields, limit: usize) -> Result<usize> {
    let length = usize::try_from(fields.u32().ok_or_else(short)?).map_err(|_| short())?;
    if length > limit {
        let message = format!("a length or count in the schema is {length}, but the format allows at most {limit}");
        return Err(Error::corrupt("R-3.4", message));
    }
    Ok(length)
}

fn text(fields: &mut Fields, limit: usize) -> Result<String> {
    let length = length(fields, limit)?;
    let bytes = fields.bytes(length).ok_or_else(short)?;
    let text =
        std::str::from_utf8(bytes).map_err(|_| Error::corrupt("R-3.4", "a name or a metadata entry is not UTF-8"))?;
    Ok(text.to_owned())
}

fn metadata(fields: &mut Fields) -> Result<Metadata> {
    let count = length(fields, limits::METADATA_ENTRIES)?;
    let mut out = Metadata::new();
    for _ in 0..count {
        let key = text(fields, limits::METADATA_KEY_BYTES)?;
        if out.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(Error::corrupt("R-3.4", "the metadata keys are not in ascending order"));
        }
        let value = text(fields, limits::METADATA_VALUE_BYTES)?;
        out.insert(key, value);
    }
    Ok(out)
}

fn column(fields: &mut Fields) -> Result<ColumnSchema> {
    let name = text(fields, limits::NAME_BYTES)?;
    match column_fields(fields) {
        Ok(column) => Ok(ColumnSchema { name, ..column }),
        Err(error) => Err(error.with_column(&name)),
    }
}

/// Parses the fields after the name of a column.
fn column_fields(fields: &mut Fields) -> Result<ColumnSchema> {
    let record = fields.array().ok_or_else(short)?;
    let dtype = column_record::DTYPE.get(&record);
    let flags = column_record::COLUMN_FLAGS.get(&record);
    let ndim = column_record::RANK.get(&record);
    let dtype = dtype_of(dtype, column_record::ELEMENT_BYTES.get(&record))?;
    if flags & !(NULLABLE | CAST | NESTED) != 0 {
        return Err(Error::corrupt("R-3.6", "reserved column flags are set"));
    }
    if usize::from(ndim) > limits::DIMENSIONS {
        let message = format!("the shape has {ndim} dimensions, but the format allows at most {}", limits::DIMENSIONS);
        return Err(Error::corrupt("R-3.6", message));
    }
    let mut shape = Vec::with_capacity(usize::from(ndim));
    for _ in 0..ndim {
        let extent = fields.u32().ok_or_else(short)?;
        shape.push(if extent == VARYING { Extent::Varying } else { Extent::Fixed(extent) });
    }
    let cast = (flags & CAST != 0).then(|| cast(fields)).transpose()?;
    let levels = if flags & NESTED != 0 { levels(fields)? } else { Vec::new() };
    Ok(ColumnSchema {
        name: String::new(),
        dtype,
        shape: Shape::new(shape),
        nullable: flags & NULLABLE != 0,
        levels,
        cast,
        metadata: metadata(fields)?,
    })
}

/// Returns the type of a column. For an unknown type, the file states the size of an element.
fn dtype_of(code: u8, element_bytes: u8) -> Result<DType> {
    let dtype = match DType::from_code(code) {
        Some(known) => known,
        None if code != 0 && matches!(element_bytes, 1 | 2 | 4 | 8) => DType::Unknown { code, element_bytes },
        None => {
            let message =
                format!("dtype {code} has {element_bytes} bytes; expected dtype 1 or higher, with 1, 2, 4 or 8 bytes");
            return Err(Error::corrupt("R-3.5", message));
        }
    };
    if dtype.element_bytes() == usize::from(element_bytes) {
        return Ok(dtype);
    }
    let message =
        format!("the schema states {element_bytes} bytes per element, but {dtype} has {}", dtype.element_bytes());
    Err(Error::corrupt("R-3.5", message))
}

fn cast(fields: &mut Fields) -> Result<CastSpec> {
    let field = fields.array().ok_or_else(short)?;
    if cast_field::RESERVED.get(&field) != 0 {
        return Err(Error::corrupt("R-3.6", "reserved bytes of a cast are not zero"));
    }
    let rounding = cast_field::ROUNDING.get(&field);
    let source = match cast_field::SOURCE_DTYPE.get(&field) {
        DECIMAL => Some(CastSource::Decimal),
        code => DType::from_code(code).map(CastSource::Type),
    };
    let source = source.filter(|_| rounding == TO_NEAREST_EVEN);
    let source = source.ok_or_else(|| Error::corrupt("R-3.7", "the cast has an unknown source or rounding"))?;
    Ok(CastSpec { source })
}

fn levels(fields: &mut Fields) -> Result<Vec<ListLevel>> {
    let field = fields.array().ok_or_else(short)?;
    if nesting_field::RESERVED.get(&field) != 0 {
        return Err(Error::corrupt("R-3.6", "the reserved byte of the levels is not zero"));
    }
    let count = usize::from(nesting_field::LEVELS.get(&field));
    let nullable = nesting_field::NULLABLE_LEVELS.get(&field);
    if count == 0 || count > limits::LEVELS {
        let message = format!("the column has {count} levels of lists, but the format allows 1 to {}", limits::LEVELS);
        return Err(Error::corrupt("R-3.8", message));
    }
    if u32::from(nullable) >> count != 0 {
        let message = format!("nullable_levels is {nullable:#x}, but the column has only {count} levels of lists");
        return Err(Error::corrupt("R-3.8", message));
    }
    Ok((0..count).map(|level| ListLevel { nullable: nullable >> level & 1 == 1 }).collect())
}

/// Checks the rules of chapter 3 that do not depend on how the schema is encoded.
fn check(schema: &Schema) -> Result<()> {
    let mut names: Vec<(&str, usize)> = schema.columns.iter().map(|column| column.name.as_str()).zip(0..).collect();
    names.sort_unstable();
    for (number, column) in schema.columns.iter().enumerate() {
        let first = names.partition_point(|(name, _)| *name < column.name.as_str());
        let new_name = names.get(first).is_some_and(|(_, first)| *first == number);
        check_column(column, new_name).map_err(|error| error.with_column(&column.name))?;
    }
    let columns = schema.columns.iter().map(|column| &column.metadata);
    if columns.chain([&schema.metadata]).any(|metadata| metadata.contains_key("")) {
        return Err(Error::corrupt("R-3.4", "a metadata key is empty"));
    }
    Ok(())
}

fn check_column(column: &ColumnSchema, new_name: bool) -> Result<()> {
    let is_control = |c: char| c.is_ascii_control();
    if column.name.is_empty() || column.name.contains(is_control) {
        let message = "the column name is empty or contains control characters";
        return Err(Error::corrupt("R-3.4", message));
    }
    if !new_name {
        return Err(Error::corrupt("R-3.4", "two columns have the same name"));
    }
    if column.dtype.is_string() && column.shape != Shape::ragged() {
        let message = format!("a {} column must have shape [*], but the schema states {}", column.dtype, column.shape);
        return Err(Error::corrupt("R-3.5", message));
    }
    column.layout().map_err(|error| Error::corrupt("R-3.6", error.message()))?;
    match column.cast {
        Some(CastSpec { source }) if !cast_is_possible(source, column.dtype) => {
            let message = format!("values cannot be cast from {source} to {}", column.dtype);
            Err(Error::corrupt("R-3.7", message))
        }
        _ => Ok(()),
    }
}

fn cast_is_possible(source: CastSource, target: DType) -> bool {
    let is_number = source.dtype().is_none_or(|source| source.is_number() && source != target);
    is_number && target.is_float()
}
