//! Tests tensilo files as inputs: the result equals what the original input would have given.

use super::common::*;
use crate::common::files::FilePlan;
use crate::common::plan::{WritePlan, profiles, write_to};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::facts::FileId;
use tensilo::import::arrow::array::{ArrayRef, Float64Array, Int32Array, StringArray};
use tensilo::import::arrow::datatypes::{DataType, Field};
use tensilo::import::{AppendOptions, ConvertOptions, InferredShape, append, plan_shards};
use tensilo::salvage::UNCONFIRMED;
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Error, ErrorKind, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::{Folder, Random};

const ID: FileId = FileId([7; 12]);

fn options(profile: Profile) -> ConvertOptions {
    ConvertOptions::new().writer(WriterOptions::new().profile(profile).file_id(ID))
}

fn profile() -> Profile {
    *profiles().last().unwrap()
}

/// Ways to convert files of a folder to another file.
trait Convert {
    fn convert(&self, inputs: &[&str], output: &str, options: &ConvertOptions) -> Result<Vec<u8>, Error>;
}

impl Convert for Folder {
    fn convert(&self, inputs: &[&str], output: &str, options: &ConvertOptions) -> Result<Vec<u8>, Error> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|name| self.path(name)).collect();
        convert_with(&inputs, &self.path(output), options)?;
        let bytes = fs::read(self.path(output)).unwrap();
        opened(bytes.clone());
        Ok(bytes)
    }
}

fn refused(result: Result<Vec<u8>, Error>) -> Error {
    result.map(|_| ()).expect_err("it was not refused")
}

#[test]
fn a_file_of_anything_becomes_what_its_samples_would_have_become() {
    let folder = Folder::new();
    let mut random = Random(11);
    for _ in 0..60 {
        let plan = FilePlan::arbitrary(&mut random);
        let (table, bytes) = plan.write("");
        fs::write(folder.path("in.tsl"), bytes).unwrap();
        for profile in [Profile::Raw, profile()] {
            let block_bytes = profile.block_bytes();
            let expected =
                WritePlan { profile, chunk_bytes: 3000, block_bytes, alignment: 64, threads: 1, steps: Vec::new() };
            let expected =
                write_to(Stream(Vec::new()), &table, &expected, &expected.options().file_id(ID)).unwrap().sink.0;
            let writer = WriterOptions::new().profile(profile).file_id(ID).chunk_bytes(3000);
            let options = ConvertOptions::new().writer(writer);
            assert!(folder.convert(&["in.tsl"], "out.tsl", &options).unwrap() == expected, "{profile:?} {plan:?}");
            fs::remove_file(folder.path("out.tsl")).unwrap();
        }
    }
}

#[test]
fn a_round_trip_through_another_profile_changes_no_byte() {
    let folder = Folder::new();
    write_arrow(folder.path("in.arrow"), &[mixed(700, 0), mixed(40, 700)]);
    for bf16 in [false, true] {
        let direct = options(profile()).bf16(bf16);
        let direct = folder.convert(&["in.arrow"], "direct.tsl", &direct).unwrap();
        let raw = options(Profile::Raw).bf16(bf16);
        folder.convert(&["in.arrow"], "raw.tsl", &raw).unwrap();
        for again in [false, true] {
            // rounding bf16 to bf16 changes nothing
            let options = options(profile()).bf16(again && bf16);
            assert!(folder.convert(&["raw.tsl"], "out.tsl", &options).unwrap() == direct, "{bf16} {again}");
            fs::remove_file(folder.path("out.tsl")).unwrap();
        }
        ["direct.tsl", "raw.tsl"].iter().for_each(|name| fs::remove_file(folder.path(name)).unwrap());
    }
}

/// Returns values that a cast to f16 makes infinite, subnormal or inexact, or leaves unchanged.
fn floats(factor: f64) -> tensilo::import::arrow::array::RecordBatch {
    let values = [0.0, 1.0, -0.1, 1e9, 6e-6, 1e-30, f64::NAN, f64::INFINITY, 65504.0].map(|value| value * factor);
    let array: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
    batch(vec![(Field::new("x", DataType::Float64, false), array)])
}

#[test]
fn cast_facts_are_preserved_and_merged() {
    let folder = Folder::new();
    write_arrow(folder.path("a.arrow"), &[floats(1.0)]);
    write_arrow(folder.path("b.arrow"), &[floats(-0.3)]);
    let cast = |profile| options(profile).casts([("x", DType::F16)]);
    folder.convert(&["a.arrow"], "a.tsl", &cast(Profile::Raw)).unwrap();
    folder.convert(&["b.arrow"], "b.tsl", &cast(Profile::Raw)).unwrap();
    let expected = folder.convert(&["a.arrow", "b.arrow"], "due.tsl", &cast(profile())).unwrap();
    assert!(folder.convert(&["a.tsl", "b.tsl"], "out.tsl", &options(profile())).unwrap() == expected);

    let bf16 = options(profile()).bf16(true);
    let error = refused(folder.convert(&["a.tsl"], "no.tsl", &bf16));
    assert_eq!((error.kind(), error.column()), (ErrorKind::BadArgument, Some("x")));
    assert!(error.message().contains("rounded from f64 to f16"), "{error}");
    folder.convert(&["a.arrow"], "plain.tsl", &options(profile())).unwrap();
    let error = refused(folder.convert(&["a.tsl", "plain.tsl"], "no.tsl", &options(profile())));
    assert!(error.message().contains("\"x\" is f64, not f16 (rounded from f64)"), "{error}");
    assert!(!folder.path("no.tsl").exists());
}

#[test]
fn several_files_follow_each_other_and_columns_are_selected() {
    let folder = Folder::new();
    write_arrow(folder.path("a.arrow"), &[mixed(30, 0)]);
    write_arrow(folder.path("b.arrow"), &[mixed(50, 30)]);
    folder.convert(&["a.arrow"], "a.tsl", &options(Profile::Raw)).unwrap();
    folder.convert(&["b.arrow"], "b.tsl", &options(profile())).unwrap();
    let some = options(profile()).columns(["text", "id"]);
    let expected = folder.convert(&["b.arrow", "a.arrow"], "due.tsl", &some).unwrap();
    assert!(folder.convert(&["b.tsl", "a.tsl"], "out.tsl", &some).unwrap() == expected);

    let all = folder.convert(&["a.tsl", "b.tsl"], "all.tsl", &options(profile())).unwrap();
    let all = Reader::from_bytes(all).unwrap();
    check_mixed(&all, 80);
    // the shape was inferred from the samples of a single file
    assert_eq!(InferredShape::of(column(&all, "embedding")), None);
    let one = Reader::from_bytes(fs::read(folder.path("a.tsl")).unwrap()).unwrap();
    assert_eq!(InferredShape::of(column(&one, "embedding")).unwrap().sample_count, 24);

    let added = append(
        &[folder.path("b.tsl")],
        &folder.path("a.tsl"),
        &AppendOptions::new().writer(WriterOptions::new().profile(Profile::Raw)),
        &mut |_| GO_ON,
    );
    assert_eq!(added.unwrap(), 50);
    check_mixed(&Reader::from_bytes(fs::read(folder.path("a.tsl")).unwrap()).unwrap(), 80);
}

/// Salvage records which samples are unconfirmed, by their numbers.
#[test]
fn unconfirmed_samples_that_get_other_numbers_may_be_any_sample() {
    let folder = Folder::new();
    for (name, ranges) in [("good.tsl", None), ("salvaged.tsl", Some("0..1"))] {
        let mut column = ColumnSchema::tensor("x", DType::I8, Shape::scalar());
        column.metadata.extend(ranges.map(|ranges| (UNCONFIRMED.to_owned(), ranges.to_owned())));
        let mut writer =
            Writer::new(Stream(Vec::new()), Schema::new([column]), &WriterOptions::new().profile(Profile::Raw))
                .unwrap();
        writer.push(&[Value::tensor(&[1_i8])]).unwrap();
        fs::write(folder.path(name), writer.into_bytes().unwrap()).unwrap();
    }
    let any = "0..18446744073709551615";
    let ranges = |schema: &Schema| schema.columns[0].metadata.get(UNCONFIRMED).cloned();
    for (inputs, expected) in [
        (&["salvaged.tsl"][..], Some("0..1")),
        (&["salvaged.tsl", "good.tsl"], Some("0..1")),
        (&["good.tsl", "salvaged.tsl"], Some(any)),
        (&["salvaged.tsl", "salvaged.tsl"], Some(any)),
        (&["good.tsl"], None),
    ] {
        let bytes = folder.convert(inputs, "out.tsl", &options(Profile::Raw).overwrite(true)).unwrap();
        assert_eq!(ranges(Reader::from_bytes(bytes).unwrap().schema()).as_deref(), expected, "{inputs:?}");
        let paths: Vec<PathBuf> = inputs.iter().map(|name| folder.path(name)).collect();
        let plan = plan_shards(&paths, u64::MAX, &options(Profile::Raw), &mut |_| GO_ON).unwrap();
        assert_eq!(ranges(&plan.schema).as_deref(), expected.and(Some(any)), "{inputs:?}");
    }
}

#[test]
fn all_differences_are_in_one_error() {
    let folder = Folder::new();
    let write = |name: &str, columns: Vec<ColumnSchema>| {
        let writer = Writer::new(Stream(Vec::new()), Schema::new(columns), &WriterOptions::new().profile(Profile::Raw));
        fs::write(folder.path(name), writer.unwrap().into_bytes().unwrap()).unwrap();
    };
    let tensor = |name: &str, dtype, extents: &[u32]| ColumnSchema::tensor(name, dtype, Shape::fixed(extents));
    write("a.tsl", vec![tensor("x", DType::F32, &[3]), tensor("y", DType::I8, &[]), tensor("z", DType::I8, &[])]);
    write(
        "b.tsl",
        vec![
            ColumnSchema::tensor("x", DType::F32, Shape::ragged()),
            tensor("y", DType::U8, &[]),
            tensor("w", DType::I8, &[]),
        ],
    );
    let error = refused(folder.convert(&["a.tsl", "b.tsl"], "out.tsl", &options(Profile::Raw)));
    for part in ["\"x\" is f32[*], not f32[3]", "\"y\" is u8, not i8", "column \"z\" is missing", "extra column \"w\""]
    {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert_eq!(error.path(), Some(folder.path("b.tsl").as_path()));

    write_arrow(folder.path("c.arrow"), &[mixed(3, 0)]);
    let error = refused(folder.convert(&["a.tsl", "c.arrow"], "out.tsl", &options(Profile::Raw)));
    assert_eq!((error.kind(), error.path()), (ErrorKind::BadArgument, Some(folder.path("c.arrow").as_path())));
    assert!(error.message().contains("not a tensilo file, but"), "{error}");
    assert_eq!(folder.names(), ["a.tsl", "b.tsl", "c.arrow"]);
}

#[test]
fn a_damaged_input_ends_in_an_error_and_leaves_nothing() {
    let folder = Folder::new();
    write_arrow(folder.path("in.arrow"), &[mixed(300, 0)]);
    let good = folder.convert(&["in.arrow"], "good.tsl", &options(profile())).unwrap();
    let mut random = Random(5);
    for case in 0..200 {
        let mut bytes = good.clone();
        if case % 4 == 0 {
            bytes.truncate(random.below(good.len() as u64) as usize);
        } else {
            let bit = random.below(good.len() as u64 * 8);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        fs::write(folder.path("bad.tsl"), &bytes).unwrap();
        match folder.convert(&["bad.tsl"], "out.tsl", &options(profile())) {
            // a bit of padding, or of a field that no reader needs
            Ok(out) => {
                assert!(out == good, "case {case}");
                fs::remove_file(folder.path("out.tsl")).unwrap();
            }
            Err(error) => {
                assert_eq!(error.path(), Some(folder.path("bad.tsl").as_path()), "case {case}: {error}");
            }
        }
        assert_eq!(folder.names(), ["bad.tsl", "good.tsl", "in.arrow"]);
    }
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let folder = Folder::new();
    write_arrow(folder.path("in.arrow"), &[mixed(30, 0)]);
    let before = folder.convert(&["in.arrow"], "a.tsl", &options(Profile::Raw)).unwrap();
    fs::hard_link(folder.path("a.tsl"), folder.path("b.tsl")).unwrap();
    let options = options(profile()).overwrite(true);
    for output in ["a.tsl", "b.tsl"] {
        let error = refused(folder.convert(&["a.tsl"], output, &options));
        assert_eq!(error.kind(), ErrorKind::BadArgument, "{error}");
        assert!(fs::read(folder.path("a.tsl")).unwrap() == before);
    }
    let error = append_with(&[folder.path("b.tsl")], &folder.path("a.tsl"), &AppendOptions::new());
    assert_eq!(error.unwrap_err().kind(), ErrorKind::BadArgument);
}

#[test]
fn folders_of_tensilo_files_are_read_in_order_and_their_names_become_columns() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("data/day=2")).unwrap();
    fs::create_dir_all(folder.path("data/day=1")).unwrap();
    let write = |path: &Path, number: i32| {
        let array: ArrayRef = Arc::new(Int32Array::from(vec![number]));
        write_arrow(folder.path("one.arrow"), &[one(array)]);
        fs::remove_file(path).ok();
        convert_with(&[folder.path("one.arrow")], path, &options(Profile::Raw)).unwrap();
    };
    write(&folder.path("data/day=2/x.tsl"), 2);
    write(&folder.path("data/day=1/x.tsl"), 1);
    let file = Reader::from_bytes(folder.convert(&["data"], "out.tsl", &options(Profile::Raw)).unwrap()).unwrap();
    assert_eq!(scalars::<i32>(&file, "x"), [Some(1), Some(2)]);
    assert_eq!(scalars::<i64>(&file, "day"), [Some(1), Some(2)]);
    // next to files of another format, tensilo files are results and not inputs
    write_arrow(folder.path("data/y.arrow"), &[one(Arc::new(StringArray::from(vec!["a"])))]);
    let file = Reader::from_bytes(folder.convert(&["data"], "out2.tsl", &options(Profile::Raw)).unwrap()).unwrap();
    assert_eq!(file.sample_count(), 1);
}

#[test]
fn a_shape_can_be_declared_narrower_if_all_samples_have_it() {
    let folder = Folder::new();
    let schema = Schema::new([ColumnSchema::tensor("x", DType::F32, Shape::ragged()).nullable()]);
    let write = |lengths: &[u32]| {
        let mut writer =
            Writer::new(Stream(Vec::new()), schema.clone(), &WriterOptions::new().profile(Profile::Raw)).unwrap();
        for &length in lengths {
            let values = vec![1.5_f32; length as usize];
            writer.push(&[Value::ragged(&values, &[length])]).unwrap();
        }
        writer.push(&[Value::NULL]).unwrap();
        fs::write(folder.path("in.tsl"), writer.into_bytes().unwrap()).unwrap();
    };
    let declared = options(Profile::Raw).shapes([("x", Shape::fixed(&[3]))]);
    write(&[3, 3]);
    let file = Reader::from_bytes(folder.convert(&["in.tsl"], "out.tsl", &declared).unwrap()).unwrap();
    let expected = [Some((vec![3], vec![1.5_f32; 3])), Some((vec![3], vec![1.5; 3])), None];
    assert_eq!(tensors::<f32>(&file, "x"), expected);
    write(&[3, 4]);
    let error = refused(folder.convert(&["in.tsl"], "no.tsl", &declared));
    assert_eq!(error.samples(), Some(1..2));
}
