//! Tests that the second reader, `format-spec/reader.py`, finds our files valid and reads the same
//! values. It was written from the specification, not from this code, so agreement of both is
//! evidence for the specification.
//!
//! Needs `python3` with the package `zstandard`. Without them these tests are reported as not run,
//! or fail if TENSILO_REQUIRE_PYTHON=1.

use crate::common::data::arbitrary_table;
use crate::common::plan::{Step, WritePlan, arbitrary_plan, options, profiles, write};
use crate::common::vectors::spec_folder;
use crate::common::{ModelSample, Table, config};
use crate::support::on_disk::OnDisk;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use std::process::Output;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::VerifyOptions;
use tensilo::{Column, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::python;

/// The number of generated files. PROPTEST_CASES raises it.
const FILES: u32 = 40;

/// Runs the second reader on a file of its own.
struct SecondReader(OnDisk);

impl SecondReader {
    /// Returns `None` if the machine cannot run it.
    fn new() -> Option<Self> {
        python().map(|_| Self(OnDisk::absent()))
    }

    fn run(&self, bytes: &[u8], arguments: &[&str]) -> Output {
        std::fs::write(self.0.path(), bytes).expect("disk space");
        let script = spec_folder().join("reader.py");
        let mut command = python().expect("python3 was there before");
        command.env("PYTHONIOENCODING", "utf-8").arg(script).args(arguments).arg(self.0.path());
        command.output().expect("python3 starts")
    }

    fn assert_verifies(&self, bytes: &[u8]) {
        let output = self.run(bytes, &["--verify"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success());
    }

    fn dump(&self, bytes: &[u8]) -> Json {
        let output = self.run(bytes, &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("a line of JSON")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns elements in the byte order of the file.
fn little_endian(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(dtype.element_bytes()).for_each(<[u8]>::reverse);
    }
    bytes
}

fn sample_json(dtype: DType, sample: &ModelSample) -> Json {
    match sample {
        None => Json::Null,
        Some(value) => json!({"extents": value.extents, "hex": hex(&little_endian(dtype, &value.bytes))}),
    }
}

fn shape_json(shape: &Shape) -> Json {
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => json!(extent),
        Extent::Varying => Json::Null,
    };
    shape.extents().iter().map(extent).collect()
}

/// Parses an `f64` of the file. The second reader prints its bytes.
fn f64_of_hex(text: &str) -> f64 {
    assert_eq!(text.len(), 16, "{text:?}");
    f64::from_bits(u64::from_str_radix(text, 16).expect("hexadecimal digits").swap_bytes())
}

/// Describes a column as our reader reads it, which other tests compare with the model.
fn column_json(column: &Column, samples: &[ModelSample]) -> Json {
    let (schema, facts) = (column.schema(), column.facts());
    json!({
        "name": schema.name,
        "dtype": schema.dtype.name(),
        "shape": shape_json(&schema.shape),
        "nullable": schema.nullable,
        "metadata": schema.metadata,
        "chunk_count": facts.chunk_count,
        "raw_bytes": facts.raw_bytes,
        "stored_bytes": facts.stored_bytes,
        "null_count": samples.iter().filter(|sample| sample.is_none()).count(),
        "encodings": facts.encodings.iter().cloned().collect::<std::collections::BTreeMap<String, u64>>(),
        "samples": samples.iter().map(|sample| sample_json(schema.dtype, sample)).collect::<Vec<_>>(),
    })
}

fn check_cast(column: &Column, found: &Json) {
    let schema = column.schema();
    let (Some(spec), Some(facts)) = (schema.cast, column.facts().cast) else {
        assert_eq!(found, &Json::Null);
        return;
    };
    assert_eq!(found["source"], json!(spec.source.name()));
    assert_eq!(found["rounding"], json!("nearest-even"));
    for (name, expected) in [("max_abs_error", facts.max_abs_error), ("max_rel_error", facts.max_rel_error)] {
        assert_eq!(f64_of_hex(found[name].as_str().expect("text")).to_bits(), expected.to_bits(), "{name}");
    }
    assert_eq!(found["to_infinite"], json!(facts.to_infinite));
    assert_eq!(found["to_subnormal"], json!(facts.to_subnormal));
}

/// Compares both readers. `stored` is the expected content of the file: for cast columns, the
/// results.
fn check(second: &SecondReader, bytes: &[u8], stored: &[Vec<ModelSample>]) {
    second.assert_verifies(bytes);
    let reader = Reader::from_bytes(bytes.to_vec()).expect("an intact file");
    let mut dump = second.dump(bytes);
    let found = dump["columns"].take();
    assert_eq!(found.as_array().map(Vec::len), Some(stored.len()));
    for ((column, samples), found) in reader.columns().zip(stored).zip(found.as_array().expect("a list")) {
        let mut found = found.clone();
        check_cast(&column, &found["cast"].take());
        found.as_object_mut().expect("an object").remove("cast");
        assert_eq!(found, column_json(&column, samples));
    }
    dump.as_object_mut().expect("an object").remove("columns");
    let expected = json!({
        "file_id": reader.file_id().to_string(),
        "content_id": reader.content_id().to_string(),
        "alignment": reader.alignment(),
        "finished": true,
        "tail_bytes": 0,
        "commits": reader.commit_count(),
        "sample_count": stored.first().map_or(0, Vec::len),
        "metadata": reader.schema().metadata,
    });
    assert_eq!(dump, expected);
}

#[test]
fn files_of_any_kind_are_read_alike_and_found_intact() {
    let Some(second) = SecondReader::new() else { return };
    let runner = &mut TestRunner::deterministic();
    for _ in 0..config(FILES).cases {
        let strategy = (arbitrary_table(200), arbitrary_plan());
        let (table, plan): (Table, WritePlan) = strategy.new_tree(runner).expect("a table").current();
        check(&second, &write(&table, &plan), &table.columns);
    }
}

#[test]
fn the_record_of_a_cast_is_read_alike() {
    let Some(second) = SecondReader::new() else { return };
    for profile in profiles() {
        let column = |name, dtype, source| ColumnSchema::tensor(name, dtype, Shape::fixed(&[3])).cast_from(source);
        let schema = Schema::new([
            column("a", DType::Bf16, DType::F32).nullable(),
            column("b", DType::F16, DType::F64),
            column("c", DType::F32, DType::F64),
        ]);
        let options = WriterOptions::new().profile(profile).chunk_bytes(40);
        let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a valid schema");
        for i in 0..50_u32 {
            let a = [f32::from_bits(i.wrapping_mul(0x9E37_79B9)), 1.0 / i as f32, f32::MAX];
            let b = [f64::from(i) * 1e-9, 1e5 * f64::from(i), -1.0 / 3.0];
            let c = [f64::MIN_POSITIVE, 1e300, f64::from(i).sqrt()];
            let a = if i % 7 == 3 { Value::NULL } else { Value::tensor(&a) };
            writer.push(&[a, Value::tensor(&b), Value::tensor(&c)]).expect("a good sample");
        }
        let bytes = writer.into_bytes().expect("a sink that takes all");
        let reader = Reader::from_bytes(bytes.clone()).expect("an intact file");
        let facts: Vec<_> = reader.columns().map(|column| column.facts().cast.expect("a cast")).collect();
        // the columns lose different values, so that no field can be correct by being 0
        assert!(facts.iter().all(|facts| facts.max_abs_error > 0.0 && facts.max_rel_error > 0.0));
        assert!(facts.iter().any(|facts| facts.to_infinite > 0) && facts.iter().any(|facts| facts.to_subnormal > 0));
        let stored: Vec<Vec<ModelSample>> = reader.columns().map(read_all).collect();
        check(&second, &bytes, &stored);
    }
}

fn read_all(column: Column) -> Vec<ModelSample> {
    let mut cursor = column.cursor();
    let mut read = |i| {
        let sample = cursor.read(i).expect("an intact file");
        let value = crate::common::TensorValue { extents: Vec::new(), bytes: sample.bytes().to_vec() };
        (!sample.is_null()).then_some(value)
    };
    (0..column.sample_count()).map(&mut read).collect()
}

/// Covers files that the generator does not make: an index of several pages, runs of unequal
/// chunks, and many commits.
#[test]
fn an_index_of_many_pages_and_runs_is_found_intact() {
    let Some(second) = SecondReader::new() else { return };
    let schema = Schema::new([
        ColumnSchema::tensor("fixed", DType::U16, Shape::scalar()),
        ColumnSchema::utf8("text").nullable(),
        ColumnSchema::tensor("one chunk", DType::F64, Shape::fixed(&[0])),
    ]);
    let columns = schema.columns.iter().enumerate().map(|(i, column)| {
        crate::common::data::samples(column, crate::common::data::Distribution::Random, i as u64, 1_500)
    });
    let table = Table { columns: columns.collect(), sample_count: 1_500, schema };
    let mut steps = vec![Step::Batch(900), Step::Commit];
    steps.extend((0..60).flat_map(|i| [Step::OneByOne(i % 3), Step::Commit]));
    let plan = WritePlan { profile: Profile::Raw, chunk_bytes: 4, block_bytes: None, alignment: 64, threads: 2, steps };
    let bytes = write(&table, &plan);
    let reader = Reader::from_bytes(bytes.clone()).expect("an intact file");
    assert!(reader.columns().next().expect("a column").facts().chunk_count > 3 * 126);
    check(&second, &bytes, &table.columns);
    crate::common::check::check(&reader, &table, &plan, 5);
}

/// Both readers must see damage, or their agreement would mean nothing.
#[test]
fn both_readers_report_a_changed_byte() {
    let Some(second) = SecondReader::new() else { return };
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[100]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options()).expect("a valid schema");
    writer.push(&[Value::tensor(&[7_u8; 100])]).expect("a good sample");
    let bytes = writer.into_bytes().expect("a sink that takes all");
    second.assert_verifies(&bytes);
    for at in (0..bytes.len()).step_by(bytes.len() / 7) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(!second.run(&changed, &["--verify"]).status.success(), "byte {at} was changed");
        let report = tensilo::verify::verify(&InMemory(changed), VerifyOptions::new()).expect("a source in memory");
        assert!(!report.findings.is_empty(), "byte {at} was changed");
    }
}
