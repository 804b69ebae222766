//! Arrow IPC files and streams.

use super::input::{InputFile, InputReader};
use super::ipc_check;
use super::source::{Batches, Guarded, Source, malformed};
use crate::Result;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::SchemaRef;
use std::io::BufReader;
use std::path::Path;
use std::rc::Rc;

/// Opens an IPC file.
pub(super) fn open_file(file: &Rc<InputFile>) -> Result<Box<dyn Source>> {
    let row_count = ipc_check::file(file)?;
    let schema = file_reader(file, None)?.schema();
    Ok(Box::new(Ipc { file: Rc::clone(file), schema, row_count, is_stream: false }))
}

/// Opens an IPC stream that stands in a file.
pub(super) fn open_stream(file: &Rc<InputFile>) -> Result<Box<dyn Source>> {
    let row_count = ipc_check::stream(file)?;
    let schema = stream_reader(file, None)?.schema();
    Ok(Box::new(Ipc { file: Rc::clone(file), schema, row_count, is_stream: true }))
}

struct Ipc {
    file: Rc<InputFile>,
    schema: SchemaRef,
    row_count: u64,
    is_stream: bool,
}

fn file_reader(file: &InputFile, fields: Option<Vec<usize>>) -> Result<FileReader<BufReader<InputReader>>> {
    FileReader::try_new_buffered(file.reader()?, fields).map_err(|error| malformed(&error))
}

fn stream_reader(file: &InputFile, fields: Option<Vec<usize>>) -> Result<StreamReader<BufReader<InputReader>>> {
    StreamReader::try_new_buffered(file.reader()?, fields).map_err(|error| malformed(&error))
}

impl Source for Ipc {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn path(&self) -> Option<&Path> {
        Some(self.file.name())
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.row_count)
    }

    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>> {
        let fields = Some(fields.to_vec());
        Ok(if self.is_stream {
            Box::new(Guarded::new(stream_reader(&self.file, fields)?))
        } else {
            Box::new(Guarded::new(file_reader(&self.file, fields)?))
        })
    }
}
