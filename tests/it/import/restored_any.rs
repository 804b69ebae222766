//! Tests that arbitrary schemas come back, and that no stored schema in a hostile file does harm.

use super::common::*;
use super::restored::{check, exported, formats, only_batch, saved};
use crate::common::config;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use std::sync::Arc;
use tensilo::export::ExportOptions;
use tensilo::import::arrow::array::types::Int16Type;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
use tensilo::import::arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Schema as ArrowSchema, TimeUnit, UnionFields, UnionMode, i256,
};
use tensilo::nested::ListBatch;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_testing::Random;

/// A type to test.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(DataType),
    Lists(u8, Box<Tree>, bool),
    Structs(Vec<(Tree, bool)>),
    Map(Box<Tree>),
}

fn leaves() -> impl Strategy<Value = Tree> {
    let dictionary = |values| DataType::Dictionary(Box::new(DataType::Int16), Box::new(values));
    let zone = Some("UTC".into());
    prop::sample::select(vec![
        DataType::Int8,
        DataType::Int64,
        DataType::Float32,
        DataType::Boolean,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, zone),
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::LargeBinary,
        DataType::FixedSizeBinary(3),
        DataType::Float16,
        DataType::Decimal128(7, 2),
        DataType::Decimal128(30, 3),
        DataType::Decimal256(50, 2),
        DataType::Null,
        dictionary(DataType::Utf8),
        dictionary(DataType::Int64),
        dictionary(DataType::Float32),
        dictionary(DataType::FixedSizeBinary(2)),
    ])
    .prop_map(Tree::Leaf)
}

/// Returns types of at most 6 levels and 64 leaves; most have 6 levels. A level has one or two
/// children.
fn trees() -> impl Strategy<Value = Tree> {
    leaves().prop_recursive(6, 24, 1, |inner| {
        let members = prop::collection::vec((inner.clone(), any::<bool>()), 1..3);
        prop_oneof![
            (0..5_u8, inner.clone(), any::<bool>()).prop_map(|(kind, item, null)| Tree::Lists(kind, item.into(), null)),
            members.prop_map(|members| Tree::Lists(0, Tree::Structs(members).into(), false)),
            inner.prop_map(|values| Tree::Map(values.into())),
        ]
    })
}

impl Tree {
    /// Returns whether the members of its lists are elements of a tensor.
    fn is_tensor(&self) -> bool {
        match self {
            Self::Leaf(DataType::Dictionary(_, values)) => values.is_primitive(),
            Self::Leaf(leaf) => leaf.is_primitive() || *leaf == DataType::Boolean,
            Self::Lists(_, item, _) => item.is_tensor(),
            Self::Structs(_) | Self::Map(_) => false,
        }
    }

    fn is_always_null(&self) -> bool {
        matches!(self, Self::Leaf(DataType::Null))
    }

    fn array(&self, count: usize, nullable: bool, numbers: &mut Random) -> ArrayRef {
        let nulls = nullable.then(|| (0..count).map(|_| !numbers.bits().is_multiple_of(4)).collect::<NullBuffer>());
        match self {
            Self::Leaf(leaf) => leaf_array(leaf, count, nulls, numbers),
            Self::Lists(kind, item, null) => {
                // tensors, or lists of any length with nulls inside
                let is_tensor = item.is_tensor() && !*null;
                let (kind, null) = if is_tensor { (*kind, false) } else { (*kind % 4, *null) };
                let lengths: Vec<usize> =
                    (0..count).map(|_| if is_tensor { 2 } else { (numbers.bits() % 3) as usize }).collect();
                let nullable = null || item.is_always_null();
                let members = item.array(lengths.iter().sum(), nullable, numbers);
                let metadata = [("depth", "1")];
                let field = Field::new(["item", "element"][usize::from(null)], members.data_type().clone(), nullable);
                lists(kind, Arc::new(field.with_metadata(metadata)), &lengths, members, nulls)
            }
            Self::Structs(members) => {
                let array = |(tree, nullable): &(Self, bool)| tree.array(count, *nullable, numbers);
                let arrays: Vec<ArrayRef> = members.iter().map(array).collect();
                let field = |(i, array): (usize, &ArrayRef)| {
                    Field::new(
                        format!("f{i}"),
                        array.data_type().clone(),
                        members[i].1 || members[i].0.is_always_null(),
                    )
                };
                let fields: Fields = arrays.iter().enumerate().map(field).collect();
                Arc::new(StructArray::new(fields, arrays, None))
            }
            Self::Map(values) => {
                let lengths: Vec<usize> = (0..count).map(|_| (numbers.bits() % 3) as usize).collect();
                let total = lengths.iter().sum();
                let keys: ArrayRef = Arc::new(StringArray::from_iter_values((0..total).map(|i| format!("k{i}"))));
                let (values, null) = (values.array(total, false, numbers), values.is_always_null());
                let key = Field::new("keys", DataType::Utf8, false);
                let value = Field::new("values", values.data_type().clone(), null);
                let entries = StructArray::new(Fields::from(vec![key, value]), vec![keys, values], None);
                let field = Field::new("entries", entries.data_type().clone(), false);
                let offsets = OffsetBuffer::from_lengths(lengths);
                Arc::new(MapArray::new(Arc::new(field), offsets, entries, nulls, false))
            }
        }
    }
}

fn lists(kind: u8, field: FieldRef, lengths: &[usize], members: ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
    let offsets = OffsetBuffer::<i32>::from_lengths(lengths.iter().copied());
    let sizes: Vec<i32> = lengths.iter().map(|length| *length as i32).collect();
    match kind {
        0 => Arc::new(ListArray::new(field, offsets, members, nulls)),
        1 => {
            let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
            Arc::new(LargeListArray::new(field, offsets, members, nulls))
        }
        2 => {
            let starts: Vec<i32> = offsets[..lengths.len()].to_vec();
            Arc::new(ListViewArray::new(field, starts.into(), sizes.into(), members, nulls))
        }
        3 => {
            let starts: Vec<i64> = offsets[..lengths.len()].iter().map(|start| i64::from(*start)).collect();
            let sizes: Vec<i64> = sizes.into_iter().map(i64::from).collect();
            Arc::new(LargeListViewArray::new(field, starts.into(), sizes.into(), members, nulls))
        }
        _ => Arc::new(FixedSizeListArray::try_new_with_length(field, 2, members, nulls, lengths.len()).unwrap()),
    }
}

fn leaf_array(leaf: &DataType, count: usize, nulls: Option<NullBuffer>, numbers: &mut Random) -> ArrayRef {
    let values: Vec<u8> = (0..count).map(|_| (numbers.bits() % 9) as u8).collect();
    let texts = values.iter().map(|value| "x".repeat(usize::from(*value) * 3));
    let is_valid = |i: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(i));
    let texts: Vec<Option<String>> = texts.enumerate().map(|(i, text)| is_valid(i).then_some(text)).collect();
    let integers = || values.iter().enumerate().map(|(i, value)| is_valid(i).then_some(*value));
    let wide = || integers().map(|value| value.map(i64::from));
    match leaf {
        DataType::Int8 => Arc::new(Int8Array::from_iter(integers().map(|value| value.map(|value| value as i8)))),
        DataType::Int64 => Arc::new(Int64Array::from_iter(wide())),
        DataType::Float32 => Arc::new(Float32Array::from_iter(integers().map(|value| value.map(f32::from)))),
        DataType::Boolean => Arc::new(BooleanArray::from_iter(integers().map(|value| value.map(|value| value > 4)))),
        DataType::Date32 => Arc::new(Date32Array::from_iter(integers().map(|value| value.map(i32::from)))),
        DataType::Timestamp(..) => Arc::new(TimestampMicrosecondArray::from_iter(wide()).with_timezone("UTC")),
        DataType::Utf8 => Arc::new(StringArray::from_iter(texts)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(texts)),
        DataType::Utf8View => Arc::new(StringViewArray::from_iter(texts)),
        DataType::LargeBinary => {
            Arc::new(LargeBinaryArray::from_iter(texts.iter().map(|text| text.as_ref().map(String::as_bytes))))
        }
        DataType::FixedSizeBinary(_) => {
            let values = integers().map(|value| value.map(|value| [value; 3]));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 3).unwrap())
        }
        DataType::Null => Arc::new(NullArray::new(count)),
        DataType::Float16 => Arc::new(Float16Array::from_iter(
            integers().map(|value| value.map(|value| half::f16::from_f32(value.into()))),
        )),
        DataType::Decimal128(precision, scale) => {
            let values = Decimal128Array::from_iter(integers().map(|value| value.map(i128::from)));
            Arc::new(values.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Decimal256(precision, scale) => {
            let values =
                Decimal256Array::from_iter(integers().map(|value| value.map(|value| i256::from(i32::from(value)))));
            Arc::new(values.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Dictionary(_, values) if **values == DataType::Utf8 => {
            Arc::new(DictionaryArray::<Int16Type>::from_iter(texts.iter().map(|text| text.as_deref())))
        }
        DataType::Dictionary(_, values) => {
            let keys = Int16Array::from_iter(integers().map(|value| value.map(i16::from)));
            let values: ArrayRef = match **values {
                DataType::Float32 => Arc::new(Float32Array::from_iter_values((0..9_u8).map(f32::from))),
                DataType::FixedSizeBinary(_) => {
                    Arc::new(FixedSizeBinaryArray::try_from_iter((0..9).map(|i| [i, 7])).unwrap())
                }
                _ => Arc::new(Int64Array::from_iter_values((0..9).map(|i| i * i))),
            };
            Arc::new(DictionaryArray::new(keys, values))
        }
        other => panic!("{other}"),
    }
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn any_schema_comes_back(
        trees in prop::collection::vec((trees(), any::<bool>()), 1..4),
        count in 1..20_usize,
        seed in any::<u64>(),
    ) {
        let mut numbers = Random(seed);
        let column = |(i, (tree, nullable)): (usize, &(Tree, bool))| {
            let array = tree.array(count, *nullable, &mut numbers);
            let field = Field::new(format!("c{i}"), array.data_type().clone(), *nullable || tree.is_always_null());
            (field.with_metadata([("number", i.to_string())]), array)
        };
        let whole = batch(trees.iter().enumerate().map(column).collect());
        check(&whole);
        let saved = saved(&import(&whole)).unwrap();
        if !format!("{saved:?}").contains("tensilo.dictionary") {
            assert_eq!(&saved, whole.schema().as_ref());
        }
    }
}

/// Writes a file with columns of several shapes, and with this value as its stored schema.
fn hostile(value: &str) -> Reader {
    let of_type = |mut column: ColumnSchema, data_type: &str| {
        column.metadata.insert("arrow.type".to_owned(), data_type.to_owned());
        column
    };
    let mut schema = Schema::new([
        ColumnSchema::tensor("n", DType::I64, Shape::scalar()),
        ColumnSchema::utf8("t").nullable(),
        ColumnSchema::tensor("e", DType::F32, Shape::fixed(&[2])),
        ColumnSchema::utf8("l").nullable().list(),
        of_type(ColumnSchema::tensor("d", DType::U8, Shape::fixed(&[16])).nullable(), "decimal128[20, 2]"),
        of_type(ColumnSchema::bytes("b").nullable().list().nullable(), "fixed_size_binary[3]"),
    ]);
    schema.metadata.insert("ARROW:schema".to_owned(), value.to_owned());
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    let floats: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let lists = [ListBatch::new(&[2, 0, 1])];
    let null_lists = [ListBatch::new(&[2, 0, 1]).with_validity(&[0b101])];
    let decimals = [7_u128, 0, 1].map(u128::to_le_bytes).concat();
    writer
        .push_batch(&[
            ColumnBatch::fixed(3, &[3_i64, 300, -3]),
            ColumnBatch::from_bytes(DType::Utf8, 3, &[1, 0, 2], b"abb").with_validity(&[0b101]),
            ColumnBatch::fixed(3, &floats),
            ColumnBatch::from_bytes(DType::Utf8, 3, &[1, 0, 1], b"xy").with_validity(&[0b101]).in_lists(&lists),
            ColumnBatch::fixed(3, &decimals).with_validity(&[0b101]),
            ColumnBatch::from_bytes(DType::Bytes, 3, &[3, 0, 3], b"abcdef")
                .with_validity(&[0b101])
                .in_lists(&null_lists),
        ])
        .unwrap();
    Reader::from_bytes(writer.into_bytes().unwrap()).unwrap()
}

/// Returns the bytes of a column.
fn bytes(file: &Reader, name: &str) -> Vec<u8> {
    let mut buffer = ColumnBuffer::new();
    file.column(name).unwrap().cursor().range_into(0..file.sample_count(), &mut buffer).unwrap();
    buffer.bytes().to_vec()
}

/// Exports a file with this stored schema and checks the values that come back. If the export
/// refuses the schema's types, an export with stored types must succeed. Returns the number of
/// exports that accepted the schema.
fn check_hostile(value: &str) -> usize {
    let file = hostile(value);
    let mut exports = 0;
    for format in formats() {
        let out = exported(&file, format, ExportOptions::new());
        exports += usize::from(out.is_ok());
        let stored = exported(&file, format, ExportOptions::new().stored_types(true)).unwrap();
        for out in out.into_iter().chain([stored]) {
            let back = import(&only_batch(out, format));
            for column in &file.schema().columns {
                assert_eq!(bytes(&back, &column.name), bytes(&file, &column.name), "{} {value}", column.name);
            }
        }
    }
    exports
}

/// Returns the IPC message of a schema.
fn message(fields: Vec<Field>) -> Vec<u8> {
    arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &ArrowSchema::new(fields)).unwrap().into_inner().unwrap()
}

/// Returns a schema that fits all columns.
fn good() -> Vec<u8> {
    let keyed = |index, values| DataType::Dictionary(Box::new(index), Box::new(values));
    let item = |name: &str, data_type, nullable| Arc::new(Field::new(name, data_type, nullable));
    let values = r#"["a","bb"]"#;
    let bytes = keyed(DataType::Int8, DataType::FixedSizeBinary(3));
    message(vec![
        Field::new("n", keyed(DataType::Int8, DataType::Int64), false),
        Field::new("t", keyed(DataType::UInt32, DataType::Utf8), true)
            .with_dict_is_ordered(true)
            .with_metadata([("tensilo.dictionary", values)]),
        Field::new("e", DataType::LargeList(item("item", DataType::Float32, false)), false),
        Field::new("l", DataType::ListView(item("element", DataType::LargeUtf8, true)), false),
        Field::new("d", DataType::Decimal128(20, 2), true),
        Field::new("b", DataType::LargeList(item("item", bytes, true)), true),
    ])
}

#[test]
fn schemas_that_do_not_fit_are_ignored() {
    assert_eq!(check_hostile(&STANDARD.encode(good())), formats().len());
    let field = |data_type: DataType| STANDARD.encode(message(vec![Field::new("l", data_type, false)]));
    let text = || Arc::new(Field::new("i", DataType::Utf8, true));
    let keyed = |index, values| DataType::Dictionary(Box::new(index), Box::new(values));
    let deep = |count: usize| (0..count).fold(DataType::Utf8, |inner, _| DataType::new_list(inner, true));
    let unions = UnionFields::from_fields((0..100).map(|i| Field::new(format!("f{i}"), DataType::Int8, true)));
    let ignored = [
        String::new(),
        "no base64".to_owned(),
        STANDARD.encode([0xFF; 100]),
        STANDARD.encode(&good()[8..]),
        field(deep(59)),
        field(deep(200)),
        field(DataType::FixedSizeList(text(), -1)),
        field(DataType::Map(text(), false)),
        field(DataType::Struct(Fields::empty())),
        field(DataType::Union(unions, UnionMode::Dense)),
        field(DataType::RunEndEncoded(text(), text())),
        field(keyed(DataType::Float32, DataType::Utf8)),
        field(keyed(DataType::Int8, DataType::new_list(DataType::Utf8, true))),
        field(DataType::List(Arc::new(Field::new("i", DataType::Utf8, false)))),
        field(DataType::Int32),
    ];
    for value in ignored {
        assert_eq!(check_hostile(&value), formats().len(), "{value:.100}");
    }
    // lengths are known only when lists are read
    for length in [2, i32::MAX] {
        assert_eq!(check_hostile(&field(DataType::FixedSizeList(text(), length))), 0, "{length}");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn changed_schemas_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        end in any::<prop::sample::Index>(),
        is_cut in prop::bool::weighted(0.1),
    ) {
        let mut message = good();
        for (at, byte) in changes {
            let at = at.index(message.len());
            message[at] = byte;
        }
        message.truncate(if is_cut { end.index(message.len()) } else { message.len() });
        check_hostile(&STANDARD.encode(message));
    }
}
