//! Arrow IPC files and streams.
//!
//! The decoder allocates as much memory as a message claims to need, and aborts the process if the
//! allocation fails. So every claim is checked against the size of the file before the decoder sees
//! it: offsets and lengths, row counts, and the decompressed sizes of buffers. The maximum
//! compression ratio of the codec bounds the decompressed sizes. The same check collects row counts
//! and null counts, which can make later passes unnecessary.

use super::paths::{ColumnPath, FieldListing, SchemaOrder};
use super::records::{ArrowSource, CatchPanic, RecordBatches, Records, malformed};
use super::schema_bytes::{footer_in, message_in, repair_footer, repair_message, without_filler};
use crate::bytes::le::u64_of;
use crate::error::Advice;
use crate::import::input::file::{InputFile, InputReader};
use crate::import::source::PassRows;
use crate::logical::saved_schema::CONTINUATION;
use crate::open::foreign::unknown;
use crate::{Error, Result};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::{CompressionType, MetadataVersion, RecordBatch, Schema as EncodedSchema};
use arrow_schema::{Schema, SchemaRef};
use std::io;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Opens an IPC file.
pub(in crate::import) fn open_file(file: &Arc<InputFile>) -> Result<ArrowSource<Ipc>> {
    let (stats, schema) = check_file(file)?;
    Ipc { file: Arc::clone(file), stats, schema: Arc::clone(&schema), order: SchemaOrder::default(), is_stream: false }
        .into_source(schema)
}

/// Opens an IPC stream that is stored in a file. If the file has another format, the error lists
/// the `accepted` formats.
pub(in crate::import) fn open_stream(file: &Arc<InputFile>, accepted: &str) -> Result<ArrowSource<Ipc>> {
    let stats = check_stream(file, accepted)?;
    let ipc = Ipc {
        file: Arc::clone(file),
        stats,
        schema: Arc::new(Schema::empty()),
        order: SchemaOrder::default(),
        is_stream: true,
    };
    let schema = ipc.stream_reader(None)?.schema();
    ipc.into_source(schema)
}

/// A file or stream in Arrow's IPC format.
pub(in crate::import) struct Ipc {
    file: Arc<InputFile>,
    stats: IpcStats,
    schema: SchemaRef,
    order: SchemaOrder,
    is_stream: bool,
}

impl Ipc {
    fn into_source(self, schema: SchemaRef) -> Result<ArrowSource<Self>> {
        let order = SchemaOrder::of(&schema, FieldListing::Nodes);
        let (schema, dropped) = without_filler(Arc::unwrap_or_clone(schema));
        let schema = Arc::new(schema);
        let source = ArrowSource::new(&schema, Self { order, schema: Arc::clone(&schema), ..self })?;
        Ok(source.with_dropped(dropped))
    }

    fn batches(&self, fields: &[usize]) -> Result<RecordBatches<'_>> {
        let fields = fields.to_vec();
        Ok(if self.is_stream {
            Box::new(CatchPanic::new(self.stream_reader(Some(fields))?))
        } else {
            Box::new(CatchPanic::new(self.file_reader(fields)?))
        })
    }

    /// Adds the name of the failing column to an error of the decoder, which does not name it.
    /// Bisection finds the column, because decoding fails for any set of columns that contains it.
    fn with_failing_column(&self, mut fields: &[usize], error: Error) -> Error {
        let fails =
            |fields: &[usize]| self.batches(fields).is_ok_and(|mut batches| batches.any(|batch| batch.is_err()));
        if fails(&[]) {
            return error; // the error occurs even without columns
        }
        while let (true, Some((half, rest))) = (fields.len() > 1, fields.split_at_checked(fields.len() / 2)) {
            fields = if fails(half) { half } else { rest };
        }
        match fields.first().and_then(|field| self.schema.fields().get(*field)) {
            Some(field) if fails(fields) => error.with_column(field.name()).with_advice([Advice::SkipColumns]),
            _ => error,
        }
    }

    /// Returns a reader of the file, with the schema repaired for the decoder.
    fn reader(&self) -> Result<InputReader> {
        let reader = self.file.reader()?;
        Ok(match &self.stats.patch {
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
        Some(self.stats.rows)
    }

    /// If a dictionary has nulls among its values, the null counts are not used, because they do
    /// not include these nulls.
    fn may_have_nulls(&self, path: &ColumnPath) -> bool {
        let is_same = self.order.count == self.stats.nulls.len() && !self.stats.null_values;
        let nulls = self.order.range(path).filter(|_| is_same);
        let nulls = nulls.and_then(|range| self.stats.nulls.get(range)).and_then(<[bool]>::split_first);
        nulls.is_none_or(|(own, inner)| if path.is_struct { *own } else { inner.contains(&true) })
    }

    fn record_batches(&self, fields: &[usize], _: PassRows) -> Result<RecordBatches<'_>> {
        let (batches, fields) = (self.batches(fields)?, fields.to_vec());
        Ok(Box::new(batches.map(move |batch| batch.map_err(|error| self.with_failing_column(&fields, error)))))
    }
}

/// The maximum number of bytes to which one byte of Zstandard data can decompress. An RLE block has
/// 4 bytes and expands to at most 128 KiB.
const MAX_ZSTD_RATIO: u64 = 32 << 10;
/// The maximum number of bytes to which one byte of LZ4 data can decompress.
const MAX_LZ4_RATIO: u64 = 255;
/// The maximum number of rows in a batch whose rows take almost no bytes, such as nulls or run-end
/// encoded values.
const MAX_EMPTY_ROWS: u64 = 1 << 24;

/// Facts from the messages of a file or stream.
#[derive(Default)]
struct IpcStats {
    rows: u64,
    /// For each field, whether any batch has a null in it. Fields are in depth-first order, as in
    /// messages.
    nulls: Vec<bool>,
    /// Whether any dictionary has a null among its values.
    null_values: bool,
    /// The offset and the new bytes of the schema, if it was repaired.
    patch: Option<(u64, Arc<[u8]>)>,
}

impl IpcStats {
    /// Adds a batch whose buffers have `bytes` decompressed bytes in total.
    fn add(&mut self, batch: &RecordBatch, bytes: u64) -> Result<()> {
        let max_rows = bytes.saturating_mul(8).max(MAX_EMPTY_ROWS);
        let length = u64::try_from(batch.length()).ok().filter(|&length| length <= max_rows);
        let length = length.ok_or_else(|| {
            malformed_ipc(&format!(
                "a batch has {} rows, but its {bytes} bytes can hold at most {max_rows}",
                batch.length()
            ))
        })?;
        self.rows = self.rows.saturating_add(length);
        for (i, has_nulls) in node_nulls(batch).enumerate() {
            match self.nulls.get_mut(i) {
                Some(nulls) => *nulls |= has_nulls,
                None => self.nulls.push(has_nulls),
            }
        }
        Ok(())
    }
}

/// Returns, for each field of a batch, whether it has nulls.
fn node_nulls<'a>(batch: &RecordBatch<'a>) -> impl Iterator<Item = bool> + use<'a> {
    batch.nodes().into_iter().flatten().map(|node| node.null_count() != 0)
}

/// Checks the blocks that the footer of a file lists, and returns the file's schema. The schema is
/// not taken from the decoder, because opening the decoder reads all dictionaries, and these have
/// not been checked yet.
fn check_file(file: &InputFile) -> Result<(IpcStats, SchemaRef)> {
    let mut bytes = Bytes::open(file)?;
    let trailer = bytes.read(bytes.length.saturating_sub(10), 10)?;
    let Some((footer_bytes, b"ARROW1")) = trailer.split_first_chunk::<4>() else {
        return Err(malformed_ipc("it does not end with the magic bytes \"ARROW1\""));
    };
    let footer_bytes =
        u64::try_from(i32::from_le_bytes(*footer_bytes)).map_err(|_| malformed_ipc("the footer length is negative"))?;
    let start = bytes.length.checked_sub(10).and_then(|end| end.checked_sub(footer_bytes));
    let start = start.ok_or_else(cut_off)?;
    let mut content = bytes.read(start, footer_bytes)?;
    let is_changed = repair_footer(&mut content);
    let footer = footer_in(&content).map_err(|error| malformed_ipc(&error.to_string()))?;
    check_version(footer.version())?;
    check_byte_order(footer.schema())?;
    let schema = footer.schema().ok_or_else(|| malformed_ipc("its footer has no schema"))?;
    let schema = try_fb_to_schema(schema).map_err(|error| malformed_ipc(&error.to_string()))?;
    let mut stats = IpcStats::default();
    let blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    let blocks = blocks.map(|block| {
        let positive =
            |number: i64| u64::try_from(number).map_err(|_| malformed_ipc("a block has a negative offset or length"));
        let start = positive(block.offset())?;
        let body = start.checked_add(positive(block.metaDataLength().into())?).ok_or_else(cut_off)?;
        let end = body.checked_add(positive(block.bodyLength())?).ok_or_else(cut_off)?;
        bytes.check_inside(start, end - start)?;
        Ok((start, body, end))
    });
    let blocks = blocks.collect::<Result<Vec<_>>>()?;
    check_disjoint(blocks.iter().map(|&(start, _, end)| start..end).collect())?;
    for (start, body, end) in blocks {
        let header = bytes.read(start, body - start)?;
        let prefix = if header.starts_with(&CONTINUATION) { 8 } else { 4 };
        let metadata = header.get(prefix..).ok_or_else(cut_off)?;
        bytes.check_message(metadata, body, end - body, &mut stats)?;
    }
    stats.patch = is_changed.then(|| (start, content.into()));
    Ok((stats, Arc::new(schema)))
}

/// Refuses overlapping blocks before any block is read. Otherwise a small file could list the
/// message of a dictionary any number of times, and the decoder would append its values each time.
fn check_disjoint(mut blocks: Vec<Range<u64>>) -> Result<()> {
    blocks.sort_unstable_by_key(|block| block.start);
    match blocks.iter().zip(blocks.iter().skip(1)).all(|(block, next)| block.end <= next.start) {
        true => Ok(()),
        false => Err(malformed_ipc("messages overlap")),
    }
}

/// Checks a stream message by message.
fn check_stream(file: &InputFile, accepted: &str) -> Result<IpcStats> {
    let mut bytes = Bytes::open(file)?;
    let (mut at, mut stats) = (0, IpcStats::default());
    while at < bytes.length {
        let is_first = at == 0;
        let known = |error: Error| if is_first { foreign(file, accepted) } else { error };
        let mut metadata = bytes.stream_metadata(&mut at).map_err(known)?;
        if metadata.is_empty() {
            if is_first {
                return Err(foreign(file, accepted));
            }
            break;
        }
        let is_changed = is_first && repair_message(&mut metadata);
        let message = message_in(&metadata).map_err(|error| known(malformed_ipc(&error.to_string())))?;
        if is_first {
            check_byte_order(Some(message.header_as_schema().ok_or_else(|| foreign(file, accepted))?))?;
        }
        check_version(message.version())?;
        let body_bytes =
            u64::try_from(message.bodyLength()).map_err(|_| malformed_ipc("a message has a negative length"))?;
        bytes.check_message(&metadata, at, body_bytes, &mut stats)?;
        if is_changed {
            stats.patch = at.checked_sub(u64_of(metadata.len())).map(|start| (start, metadata.into()));
        }
        at += body_bytes; // the body lies in the file
    }
    match bytes.length - at {
        _ if at == 0 => Err(foreign(file, accepted)),
        0 => Ok(stats),
        rest => Err(malformed_ipc(&format!("{rest} bytes follow the end of the stream"))),
    }
}

/// Refuses versions that the decoder does not support.
fn check_version(version: MetadataVersion) -> Result<()> {
    if (MetadataVersion::V4..=MetadataVersion::V5).contains(&version) {
        return Ok(());
    }
    let number = i32::from(version.0) + 1;
    Err(Error::bad_input(format!(
        "the Arrow file or stream has version {number} of Arrow's IPC format, but only versions 4 and 5 are supported"
    )))
}

fn check_byte_order(schema: Option<EncodedSchema>) -> Result<()> {
    if schema.is_none_or(|schema| schema.endianness().equals_to_target_endianness()) {
        return Ok(());
    }
    let order = if cfg!(target_endian = "big") { "little" } else { "big" };
    Err(Error::bad_input(format!(
        "the Arrow file or stream is {order}-endian, but this machine is not; rewrite it with a program that reads it, \
         such as pyarrow"
    )))
}

/// Returns the error about a file of an unknown format, which lists the `accepted` formats.
fn foreign(file: &InputFile, accepted: &str) -> Error {
    file.first_bytes().map_or_else(|error| error, |first| unknown(&first, accepted))
}

fn malformed_ipc(what: &str) -> Error {
    Error::bad_input(format!("the Arrow file or stream is malformed: {what}"))
}

fn cut_off() -> Error {
    Error::bad_input(
        "the Arrow file or stream is truncated or malformed: an offset or length exceeds the available data",
    )
}

/// A file, and its length, against which the offsets and lengths in the file are checked.
struct Bytes<'a> {
    file: &'a InputFile,
    reader: BufReader<InputReader>,
    length: u64,
}

impl<'a> Bytes<'a> {
    fn open(file: &'a InputFile) -> Result<Self> {
        let reader = file.reader()?;
        let length = reader.byte_count();
        Ok(Self { file, reader: BufReader::new(reader), length })
    }

    fn check_inside(&self, start: u64, bytes: u64) -> Result<()> {
        let end = start.checked_add(bytes).filter(|&end| end <= self.length);
        end.map(|_| ()).ok_or_else(cut_off)
    }

    fn read(&mut self, start: u64, bytes: u64) -> Result<Vec<u8>> {
        self.check_inside(start, bytes)?;
        let mut read = || -> io::Result<Vec<u8>> {
            let mut out = Vec::new();
            self.reader.seek(SeekFrom::Start(start))?;
            (&mut self.reader).take(bytes).read_to_end(&mut out)?;
            Ok(out)
        };
        let out = read().map_err(|error| self.file.io("reading the file", error))?;
        if u64_of(out.len()) == bytes { Ok(out) } else { Err(cut_off()) }
    }

    /// Returns the metadata of the message at `at`, and moves `at` past the metadata. Returns an
    /// empty vector at the end marker.
    fn stream_metadata(&mut self, at: &mut u64) -> Result<Vec<u8>> {
        let mut length = CONTINUATION.to_vec();
        for _ in 0..2 {
            if length == CONTINUATION {
                length = self.read(*at, 4)?;
                *at += 4; // inside the file
            }
        }
        let length = length.as_slice().try_into().map(i32::from_le_bytes).ok();
        let length = length.and_then(|length| u64::try_from(length).ok()).ok_or_else(cut_off)?;
        let metadata = self.read(*at, length)?;
        *at += length; // inside the file
        Ok(metadata)
    }

    /// Checks a message whose body starts at `body`, and adds its facts to `stats`.
    fn check_message(&mut self, metadata: &[u8], body: u64, body_bytes: u64, stats: &mut IpcStats) -> Result<()> {
        self.check_inside(body, body_bytes)?;
        let message = message_in(metadata).map_err(|error| malformed_ipc(&error.to_string()))?;
        if let Some(values) = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data()) {
            self.check_buffers(&values, body, body_bytes)?;
            stats.null_values |= node_nulls(&values).any(|has_nulls| has_nulls);
        }
        let Some(batch) = message.header_as_record_batch() else { return Ok(()) };
        let bytes = self.check_buffers(&batch, body, body_bytes)?;
        stats.add(&batch, bytes)
    }

    /// Checks that buffers lie in the body and do not overlap, and that compressed buffers claim a
    /// plausible decompressed length. Returns the total decompressed length, which fits in memory.
    fn check_buffers(&mut self, batch: &RecordBatch, body: u64, body_bytes: u64) -> Result<u64> {
        let ratio = batch.compression().map(|compression| match compression.codec() {
            CompressionType::ZSTD => MAX_ZSTD_RATIO,
            _ => MAX_LZ4_RATIO,
        });
        let (mut bytes, mut stored_bytes) = (0_u64, 0_u64);
        for buffer in batch.buffers().into_iter().flatten() {
            let (offset, length) = (u64::try_from(buffer.offset()).ok(), u64::try_from(buffer.length()).ok());
            let (offset, length) =
                offset.zip(length).ok_or_else(|| malformed_ipc("a buffer has a negative offset or length"))?;
            let inside = offset.checked_add(length).is_some_and(|end| end <= body_bytes);
            if !inside {
                return Err(cut_off());
            }
            stored_bytes = stored_bytes.saturating_add(length);
            if let Some(ratio) = ratio.filter(|_| length > 0) {
                if length < 8 {
                    return Err(malformed_ipc("a compressed buffer does not state its decompressed length"));
                }
                let claim = self.read(body + offset, 8)?; // the buffer lies in the file
                bytes = bytes.saturating_add(check_claim(&claim, length, ratio)?);
            } else {
                bytes = bytes.saturating_add(length);
            }
        }
        if stored_bytes > body_bytes {
            return Err(malformed_ipc("buffers overlap"));
        }
        check_memory(bytes)?;
        Ok(bytes)
    }
}

/// Refuses a size that exceeds the available memory, because the decoder would abort the process.
fn check_memory(bytes: u64) -> Result<()> {
    let reserved = usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if reserved { Ok(()) } else { Err(malformed_ipc(&format!("buffers of {bytes} bytes do not fit in memory"))) }
}

/// Returns the claimed decompressed length. Refuses a claim that `length` compressed bytes cannot
/// expand to.
fn check_claim(claim: &[u8], length: u64, ratio: u64) -> Result<u64> {
    const NOT_COMPRESSED: i64 = -1;
    let claim = claim.try_into().map(i64::from_le_bytes).map_err(|_| cut_off())?;
    if claim == NOT_COMPRESSED {
        return Ok(length);
    }
    let possible = u64::try_from(claim).ok().filter(|&claim| claim <= length.saturating_mul(ratio));
    possible.ok_or_else(|| malformed_ipc(&format!("{length} compressed bytes cannot decompress to {claim} bytes")))
}
