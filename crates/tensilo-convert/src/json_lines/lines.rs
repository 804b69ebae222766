//! The lines of a file.

use super::arrays::array;
use super::kind::Members;
use crate::rows;
use crate::stream::{ByteStream, VALUE_BYTES, stream_error};
use serde_json::{Map, Value};
use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use tensilo::import::arrow::array::{RecordBatch, RecordBatchOptions};
use tensilo::import::arrow::datatypes::{Schema, SchemaRef};
use tensilo::import::{FormatFile, InputFormat, RecordSource};
use tensilo::{Error, Result};

/// Files with an object in each line, compressed by gzip or not.
pub(crate) struct JsonLines;

impl InputFormat for JsonLines {
    fn name(&self) -> &str {
        "JSON lines"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let first = ByteStream::first(file, 256)?;
        let first = first.trim_ascii_start();
        let is_one = first.starts_with(b"{") || first.is_empty() && is_named_so(file.path());
        if !is_one {
            return Ok(None);
        }
        let mut members = Members::default();
        let mut lines = Lines::open(file)?;
        while let Some((object, _)) = lines.next_object()? {
            let observed = members.observe(&object);
            observed.map_err(|what| lines.refused(what.trim_start_matches('.')))?;
        }
        let schema = Arc::new(Schema::new(members.fields().map_err(Error::bad_input)?));
        let row_count = members.object_count();
        Ok(Some(Box::new(JsonLinesFile { file: file.clone(), schema, row_count })))
    }
}

/// Returns whether a name is that of JSON lines: `a.jsonl`, `a.ndjson`, `a.jsonl.gz`.
fn is_named_so(path: &Path) -> bool {
    let is_known = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| matches!(extension, "jsonl" | "ndjson"))
    };
    is_known(path)
        || (path.extension().is_some_and(|extension| extension == "gz") && is_known(&path.with_extension("")))
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

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        let (mut lines, schema) = (Lines::open(&self.file)?, Arc::new(schema));
        let of = Arc::clone(&schema);
        Ok(rows::batches(&schema, move || lines.next_object(), move |objects| record_batch(objects, &of)))
    }
}

fn record_batch(objects: &[Map<String, Value>], schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = schema.fields().iter().map(|field| {
        let values: Vec<Option<&Value>> = objects.iter().map(|object| object.get(field.name())).collect();
        array(field.data_type(), &values)
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(objects.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
    batch.map_err(|error| Error::bad_input(error.to_string()))
}

/// The objects of a file, in order.
struct Lines {
    stream: ByteStream,
    /// The number of the last line, counted from 1.
    line: u64,
}

impl Lines {
    fn open(file: &FormatFile) -> Result<Self> {
        Ok(Self { stream: ByteStream::open(file)?, line: 0 })
    }

    fn refused(&self, what: &str) -> Error {
        Error::bad_input(format!("line {}: {what}", self.line))
    }

    /// Returns the next object, and the bytes of its line. Empty lines are passed over.
    fn next_object(&mut self) -> Result<Option<(Map<String, Value>, usize)>> {
        loop {
            let mut line = Vec::new();
            self.line = self.line.saturating_add(1);
            let read = (&mut self.stream).take(VALUE_BYTES).read_until(b'\n', &mut line);
            read.map_err(|error| stream_error(&error, &format!("line {}", self.line)))?;
            if line.is_empty() {
                return Ok(None);
            }
            if u64::try_from(line.len()).is_ok_and(|bytes| bytes >= VALUE_BYTES) {
                return Err(self.refused(&format!("it has more than {VALUE_BYTES} bytes")));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            return match serde_json::from_slice(&line) {
                Ok(Value::Object(object)) => Ok(Some((object, line.len()))),
                Ok(_) => Err(self.refused("it is no object, whose members become columns")),
                Err(error) => Err(self.refused(&format!("it is no JSON by itself: {error}"))),
            };
        }
    }
}
