//! Arrow IPC files and streams, uncompressed, so that they can be mapped.

use super::field::Parts;
use super::format::{BatchWriter, Format, write_error};
use crate::Result;
use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::SchemaRef;
use std::io::Write;

struct ArrowFile<'a>(FileWriter<&'a mut (dyn Write + Send)>);

struct ArrowStream<'a>(StreamWriter<&'a mut (dyn Write + Send)>);

pub(super) const FORMAT: Format = Format { begin, parts: Parts::Required };

pub(super) const STREAM: Format = Format { begin: begin_stream, parts: Parts::Required };

/// Returns options by which a dictionary has the values of all batches before.
fn options() -> IpcWriteOptions {
    IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta)
}

fn begin<'a>(file: &'a mut (dyn Write + Send), schema: &SchemaRef) -> Result<Box<dyn BatchWriter + 'a>> {
    Ok(Box::new(ArrowFile(FileWriter::try_new_with_options(file, schema, options()).map_err(write_error)?)))
}

fn begin_stream<'a>(file: &'a mut (dyn Write + Send), schema: &SchemaRef) -> Result<Box<dyn BatchWriter + 'a>> {
    Ok(Box::new(ArrowStream(StreamWriter::try_new_with_options(file, schema, options()).map_err(write_error)?)))
}

impl BatchWriter for ArrowFile<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(write_error)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish().map_err(write_error)
    }
}

impl BatchWriter for ArrowStream<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(write_error)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.0.finish().map_err(write_error)
    }
}
