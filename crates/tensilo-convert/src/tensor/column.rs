//! A tensor whose first axis is the sample axis, and the readers of its bytes.
//!
//! The elements are at an offset in a file, or in a stream in a zip archive. A stream has a
//! checksum, and can be compressed. It is read front to back, and its CRC-32 is verified at the
//! end. Elements in Fortran order are not read front to back. So their checksum is verified before
//! any of them is used, and a compressed stream is first decompressed to a temporary file.

use crate::element::element_field;
use crate::stream::read_error;
use crate::stream::stream_error;
use flate2::read::DeflateDecoder;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::{FormatFile, mark_dtype};
use tensilo::source::{PositionedFile, Source};
use tensilo::{DType, Error, Result, limits};

/// A tensor in a file. Its first axis is the sample axis.
#[derive(Clone, Debug)]
pub(crate) struct TensorColumn {
    pub name: String,
    pub dtype: DType,
    /// Whether the byte order of elements differs from this machine's.
    pub is_swapped: bool,
    pub order: Order,
    pub sample_count: u64,
    /// The shape of one sample.
    pub shape: Vec<u32>,
    /// The number of bits of an element in the file, if elements are packed. Packed elements are
    /// always [`ColumnBytes::Plain`] and in C order.
    pub packed_bits: Option<u32>,
    pub bytes: ColumnBytes,
}

/// The order of a tensor's elements in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last axis varies fastest: samples follow one another.
    C,
    /// The first axis varies fastest: the first elements of all samples follow one another, then
    /// the second elements of all samples, and so on.
    Fortran,
}

/// Where the elements of a tensor lie in a file.
#[derive(Clone, Debug)]
pub(crate) enum ColumnBytes {
    /// At an offset.
    Plain { file: FormatFile, offset: u64 },
    /// In a stream that is stored in a range of the file. The first `skip_bytes` bytes of the
    /// stream precede the elements.
    Archived { file: FormatFile, stream: ArchiveStream, skip_bytes: u64 },
}

/// A stream in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArchiveStream {
    pub offset: u64,
    pub stored_bytes: u64,
    /// Whether it is compressed with DEFLATE.
    pub is_deflated: bool,
    /// The CRC-32 of its decompressed bytes.
    pub crc: u32,
}

impl ArchiveStream {
    /// Returns a reader of the decompressed bytes that verifies the checksum at the end.
    pub(crate) fn open(self, file: &FormatFile) -> Result<Crc32Reader> {
        let mut reader = file.reader()?;
        reader.seek(SeekFrom::Start(self.offset)).map_err(read_error)?;
        let stored = BufReader::new(reader.take(self.stored_bytes));
        let inner: Box<dyn Read + Send> = match self.is_deflated {
            true => Box::new(DeflateDecoder::new(stored)),
            false => Box::new(stored),
        };
        Ok(Crc32Reader { inner, hash: Some((crc32fast::Hasher::new(), self.crc)) })
    }
}

impl TensorColumn {
    /// Makes a column from a tensor. The first extent is the number of samples; a tensor without
    /// dimensions is one sample. Errors do not contain the name.
    pub(crate) fn new(name: &str, dtype: DType, extents: &[u64], bytes: ColumnBytes) -> Result<Self> {
        let (sample_count, inner) = extents.split_first().map_or((1, extents), |(first, inner)| (*first, inner));
        let column = Self {
            name: name.to_owned(),
            dtype,
            is_swapped: cfg!(target_endian = "big"),
            order: Order::C,
            sample_count,
            shape: sample_shape(inner)?,
            packed_bits: None,
            bytes,
        };
        match column.byte_count() {
            Some(_) => Ok(column),
            None => Err(Error::bad_input(format!("an array of shape {extents:?} has more than 2^63 bytes"))),
        }
    }

    /// Makes a column whose only sample is the whole tensor.
    pub(crate) fn into_sample(self, extents: &[u64]) -> Result<Self> {
        Ok(Self { sample_count: 1, shape: sample_shape(extents)?, ..self })
    }

    /// Returns the number of elements of a sample.
    pub(crate) fn sample_elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent.into()))
    }

    /// Returns the size of a sample in bytes.
    pub(crate) fn sample_bytes(&self) -> Option<u64> {
        self.sample_elements()?.checked_mul(self.width())
    }

    /// Returns the total size of all samples in bytes, if it is at most 2^63.
    pub(crate) fn byte_count(&self) -> Option<u64> {
        self.sample_bytes()?.checked_mul(self.sample_count).filter(|bytes| *bytes <= 1 << 63)
    }

    pub(crate) fn width(&self) -> u64 {
        u64::try_from(self.dtype.element_bytes()).unwrap_or(8) // at most 8
    }

    /// Returns a reader of all bytes, starting at the first element.
    ///
    /// Elements in Fortran order are not read front to back. If they are in a stream, its checksum
    /// is verified here, and a compressed stream is decompressed to a temporary file.
    pub(super) fn open(&self) -> Result<ColumnReader> {
        let (file, stream, skip_bytes) = match &self.bytes {
            ColumnBytes::Plain { file, offset } => return Ok(ColumnReader::plain(file.reader()?, *offset)),
            ColumnBytes::Archived { file, stream, skip_bytes } => (file, stream, *skip_bytes),
        };
        let mut bytes = stream.open(file)?;
        match self.order {
            Order::C => {
                let header = io::copy(&mut (&mut bytes).take(skip_bytes), &mut io::sink());
                let header = header.map_err(|error| stream_error(&error, "the header of the array"))?;
                if header < skip_bytes {
                    return Err(Error::bad_input("an array in the archive is truncated"));
                }
                Ok(ColumnReader::Archived(bytes))
            }
            Order::Fortran => {
                let byte_count = self.byte_count().and_then(|bytes| bytes.checked_add(skip_bytes)).unwrap_or(u64::MAX);
                if stream.is_deflated {
                    let mut copy = tempfile::tempfile().map_err(temporary)?;
                    bytes.copy_all(byte_count, &mut copy)?;
                    return Ok(ColumnReader::plain(PositionedFile::from_file(copy)?, skip_bytes));
                }
                bytes.copy_all(byte_count, &mut io::sink())?;
                Ok(ColumnReader::plain(file.reader()?, stream.offset.saturating_add(skip_bytes)))
            }
        }
    }

    /// Returns the field of the samples.
    pub(crate) fn field(&self) -> Result<Field> {
        sample_field(&self.name, self.dtype, &self.shape, false)
    }
}

fn sample_shape(extents: &[u64]) -> Result<Vec<u32>> {
    if extents.len() > limits::DIMENSIONS {
        let message = format!("samples have {} dimensions, but the maximum is {}", extents.len(), limits::DIMENSIONS);
        return Err(Error::bad_input(message));
    }
    let extent = |&extent: &u64| u32::try_from(extent).ok().filter(|extent| *extent <= limits::EXTENT);
    let shape: Option<Vec<u32>> = extents.iter().map(extent).collect();
    shape.ok_or_else(|| Error::bad_input(format!("an extent of the shape {extents:?} exceeds {}", limits::EXTENT)))
}

/// Returns the field for samples with a fixed shape: a scalar, or `arrow.fixed_shape_tensor`.
fn sample_field(name: &str, dtype: DType, shape: &[u32], nullable: bool) -> Result<Field> {
    if dtype == DType::Complex64 {
        let halves = [shape, &[2]].concat();
        return sample_field(name, DType::F32, &halves, nullable).map(|field| mark_dtype(field, dtype));
    }
    if shape.is_empty() {
        return Ok(element_field(name, dtype, nullable));
    }
    let elements = shape.iter().try_fold(1_u32, |product, &extent| product.checked_mul(extent));
    let elements = elements.and_then(|elements| i32::try_from(elements).ok()).ok_or_else(|| {
        let message = format!("a sample of shape {shape:?} has more than 2^31 - 1 elements");
        Error::bad_input(message)
    })?;
    let item = Arc::new(element_field("item", dtype, false));
    let list = Field::new(name, DataType::FixedSizeList(item, elements), nullable);
    Ok(list.with_metadata([
        ("ARROW:extension:name", "arrow.fixed_shape_tensor".to_owned()),
        ("ARROW:extension:metadata", format!("{{\"shape\":{shape:?}}}")),
    ]))
}

/// A reader of the elements of a column.
pub(crate) enum ColumnReader {
    Plain { reader: Box<dyn Source>, offset: u64 },
    Archived(Crc32Reader),
}

impl ColumnReader {
    fn plain(reader: impl Source + 'static, offset: u64) -> Self {
        Self::Plain { reader: Box::new(reader), offset }
    }
}

fn temporary(error: io::Error) -> Error {
    Error::io("decompressing an array in Fortran order to a temporary file", error)
}

/// A stream whose CRC-32 is verified at its end.
pub(crate) struct Crc32Reader {
    inner: Box<dyn Read + Send>,
    /// The hasher and the expected CRC-32. `None` after the end.
    hash: Option<(crc32fast::Hasher, u32)>,
}

impl Crc32Reader {
    /// Copies all bytes. Refuses a stream that has more or fewer than `byte_count` bytes.
    fn copy_all(mut self, byte_count: u64, out: &mut impl Write) -> Result<()> {
        let (mut buffer, mut rest) = (vec![0; 1 << 16], byte_count);
        loop {
            let read = self.read(&mut buffer);
            let count = read.map_err(|error| stream_error(&error, "the elements of the array"))?;
            let left = u64::try_from(count).ok().and_then(|count| rest.checked_sub(count));
            rest = left.ok_or_else(|| Error::bad_input("bytes follow the elements of the array"))?;
            match buffer.get(..count).unwrap_or_default() {
                [] if rest > 0 => return Err(Error::bad_input("an array in the archive is truncated")),
                [] => return Ok(()),
                bytes => out.write_all(bytes).map_err(temporary)?,
            }
        }
    }
}

impl Read for Crc32Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        if count > 0 || out.is_empty() {
            if let Some((hasher, _)) = &mut self.hash {
                hasher.update(out.get(..count).unwrap_or_default());
            }
            return Ok(count);
        }
        match self.hash.take().map(|(hasher, expected)| (hasher.finalize(), expected)) {
            Some((found, expected)) if found != expected => {
                let message = format!("the CRC-32 of the array is {found:08x}, expected {expected:08x}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
            _ => Ok(0),
        }
    }
}
