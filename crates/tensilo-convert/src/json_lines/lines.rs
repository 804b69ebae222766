//! The objects of a file.

use super::arrays::{BATCH_MEMBERS, array};
use super::kind::Members;
use super::value::{Fault, Json, Object, Parser};
use crate::rows;
use crate::stream::{ByteStream, is_named, stream_error};
use std::path::Path;
use std::sync::Arc;
use tensilo::import::arrow::array::{RecordBatch, RecordBatchOptions};
use tensilo::import::arrow::datatypes::{Schema, SchemaRef};
use tensilo::import::{FormatFile, InputFormat, RecordSource, TypeOrigin};
use tensilo::{Error, Result};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Files of objects that follow one another, or are in one array, compressed by gzip or not.
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
            let observed = members.observe_columns(&object, |what| objects.place(what));
            observed.map_err(|what| objects.refused(&what))?;
        }
        let schema = Arc::new(Schema::new(members.fields()));
        let row_count = members.object_count();
        Ok(Some(Box::new(JsonLinesFile { file: file.clone(), schema, row_count })))
    }
}

/// Returns whether a file with these first bytes is JSON with objects. Refuses UTF-16.
fn is_json(first: &[u8], path: &Path) -> Result<bool> {
    let is_text_of_two_bytes = matches!(first, [0xFF, 0xFE, b'{' | b'[', 0, ..] | [0xFE, 0xFF, 0, b'{' | b'[', ..]);
    if is_text_of_two_bytes || is_named_so(path) && matches!(first, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
        let message = "the text is UTF-16, and JSON is UTF-8; convert it, for example by `iconv -f UTF-16 -t UTF-8`";
        return Err(Error::bad_input(message));
    }
    let first = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(first).trim_ascii_start();
    Ok(match first.split_first() {
        Some((b'{', _)) => true,
        Some((b'[', inside)) => inside.trim_ascii_start().starts_with(b"{") || is_named_so(path),
        Some(_) => false,
        None => is_named_so(path),
    })
}

/// Returns whether a name has an extension of JSON: `a.jsonl`, `a.ndjson`, `a.json`, `a.jsonl.gz`.
fn is_named_so(path: &Path) -> bool {
    is_named(path, |extension| matches!(extension, "jsonl" | "ndjson" | "json"))
}

/// A file whose types are known.
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
        TypeOrigin::Found
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        let (mut objects, schema) = (Objects::open(&self.file)?, Arc::new(schema));
        let of = Arc::clone(&schema);
        Ok(rows::batches(&schema, move || objects.next_object(), move |objects| record_batch(objects, &of)))
    }
}

fn record_batch(objects: &[Object], schema: &SchemaRef) -> Result<RecordBatch> {
    let mut left = BATCH_MEMBERS;
    let arrays = schema.fields().iter().map(|field| {
        let values: Vec<Option<&Json>> = objects.iter().map(|object| object.get(field.name())).collect();
        array(field.data_type(), &values, &mut left)
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(objects.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
    batch.map_err(|error| Error::bad_input(error.to_string()))
}

/// How objects follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Not known before the first byte.
    Unknown,
    /// With whitespace between them: a line for each, or several lines.
    Lines,
    /// In one array.
    Array,
}

/// The objects of a file, in order.
struct Objects {
    parser: Parser<ByteStream>,
    layout: Layout,
    /// The number of objects so far.
    count: u64,
    /// The line in which the last object begins.
    line: u64,
}

impl Objects {
    fn open(file: &FormatFile) -> Result<Self> {
        let parser = Parser::new(ByteStream::open(file)?);
        Ok(Self { parser, layout: Layout::Unknown, count: 0, line: 1 })
    }

    /// Returns the error about the last object.
    fn refused(&self, what: &str) -> Error {
        Error::bad_input(self.place(what.trim_start_matches(':').trim_start()))
    }

    /// Returns `what` is wrong behind the place of the last object.
    fn place(&self, what: &str) -> String {
        match self.layout {
            Layout::Array => format!("object {} (line {}): {what}", self.count, self.line),
            _ => format!("line {}: {what}", self.line),
        }
    }

    /// Returns the next object, and its bytes.
    fn next_object(&mut self) -> Result<Option<(Object, usize)>> {
        self.next_or_fault().map_err(|fault| match fault {
            Fault::Stream(error) => stream_error(&error, &format!("line {}", self.parser.line)),
            Fault::Value(what) => self.refused(&what),
            Fault::Syntax(what) => {
                let line = self.parser.line;
                let begin =
                    if self.line < line { format!("; the object begins in line {}", self.line) } else { String::new() };
                Error::bad_input(format!("line {line}: this is not JSON: {what}{begin}"))
            }
        })
    }

    fn next_or_fault(&mut self) -> std::result::Result<Option<(Object, usize)>, Fault> {
        let parser = &mut self.parser;
        if self.layout != Layout::Array {
            // files that begin with a mark may have been joined
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
                self.layout = Layout::Lines; // nothing but whitespace may follow
                parser.skip_whitespace()?;
                self.line = parser.line;
                return match parser.peek()? {
                    None => Ok(None),
                    Some(_) => Err(parser.unexpected("the end of the file behind the array")?),
                };
            }
            if self.count > 0 {
                if !parser.take(b',')? {
                    return Err(parser.unexpected("',' or ']' behind an object")?);
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
            _ => Err(Fault::Value("the value is not an object; each sample must be one".to_owned())),
        }
    }
}
