//! Reads the objects of a file in two passes: the first infers the types of members, the second
//! builds arrays.
//!
//! The parser reads one object at a time, so a file that is a single array needs no more memory
//! than a file of lines. Arrow arrays are dense, though: an object in a list stores a null for each
//! member that only other objects have. So the total number of members in a batch is also bounded.

use super::infer::Members;
use super::value::{Json, Object, ParseError, Parser};
use crate::stream::{ByteStream, matches_extension, row_batches, stream_error, values_per_row};
use std::path::Path;
use std::sync::Arc;
use tensilo::import::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, NullArray, RecordBatch, RecordBatchOptions,
    StringArray, StructArray, UInt64Array,
};
use tensilo::import::arrow::buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use tensilo::import::arrow::datatypes::{DataType, Schema, SchemaRef};
use tensilo::import::arrow::error::ArrowError;
use tensilo::import::{FormatFile, InputFormat, RecordSource, TypeOrigin};
use tensilo::{Error, Result};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Files of objects, which follow one another or are the entries of one array. They can be
/// compressed with gzip.
pub(crate) struct JsonLines;

impl InputFormat for JsonLines {
    fn name(&self) -> &str {
        "JSON lines"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        if !is_json(&ByteStream::first(file, 256)?, file.path())? {
            return Ok(None);
        }
        let mut members = Members::default();
        let mut objects = Objects::open(file)?;
        while let Some((object, _)) = objects.next_object()? {
            let observed = members.observe_columns(&object, |what| objects.with_position(what));
            observed.map_err(|what| objects.refused(&what))?;
        }
        let schema = Arc::new(Schema::new(members.fields()));
        let row_count = members.object_count();
        Ok(Some(Box::new(JsonLinesFile { file: file.clone(), schema, row_count })))
    }
}

/// Returns whether a file with these first bytes contains JSON objects. Fails if it is UTF-16.
fn is_json(first: &[u8], path: &Path) -> Result<bool> {
    let is_utf16 = matches!(first, [0xFF, 0xFE, b'{' | b'[', 0, ..] | [0xFE, 0xFF, 0, b'{' | b'[', ..]);
    if is_utf16 || has_extension(path) && matches!(first, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
        let message =
            "the text is UTF-16, but JSON must be UTF-8; convert it, for example with `iconv -f UTF-16 -t UTF-8`";
        return Err(Error::bad_input(message));
    }
    let first = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first).trim_ascii_start();
    Ok(match first.split_first() {
        Some((b'{', _)) => true,
        Some((b'[', inside)) => inside.trim_ascii_start().starts_with(b"{") || has_extension(path),
        Some(_) => false,
        None => has_extension(path),
    })
}

/// Returns whether a name has a JSON extension: `a.jsonl`, `a.ndjson`, `a.json`, `a.jsonl.gz`.
fn has_extension(path: &Path) -> bool {
    matches_extension(path, |extension| matches!(extension, "jsonl" | "ndjson" | "json"))
}

/// A file after the first pass.
struct JsonLinesFile {
    file: FormatFile,
    schema: SchemaRef,
    row_count: u64,
}

impl RecordSource for JsonLinesFile {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.row_count)
    }

    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::Inferred
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        let (mut objects, schema) = (Objects::open(&self.file)?, Arc::new(schema));
        let of = Arc::clone(&schema);
        Ok(row_batches(&schema, move || objects.next_object(), move |objects| record_batch(objects, &of)))
    }
}

fn record_batch(objects: &[Object], schema: &SchemaRef) -> Result<RecordBatch> {
    let mut left = MAX_BATCH_MEMBERS;
    let arrays = schema.fields().iter().map(|field| {
        let values: Vec<Option<&Json>> = objects.iter().map(|object| object.get(field.name())).collect();
        array(field.data_type(), &values, &mut left)
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(objects.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
    batch.map_err(|error| Error::bad_input(error.to_string()))
}

/// How the objects are arranged in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Not known before the first byte is read.
    Unknown,
    /// Separated by whitespace. Each object spans one or more lines.
    Lines,
    /// As the entries of one array.
    Array,
}

/// The objects of a file, in order.
struct Objects {
    parser: Parser<ByteStream>,
    layout: Layout,
    /// The number of objects read so far.
    count: u64,
    /// The line on which the last object begins.
    line: u64,
}

impl Objects {
    fn open(file: &FormatFile) -> Result<Self> {
        let parser = Parser::new(ByteStream::open(file)?);
        Ok(Self { parser, layout: Layout::Unknown, count: 0, line: 1 })
    }

    /// Returns an error about the last object.
    fn refused(&self, what: &str) -> Error {
        Error::bad_input(self.with_position(what.trim_start_matches(':').trim_start()))
    }

    /// Prefixes `what` with the position of the last object.
    fn with_position(&self, what: &str) -> String {
        match self.layout {
            Layout::Array => format!("object {} (line {}): {what}", self.count, self.line),
            _ => format!("line {}: {what}", self.line),
        }
    }

    /// Returns the next object and its size in bytes.
    fn next_object(&mut self) -> Result<Option<(Object, usize)>> {
        self.try_next_object().map_err(|error| match error {
            ParseError::Stream(error) => stream_error(&error, &format!("line {}", self.parser.line)),
            ParseError::Value(what) => self.refused(&what),
            ParseError::Syntax(what) => {
                let line = self.parser.line;
                let begin =
                    if self.line < line { format!("; the object begins on line {}", self.line) } else { String::new() };
                Error::bad_input(format!("line {line}: invalid JSON: {what}{begin}"))
            }
        })
    }

    fn try_next_object(&mut self) -> std::result::Result<Option<(Object, usize)>, ParseError> {
        let parser = &mut self.parser;
        if self.layout != Layout::Array {
            // a byte order mark can precede any object, because files that begin with one can be
            // concatenated
            parser.skip_whitespace()?;
            parser.skip_byte_order_mark()?;
        }
        parser.skip_whitespace()?;
        self.line = parser.line;
        if self.layout == Layout::Unknown {
            self.layout = if parser.take(b'[')? { Layout::Array } else { Layout::Lines };
            parser.skip_whitespace()?;
        }
        if self.layout == Layout::Array {
            if parser.take(b']')? {
                self.layout = Layout::Lines; // only whitespace may follow
                parser.skip_whitespace()?;
                self.line = parser.line;
                return match parser.peek()? {
                    None => Ok(None),
                    Some(_) => Err(parser.unexpected("the end of the file after the array")?),
                };
            }
            if self.count > 0 {
                if !parser.take(b',')? {
                    return Err(parser.unexpected("',' or ']' after an object")?);
                }
                parser.skip_whitespace()?;
            }
        }
        self.line = parser.line;
        if self.layout == Layout::Lines && parser.peek()?.is_none() {
            return Ok(None);
        }
        self.count = self.count.saturating_add(1);
        match parser.value()? {
            Json::Object(object) => Ok(Some((*object, usize::try_from(parser.value_bytes).unwrap_or(usize::MAX)))),
            _ => Err(ParseError::Value("the value is not an object; each sample must be an object".to_owned())),
        }
    }
}

/// The maximum number of members of all objects in a batch. Arrays are dense: `{}` in a list stores
/// a null for each member that another object in a list has.
const MAX_BATCH_MEMBERS: usize = 1 << 28;

/// Converts values to an array of type `data_type`. `None` stands for null. `left` is the number of
/// object members that can still be added to the batch.
fn array(data_type: &DataType, values: &[Option<&Json>], left: &mut usize) -> Result<ArrayRef> {
    let values: Vec<Option<&Json>> =
        values.iter().map(|value| value.filter(|value| !matches!(value, Json::Null))).collect();
    let values = values.as_slice();
    Ok(match data_type {
        DataType::Null => Arc::new(NullArray::new(values.len())),
        DataType::Boolean => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_bool)).collect::<BooleanArray>())
        }
        DataType::Int64 => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_integer::<i64>)).collect::<Int64Array>())
        }
        DataType::UInt64 => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_integer::<u64>)).collect::<UInt64Array>())
        }
        DataType::Float64 => {
            Arc::new(values.iter().map(|value| value.and_then(Json::as_float)).collect::<Float64Array>())
        }
        DataType::List(item) => {
            let (mut members, mut ends, mut end) = (Vec::new(), vec![0], 0_i32);
            for value in values {
                let list = value.and_then(Json::as_array).unwrap_or_default();
                members.extend(list.iter().map(Some));
                let count = i32::try_from(list.len()).ok().and_then(|count| end.checked_add(count));
                end =
                    count.ok_or_else(|| Error::bad_input("the arrays of a batch have more than 2^31 - 1 elements"))?;
                ends.push(end);
            }
            let members = array(item.data_type(), &members, left)?;
            let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
            let lists = ListArray::try_new(Arc::clone(item), offsets, members, nulls(values));
            Arc::new(lists.map_err(failed)?)
        }
        DataType::Struct(fields) => {
            let member = |name: &str| {
                values.iter().map(|value| value.and_then(|value| value.as_object()?.get(name))).collect::<Vec<_>>()
            };
            let member_count = fields.iter().map(|field| values_per_row(field)).sum::<usize>();
            let fits = values.len().checked_mul(member_count).and_then(|count| left.checked_sub(count));
            *left = fits.ok_or_else(|| {
                let count = values.len();
                Error::bad_input(format!(
                    "{count} objects in lists, with {member_count} members each, need too much memory: a batch can \
                     have {MAX_BATCH_MEMBERS} members"
                ))
            })?;
            let arrays = fields.iter().map(|field| array(field.data_type(), &member(field.name()), left));
            let arrays = arrays.collect::<Result<Vec<_>>>()?;
            let structs = StructArray::try_new_with_length(fields.clone(), arrays, nulls(values), values.len());
            Arc::new(structs.map_err(failed)?)
        }
        _ => Arc::new(values.iter().map(|value| value.and_then(Json::as_text)).collect::<StringArray>()),
    })
}

fn failed(error: ArrowError) -> Error {
    Error::bad_input(error.to_string())
}

fn nulls(values: &[Option<&Json>]) -> Option<NullBuffer> {
    let is_valid: BooleanBuffer = values.iter().map(Option::is_some).collect();
    Some(NullBuffer::new(is_valid)).filter(|nulls| nulls.null_count() > 0)
}
