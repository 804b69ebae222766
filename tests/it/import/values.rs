//! Tests that no value changes silently: INT96 timestamps, integers wider than declared, and units
//! that contradict the embedded schema.

use super::common::*;
use parquet::arrow::encode_arrow_schema;
use parquet::basic::{LogicalType, Type as Physical};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType as ParquetType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
    Int96, Int96Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::error::Advice;
use tensilo::import::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use tensilo::import::{AppendOptions, ConvertOptions, append, convert_rows, plan_shards};
use tensilo::sink::Stream;
use tensilo::{DType, Error, ErrorKind, Reader};
use tensilo_testing::Folder;

/// One column of a Parquet file.
struct Column<'a, T: ParquetType> {
    schema: Arc<Type>,
    values: &'a [T::T],
    definitions: Option<&'a [i16]>,
    repetitions: Option<&'a [i16]>,
    /// The type that the embedded Arrow schema claims.
    claim: Option<DataType>,
}

impl<'a, T: ParquetType> Column<'a, T> {
    fn new(schema: &str, values: &'a [T::T]) -> Self {
        let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
        Self { schema, values, definitions: None, repetitions: None, claim: None }
    }

    fn bytes(&self) -> Vec<u8> {
        let claim = self.claim.as_ref().map(|claim| {
            let schema = Schema::new(vec![Field::new("x", claim.clone(), false)]);
            vec![KeyValue::new("ARROW:schema".to_owned(), encode_arrow_schema(&schema))]
        });
        let properties = WriterProperties::builder().set_key_value_metadata(claim).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), self.schema.clone(), Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(self.values, self.definitions, self.repetitions).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.into_inner().unwrap()
    }
}

/// Inputs in a folder, and the output next to them.
struct Inputs(Folder);

impl Inputs {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        self.0.file(name, bytes)
    }

    fn instants(&self, name: &str, nanoseconds: &[i128]) -> PathBuf {
        let values: Vec<Int96> = nanoseconds.iter().copied().map(int96).collect();
        self.file(name, &Column::<Int96Type>::new("required int96 x;", &values).bytes())
    }

    fn out(&self) -> PathBuf {
        self.0.path("out.tsl")
    }

    fn convert(&self, inputs: &[PathBuf]) -> Result<Reader, Error> {
        let options = ConvertOptions::new().overwrite(true);
        convert_with(inputs, &self.out(), &options)?;
        Ok(read(&self.out()))
    }

    /// Returns the error of a conversion, which must leave no output.
    fn refused(&self, inputs: &[PathBuf]) -> Error {
        let Err(error) = self.convert(inputs) else { panic!("it was not refused") };
        assert!(!self.out().exists());
        error
    }
}

/// Returns an INT96 timestamp for a number of nanoseconds since 1970.
fn int96(nanoseconds: i128) -> Int96 {
    const DAY: i128 = 86_400_000_000_000;
    let day = i32::try_from(nanoseconds.div_euclid(DAY) + 2_440_588).unwrap();
    let in_day = u64::try_from(nanoseconds.rem_euclid(DAY)).unwrap();
    Int96::from(vec![in_day as u32, (in_day >> 32) as u32, day.cast_unsigned()])
}

fn unit(file: &Reader) -> &str {
    &column(file, "x").metadata["arrow.type"]
}

/// Times in the years 2500 and 1500.
const FAR: [i128; 2] = [16_725_225_600_000_001_000, -14_831_769_600_000_001_000];

#[test]
fn int96_in_the_range_of_nanoseconds_stays_nanoseconds() {
    let folder = Inputs::new();
    let ends = [i64::MIN, -1, 0, 1, i64::MAX].map(i128::from);
    let file = folder.convert(&[folder.instants("a", &ends)]).unwrap();
    assert_eq!((unit(&file), column(&file, "x").dtype), ("timestamp[ns]", DType::I64));
    assert_eq!(scalars::<i64>(&file, "x"), ends.map(|value| Some(i64::try_from(value).unwrap())));
}

#[test]
fn int96_beyond_the_range_of_nanoseconds_becomes_microseconds() {
    let folder = Inputs::new();
    for far in FAR {
        let file = folder.convert(&[folder.instants("a", &[0, far, -1_000])]).unwrap();
        assert_eq!(unit(&file), "timestamp[us]");
        let far = i64::try_from(far / 1_000).unwrap();
        assert_eq!(scalars::<i64>(&file, "x"), [Some(0), Some(far), Some(-1)]);
    }
    // the unit that one file needs applies to all
    let inputs = [folder.instants("a", &[5_000]), folder.instants("b", &FAR)];
    assert_eq!(scalars::<i64>(&folder.convert(&inputs).unwrap(), "x")[0], Some(5));
}

#[test]
fn int96_that_no_unit_holds_is_refused_with_column_and_sample() {
    let folder = Inputs::new();
    let (fine, far) = (folder.instants("fine", &[0, 1_000, 7]), folder.instants("far", &[0, FAR[0]]));
    let error = folder.refused(&[fine.clone(), far.clone()]);
    assert_eq!((error.kind(), error.column(), error.samples()), (ErrorKind::BadInput, Some("x"), Some(4..5)));
    assert_eq!((error.path(), error.advice()), (Some(far.as_path()), &[Advice::SkipColumns][..]));
    for part in ["row 1 of this input", "timestamp[ns] fails at sample 4", "timestamp[us] fails at sample 2"] {
        assert!(error.message().contains(part), "{error}");
    }
    assert!(folder.convert(&[fine]).is_ok());
    let error = folder.refused_one(&[FAR[0] + 1]);
    assert_eq!(error.samples(), Some(0..1));
}

impl Inputs {
    fn refused_one(&self, nanoseconds: &[i128]) -> Error {
        let _ = fs::remove_file(self.out());
        self.refused(&[self.instants("one", nanoseconds)])
    }
}

#[test]
fn appended_int96_gets_the_unit_of_the_file_or_is_refused() {
    let folder = Inputs::new();
    let [near, far, odd] =
        [("near", 3_000), ("far", FAR[0]), ("odd", 3)].map(|(name, at)| folder.instants(name, &[at]));
    for (first, fitting, other, expected) in [(&far, &near, &odd, 3), (&near, &odd, &far, 3)] {
        folder.convert(std::slice::from_ref(first)).unwrap();
        let add =
            |input: &PathBuf| append(std::slice::from_ref(input), &folder.out(), &AppendOptions::new(), &mut |_| GO_ON);
        assert_eq!(add(fitting).unwrap(), 1);
        let before = fs::read(folder.out()).unwrap();
        assert_eq!(scalars::<i64>(&read(&folder.out()), "x")[1], Some(expected));
        let error = add(other).unwrap_err();
        assert_eq!(
            (error.kind(), error.column(), error.samples()),
            (ErrorKind::BadInput, Some("x"), Some(2..3)),
            "{error}"
        );
        assert!(error.advice().is_empty(), "a column of the file cannot be left out: {error}");
        assert_eq!(fs::read(folder.out()).unwrap(), before);
    }
}

#[test]
fn a_cast_int96_has_the_same_unit_in_appends_and_shards() {
    let folder = Inputs::new();
    let inputs = [folder.instants("far", &[FAR[0]]), folder.instants("near", &[3_000])];
    let expected = [Some(i64::try_from(FAR[0] / 1_000).unwrap()), Some(3)];
    let options = ConvertOptions::new().casts([("x", DType::I64)]);
    let check = |file: &Reader| {
        assert_eq!(column(file, "x").metadata["import.cast"], "timestamp[us]");
        assert_eq!(scalars::<i64>(file, "x"), expected);
    };
    convert_with(&inputs[..1], &folder.out(), &options).unwrap();
    append(&inputs[1..], &folder.out(), &AppendOptions::new(), &mut |_| GO_ON).unwrap();
    check(&read(&folder.out()));
    let plan = plan_shards(&inputs, u64::MAX, &options, &mut |_| GO_ON).unwrap();
    let table = Path::new("table");
    let written =
        convert_rows(&plan.inputs, 0..2, &plan.schema, table, Stream(Vec::new()), &AppendOptions::new(), &mut |_| {
            GO_ON
        });
    check(&opened(written.unwrap().sink.0));
    // a file in nanoseconds does not take times beyond their range
    let near = folder.0.path("near.tsl");
    convert_with(&inputs[1..], &near, &options).unwrap();
    let error = append(&inputs[..1], &near, &AppendOptions::new(), &mut |_| GO_ON).unwrap_err();
    assert_eq!((error.column(), error.samples()), (Some("x"), Some(1..2)), "{error}");
}

#[test]
fn int96_in_lists_and_beside_nulls_is_converted() {
    let folder = Inputs::new();
    let values = FAR.map(int96);
    let list = "optional group x (LIST) { repeated group list { optional int96 element; } }";
    let mut column = Column::<Int96Type>::new(list, &values);
    // [far, far], null, []
    column.definitions = Some(&[3, 3, 0, 1]);
    column.repetitions = Some(&[0, 1, 0, 0]);
    let file = folder.convert(&[folder.file("a", &column.bytes())]).unwrap();
    let far = FAR.map(|far| i64::try_from(far / 1_000).unwrap()).to_vec();
    assert_eq!(unit(&file), "timestamp[us]");
    assert_eq!(tensors::<i64>(&file, "x"), [Some((vec![2], far)), None, Some((vec![0], vec![]))]);

    let mut column = Column::<Int96Type>::new("optional int96 x;", &values[..1]);
    column.definitions = Some(&[0, 1, 0]);
    let file = folder.convert(&[folder.file("b", &column.bytes())]).unwrap();
    assert_eq!(scalars::<i64>(&file, "x"), [None, Some(i64::try_from(FAR[0] / 1_000).unwrap()), None]);
}

/// The samples of a nested column are lists of timestamps.
#[test]
fn an_int96_of_a_struct_in_a_list_is_named_by_its_sample() {
    let folder = Inputs::new();
    let values = [0, 7, 0, FAR[0]].map(int96);
    let list = "optional group x (LIST) { repeated group list { optional group element { optional int96 t; } } }";
    let mut column = Column::<Int96Type>::new(list, &values);
    column.definitions = Some(&[4; 4]);
    column.repetitions = Some(&[0, 1, 1, 0]);
    let error = folder.refused(&[folder.file("a", &column.bytes())]);
    assert_eq!(error.samples(), Some(1..2), "{error}");
    for part in ["timestamp[ns] fails at sample 1", "timestamp[us] fails at sample 0"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[test]
fn a_claimed_unit_is_used_only_if_it_is_exact() {
    let folder = Inputs::new();
    for (nanoseconds, claimed, expected) in [
        (2_000_000_000, TimeUnit::Second, "timestamp[s, UTC]"),
        (2_000_000_001, TimeUnit::Second, "timestamp[ns, UTC]"),
        (2_000, TimeUnit::Millisecond, "timestamp[ns, UTC]"),
        (FAR[0], TimeUnit::Millisecond, "timestamp[us, UTC]"),
        (2_000, TimeUnit::Microsecond, "timestamp[us, UTC]"),
    ] {
        let values = [int96(nanoseconds)];
        let mut column = Column::<Int96Type>::new("required int96 x;", &values);
        column.claim = Some(DataType::Timestamp(claimed, Some("UTC".into())));
        let file = folder.convert(&[folder.file("a", &column.bytes())]).unwrap();
        assert_eq!(unit(&file), expected);
    }
    let values = [int96(FAR[0])];
    let mut column = Column::<Int96Type>::new("required int96 x;", &values);
    let instants = DataType::Timestamp(TimeUnit::Nanosecond, None);
    column.claim = Some(DataType::Dictionary(Box::new(DataType::Int8), Box::new(instants)));
    assert_eq!(unit(&folder.convert(&[folder.file("dictionary", &column.bytes())]).unwrap()), "timestamp[us]");
    // the decoder would take nanoseconds for seconds
    let mut column = Column::<Int64Type>::new("required int64 x (TIMESTAMP(NANOS,false));", &[1_500_000_000]);
    column.claim = Some(DataType::Timestamp(TimeUnit::Second, None));
    let file = folder.convert(&[folder.file("b", &column.bytes())]).unwrap();
    assert_eq!((unit(&file), scalars::<i64>(&file, "x")), ("timestamp[ns]", vec![Some(1_500_000_000)]));
}

#[test]
fn a_decimal_has_the_digits_that_parquet_states() {
    let folder = Inputs::new();
    // the decoder would take ten-thousandths for hundredths
    for (claim, expected) in [
        (DataType::Decimal64(18, 2), "decimal64[18, 4]"),
        (DataType::Decimal256(50, 2), "decimal256[18, 4]"),
        (DataType::Int8, "decimal128[18, 4]"),
    ] {
        let mut column = Column::<Int64Type>::new("required int64 x (DECIMAL(18,4));", &[15_000, i64::MIN]);
        column.claim = Some(claim);
        let file = folder.convert(&[folder.file("a", &column.bytes())]).unwrap();
        assert_eq!((unit(&file), scalars::<i64>(&file, "x")), (expected, vec![Some(15_000), Some(i64::MIN)]));
    }
}

#[test]
fn integers_beyond_their_declared_width_are_refused() {
    let folder = Inputs::new();
    for (bits, signed, dtype, good, bad) in [
        (8, true, DType::I8, [-128, 127], [128, -129]),
        (16, true, DType::I16, [-32_768, 32_767], [32_768, -32_769]),
        (8, false, DType::U8, [0, 255], [256, -1]),
        (16, false, DType::U16, [0, 65_535], [65_536, -1]),
    ] {
        let schema = format!("required int32 x (INTEGER({bits},{signed}));");
        let bytes = |values: &[i32]| Column::<Int32Type>::new(&schema, values).bytes();
        let file = folder.convert(&[folder.file("good", &bytes(&good))]).unwrap();
        assert_eq!(column(&file, "x").dtype, dtype);
        fs::remove_file(folder.out()).unwrap();
        for value in bad {
            let error = folder.refused(&[folder.file("bad", &bytes(&[0, good[1], value]))]);
            assert_eq!((error.column(), error.samples()), (Some("x"), Some(2..3)));
            assert!(error.message().contains(&format!("value {value} does not fit")), "{error}");
        }
    }
    // the older annotation, in a list with a null and an empty one
    let list = "optional group x (LIST) { repeated group list { required int32 element (UINT_8); } }";
    let mut column = Column::<Int32Type>::new(list, &[7, 255]);
    column.definitions = Some(&[0, 2, 2, 1]);
    column.repetitions = Some(&[0, 0, 1, 0]);
    let file = folder.convert(&[folder.file("list", &column.bytes())]).unwrap();
    assert_eq!(tensors::<u8>(&file, "x"), [None, Some((vec![2], vec![7, 255])), Some((vec![0], vec![]))]);
    column.values = &[7, 256];
    fs::remove_file(folder.out()).unwrap();
    assert_eq!(folder.refused(&[folder.file("list", &column.bytes())]).samples(), Some(1..2));
}

#[test]
fn text_is_checked_to_be_utf_8_whatever_annotates_it() {
    let folder = Inputs::new();
    let bad = [ByteArray::from(b"{}".to_vec()), ByteArray::from(b"\xFF\xFE".to_vec())];
    for annotation in ["(JSON)", "(UTF8)", ""] {
        let mut column = Column::<ByteArrayType>::new(&format!("required binary x {annotation};"), &bad);
        column.claim = Some(DataType::Utf8);
        let error = folder.refused(&[folder.file("a", &column.bytes())]);
        assert!(error.to_string().to_lowercase().contains("utf"), "{error}");
    }
    let field = Type::primitive_type_builder("x", Physical::BYTE_ARRAY)
        .with_logical_type(Some(LogicalType::Bson))
        .with_repetition(parquet::basic::Repetition::REQUIRED);
    let schema = Type::group_type_builder("m").with_fields(vec![Arc::new(field.build().unwrap())]).build().unwrap();
    let mut column = Column::<ByteArrayType>::new("required binary x;", &bad);
    column.schema = Arc::new(schema);
    let file = folder.convert(&[folder.file("b", &column.bytes())]).unwrap();
    assert_eq!(
        (super::common::column(&file, "x").dtype, strings(&file, "x")[1].as_deref()),
        (DType::Bytes, Some(&b"\xFF\xFE"[..]))
    );
}

#[test]
fn uuids_of_parquet_have_their_extension_type() {
    let folder = Inputs::new();
    let values = [FixedLenByteArray::from(vec![7; 16])];
    let schema = "required fixed_len_byte_array(16) x (UUID);";
    let input = folder.file("a", &Column::<FixedLenByteArrayType>::new(schema, &values).bytes());
    let file = folder.convert(&[input]).unwrap();
    let metadata = &column(&file, "x").metadata;
    assert_eq!(metadata["arrow.type"], "fixed_size_binary[16]");
    assert_eq!(metadata["ARROW:extension:name"], "arrow.uuid");
}
