//! TFRecord files of `tf.train.Example`, with or without gzip.
//!
//! A file is a sequence of frames: a length and a record, each with a checksum. A record is a
//! message of `tensorflow/core/example/example.proto`, and nothing declares which features examples
//! have. So a first pass infers the features and their types, and a second pass builds arrays. If
//! examples contradict each other about a feature, that feature is refused, and the other features
//! are read.

use crate::stream::{ByteStream, MAX_VALUE_BYTES, cut_off, matches_extension, row_batches};
use prost::Message as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tensilo::import::arrow::array::{
    ArrayRef, BinaryBuilder, Float32Builder, Int64Builder, ListBuilder, RecordBatch, RecordBatchOptions,
};
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tensilo::import::{FormatFile, InputFormat, RecordSource, TypeOrigin, refused_field};
use tensilo::{Error, Result, limits};

/// The size in bytes of what precedes a record: its length, and the checksum of the length.
const HEADER_BYTES: u64 = 12;

/// TFRecord files of `tf.train.Example`.
pub(crate) struct TfRecord;

impl InputFormat for TfRecord {
    fn name(&self) -> &str {
        "TFRecord files of tf.train.Example"
    }

    fn open(&self, file: &FormatFile) -> Result<Option<Box<dyn RecordSource>>> {
        let first = ByteStream::first(file, HEADER_BYTES)?;
        // TensorFlow names shards `train.tfrecord-00000-of-00128`
        let has_extension = matches_extension(file.path(), |extension| {
            matches!(extension.split('-').next(), Some("tfrecord" | "tfrecords"))
        });
        if !has_extension && record_length(&first).is_none() {
            return Ok(None);
        }
        let mut found = InferredFeatures::default();
        let mut records = Records::open(file)?;
        while let Some(example) = records.next_example()? {
            let observed = found.observe(&example.0, &|| records.describe_last());
            observed.map_err(|error| Error::bad_input(format!("{}: {}", records.describe_last(), error.message())))?;
        }
        Ok(Some(Box::new(TfRecordFile { file: file.clone(), schema: found.schema(), row_count: found.example_count })))
    }
}

/// Returns the length of a record if its checksum is correct.
fn record_length(header: &[u8]) -> Option<u64> {
    let (length, crc) = header.split_first_chunk::<8>()?;
    let expected = u32::from_le_bytes(crc.try_into().ok()?);
    (masked_crc(length) == expected).then(|| u64::from_le_bytes(*length))
}

/// Returns the checksum as the format stores it: a CRC-32C, rotated and added to a constant, so
/// that it also protects data that itself contains checksums.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// A file after the first pass.
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
        TypeOrigin::InferredRepeated
    }

    fn record_batches(&self, fields: &[usize]) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let schema = self.schema.project(fields).map_err(|error| Error::bad_input(error.to_string()))?;
        let (mut records, schema) = (Records::open(&self.file)?, Arc::new(schema));
        let of = Arc::clone(&schema);
        Ok(row_batches(&schema, move || records.next_example(), move |examples| record_batch(examples, &of)))
    }
}

/// The records of a file, in order.
struct Records {
    stream: ByteStream,
    /// The number of the next record.
    next: u64,
    /// The offset of the next record in the decompressed file.
    offset: u64,
}

impl Records {
    fn open(file: &FormatFile) -> Result<Self> {
        Ok(Self { stream: ByteStream::open(file)?, next: 0, offset: 0 })
    }

    /// Describes the last record that was read.
    fn describe_last(&self) -> String {
        format!("record {}, which ends at byte {}", self.next.saturating_sub(1), self.offset)
    }

    /// Returns the next example, and the size of its record in bytes.
    fn next_example(&mut self) -> Result<Option<(Example, usize)>> {
        let what = format!("record {} at byte {}", self.next, self.offset);
        let Some(header) = self.stream.read_exactly(HEADER_BYTES, &what)? else { return Ok(None) };
        let refused = |why: &str| Error::bad_input(format!("{what}: {why}"));
        let length = record_length(&header).ok_or_else(|| refused("the checksum of its length is wrong"))?;
        if length > MAX_VALUE_BYTES {
            return Err(refused(&format!("it has {length} bytes, more than {MAX_VALUE_BYTES}")));
        }
        let record = self.stream.read_exactly(length, &what)?.ok_or_else(|| cut_off(&what))?;
        let crc = self.stream.read_exactly(4, &what)?.ok_or_else(|| cut_off(&what))?;
        if masked_crc(&record).to_le_bytes() != crc.as_slice() {
            return Err(refused("the checksum of its bytes is wrong"));
        }
        let example = Example::decode(record.as_slice());
        let example = example.map_err(|error| refused(&format!("it is not a tf.train.Example ({error})")))?;
        if example.feature_lists.is_some() {
            return Err(refused("it is a tf.train.SequenceExample, which is not supported"));
        }
        self.next = self.next.saturating_add(1);
        self.offset = self.offset.saturating_add(HEADER_BYTES).saturating_add(length).saturating_add(4);
        Ok(Some((example, record.len())))
    }
}

/// An example: a map of named features.
#[derive(Clone, PartialEq, prost::Message)]
struct Example {
    #[prost(message, optional, tag = "1")]
    features: Option<Features>,
    /// Set in a `SequenceExample`, which has lists of features under this tag.
    #[prost(bytes = "vec", optional, tag = "2")]
    feature_lists: Option<Vec<u8>>,
}

/// See [`Example`].
#[derive(Clone, PartialEq, prost::Message)]
struct Features {
    #[prost(btree_map = "string, message", tag = "1")]
    feature: BTreeMap<String, Feature>,
}

/// A feature: values of one type.
#[derive(Clone, PartialEq, prost::Message)]
struct Feature {
    #[prost(oneof = "FeatureValues", tags = "1, 2, 3")]
    values: Option<FeatureValues>,
}

/// The values of a feature.
#[derive(Clone, PartialEq, prost::Oneof)]
enum FeatureValues {
    #[prost(message, tag = "1")]
    Bytes(BytesList),
    #[prost(message, tag = "2")]
    Floats(FloatList),
    #[prost(message, tag = "3")]
    Integers(Int64List),
}

#[derive(Clone, PartialEq, prost::Message)]
struct BytesList {
    #[prost(bytes = "vec", repeated, tag = "1")]
    value: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FloatList {
    #[prost(float, repeated, tag = "1")]
    value: Vec<f32>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Int64List {
    #[prost(int64, repeated, tag = "1")]
    value: Vec<i64>,
}

impl FeatureValues {
    /// Returns the number of values.
    fn count(&self) -> usize {
        match self {
            Self::Bytes(list) => list.value.len(),
            Self::Floats(list) => list.value.len(),
            Self::Integers(list) => list.value.len(),
        }
    }

    /// Returns TensorFlow's name for the type.
    fn type_name(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "bytes_list",
            Self::Floats(_) => "float_list",
            Self::Integers(_) => "int64_list",
        }
    }
}

/// A feature that is inferred from all examples.
#[derive(Clone, Debug)]
struct InferredFeature {
    /// `bytes_list`, `float_list` or `int64_list`.
    type_name: &'static str,
    /// Whether every example that has the feature has exactly one value for it.
    is_single: bool,
    /// The number of examples with the feature.
    count: u64,
    /// Why its values cannot be stored.
    refused: Option<String>,
}

/// The features of all examples in a file. They are ordered by name, because the map in an example
/// is unordered.
#[derive(Clone, Debug, Default)]
struct InferredFeatures {
    features: BTreeMap<String, InferredFeature>,
    example_count: u64,
}

impl InferredFeatures {
    /// Updates the features with an example. `record` describes it in errors.
    fn observe(&mut self, example: &Example, record: &dyn Fn() -> String) -> Result<()> {
        for (name, feature) in example.features.iter().flat_map(|features| &features.feature) {
            let Some(values) = &feature.values else { continue };
            let is_single = values.count() == 1;
            let new = InferredFeature { type_name: values.type_name(), is_single, count: 0, refused: None };
            if !self.features.contains_key(name) && self.features.len() >= limits::COLUMNS {
                return Err(Error::bad_input(format!("the records have more than {} features", limits::COLUMNS)));
            }
            let found = self.features.entry(name.clone()).or_insert(new);
            if found.type_name != values.type_name() {
                let reason = || {
                    format!("{}: found {}, but earlier examples have {}", record(), values.type_name(), found.type_name)
                };
                found.refused = Some(found.refused.take().unwrap_or_else(reason));
            }
            found.is_single &= is_single;
            found.count = found.count.saturating_add(1);
        }
        self.example_count = self.example_count.saturating_add(1);
        Ok(())
    }

    fn schema(&self) -> SchemaRef {
        let field = |(name, found): (&String, &InferredFeature)| {
            if let Some(reason) = &found.refused {
                return refused_field(name, reason);
            }
            let element = match found.type_name {
                "bytes_list" => DataType::Binary,
                "float_list" => DataType::Float32,
                _ => DataType::Int64,
            };
            let data_type = if found.is_single { element } else { DataType::List(list_item(element)) };
            Field::new(name, data_type, found.count < self.example_count)
        };
        Arc::new(Schema::new(self.features.iter().map(field).collect::<Vec<_>>()))
    }
}

fn list_item(element: DataType) -> Arc<Field> {
    Arc::new(Field::new_list_field(element, false))
}

/// Converts the features in `schema` to arrays.
fn record_batch(examples: &[Example], schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = schema.fields().iter().map(|field| {
        array(
            field,
            examples.iter().map(|example| example.features.as_ref()?.feature.get(field.name())?.values.as_ref()),
        )
    });
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(examples.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
    batch.map_err(|error| Error::bad_input(error.to_string()))
}

/// Builds an array of the values of a feature, or of lists of these values. The second pass finds
/// the same types as the first, unless the file has changed, which is detected at the end.
fn array<'a>(field: &Field, values: impl Iterator<Item = Option<&'a FeatureValues>>) -> Result<ArrayRef> {
    macro_rules! build {
        ($builder:expr, $variant:ident, $value:expr) => {{
            match field.data_type() {
                DataType::List(item) => {
                    let mut lists = ListBuilder::new($builder).with_field(Arc::clone(item));
                    for values in values {
                        if let Some(FeatureValues::$variant(list)) = values {
                            list.value.iter().map($value).for_each(|value| lists.values().append_value(value));
                            lists.append(true);
                        } else {
                            lists.append(false);
                        }
                    }
                    Arc::new(lists.finish())
                }
                _ => {
                    let mut builder = $builder;
                    for values in values {
                        if let Some(FeatureValues::$variant(list)) = values {
                            builder.append_option(list.value.first().map($value));
                        } else {
                            builder.append_null();
                        }
                    }
                    Arc::new(builder.finish())
                }
            }
        }};
    }
    let element = if let DataType::List(item) = field.data_type() { item.data_type() } else { field.data_type() };
    let array: ArrayRef = match element {
        DataType::Binary => build!(BinaryBuilder::new(), Bytes, Vec::as_slice),
        DataType::Float32 => build!(Float32Builder::new(), Floats, |value: &f32| *value),
        _ => build!(Int64Builder::new(), Integers, |value: &i64| *value),
    };
    Ok(array)
}
