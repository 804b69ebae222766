//! `.npz`: a zip archive of arrays, each of which is a column.

use super::array::{check_length, column};
use super::header::NpyHeader;
use crate::error::unreadable;
use crate::options::FormatOptions;
use crate::tensor::{ArchivedStream, ColumnBytes, TensorColumn, TensorTable};
use flate2::read::DeflateDecoder;
use std::io::{Read, Seek, SeekFrom};
use tensilo::import::{FormatFile, InputFormat, InputReader, RecordSource};
use tensilo::{Error, Result};
use zip::read::ZipFile;
use zip::{CompressionMethod, ZipArchive};

/// Archives of NumPy.
pub(crate) struct Npz(pub FormatOptions);

impl InputFormat for Npz {
    fn name(&self) -> &str {
        "archives of them (.npz)"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let mut reader = file.reader()?;
        let mut first = Vec::new();
        (&mut reader).take(4).read_to_end(&mut first).map_err(unreadable)?;
        if !matches!(first.as_slice(), b"PK\x03\x04" | b"PK\x05\x06") {
            return Ok(None);
        }
        let mut archive = ZipArchive::new(reader).map_err(|error| malformed(&error))?;
        if archive.has_duplicate_names() {
            let message = "the archive has two files with the same name, and only one can be read; save it again";
            return Err(Error::bad_input(message));
        }
        let (mut columns, mut other, mut array_count) = (Vec::new(), None, 0_usize);
        for i in 0..archive.len() {
            let (name, entry) = Entry::of(&mut archive, i)?;
            let Some(name) = name.strip_suffix(".npy") else {
                let no_array = format!("the archive has {name:?}, which is not an array (.npy)");
                other.get_or_insert_with(|| no_array.clone());
                columns.push((name, Err(Error::bad_input(no_array))));
                continue;
            };
            array_count += 1;
            let array = entry.and_then(|entry| array(file, name, &entry)).and_then(|(column, extents)| {
                if self.0.file_is_sample { column.into_sample(&extents) } else { Ok(column) }
            });
            columns.push((name.to_owned(), array));
        }
        if let Some(other) = other.filter(|_| array_count == 0) {
            return Err(Error::bad_input(other)); // another kind of archive
        }
        Ok(Some(Box::new(TensorTable::new(columns, [], FormatOptions::SAMPLE_ADVICE)?)))
    }
}

fn malformed(error: &zip::result::ZipError) -> Error {
    Error::bad_input(format!("the zip archive is malformed: {error}"))
}

/// A file in an archive.
struct Entry {
    is_deflated: bool,
    /// The offset of its bytes in the archive.
    offset: u64,
    stored_bytes: u64,
    byte_count: u64,
    crc: u32,
}

impl Entry {
    /// Returns the name of a file, and where it is.
    fn of(archive: &mut ZipArchive<InputReader>, i: usize) -> Result<(String, Result<Self>)> {
        let entry = archive.by_index_raw(i).map_err(|error| malformed(&error))?;
        let name = entry.name().map_err(|error| malformed(&error))?.into_owned();
        Ok((name, Self::located(&entry)))
    }

    fn located<R: Read>(entry: &ZipFile<'_, R>) -> Result<Self> {
        let refused = |what: &str| Err(Error::bad_input(format!("the file in the archive {what}")));
        if entry.encrypted() {
            return refused("is encrypted");
        }
        let is_deflated = match entry.compression() {
            CompressionMethod::Stored if entry.compressed_size() != entry.size() => {
                return refused("states two sizes");
            }
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            other => return refused(&format!("is compressed by {other}; NumPy stores or deflates")),
        };
        let Some(offset) = entry.data_start() else { return refused("has no beginning") };
        Ok(Self {
            offset,
            stored_bytes: entry.compressed_size(),
            byte_count: entry.size(),
            crc: entry.crc32(),
            is_deflated,
        })
    }
}

/// Returns the column of an array, and the extents of the array.
fn array(file: &FormatFile, name: &str, entry: &Entry) -> Result<(TensorColumn, Vec<u64>)> {
    let mut reader = file.reader()?;
    if entry.offset.checked_add(entry.stored_bytes).is_none_or(|end| end > reader.byte_count()) {
        return Err(Error::bad_input("the archive is cut off"));
    }
    reader.seek(SeekFrom::Start(entry.offset)).map_err(unreadable)?;
    let stored = reader.take(entry.stored_bytes);
    let header = match entry.is_deflated {
        true => NpyHeader::read(&mut DeflateDecoder::new(stored))?,
        false => NpyHeader::read(&mut { stored })?,
    };
    let Entry { offset, stored_bytes, is_deflated, crc, .. } = *entry;
    let stream = ArchivedStream { offset, stored_bytes, is_deflated, crc };
    let bytes = ColumnBytes::Archived { file: file.clone(), stream, skipped: header.byte_count };
    let column = column(name, &header, bytes)?;
    check_length(&column, &header, entry.byte_count.saturating_sub(header.byte_count))?;
    Ok((column, header.extents))
}
