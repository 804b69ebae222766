//! `tensilo convert` and `tensilo export`

use super::{Folder, SAMPLES, SPEECH, SampleFile, on, run};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions};

fn convert(input: &Path, output: &Path, words: &str) -> super::Run {
    let fixed = [OsStr::new("convert"), input.as_os_str(), OsStr::new("-o"), output.as_os_str()];
    run(fixed.into_iter().chain(words.split_whitespace().map(OsStr::new)))
}

#[test]
fn an_output_that_exists_needs_force() {
    let folder = Folder::new();
    let input = folder.samples("a.tsl");
    for (command, name) in [("convert", "out.tsl"), ("export", "out.parquet")] {
        let out = folder.file(name, b"old");
        on(command, &input, &format!("-o {}", out.display())).failed(2, "--force");
        assert_eq!(fs::read(&out).unwrap(), b"old");
    }
}

#[test]
fn an_input_that_is_neither_parquet_nor_arrow_exits_with_2() {
    let folder = Folder::new();
    let text = folder.file("a.parquet", b"this is no Parquet file, however long it may be");
    convert(&text, &folder.path("out.tsl"), "").failed(2, "error: ");
    assert_eq!(folder.names(), ["a.parquet"]);
}

#[test]
fn a_missing_input_exits_with_3() {
    let folder = Folder::new();
    convert(&folder.path("missing.parquet"), &folder.path("out.tsl"), "").failed(3, "missing.parquet");
    assert!(folder.names().is_empty());
}

#[test]
fn an_export_has_a_known_ending() {
    let folder = Folder::new();
    let words = format!("-o {}", folder.path("out.csv").display());
    on("export", &folder.samples("a.tsl"), &words).failed(2, ".parquet");
}

#[test]
fn an_export_of_columns_that_are_not_there_exits_with_2() {
    let folder = Folder::new();
    let words = format!("-o {} --columns x,nothing", folder.path("out.parquet").display());
    on("export", &folder.samples("a.tsl"), &words).failed(2, "nothing");
    assert_eq!(folder.names(), ["a.tsl"]);
}

#[test]
fn exported_samples_are_converted_back() {
    let folder = Folder::new();
    let input = folder.samples("a.tsl");
    for ending in ["parquet", "arrow"] {
        let exported = folder.path(format!("out.{ending}"));
        let run = on("export", &input, &format!("-o {}", exported.display())).done();
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
        let back = folder.path(format!("{ending}.tsl"));
        convert(&exported, &back, "").done();
        for column in ["x", "e", "t", "b", "r", "flag", "n", "h"] {
            let samples = |path: &Path| on("get", path, &format!("-c {column} -i ..")).done().text();
            assert_eq!(samples(&back), samples(&input), "{ending} {column}");
        }
        assert_eq!(on("get", &back, "-c e -i 0 --as bits").text(), on("get", &input, "-c e -i 0 --as bits").text());
    }
}

#[test]
fn a_conversion_ends_with_a_table() {
    let folder = Folder::new();
    let parquet = folder.path("a.parquet");
    on("export", &folder.samples("a.tsl"), &format!("-o {} --columns e,t,r", parquet.display())).done();
    let out = folder.path("out.tsl");
    let run = convert(&parquet, &out, "--bf16 --threads 2 --chunk-bytes 1KiB").done();
    let text = run.text();
    let mut lines = text.lines();
    let headings = lines.next().unwrap();
    for heading in ["column", "type", "shape", "raw bytes", "stored bytes", "ratio"] {
        assert!(headings.contains(heading), "{headings}");
    }
    let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(row[..4], ["e", "bf16", "[]", "40"]);
    let cast = text.lines().find(|line| line.starts_with("e ") && line.contains("f32->bf16"));
    let cast: Vec<&str> = cast.unwrap().split_whitespace().collect();
    assert_eq!((cast[1], &cast[3..]), ("f32->bf16", &["0", "0"][..]), "{text}");
    assert!(text.lines().last().unwrap().contains(&format!("{SAMPLES} samples")), "{text}");
    assert_eq!(run.stderr, "");
    convert(&parquet, &out, "").failed(2, "--force");
    let run = convert(&parquet, &out, "--force --quiet").done();
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn options_of_a_conversion_arrive() {
    let folder = Folder::new();
    let parquet = folder.path("a.parquet");
    on("export", &folder.samples("a.tsl"), &format!("-o {} --columns e,h,t,b", parquet.display())).done();
    let out = folder.path("out.tsl");
    convert(&parquet, &out, "--columns t,e,b --skip b --cast e=f16 --profile raw --align 4096").done();
    let document = on("inspect", &out, "--json").done().json();
    let columns = document["columns"].as_array().unwrap();
    assert_eq!(columns.iter().map(|column| &column["name"]).collect::<Vec<_>>(), ["t", "e"]);
    assert_eq!((&columns[1]["dtype"], &columns[1]["cast"]["source"]), (&"f16".into(), &"f32".into()));
    assert_eq!(document["alignment"], 4096);
    assert_eq!(columns[1]["encodings"], serde_json::json!({"raw": columns[1]["chunk_count"]}));
    convert(&parquet, &folder.path("b.tsl"), "--columns nothing").failed(2, "nothing");
    let speech = speech(&folder, "--profile raw --column-profile mel=fast");
    for column in on("inspect", &speech, "--json").done().json()["columns"].as_array().unwrap() {
        let is_raw = column["encodings"].as_object().unwrap().keys().all(|name| name.starts_with("raw"));
        assert_eq!(is_raw, column["name"] != "mel", "{column}");
    }
    convert(&parquet, &folder.path("b.tsl"), "--column-profile e").failed(2, "write NAME=PROFILE");
    convert(&parquet, &folder.path("b.tsl"), "--column-profile e=tiny").failed(2, "profiles are fast, balanced");
    convert(&parquet, &folder.path("b.tsl"), "--column-profile f=fast").failed(2, "there is no column \"f\"");
}

pub(super) const PROFILES: [&str; 5] = ["fast", "balanced", "small", "raw", "bitshuffle-zstd"];

/// Converts `tests/data/speech.parquet` to a file named after `words`.
pub(super) fn speech(folder: &Folder, words: &str) -> PathBuf {
    let input = Path::new(SPEECH);
    let output = folder.path(format!("speech{}.tsl", words.replace(' ', "")));
    convert(input, &output, words).done();
    output
}

#[test]
fn a_profile_gives_the_same_bytes_in_each_run_with_any_threads_and_unchecked() {
    let folder = Folder::new();
    let bytes = |words: &str| fs::read(speech(&folder, words)).unwrap();
    let mut files: Vec<Vec<u8>> = Vec::new();
    for profile in PROFILES {
        let once = bytes(&format!("--profile {profile}"));
        for words in ["-f", "--threads 1", "--threads 2", "--threads 3", "--no-check"] {
            assert!(bytes(&format!("--profile {profile} {words}")) == once, "{profile} {words}");
        }
        files.push(once);
    }
    assert_eq!(bytes(""), files[1], "balanced is the default");
    files.sort();
    files.dedup();
    assert_eq!(files.len(), PROFILES.len(), "profiles differ");
}

#[test]
fn files_of_every_profile_are_intact_and_export_to_the_same_parquet_file() {
    let folder = Folder::new();
    let mut exported = PROFILES.map(|profile| {
        let file = speech(&folder, &format!("--profile {profile}"));
        on("verify", &file, "--deep").done();
        let parquet = folder.path(format!("{profile}.parquet"));
        on("export", &file, &format!("-o {}", parquet.display())).done();
        fs::read(parquet).unwrap()
    });
    // the export has the same content
    let back = folder.path("back.tsl");
    convert(&folder.path("raw.parquet"), &back, "--profile raw").done();
    for column in ["utt_id", "speaker", "mel", "f0_hz", "voiced", "tokens", "text"] {
        let samples = |path: &Path| on("get", path, &format!("-c {column} -i ..")).done().text();
        assert_eq!(samples(&back), samples(&folder.path("speech--profileraw.tsl")), "{column}");
    }
    exported.sort();
    assert_eq!(exported.first(), exported.last());
}

#[test]
fn chunks_have_the_size_of_the_profile_unless_another_is_given() {
    let folder = Folder::new();
    let chunks = |words: &str| {
        let document = on("inspect", &speech(&folder, words), "--json").done().json();
        document["columns"][2]["chunk_count"].as_u64().unwrap()
    };
    // five samples of 51,712 bytes
    assert_eq!((chunks(""), chunks("--profile small")), (5, 1));
    assert_eq!((chunks("--chunk-bytes 128KiB"), chunks("--profile small --chunk-bytes 64KiB")), (3, 5));
}

#[test]
fn a_tensilo_file_is_written_with_another_profile_and_some_of_its_columns() {
    let folder = Folder::new();
    let (input, out) = (folder.samples("a.tsl"), folder.path("out.tsl"));
    convert(&input, &out, "--profile small --columns t,x --threads 2").done();
    let names = |path: &Path| -> Vec<String> {
        let json = on("inspect", path, "--json").done().json();
        let columns = json["columns"].as_array().unwrap().iter();
        columns.map(|column| column["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&out), ["t", "x"]);
    for column in ["x", "t"] {
        let samples = |path: &Path| on("get", path, &format!("-c {column} -i ..")).done().text();
        assert_eq!(samples(&out), samples(&input), "{column}");
    }
    convert(&out, &out, "--force").failed(2, "out.tsl");
    let parquet = folder.path("a.parquet");
    on("export", &input, &format!("-o {}", parquet.display())).done();
    convert(&parquet, &folder.path("no.tsl"), &input.display().to_string()).failed(2, "is no tensilo file");
    assert_eq!(folder.names(), ["a.parquet", "a.tsl", "out.tsl"]);
}

/// A file of two decimals, 1.50 and -2.25, as integers and as bytes, and of whole decimals.
fn decimals(folder: &Folder) -> PathBuf {
    let column = |name: &str, dtype, extents: &[u32], text: &str| {
        let mut column = ColumnSchema::tensor(name, dtype, Shape::fixed(extents));
        column.metadata.insert("arrow.type".to_owned(), text.to_owned());
        column
    };
    let schema = Schema::new([
        column("price", DType::I64, &[], "decimal128[12, 2]"),
        column("score", DType::U8, &[16], "decimal128[22, 2]"),
        column("label", DType::I32, &[], "decimal128[9, 0]"),
    ]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    let bytes = [150_i128, -225].map(i128::to_le_bytes).concat();
    let columns =
        [ColumnBatch::fixed(2, &[150_i64, -225]), ColumnBatch::fixed(2, &bytes), ColumnBatch::fixed(2, &[1_i32, 2])];
    writer.push_batch(&columns).unwrap();
    folder.file("decimals.tsl", writer.into_bytes().unwrap())
}

#[test]
fn decimals_are_named_cast_or_refused() {
    let folder = Folder::new();
    let input = decimals(&folder);
    // the summary says which columns do not hold values
    let kept = folder.path("kept.tsl");
    let run = convert(&input, &kept, "").done();
    let notes: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(notes.iter().filter(|line| line.starts_with("note: ")).count(), 2, "{}", run.stderr);
    for part in ["\"price\"", "--cast price=f64", "decimal128[22, 2]", "--cast score=f64"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    assert_eq!(convert(&input, &kept, "--force --quiet").done().stderr, "");
    let appended = run_append(&kept, &input);
    assert!(appended.stderr.contains("--cast price=f64"), "{}", appended.stderr);
    let dataset = folder.path("dataset");
    let run = convert(&input, &dataset, "--shard-bytes 1GiB").done();
    assert!(run.stderr.contains("--cast price=f64"), "{}", run.stderr);

    // JSON has values; arrays are refused, unless bits are asked for
    assert_eq!(on("get", &input, "-c price -i 0").done().text().trim(), "\"1.50\"");
    on("get", &input, "-c price -i 0 --format npy").failed(2, "convert --cast price=f64");
    on("get", &input, "-c score -i 0 --format npy").failed(2, "decimal128[22, 2]");
    on("get", &input, "-c label -i 0 --format npy").done();
    on("get", &input, "-c price -i 0 --format npy --as bits").done();
    for name in ["o.npz", "o.safetensors", "o.tar"] {
        let out = folder.path(name);
        on("export", &input, &format!("-o {}", out.display())).failed(2, "convert --cast price=f64");
        assert!(!out.exists());
    }

    let cast = folder.path("cast.tsl");
    let run = convert(&input, &cast, "--cast price=f32 --cast score=f64 --cast label=u8").done();
    assert_eq!(run.stderr, "");
    assert!(run.text().contains("decimal->f32"), "{}", run.text());
    for (column, due) in [("price", "-2.25"), ("score", "-2.25"), ("label", "2")] {
        assert_eq!(on("get", &cast, &format!("-c {column} -i 1")).done().text().trim(), due);
    }
    for name in ["o.npz", "o.safetensors", "o.tar"] {
        on("export", &cast, &format!("-o {}", folder.path(name).display())).done();
    }
    convert(&input, &folder.path("no.tsl"), "--cast price=i64").failed(2, "1.50");
    assert!(!folder.path("no.tsl").exists());
}

fn run_append(file: &Path, input: &Path) -> super::Run {
    run([OsStr::new("append"), file.as_os_str(), input.as_os_str()]).done()
}

fn test_data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import").join(name)
}

#[test]
fn statistics_that_deny_nulls_need_no_option() {
    let folder = Folder::new();
    let out = folder.path("out.tsl");
    convert(&test_data("null-dictionary-in-struct.parquet"), &out, "").done();
    assert_eq!(on("get", &out, "-c c.a -i 0,1").done().json(), serde_json::json!([null, "x"]));
}

#[test]
fn a_column_is_renamed() {
    let folder = Folder::new();
    let (out, input) = (folder.path("out.tsl"), test_data("dotted-name-beside-struct.parquet"));
    convert(&input, &out, "--rename a.b=flat").done();
    let columns = on("inspect", &out, "--json").done().json()["columns"].clone();
    let names: Vec<&str> = columns.as_array().unwrap().iter().filter_map(|column| column["name"].as_str()).collect();
    assert_eq!(names, ["flat", "a.b#2"]);
    convert(&input, &folder.path("x.tsl"), "--rename a.b=").failed(2, "write NAME=NEW");
}

#[test]
fn metadata_that_are_left_out_are_told() {
    let folder = Folder::new();
    let run = convert(&test_data("metadata-not-utf8-pyarrow.parquet"), &folder.path("out.tsl"), "").done();
    assert!(run.stderr.contains("some metadata was left out"), "{run:?}");
    assert!(run.stderr.contains("bin of a, k"), "{run:?}");
}
