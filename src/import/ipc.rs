//! Arrow IPC files and streams.

use super::input::Place;
use super::ipc_check;
use super::source::{Batches, Guarded, Source, malformed};
use crate::Result;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::{FileReader, StreamReader};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Opens an IPC file.
pub(super) fn open_file(place: &Place) -> Result<Box<dyn Source>> {
    let row_count = ipc_check::file(place)?;
    let schema = file_reader(place, None)?.schema();
    Ok(Box::new(Ipc { place: place.clone(), schema, row_count, is_stream: false }))
}

/// Opens an IPC stream that stands in a file.
pub(super) fn open_stream(place: &Place) -> Result<Box<dyn Source>> {
    let row_count = ipc_check::stream(place)?;
    let schema = stream_reader(place, None)?.schema();
    Ok(Box::new(Ipc { place: place.clone(), schema, row_count, is_stream: true }))
}

struct Ipc {
    place: Place,
    schema: SchemaRef,
    row_count: u64,
    is_stream: bool,
}

fn file_reader(place: &Place, fields: Option<Vec<usize>>) -> Result<FileReader<BufReader<File>>> {
    FileReader::try_new_buffered(place.open()?, fields).map_err(|error| malformed(&error))
}

fn stream_reader(place: &Place, fields: Option<Vec<usize>>) -> Result<StreamReader<BufReader<File>>> {
    StreamReader::try_new_buffered(place.open()?, fields).map_err(|error| malformed(&error))
}

impl Source for Ipc {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.place.name)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.row_count)
    }

    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>> {
        let fields = Some(fields.to_vec());
        Ok(if self.is_stream {
            Box::new(Guarded::new(stream_reader(&self.place, fields)?))
        } else {
            Box::new(Guarded::new(file_reader(&self.place, fields)?))
        })
    }
}
