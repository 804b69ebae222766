//! Arrow IPC files and streams.

use super::column_path::ColumnPath;
use super::ipc_check::{self, Stated};
use super::records::{ArrowSource, Guarded, RecordBatches, Records, malformed};
use super::schema_order::{Listed, SchemaOrder};
use crate::Result;
use crate::import::input_file::{InputFile, InputReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::SchemaRef;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Opens an IPC file.
pub(in crate::import) fn open_file(file: &Arc<InputFile>) -> Result<ArrowSource<Ipc>> {
    let (stated, schema) = ipc_check::file(file)?;
    source(file, schema, stated, false)
}

/// Opens an IPC stream that is in a file. The error about a file of another format lists the
/// formats that are `accepted`.
pub(in crate::import) fn open_stream(file: &Arc<InputFile>, accepted: &str) -> Result<ArrowSource<Ipc>> {
    let stated = ipc_check::stream(file, accepted)?;
    let schema = stream_reader(file, None)?.schema();
    source(file, schema, stated, true)
}

fn source(file: &Arc<InputFile>, schema: SchemaRef, stated: Stated, is_stream: bool) -> Result<ArrowSource<Ipc>> {
    let order = SchemaOrder::of(&schema, Listed::Nodes);
    let ipc = Ipc { file: Arc::clone(file), stated, order, is_stream };
    ArrowSource::new(&schema, ipc)
}

/// A file of Arrow's IPC format.
pub(in crate::import) struct Ipc {
    file: Arc<InputFile>,
    stated: Stated,
    order: SchemaOrder,
    is_stream: bool,
}

fn file_reader(file: &InputFile, fields: Vec<usize>) -> Result<FileReader<BufReader<InputReader>>> {
    FileReader::try_new_buffered(file.reader()?, Some(fields)).map_err(|error| malformed(&error))
}

fn stream_reader(file: &InputFile, fields: Option<Vec<usize>>) -> Result<StreamReader<BufReader<InputReader>>> {
    StreamReader::try_new_buffered(file.reader()?, fields).map_err(|error| malformed(&error))
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

    fn record_batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>> {
        let fields = fields.to_vec();
        Ok(if self.is_stream {
            Box::new(Guarded::new(stream_reader(&self.file, Some(fields))?))
        } else {
            Box::new(Guarded::new(file_reader(&self.file, fields)?))
        })
    }
}
