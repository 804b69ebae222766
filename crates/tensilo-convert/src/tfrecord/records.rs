//! The frames of a TFRecord file: a length, a record, and a checksum of each.

use super::example::Example;
use super::features::{FoundFeatures, record_batch};
use crate::rows;
use crate::stream::{ByteStream, VALUE_BYTES, cut_off, is_named};
use prost::Message as _;
use std::sync::Arc;
use tensilo::import::arrow::array::RecordBatch;
use tensilo::import::arrow::datatypes::SchemaRef;
use tensilo::import::{FormatFile, InputFormat, RecordSource, TypeOrigin};
use tensilo::{Error, Result};

/// The bytes of a length and its checksum.
const HEAD_BYTES: u64 = 12;

/// Files of `tf.train.Example`, compressed by gzip or not.
pub(crate) struct TfRecord;

impl InputFormat for TfRecord {
    fn name(&self) -> &str {
        "TFRecord files of tf.train.Example"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let first = ByteStream::first(file, HEAD_BYTES)?;
        // `train.tfrecord-00000-of-00128` is a name that TensorFlow gives shards
        let is_named_so =
            is_named(file.path(), |extension| matches!(extension.split('-').next(), Some("tfrecord" | "tfrecords")));
        if !is_named_so && record_length(&first).is_none() {
            return Ok(None);
        }
        let mut found = FoundFeatures::default();
        let mut records = Records::open(file)?;
        while let Some(example) = records.next_example()? {
            let observed = found.observe(&example.0, &|| records.last());
            observed.map_err(|error| Error::bad_input(format!("{}: {}", records.last(), error.message())))?;
        }
        Ok(Some(Box::new(TfRecordFile { file: file.clone(), schema: found.schema(), row_count: found.example_count })))
    }
}

/// Returns the length of a record, if its checksum is right.
fn record_length(head: &[u8]) -> Option<u64> {
    let (length, crc) = head.split_first_chunk::<8>()?;
    let due = u32::from_le_bytes(crc.try_into().ok()?);
    (masked_crc(length) == due).then(|| u64::from_le_bytes(*length))
}

/// Returns the checksum as the format stores it: CRC-32C, rotated and added to a constant, so that
/// checksums of data that contain checksums stay useful.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// A file whose features are known.
struct TfRecordFile {
    file: FormatFile,
    schema: SchemaRef,
    row_count: u64,
}

impl RecordSource for TfRecordFile {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn row_count(&self) -> Option<u64> {
        Some(self.row_count)
    }

    fn type_origin(&self) -> TypeOrigin {
        TypeOrigin::FoundRepeated
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        let (mut records, schema) = (Records::open(&self.file)?, Arc::new(schema));
        let of = Arc::clone(&schema);
        Ok(rows::batches(&schema, move || records.next_example(), move |examples| record_batch(examples, &of)))
    }
}

/// The records of a file, in order.
struct Records {
    stream: ByteStream,
    /// The number of the next record.
    next: u64,
    /// The offset at which it begins in the decompressed file.
    offset: u64,
}

impl Records {
    fn open(file: &FormatFile) -> Result<Self> {
        Ok(Self { stream: ByteStream::open(file)?, next: 0, offset: 0 })
    }

    /// Describes the last record that was read.
    fn last(&self) -> String {
        format!("record {}, which ends at byte {}", self.next.saturating_sub(1), self.offset)
    }

    /// Returns the next example, and the bytes of its record.
    fn next_example(&mut self) -> Result<Option<(Example, usize)>> {
        let what = format!("record {} at byte {}", self.next, self.offset);
        let Some(head) = self.stream.exactly(HEAD_BYTES, &what)? else { return Ok(None) };
        let refused = |why: &str| Error::bad_input(format!("{what}: {why}"));
        let length = record_length(&head).ok_or_else(|| refused("the checksum of its length is wrong"))?;
        if length > VALUE_BYTES {
            return Err(refused(&format!("it has {length} bytes, more than {VALUE_BYTES}")));
        }
        let record = self.stream.exactly(length, &what)?;
        let record = if length == 0 { Vec::new() } else { record.ok_or_else(|| cut_off(&what))? };
        let crc = self.stream.exactly(4, &what)?.ok_or_else(|| cut_off(&what))?;
        if masked_crc(&record).to_le_bytes() != crc.as_slice() {
            return Err(refused("the checksum of its bytes is wrong"));
        }
        let example = Example::decode(record.as_slice());
        let example = example.map_err(|error| refused(&format!("it is not a tf.train.Example ({error})")))?;
        if example.feature_lists.is_some() {
            return Err(refused("it is a tf.train.SequenceExample, which is not read"));
        }
        self.next = self.next.saturating_add(1);
        self.offset = self.offset.saturating_add(HEAD_BYTES).saturating_add(length).saturating_add(4);
        Ok(Some((example, record.len())))
    }
}
