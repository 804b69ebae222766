//! Proves that a sample or schema that cannot be written is refused with its reason and position,
//! and leaves no trace in the file. A sink that fails leaves the last commit, or nothing.

use crate::common::Table;
use crate::common::data::arbitrary_table;
use crate::common::plan::{Step, WritePlan, arbitrary_plan, options, push_all, write};
use crate::common::sinks::Failing;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::io::ErrorKind as Io;
use tensilo::ErrorKind::{BadArgument, OverLimit};
use tensilo::sink::Stream;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Error, ErrorKind, Extent, Metadata, Profile, Reader, Result,
    Schema, Shape, Value, Writer, WriterOptions, limits,
};

fn create(schema: Schema) -> Result<Writer<Stream<Vec<u8>>>> {
    Writer::new(Stream(Vec::new()), schema, &options().chunk_bytes(64))
}

fn refused<T>(result: Result<T>, kind: ErrorKind, column: Option<&str>) -> Error {
    let Err(error) = result else { panic!("was not refused") };
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.column(), column, "{error}");
    error
}

// ---- schemas

fn scalar(name: &str) -> ColumnSchema {
    ColumnSchema::tensor(name, DType::U8, Shape::scalar())
}

/// Pairs of a schema that is just allowed and one that is just not.
#[test]
fn schemas_over_a_limit_are_refused_and_those_at_it_are_not() {
    let long = "n".repeat(limits::NAME_BYTES);
    let too_long = format!("{long}n");
    let with = |key: &str, value: &str| {
        let metadata = Metadata::from([(key.to_owned(), value.to_owned())]);
        ColumnSchema { metadata, ..scalar("a") }
    };
    let value = "v".repeat(limits::METADATA_VALUE_BYTES);
    let shaped = |extents: &[u32]| ColumnSchema::tensor("a", DType::U8, Shape::fixed(extents));
    let pairs = [
        (scalar(&long), scalar(&too_long)),
        (shaped(&[1; limits::RANK]), shaped(&[1; limits::RANK + 1])),
        (shaped(&[0, limits::EXTENT]), shaped(&[0, u32::MAX])),
        (shaped(&[limits::CHUNK_BYTES]), shaped(&[limits::CHUNK_BYTES + 1])),
        (shaped(&[u32::MAX - 1, u32::MAX - 1, u32::MAX - 1, 0]), shaped(&[1 << 31, 3])),
        (shaped(&[1 << 31, 1]), shaped(&[1 << 31, 1 << 31, 1 << 31])),
        (with(&long, ""), with(&too_long, "")),
        (with("k", &value), with("k", &format!("{value}v"))),
    ];
    for (allowed, not) in pairs {
        let bytes = create(Schema::new([allowed.clone()])).and_then(Writer::finish).expect("at the limit").sink.0;
        assert_eq!(Reader::from_bytes(bytes).expect("a valid file").schema().columns, [allowed]);
        let name = not.name.clone();
        refused(create(Schema::new([not])), OverLimit, Some(&name));
    }
}

#[test]
fn more_columns_metadata_or_schema_than_the_format_allows_are_refused() {
    let columns = |count: usize| Schema::new((0..count).map(|i| scalar(&i.to_string())));
    let bytes = create(columns(limits::COLUMNS)).and_then(Writer::finish).expect("at the limit").sink.0;
    assert_eq!(Reader::from_bytes(bytes).expect("a valid file").schema().columns.len(), limits::COLUMNS);
    let error = refused(create(columns(limits::COLUMNS + 1)), OverLimit, None);
    assert!(error.to_string().contains("65537 columns"), "{error}");

    let entries = |count: usize| Schema {
        metadata: (0..count).map(|i| (i.to_string(), String::new())).collect(),
        ..Schema::default()
    };
    assert!(create(entries(limits::METADATA_ENTRIES)).is_ok());
    refused(create(entries(limits::METADATA_ENTRIES + 1)), OverLimit, None);

    let value = "v".repeat(limits::METADATA_VALUE_BYTES);
    let mebibytes = |count: usize| Schema {
        metadata: (0..count).map(|i| (i.to_string(), value.clone())).collect(),
        ..Schema::default()
    };
    assert!(create(mebibytes(15)).is_ok());
    refused(create(mebibytes(16)), OverLimit, None);
}

#[test]
fn schemas_that_make_no_sense_are_refused_by_name() {
    for name in ["", "a\0", "\u{1}", "tab\tbed", "line\nbreak", "\u{1F}", "\u{7F}"] {
        refused(create(Schema::new([scalar("fine"), scalar(name)])), BadArgument, Some(name));
    }
    for name in [" ", "\u{80}", "\u{FEFF}", "null", "a\u{301}", "\u{E1}"] {
        assert!(create(Schema::new([scalar("fine"), scalar(name)])).is_ok(), "{name:?}");
    }
    refused(create(Schema::new([scalar("twice"), scalar("once"), scalar("twice")])), BadArgument, Some("twice"));
    // equal for the eye, not for a computer
    assert!(create(Schema::new([scalar("a\u{301}"), scalar("\u{E1}")])).is_ok());

    for shape in [Shape::scalar(), Shape::fixed(&[3]), Shape::new([Extent::Varying, Extent::Varying])] {
        for dtype in [DType::Utf8, DType::Bytes] {
            refused(create(Schema::new([ColumnSchema::tensor("s", dtype, shape.clone())])), BadArgument, Some("s"));
        }
    }
    let casts = DType::ALL.into_iter().flat_map(|source| DType::ALL.map(|target| (source, target)));
    for (source, target) in casts.filter(|(_, target)| !target.is_string()) {
        let possible = [DType::F16, DType::F32, DType::F64].contains(&source)
            && [DType::Bf16, DType::F16, DType::F32].contains(&target)
            && source != target;
        let column = ColumnSchema::tensor("c", target, Shape::scalar()).cast_from(source);
        let created = create(Schema::new([column]));
        match possible {
            true => assert!(created.is_ok(), "{source} to {target}"),
            false => drop(refused(created, BadArgument, Some("c"))),
        }
    }
    let empty_key = Metadata::from([(String::new(), "v".to_owned())]);
    refused(create(Schema { metadata: empty_key.clone(), ..Schema::default() }), BadArgument, None);
    assert!(create(Schema::new([ColumnSchema { metadata: empty_key, ..scalar("a") }])).is_err());
}

#[test]
fn options_outside_their_range_are_refused() {
    let allowed = [options().chunk_bytes(1), options().chunk_bytes(32 << 20).alignment(4096)];
    for options in allowed {
        assert!(Writer::new(Stream(Vec::new()), Schema::default(), &options).is_ok(), "{options:?}");
    }
    let not = [
        options().chunk_bytes(0),
        options().chunk_bytes((32 << 20) + 1),
        options().chunk_bytes(usize::MAX),
        options().alignment(0),
        options().alignment(128),
        options().alignment(u32::MAX),
    ];
    for options in not {
        refused(Writer::new(Stream(Vec::new()), Schema::default(), &options), BadArgument, None);
    }
}

// ---- samples

const COLUMNS: [&str; 8] = ["f32", "bool", "text", "bytes", "ragged", "two vary", "nullable", "empty"];

fn schema() -> Schema {
    use Extent::{Fixed, Varying};
    Schema::new([
        ColumnSchema::tensor("f32", DType::F32, Shape::fixed(&[2])),
        ColumnSchema::tensor("bool", DType::Bool, Shape::fixed(&[2])),
        ColumnSchema::utf8("text"),
        ColumnSchema::bytes("bytes"),
        ColumnSchema::tensor("ragged", DType::I32, Shape::new([Varying, Fixed(3)])).nullable(),
        ColumnSchema::tensor("two vary", DType::U16, Shape::new([Varying, Fixed(2), Varying])),
        ColumnSchema::tensor("nullable", DType::Bool, Shape::fixed(&[3])).nullable(),
        ColumnSchema::tensor("empty", DType::F64, Shape::new([Fixed(0), Varying])),
    ])
}

/// A sample that is all right.
fn good() -> [Value<'static>; 8] {
    [
        Value::tensor(&[1.0_f32, f32::NAN]),
        Value::tensor(&[0_u8, 1]),
        Value::text("t\u{e9}xt"),
        Value::bytes(&[0xFF, 0]),
        Value::tensor(&[1_i32, 2, 3, 4, 5, 6]),
        Value::ragged(&[1_u16, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], &[2, 3]),
        Value::NULL,
        Value::ragged::<f64>(&[], &[4_000_000_000]),
    ]
}

fn with(column: &str, value: Value<'static>) -> Vec<Value<'static>> {
    let mut sample = good().to_vec();
    let number = COLUMNS.iter().position(|name| *name == column).expect("a column");
    sample[number] = value;
    sample
}

/// Samples that are wrong in one column each.
fn wrong_samples() -> Vec<(&'static str, ErrorKind, Vec<Value<'static>>)> {
    let case = |column, value| (column, BadArgument, with(column, value));
    vec![
        case("f32", Value::tensor(&[1.0_f64, 2.0])),
        case("f32", Value::tensor(&[1_i32, 2])),
        case("f32", Value::tensor(&[0_u8; 8])),
        case("f32", Value::tensor(&[1.0_f32])),
        case("f32", Value::tensor(&[1.0_f32; 3])),
        case("f32", Value::tensor::<f32>(&[])),
        case("f32", Value::ragged(&[1.0_f32, 2.0], &[2])),
        case("f32", Value::NULL),
        case("f32", Value::text("12345678")),
        case("bool", Value::tensor(&[0_u8, 2])),
        case("bool", Value::tensor(&[255_u8, 0])),
        case("bool", Value::tensor(&[0_i8, 1])),
        case("text", Value::tensor(&[0xFF_u8])),
        case("text", Value::tensor(&[b'a', 0xC3])),
        case("text", Value::tensor(&[0xED_u8, 0xA0, 0x80])),
        case("text", Value::bytes(b"text")),
        case("text", Value::NULL),
        case("text", Value::ragged(b"text", &[3])),
        case("bytes", Value::text("text")),
        case("bytes", Value::tensor(&[1_i8])),
        case("ragged", Value::tensor(&[1_i32, 2, 3, 4])),
        case("ragged", Value::ragged(&[1_i32, 2, 3], &[2])),
        case("ragged", Value::ragged(&[1_i32, 2, 3], &[1, 1])),
        case("ragged", Value::ragged(&[1_i32, 2, 3], &[])),
        case("two vary", Value::tensor(&[1_u16, 2, 3, 4])),
        case("two vary", Value::ragged(&[1_u16, 2, 3, 4], &[2])),
        case("two vary", Value::ragged(&[1_u16, 2, 3, 4], &[1, 1])),
        case("two vary", Value::ragged(&[1_u16, 2, 3, 4], &[0, 4_000_000_000])),
        case("two vary", Value::NULL),
        case("nullable", Value::tensor(&[0_u8, 1, 2])),
        case("empty", Value::ragged(&[1.0_f64], &[1])),
        ("ragged", OverLimit, with("ragged", Value::ragged::<i32>(&[], &[u32::MAX]))),
        ("two vary", OverLimit, with("two vary", Value::ragged::<u16>(&[], &[u32::MAX, 0]))),
        ("empty", OverLimit, with("empty", Value::ragged::<f64>(&[], &[u32::MAX]))),
    ]
}

fn finish(writer: Writer<Stream<Vec<u8>>>) -> Vec<u8> {
    writer.finish().expect("a sink that takes all").sink.0
}

/// A file with `samples` good samples.
fn good_file(samples: usize) -> Vec<u8> {
    let mut writer = create(schema()).expect("a valid schema");
    for _ in 0..samples {
        writer.push(&good()).expect("a good sample");
    }
    finish(writer)
}

#[test]
fn wrong_samples_are_refused_by_column_and_nothing_of_them_is_written() {
    let mut writer = create(schema()).expect("a valid schema");
    writer.push(&good()).expect("a good sample");
    for (number, (column, kind, sample)) in wrong_samples().into_iter().enumerate() {
        let Err(error) = writer.push(&sample) else { panic!("wrong sample {number} of {column} was taken") };
        assert_eq!((error.kind(), error.column()), (kind, Some(column)), "wrong sample {number}: {error}");
        assert_eq!(writer.sample_count(), 1);
        let mut other = create(schema()).expect("a valid schema");
        assert!(other.push(&sample).is_err());
        other.push(&good()).expect("a writer that refused a sample goes on");
        assert!(finish(other) == good_file(1), "wrong sample {number} of {column} left something behind");
    }
    writer.push(&good()).expect("a writer that refused a sample goes on");
    assert!(finish(writer) == good_file(2));
}

#[test]
fn a_wrong_number_of_columns_is_refused() {
    let mut writer = create(schema()).expect("a valid schema");
    refused(writer.push(&[]), BadArgument, None);
    refused(writer.push(&good()[..7]), BadArgument, None);
    refused(writer.push(&[good().as_slice(), &[Value::NULL]].concat()), BadArgument, None);
    refused(writer.push_batch(&[]), BadArgument, None);
    assert!(finish(writer) == good_file(0));
}

#[test]
fn wrong_batches_are_refused_by_column_and_nothing_of_them_is_written() {
    let schema = Schema::new([
        ColumnSchema::tensor("fixed", DType::I16, Shape::fixed(&[2])),
        ColumnSchema::tensor("ragged", DType::I16, Shape::ragged()).nullable(),
        ColumnSchema::utf8("text"),
    ]);
    let fixed = ColumnBatch::fixed(3, &[1_i16, 2, 3, 4, 5, 6]);
    let ragged = ColumnBatch::ragged(3, &[1, 0, 2], &[1_i16, 2, 3]).with_validity(&[0b101]);
    let text = ColumnBatch::ragged(3, &[2, 0, 1], b"abc");
    let text_cut_in_a_char = ColumnBatch::ragged(3, &[2, 1, 1], "a\u{e9}b".as_bytes());
    let wrong: [(&str, [ColumnBatch; 3]); 13] = [
        ("fixed", [ColumnBatch::fixed(3, &[1_i16, 2, 3, 4, 5]), ragged, text]),
        ("fixed", [ColumnBatch::fixed(3, &[1_u16, 2, 3, 4, 5, 6]), ragged, text]),
        ("fixed", [fixed.with_validity(&[0b011]), ragged, text]),
        ("fixed", [ColumnBatch::ragged(3, &[2, 2, 2], &[1_i16, 2, 3, 4, 5, 6]), ragged, text]),
        ("ragged", [fixed, ColumnBatch::ragged(2, &[1, 2], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ColumnBatch::ragged(4, &[1, 0, 2, 0], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ColumnBatch::ragged(3, &[1, 2], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ColumnBatch::ragged(3, &[1, 1, 2], &[1_i16, 2, 3]), text]),
        ("ragged", [fixed, ragged.with_validity(&[]), text]),
        ("ragged", [fixed, ragged.with_validity(&[0b011]), text]),
        ("text", [fixed, ragged, ColumnBatch::ragged(3, &[1, 1, 1], &[b'a', 0x80, b'b'])]),
        ("text", [fixed, ragged, text_cut_in_a_char]),
        ("text", [fixed, ragged, ColumnBatch::fixed(3, b"abc")]),
    ];
    let due = {
        let mut writer = create(schema.clone()).expect("a valid schema");
        writer.push_batch(&[fixed, ragged, text]).expect("good batches");
        finish(writer)
    };
    for (number, (column, batches)) in wrong.into_iter().enumerate() {
        let mut writer = create(schema.clone()).expect("a valid schema");
        let Err(error) = writer.push_batch(&batches) else { panic!("wrong batch {number} was taken") };
        assert_eq!((error.kind(), error.column()), (BadArgument, Some(column)), "wrong batch {number}: {error}");
        assert_eq!(writer.sample_count(), 0);
        writer.push_batch(&[fixed, ragged, text]).expect("a writer that refused a batch goes on");
        assert!(finish(writer) == due, "wrong batch {number} left something behind");
    }
}

#[test]
fn what_stands_in_the_place_of_a_null_is_ignored() {
    let column = |dtype| Schema::new([ColumnSchema::tensor("x", dtype, Shape::fixed(&[2])).nullable()]);
    let file = |dtype, values: &[u8]| {
        let mut writer = create(column(dtype)).expect("a valid schema");
        let batch = ColumnBatch::from_bytes(dtype, 3, &[], values).with_validity(&[0b101]);
        writer.push_batch(&[batch]).map(|()| finish(writer))
    };
    for dtype in [DType::Bool, DType::U8, DType::I8] {
        let zeros = file(dtype, &[0, 1, 0, 0, 1, 1]).expect("a good batch");
        assert!(file(dtype, &[0, 1, 7, 255, 1, 1]).expect("a good batch") == zeros, "{dtype}");
    }
    // but not under its neighbours
    refused(file(DType::Bool, &[0, 2, 0, 0, 1, 1]), BadArgument, Some("x"));
    refused(file(DType::Bool, &[0, 1, 0, 0, 1, 2]), BadArgument, Some("x"));
}

#[test]
fn a_sample_larger_than_a_chunk_may_be_is_refused_without_its_memory() {
    let ragged = |inner: u32| ColumnSchema::tensor("x", DType::U8, Shape::new([Extent::Varying, Extent::Fixed(inner)]));
    let mut writer = create(Schema::new([ragged(1 << 31)])).expect("a valid schema");
    // lengths are compared before anything is read or copied: no slice of that size can be made
    // here
    let error = writer.push_batch(&[ColumnBatch::ragged::<u8>(1, &[3], &[])]).expect_err("no such values");
    assert_eq!(error.column(), Some("x"));
    // samples without bytes whose counts exceed the sum that a chunk can hold
    let two = ColumnSchema::tensor("x", DType::U8, Shape::new([Extent::Varying, Extent::Varying, Extent::Fixed(0)]));
    let mut writer = create(Schema::new([two])).expect("a valid schema");
    for extents in [[1 << 16, 1 << 16], [u32::MAX - 1, u32::MAX - 1]] {
        refused(writer.push(&[Value::ragged::<u8>(&[], &extents)]), OverLimit, Some("x"));
    }
    writer.push(&[Value::ragged::<u8>(&[], &[1 << 16, (1 << 16) - 1])]).expect("a sample within the limits");
    assert_eq!(writer.sample_count(), 1);
}

// ---- reading

#[test]
fn wrong_questions_to_a_reader_are_refused() {
    let reader = Reader::from_bytes(good_file(3)).expect("a valid file");
    let error = refused(reader.column("no such").map(|_| ()), BadArgument, None);
    assert!(error.to_string().contains("two vary"), "it says what there is: {error}");
    let mut cursor = reader.column("f32").expect("a column").cursor();
    refused(cursor.read_into::<f64>(0, &mut [0.0; 2]), BadArgument, Some("f32"));
    refused(cursor.read_into::<f32>(0, &mut [0.0; 1]), BadArgument, Some("f32"));
    refused(cursor.gather_slice::<f32>(&[0, 1], &mut [0.0; 3]), BadArgument, Some("f32"));
    refused(cursor.gather_slice::<u32>(&[0, 1], &mut [0; 4]), BadArgument, Some("f32"));
}

#[test]
fn ranges_beyond_the_end_are_refused_before_memory_is_taken() {
    let reader = Reader::from_bytes(good_file(3)).expect("a valid file");
    for name in COLUMNS {
        let mut cursor = reader.column(name).expect("a column").cursor();
        let mut buffer = ColumnBuffer::new();
        for range in [0..4, 3..4, 0..u64::MAX, u64::MAX - 1..u64::MAX, 2..1 << 40] {
            refused(cursor.range_into(range, &mut buffer), BadArgument, Some(name));
        }
        for range in [0..0, 3..3] {
            cursor.range_into(range, &mut buffer).expect("no samples");
            assert_eq!(buffer.sample_count(), 0);
        }
    }
}

// ---- sinks that fail

fn small_case(runner: &mut TestRunner) -> (Table, WritePlan) {
    let strategy = (arbitrary_table(30), arbitrary_plan());
    let (table, plan) = strategy.new_tree(runner).expect("a table").current();
    let half = table.sample_count / 2;
    let steps = vec![Step::OneByOne(half / 2), Step::Commit, Step::Batch(half), Step::Commit];
    (table, WritePlan { steps, chunk_bytes: plan.chunk_bytes.max(200), ..plan })
}

/// The bytes that a sink took before it failed hold the samples of the last commit, or nothing.
fn check_remains(sink: &Failing, table: &Table, plan: &WritePlan) {
    let commits = plan.commits(table.sample_count);
    let reader = match Reader::from_bytes(sink.bytes.clone()) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(sink.published.is_empty(), "a published commit is lost: {error}");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            return;
        }
    };
    // a trailer that was written is valid, though the failure came before it was said to be
    let count = reader.commit_count() as usize;
    assert!(count == sink.published.len() || count == sink.published.len() + 1);
    let samples = commits.get(count - 1).copied().unwrap_or(table.sample_count);
    assert_eq!(reader.is_finished(), count > commits.len());
    let head = table.head(samples);
    let as_written = WritePlan { steps: plan.steps[..plan.steps.len().min(2 * count - 1)].to_vec(), ..plan.clone() };
    crate::common::check::check(&reader, &head, &as_written, 3);
}

#[test]
fn a_sink_that_fails_at_any_call_leaves_the_last_commit_and_a_writer_that_refuses_everything() {
    let runner = &mut TestRunner::deterministic();
    let mut failures = 0;
    for _ in 0..12 {
        let (table, plan) = small_case(runner);
        for call in 0.. {
            let error = [Io::StorageFull, Io::BrokenPipe, Io::WriteZero, Io::Other][call % 4];
            let mut sink = Failing::at(call, error);
            if write_until_failure(&mut sink, &table, &plan) {
                assert!(sink.bytes == write(&table, &plan));
                break;
            }
            failures += 1;
            assert_eq!(sink.calls_after, 1, "the sink was called after it failed");
            check_remains(&sink, &table, &plan);
        }
    }
    assert!(failures > 500, "only {failures} places to fail at");
}

/// Whether all went well.
fn write_until_failure(sink: &mut Failing, table: &Table, plan: &WritePlan) -> bool {
    let kind = sink.error;
    let check_io = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.map(std::io::Error::kind), Some(kind), "{error}");
        assert!(error.offset().is_some(), "{error}");
    };
    let mut writer = match Writer::new(sink, table.schema.clone(), &plan.options()) {
        Ok(writer) => writer,
        Err(error) => {
            check_io(&error);
            return false;
        }
    };
    if let Err(error) = push_all(&mut writer, table, plan) {
        check_io(&error);
        refused(writer.commit(), BadArgument, None);
        assert!(crate::common::plan::push_batch(&mut writer, table, 0..0).is_err());
        if table.sample_count > 0 {
            refused(crate::common::plan::push_one(&mut writer, table, 0), BadArgument, None);
        }
        refused(writer.finish(), BadArgument, None);
        return false;
    }
    writer.finish().inspect_err(check_io).is_ok()
}

/// A sink that takes nothing, and says so without an error.
#[test]
fn a_sink_that_takes_no_byte_is_an_error_and_no_endless_loop() {
    let mut full = [0_u8; 100];
    let result = Writer::new(Stream(full.as_mut_slice()), schema(), &WriterOptions::new().profile(Profile::Raw));
    let error = result.map(|_| ()).expect_err("room for 100 bytes");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.offset(), Some(100));
}
