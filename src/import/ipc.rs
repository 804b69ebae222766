//! Arrow IPC files and streams.

use super::input::Place;
use super::source::{Batches, Guarded, Source, malformed};
use crate::{Error, Result};
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::ipc::root_as_message;
use arrow::record_batch::RecordBatch;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

/// Opens an IPC file.
pub(super) fn open_file(place: &Place) -> Result<Box<dyn Source>> {
    let schema = file_reader(place, None)?.schema();
    Ok(Box::new(IpcFile { place: place.clone(), schema }))
}

/// Opens an IPC stream that stands in a file.
pub(super) fn open_stream(place: &Place) -> Result<Box<dyn Source>> {
    check_first_message(place)?;
    let schema = stream_reader(place, None, Rc::default())?.schema();
    Ok(Box::new(IpcStream { place: place.clone(), schema }))
}

struct IpcFile {
    place: Place,
    schema: SchemaRef,
}

fn file_reader(place: &Place, fields: Option<Vec<usize>>) -> Result<FileReader<BufReader<File>>> {
    FileReader::try_new_buffered(place.open()?, fields).map_err(|error| malformed(&error))
}

impl Source for IpcFile {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.place.name)
    }

    fn row_count(&self) -> Option<u64> {
        None
    }

    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>> {
        Ok(Box::new(Guarded::new(file_reader(&self.place, Some(fields.to_vec()))?)))
    }
}

struct IpcStream {
    place: Place,
    schema: SchemaRef,
}

/// A reader that tells how many bytes were taken from it.
struct Counted<R> {
    inner: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken.set(self.taken.get().saturating_add(count as u64)); // exact: usize has at most 64 bits
        Ok(count)
    }
}

fn stream_reader(
    place: &Place,
    fields: Option<Vec<usize>>,
    taken: Rc<Cell<u64>>,
) -> Result<StreamReader<Counted<BufReader<File>>>> {
    let inner = BufReader::new(place.open()?);
    StreamReader::try_new(Counted { inner, taken }, fields).map_err(|error| malformed(&error))
}

/// Refuses what is no stream, or is one of a machine of the other byte order.
fn check_first_message(place: &Place) -> Result<()> {
    const METADATA_BYTES: u64 = 256 << 20;
    let mut file = place.open()?;
    let mut message = Vec::new();
    let read = |bytes: u64, out: &mut Vec<u8>, file: &mut File| {
        out.clear();
        file.take(bytes).read_to_end(out).map_err(|error| place.io("reading the file", error))
    };
    let foreign = || Error::bad_input("this is neither a Parquet file nor an Arrow IPC file or stream");
    let mut length = [0xFF; 4];
    while length == [0xFF; 4] {
        read(4, &mut message, &mut file)?;
        length = message.as_slice().try_into().map_err(|_| foreign())?;
    }
    let length = u64::try_from(i32::from_le_bytes(length)).ok().filter(|&length| length <= METADATA_BYTES);
    read(length.ok_or_else(foreign)?, &mut message, &mut file)?;
    let header = root_as_message(&message).map_err(|_| foreign())?;
    let schema = header.header_as_schema().ok_or_else(foreign)?;
    if !schema.endianness().equals_to_target_endianness() {
        return Err(Error::bad_input("the Arrow stream has the byte order of another machine; convert it there"));
    }
    Ok(())
}

impl Source for IpcStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.place.name)
    }

    fn row_count(&self) -> Option<u64> {
        None
    }

    fn batches(&self, fields: &[usize]) -> Result<Batches<'_>> {
        let file = self.place.open()?;
        let length = file.metadata().map_err(|error| self.place.io("reading the file", error))?.len();
        let taken = Rc::new(Cell::new(0));
        let reader = stream_reader(&self.place, Some(fields.to_vec()), Rc::clone(&taken))?;
        Ok(Box::new(WholeStream { reader: Guarded::new(reader), taken, length }))
    }
}

/// The batches of a stream that must fill its file.
struct WholeStream<I> {
    reader: Guarded<I>,
    taken: Rc<Cell<u64>>,
    length: u64,
}

impl<R: Read> Iterator for WholeStream<StreamReader<R>> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.reader.next();
        if next.is_some() {
            return next;
        }
        let rest = self.length.saturating_sub(self.taken.replace(self.length));
        // messages are multiples of 8 bytes, and an old end mark has 4
        if rest > 0 || !std::mem::take(&mut self.length).is_multiple_of(4) {
            let message = format!("the Arrow stream is cut off inside a message, or {rest} other bytes follow it");
            return Some(Err(Error::bad_input(message)));
        }
        None
    }
}
