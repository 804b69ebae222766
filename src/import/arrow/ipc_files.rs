//! Arrow IPC files and streams.

use super::ipc_check;
use super::records::{ArrowSource, Guarded, RecordBatches, Records, malformed};
use crate::Result;
use crate::import::input_file::{InputFile, InputReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Opens an IPC file.
pub(in crate::import) fn open_file(file: &Arc<InputFile>) -> Result<ArrowSource<Ipc>> {
    let row_count = ipc_check::file(file)?;
    let schema = file_reader(file, None)?.schema();
    Ok(ArrowSource::new(&schema, Ipc { file: Arc::clone(file), row_count, is_stream: false }))
}

/// Opens an IPC stream that is in a file.
pub(in crate::import) fn open_stream(file: &Arc<InputFile>) -> Result<ArrowSource<Ipc>> {
    let row_count = ipc_check::stream(file)?;
    let schema = stream_reader(file, None)?.schema();
    Ok(ArrowSource::new(&schema, Ipc { file: Arc::clone(file), row_count, is_stream: true }))
}

/// A file of Arrow's IPC format.
pub(in crate::import) struct Ipc {
    file: Arc<InputFile>,
    row_count: u64,
    is_stream: bool,
}

fn file_reader(file: &InputFile, fields: Option<Vec<usize>>) -> Result<FileReader<BufReader<InputReader>>> {
    FileReader::try_new_buffered(file.reader()?, fields).map_err(|error| malformed(&error))
}

fn stream_reader(file: &InputFile, fields: Option<Vec<usize>>) -> Result<StreamReader<BufReader<InputReader>>> {
    StreamReader::try_new_buffered(file.reader()?, fields).map_err(|error| malformed(&error))
}

impl Records for Ipc {
    fn path(&self) -> Option<&Path> {
        Some(self.file.name())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.row_count)
    }

    fn record_batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>> {
        let fields = Some(fields.to_vec());
        Ok(if self.is_stream {
            Box::new(Guarded::new(stream_reader(&self.file, fields)?))
        } else {
            Box::new(Guarded::new(file_reader(&self.file, fields)?))
        })
    }
}
