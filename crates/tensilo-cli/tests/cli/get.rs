//! `tensilo get`: indices, formats, nulls, structs and refusals.

use super::{CommandLine, Folder, NAMES, Run, SAMPLES, SPECIAL, damaged_file, folder_of, has, written};
use half::{bf16, f16};
use serde_json::{Value, json};
use std::fs;
use tensilo::nested::ListBatch;
use tensilo::{ColumnBatch, ColumnSchema, DType, Extent, Schema, Shape, WriterOptions};
use tensilo_testing::vector;

fn get(words: &str) -> Run {
    folder_of(&["a.tsl"]).run(&format!("get a.tsl {words}"))
}

/// Returns the output of a command that succeeds.
#[track_caller]
fn bytes(words: &str) -> Vec<u8> {
    folder_of(&["a.tsl"]).done(&format!("get a.tsl {words}")).stdout
}

#[track_caller]
fn get_json(words: &str) -> Value {
    serde_json::from_slice(&bytes(words)).unwrap()
}

/// Returns a NumPy array, parsed by hand: its type, its shape as Python writes it, and its data.
fn npy(words: &str) -> (String, String, Vec<u8>) {
    let bytes = bytes(&format!("{words} --format npy"));
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!((10 + length) % 64, 0);
    let header = std::str::from_utf8(&bytes[10..10 + length]).unwrap();
    assert!(header.ends_with('\n') && header.contains("'fortran_order': False"));
    let between = |from: &str, to: &str| {
        let rest = header.split_once(from).unwrap().1;
        rest.split_once(to).unwrap().0.to_owned()
    };
    (between("'descr': '", "'"), between("'shape': ", "), }") + ")", bytes[10 + length..].to_vec())
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn u16s(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|bytes| u16::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn one_index_gives_the_sample_and_several_an_array() {
    assert_eq!(get("-c x -i 5").text(), "[5.0,1.1015625]\n");
    assert_eq!(get("-c x -i 5..6").text(), "[\n[5.0,1.1015625]\n]\n");
    assert_eq!(get("-c e -i 19,5").text(), "[\n19.0,\n5.0\n]\n");
    assert_eq!(get_json("-c x -i 3..3"), json!([]));
    // order and repetitions are preserved
    let text = |i| json!(format!("text {i}"));
    assert_eq!(
        get_json("-c t -i 9,1,1,10..13,0"),
        json!([text(9), text(1), text(1), text(10), text(11), text(12), text(0)])
    );
    assert_eq!(get_json("-c t -i ..").as_array().unwrap().len(), SAMPLES as usize);
}

#[test]
fn json_has_every_type() {
    assert_eq!(get_json("-c e -i 0..5"), json!(["NaN", "Infinity", "-Infinity", -0.0, 0.1]));
    assert_eq!(get_json("-c t -i 2..5"), json!(["text 2", null, "\"\n"]));
    assert_eq!(get_json("-c b -i 17"), json!("0011"));
    assert_eq!(get_json("-c r -i 1..6"), json!([[[0, 1]], [[0, 1], [2, 3]], [], [[0, 1]], null]));
    assert_eq!(get_json("-c flag -i 3"), json!([true, true, false]));
    assert_eq!(get_json("-c n -i 0..3"), json!([[0, 0], null, [-2, 2]]));
    assert_eq!(get_json("-c h -i 3"), json!([[3.0, 0.5]]));
    let one = bf16::from_f32(1.1).to_bits();
    assert_eq!(get_json("-c x -i 1 --as bits"), json!([0x3F80, one]));
    assert_eq!(get_json("-c e -i 0 --as bits"), json!(SPECIAL[0].to_bits()));
    assert_eq!(get_json("-c n -i 2 --as bits"), json!([u64::MAX - 1, 2]));
}

#[test]
fn npy_has_every_type() {
    let (descr, shape, data) = npy("-c x -i 1,2,9");
    assert_eq!((descr.as_str(), shape.as_str()), ("<f4", "(3, 2)"));
    assert_eq!(f32s(&data), [1.0, 1.1015625, 2.0, 1.1015625, 9.0, 1.1015625]);
    let (descr, shape, data) = npy("-c x -i 1 --as bits");
    assert_eq!((descr.as_str(), shape.as_str()), ("<u2", "(2,)"));
    assert_eq!(u16s(&data), [0x3F80, bf16::from_f32(1.1).to_bits()]);
    let (descr, shape, data) = npy("-c e -i 0..5");
    assert_eq!((descr.as_str(), shape.as_str()), ("<f4", "(5,)"));
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&f32s(&data)), bits(&SPECIAL));
    let (descr, shape, _) = npy("-c e -i 7");
    assert_eq!((descr.as_str(), shape.as_str()), ("<f4", "()"));
    let (descr, shape, data) = npy("-c h -i 3,4");
    assert_eq!((descr.as_str(), shape.as_str()), ("<f2", "(2, 1, 2)"));
    assert_eq!(u16s(&data), [3.0, 0.5, 4.0, 0.5].map(|value| f16::from_f32(value).to_bits()));
    let (descr, _, data) = npy("-c h -i 3 --as f32");
    assert_eq!((descr.as_str(), f32s(&data)), ("<f4", vec![3.0, 0.5]));
    let (descr, shape, data) = npy("-c flag -i 3");
    assert_eq!((descr.as_str(), shape.as_str(), data), ("|b1", "(3,)", vec![1, 1, 0]));
    let (descr, _, data) = npy("-c n -i 2");
    assert_eq!((descr.as_str(), data), ("<i8", [(-2_i64).to_le_bytes(), 2_i64.to_le_bytes()].concat()));
    assert_eq!(npy("-c x -i 4..4").1, "(0, 2)");
}

#[test]
fn npy_of_ragged_samples_needs_one_shape() {
    let (descr, shape, data) = npy("-c r -i 2");
    assert_eq!((descr.as_str(), shape.as_str(), data.len()), ("<i4", "(2, 2)", 16));
    let (_, shape, data) = npy("-c r -i 2,8,11");
    assert_eq!((shape.as_str(), data.len()), ("(3, 2, 2)", 48));
    get("-c r -i 2,1 --format npy").failed(2, "--format json");
}

#[test]
fn nulls_are_refused_where_they_cannot_be_told_from_zeros() {
    for format in ["npy", "raw"] {
        get(&format!("-c n -i 2,8,5,1 --format {format}")).failed(2, "sample 1 is null");
        get(&format!("-c r -i 2,8,5,1 --format {format}")).failed(2, "sample 5 is null");
        get(&format!("-c t -i 3 --format {format}")).failed(2, "--format");
    }
    let run = get("-c n -i 0..8 --format npy");
    run.failed(2, "sample 1 is null");
    assert!(run.stdout.is_empty() && run.stderr.contains("--nulls zero"));
    assert_eq!(npy("-c n -i 2").2.len(), 16, "no null is requested");
}

#[test]
fn nulls_become_zeros_on_request() {
    let (_, shape, data) = npy("-c n -i 0..3 --nulls zero");
    assert_eq!((shape.as_str(), data.len()), ("(3, 2)", 48));
    assert_eq!(data[16..32], [0; 16]);
    let (_, shape, data) = npy("-c r -i 5,1,4 --nulls zero");
    assert_eq!((shape.as_str(), data.len()), ("(3, 1, 2)", 24));
    assert_eq!(data[..8], [0; 8]);
    assert_eq!(bytes("-c t -i 2..5 --format raw --nulls zero"), b"text 2\"\n");
}

#[test]
fn raw_is_what_is_stored() {
    let x = [1.0, 1.1].map(|value| bf16::from_f32(value).to_bits().to_le_bytes()).concat();
    assert_eq!(bytes("-c x -i 1 --format raw"), x);
    assert_eq!(bytes("-c x -i 1,1 --format raw --as bits"), x.repeat(2));
    assert_eq!(f32s(&bytes("-c x -i 1 --format raw --as f32")), [1.0, 1.1015625]);
    assert_eq!(bytes("-c t -i 0..2 --format raw"), b"text 0text 1");
    assert_eq!(bytes("-c b -i 9 --format raw"), [0, 9]);
    let r: Vec<u8> = [0_i32, 1, 0, 1, 2, 3].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(bytes("-c r -i 1,2 --format raw"), r);
}

#[test]
fn impossible_requests_are_bad_usage() {
    let folder = folder_of(&["a.tsl"]);
    for (words, message) in [
        ("-c x -i 20", "no sample 20"),
        ("-c x -i 0..21", "there are 20"),
        ("-c x -i 0..99", "there is no sample 20: there are 20 samples, counted from 0"),
        ("-c x -i -1", "counted from 0"),
        ("-c nothing -i 0", "no column \"nothing\""),
        ("-c x -i 1,", "expected indices and ranges"),
        ("-c x -i 3..1", "ends before it starts"),
        ("-c x", "--indices"),
        ("-c t -i 0 --format npy", "--format raw or --format json"),
        ("-c t -i 0 --as bits", "--as bits accepts any type except bytes and text"),
        ("-c n -i 0 --as f32", "--as f32 needs floats of at most 32 bits"),
    ] {
        folder.fails(&format!("get a.tsl {words}"), 2, message);
    }
}

#[test]
fn a_file_is_written_whole_and_not_over_another() {
    let folder = folder_of(&["a.tsl"]);
    let line = "get a.tsl -c x -i 0..3 --format npy -o out.npy";
    assert_eq!(folder.text(line), "");
    assert_eq!(fs::read(folder.path("out.npy")).unwrap().len(), 128 + 24);
    folder.fails(line, 2, "--force");
    folder.file("out.npy", "old");
    folder.done(&format!("{line} --force"));
    assert_eq!(fs::read(folder.path("out.npy")).unwrap().len(), 128 + 24);
    assert_eq!(folder.names(), ["a.tsl", "out.npy"]);
}

#[test]
fn damage_leaves_no_output_file() {
    let folder = Folder::new();
    folder.file("a.tsl", damaged_file());
    let runs = NAMES.map(|column| folder.run(&format!("get a.tsl -c {column} -i .. -o {column}.json")));
    let damaged: Vec<&Run> = runs.iter().filter(|run| run.code != 0).collect();
    assert_eq!((damaged.len(), folder.names().len()), (1, 8), "one output is missing, and nothing else is there");
    damaged[0].failed(1, "R-2.6");
    has(&damaged[0].stderr, &["tensilo verify"]);
}

/// The bytes of a wide decimal are one element, not a dimension.
#[test]
fn decimals_are_strings() {
    let mut column = ColumnSchema::tensor("x", DType::U8, Shape::new([Extent::Varying, Extent::Fixed(16)]));
    column.metadata.insert("arrow.type".to_owned(), "decimal128[38, 2]".to_owned());
    let folder = Folder::new();
    let values = [-5_i128, i128::MAX].map(i128::to_le_bytes).concat();
    let file = written(Schema::new([column]), WriterOptions::new(), |writer| {
        writer.push(&[tensilo::Value::ragged(&values, &[2])]).unwrap();
        writer.push(&[tensilo::Value::ragged::<u8>(&[], &[0])]).unwrap();
    });
    folder.file("a.tsl", file);
    assert_eq!(folder.all("a.tsl", "x"), json!([["-0.05", "1701411834604692317316873037158841057.27"], []]));
    assert_eq!(folder.json("get a.tsl -c x -i 0 --as bits")[0][0], json!(251));
}

/// The fields of two structs, one in lists, as an import writes them.
#[test]
fn the_name_of_a_struct_gives_objects() {
    use arrow_array::{Array, ArrayRef, Int32Array, ListArray, RecordBatch, StructArray};
    use std::sync::Arc;
    use tensilo::import::arrow::buffer::{NullBuffer, OffsetBuffer};
    use tensilo::import::arrow::datatypes::{DataType, Field, Fields};

    let fields = Fields::from(vec![Field::new("a", DataType::Int32, true)]);
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, None]));
    let nulls = Some(NullBuffer::from(vec![true, true, false]));
    let pairs = StructArray::new(fields.clone(), vec![numbers], nulls);
    let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), Arc::new(pairs.clone()), None);
    let outer = Fields::from(vec![Field::new("in", lists.data_type().clone(), true)]);
    let outer = StructArray::new(outer, vec![Arc::new(lists)], Some(NullBuffer::from(vec![true, false, true])));
    let columns: [(&str, ArrayRef); 2] = [("box", Arc::new(pairs)), ("outer", Arc::new(outer))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = Folder::new();
    let file = folder.path("structs.tsl");
    let sink = tensilo::sink::AtomicFile::create(&file, false).unwrap();
    tensilo::import::write_batches(&batch.schema(), &[batch], sink, &tensilo::import::ConvertOptions::new()).unwrap();

    for (name, expected) in [
        ("box", json!([{"a": 1}, {"a": null}, null])),
        ("box.a", json!([1, null, null])),
        ("outer", json!([{"in": [{"a": 1}, {"a": null}]}, null, {"in": [null]}])),
        ("outer.in", json!([[{"a": 1}, {"a": null}], null, [null]])),
    ] {
        assert_eq!(folder.all("structs.tsl", name), expected);
    }
    assert_eq!(folder.text("get structs.tsl -c box -i 0"), "{\"a\":1}\n");
    folder.fails("get structs.tsl -c box -i 0 --format npy", 2, "struct");
    folder.fails("get structs.tsl -c bo -i 0", 2, "box");
}

/// In a salvaged file, the fields of a struct in lists may have different lists.
#[test]
fn fields_of_a_struct_that_do_not_fit_together_are_refused() {
    let column = |name: &str| {
        let column = ColumnSchema::tensor(format!("x.{name}"), DType::I8, Shape::scalar());
        let mut column = column.nullable().list().nullable();
        column.metadata.insert("tensilo.path".to_owned(), format!("x[].{name}"));
        column
    };
    let lists = |lengths, validity| [ListBatch::new(lengths).with_validity(validity)];
    let (a, b) = (lists(&[2, 2, 0, 0], &[0b0111]), lists(&[2, 1, 1, 0], &[0b1111]));
    let numbers = [1_i8, 2, 3, 4];
    let batch = [ColumnBatch::fixed(4, &numbers).in_lists(&a), ColumnBatch::fixed(4, &numbers).in_lists(&b)];
    let schema = Schema::new([column("a"), column("b")]);
    let folder = Folder::new();
    folder.file("x.tsl", written(schema, WriterOptions::new(), |writer| writer.push_batch(&batch).unwrap()));
    assert_eq!(folder.json("get x.tsl -c x -i 0..1"), json!([[{"a": 1, "b": 1}, {"a": 2, "b": 2}]]));
    for sample in ["1", "2", "3"] {
        let run = folder.fails(&format!("get x.tsl -c x -i {sample}"), 2, "x.a");
        has(&run.stderr, &["x.b", &format!("sample {sample}")]);
    }
    assert_eq!(folder.json("get x.tsl -c x.b -i 2"), json!([4]));
}

#[test]
fn small_and_complex_numbers_are_numbers() {
    let folder = Folder::new();
    folder.file("a.tsl", vector("valid/every-dtype.hex"));
    let printed = |words: &str| folder.text(&format!("get a.tsl {words}")).trim_end().to_owned();
    // the bytes 7F 81, 3F 20, 0F 08
    for (column, expected) in [
        ("f8_e4m3fn", "[\"NaN\",-0.001953125]"),
        ("f8_e5m2", "[\"NaN\",-1.5258789e-5]"),
        ("f6_e2m3", "[-7.5,-0.0]"),
        ("f6_e3m2", "[-28.0,-0.0]"),
        ("f4_e2m1", "[-6.0,-0.0]"),
        ("i4", "[-1,-8]"),
        ("u4", "[15,8]"),
        ("complex64", "[[1.5,-2.0],[-0.0,3.0]]"),
    ] {
        assert_eq!(printed(&format!("-c {column} -i 0")), expected, "{column}");
    }
    assert_eq!(printed("-c i4 -i 0 --as bits"), "[15,8]");
    let npy = |column: &str| folder.done(&format!("get a.tsl -c {column} -i 0 --format npy")).stdout;
    assert!(npy("f4_e2m1").ends_with(&[(-6.0_f32).to_le_bytes(), (-0.0_f32).to_le_bytes()].concat()));
    assert!(npy("i4").ends_with(&[0xFF, 0xF8]));
    let complex = [1.5_f32, -2.0, -0.0, 3.0].map(f32::to_le_bytes).concat();
    assert!(npy("complex64").ends_with(&complex));
    assert!(String::from_utf8_lossy(&npy("complex64")[..128]).contains("'<c8'"));
    assert_eq!(folder.done("get a.tsl -c f4_e2m1 -i 0 --format raw").stdout, [0x0F, 0x08]);
}

#[test]
fn a_column_of_an_unknown_type_is_shown_and_only_its_samples_are_refused() {
    let folder = Folder::new();
    folder.file("a.tsl", vector("valid/unknown-dtypes.hex"));
    has(&folder.text("inspect a.tsl"), &["unknown dtype 37"]);
    assert_eq!(folder.json("inspect a.tsl --json")["columns"][1]["dtype"], "unknown dtype 37");
    folder.done("verify a.tsl");
    assert_eq!(folder.all("a.tsl", "known"), json!([5, 6]));
    folder.fails("get a.tsl -c y -i 0", 2, "dtype 37");
}
