//! Arrow IPC files and streams.

use super::ipc_check::{self, Stated};
use super::records::{ArrowSource, Guarded, RecordBatches, Records, malformed};
use super::rows::ColumnPath;
use super::schema_bytes::without_filler;
use super::schema_order::{Listed, SchemaOrder};
use crate::error::Advice;
use crate::import::input_file::{InputFile, InputReader};
use crate::import::source::PassRows;
use crate::{Error, Result};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{Schema, SchemaRef};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Opens an IPC file.
pub(in crate::import) fn open_file(file: &Arc<InputFile>) -> Result<ArrowSource<Ipc>> {
    let (stated, schema) = ipc_check::file(file)?;
    Ipc { file: Arc::clone(file), stated, schema: Arc::clone(&schema), order: SchemaOrder::default(), is_stream: false }
        .into_source(schema)
}

/// Opens an IPC stream that is in a file. The error about a file of another format lists the
/// formats that are `accepted`.
pub(in crate::import) fn open_stream(file: &Arc<InputFile>, accepted: &str) -> Result<ArrowSource<Ipc>> {
    let stated = ipc_check::stream(file, accepted)?;
    let ipc = Ipc {
        file: Arc::clone(file),
        stated,
        schema: Arc::new(Schema::empty()),
        order: SchemaOrder::default(),
        is_stream: true,
    };
    let schema = ipc.stream_reader(None)?.schema();
    ipc.into_source(schema)
}

/// A file of Arrow's IPC format.
pub(in crate::import) struct Ipc {
    file: Arc<InputFile>,
    stated: Stated,
    schema: SchemaRef,
    order: SchemaOrder,
    is_stream: bool,
}

impl Ipc {
    fn into_source(self, schema: SchemaRef) -> Result<ArrowSource<Self>> {
        let order = SchemaOrder::of(&schema, Listed::Nodes);
        let (schema, dropped) = without_filler(Arc::unwrap_or_clone(schema));
        let schema = Arc::new(schema);
        let source = ArrowSource::new(&schema, Self { order, schema: Arc::clone(&schema), ..self })?;
        Ok(source.with_dropped(dropped))
    }

    fn batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>> {
        let fields = fields.to_vec();
        Ok(if self.is_stream {
            Box::new(Guarded::new(self.stream_reader(Some(fields))?))
        } else {
            Box::new(Guarded::new(self.file_reader(fields)?))
        })
    }

    /// Adds the column to an error of the decoder, which does not tell it: a field that fails to be
    /// decoded alone, found by halves.
    fn blame(&self, mut fields: &[usize], error: Error) -> Error {
        let fails =
            |fields: &[usize]| self.batches(fields).is_ok_and(|mut batches| batches.any(|batch| batch.is_err()));
        if fails(&[]) {
            return error; // whatever the column
        }
        while let (true, Some((half, rest))) = (fields.len() > 1, fields.split_at_checked(fields.len() / 2)) {
            fields = if fails(half) { half } else { rest };
        }
        match fields.first().and_then(|field| self.schema.fields().get(*field)) {
            Some(field) if fails(fields) => error.with_column(field.name()).with_advice([Advice::SkipColumns]),
            _ => error,
        }
    }

    /// Returns a reader of the file, with the schema that the decoder takes.
    fn reader(&self) -> Result<InputReader> {
        let reader = self.file.reader()?;
        Ok(match &self.stated.patch {
            Some((start, bytes)) => reader.patched(*start, bytes),
            None => reader,
        })
    }

    fn file_reader(&self, fields: Vec<usize>) -> Result<FileReader<BufReader<InputReader>>> {
        FileReader::try_new_buffered(self.reader()?, Some(fields)).map_err(malformed)
    }

    fn stream_reader(&self, fields: Option<Vec<usize>>) -> Result<StreamReader<BufReader<InputReader>>> {
        StreamReader::try_new_buffered(self.reader()?, fields).map_err(malformed)
    }
}

impl Records for Ipc {
    fn path(&self) -> Option<&Path> {
        Some(self.file.name())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.stated.rows)
    }

    /// Dictionaries have nulls among their values, which the counts leave out.
    fn may_have_nulls(&self, path: &ColumnPath) -> bool {
        let is_same = self.order.count == self.stated.nulls.len() && !self.stated.null_values;
        let nulls = self.order.range(path).filter(|_| is_same);
        let nulls = nulls.and_then(|range| self.stated.nulls.get(range)).and_then(<[bool]>::split_first);
        nulls.is_none_or(|(own, inner)| if path.is_struct { *own } else { inner.contains(&true) })
    }

    fn record_batches(&self, fields: &[usize], _: PassRows) -> Result<RecordBatches<'_>> {
        let (batches, fields) = (self.batches(fields)?, fields.to_vec());
        Ok(Box::new(batches.map(move |batch| batch.map_err(|error| self.blame(&fields, error)))))
    }
}
