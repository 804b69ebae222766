//! `tensilo convert`, `append` and `export` of files: options, shapes, casts, and other formats.

use super::{
    CommandLine, Folder, NAMES, Run, SAMPLES, empty_file, folder_of, has, sample_file, unfinished_file, written,
};
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, ListArray, RecordBatch, StringArray};
use serde_json::json;
use std::fs;
use std::sync::Arc;
use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, WriterOptions};

pub(super) const PROFILES: [&str; 5] = ["fast", "balanced", "small", "raw", "bitshuffle-zstd"];

/// Returns the names of the columns of a file.
fn names(folder: &Folder, file: &str) -> Vec<String> {
    let document = folder.json(&format!("inspect {file} --json"));
    let columns = document["columns"].as_array().unwrap().iter();
    columns.map(|column| column["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn mistakes_have_exit_codes_and_leave_no_file() {
    let folder = folder_of(&["a.tsl"]);
    folder.file("text.parquet", b"this is not a Parquet file, however long it may be");
    folder.file("old.tsl", b"old");
    folder.file("old.parquet", b"old");
    folder.file("a.txt", b"some text that is of no format");
    let before = folder.names();
    for (line, code, message) in [
        ("convert a.tsl -o old.tsl", 2, "--force"),
        ("export a.tsl -o old.parquet", 2, "--force"),
        ("convert text.parquet -o out.tsl", 2, "error: "),
        ("convert a.txt -o out.tsl", 2, "NumPy"),
        ("convert a.txt -o out.tsl", 2, "Parquet"),
        ("convert missing.parquet -o out.tsl", 3, "missing.parquet"),
        ("export a.tsl -o out.csv", 2, ".parquet"),
        ("export a.tsl -o out.parquet --columns x,nothing", 2, "nothing"),
        ("convert a.tsl -o a.tsl --force", 2, "a.tsl"),
        ("convert IMPORT/dotted-name-beside-struct.parquet -o x.tsl --rename a.b=", 2, "expected NAME=NEW"),
        ("convert SPEECH -o b.tsl --columns nothing", 2, "nothing"),
        ("convert SPEECH -o b.tsl --column-profile mel", 2, "expected NAME=PROFILE"),
        ("convert SPEECH -o b.tsl --column-profile mel=tiny", 2, "expected one of fast, balanced"),
        ("convert SPEECH -o b.tsl --column-profile f=fast", 2, "there is no column \"f\""),
        ("convert SPEECH a.tsl -o no.tsl", 2, "not a tensilo file, but"),
        ("convert SPEECH -o new/", 2, "a trailing slash means a folder; remove it to write a file"),
        ("convert SPEECH -o .", 2, "\"tensilo append\""),
        ("convert SPEECH -o new.tsl --shard-bytes 1MiB", 2, "omit .tsl"),
    ] {
        folder.fails(line, code, message);
    }
    assert_eq!(folder.names(), before);
    assert_eq!(fs::read(folder.path("old.tsl")).unwrap(), b"old");
}

#[test]
fn exported_samples_are_converted_back() {
    let folder = folder_of(&["a.tsl"]);
    for ending in ["parquet", "arrow"] {
        let run = folder.done(&format!("export a.tsl -o out.{ending}"));
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
        folder.done(&format!("convert out.{ending} -o {ending}.tsl"));
        for column in NAMES {
            assert_eq!(folder.all(&format!("{ending}.tsl"), column), folder.all("a.tsl", column), "{ending} {column}");
        }
        let bits = |file: &str| folder.text(&format!("get {file} -c e -i 0 --as bits"));
        assert_eq!(bits(&format!("{ending}.tsl")), bits("a.tsl"));
    }
    // a tensilo file as input
    folder.done("convert a.tsl -o out.tsl --profile small --columns t,x --threads 2");
    assert_eq!(names(&folder, "out.tsl"), ["t", "x"]);
    for column in ["x", "t"] {
        assert_eq!(folder.all("out.tsl", column), folder.all("a.tsl", column));
    }
}

#[test]
fn a_conversion_ends_with_a_table() {
    let folder = folder_of(&["a.tsl"]);
    folder.done("export a.tsl -o a.parquet --columns e,t,r");
    let run = folder.done("convert a.parquet -o out.tsl --bf16 --threads 2 --chunk-bytes 1KiB");
    let text = run.text();
    let mut lines = text.lines();
    has(lines.next().unwrap(), &["column", "type", "shape", "raw bytes", "stored bytes", "ratio"]);
    let row: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(row[..4], ["e", "bf16", "[]", "40"]);
    let cast = text.lines().find(|line| line.starts_with("e ") && line.contains("f32->bf16"));
    let cast: Vec<&str> = cast.unwrap().split_whitespace().collect();
    assert_eq!((cast[1], &cast[3..]), ("f32->bf16", &["0", "0"][..]), "{text}");
    assert!(text.lines().last().unwrap().contains(&format!("{SAMPLES} samples")), "{text}");
    assert_eq!(run.stderr, "");
    let run = folder.done("convert a.parquet -o out.tsl --force --quiet");
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
}

#[test]
fn options_of_a_conversion_arrive() {
    let folder = folder_of(&["a.tsl"]);
    folder.done("export a.tsl -o a.parquet --columns e,h,t,b");
    folder.done("convert a.parquet -o out.tsl --columns t,e,b --skip b --cast e=f16 --profile raw --align 4096");
    assert_eq!(names(&folder, "out.tsl"), ["t", "e"]);
    let document = folder.json("inspect out.tsl --json");
    let column = &document["columns"][1];
    assert_eq!((&column["dtype"], &column["cast"]["source"]), (&"f16".into(), &"f32".into()));
    assert_eq!(document["alignment"], 4096);
    assert_eq!(column["encodings"], json!({"raw": column["chunk_count"]}));
    let speech = folder.speech("--profile raw --column-profile mel=fast");
    for column in folder.json(&format!("inspect {speech} --json"))["columns"].as_array().unwrap() {
        let is_raw = column["encodings"].as_object().unwrap().keys().all(|name| name.starts_with("raw"));
        assert_eq!(is_raw, column["name"] != "mel", "{column}");
    }
    folder.done("convert IMPORT/dotted-name-beside-struct.parquet -o renamed.tsl --rename a.b=flat");
    assert_eq!(names(&folder, "renamed.tsl"), ["flat", "a.b#2"]);
    // statistics that deny nulls
    folder.done("convert IMPORT/null-dictionary-in-struct.parquet -o nulls.tsl");
    assert_eq!(folder.json("get nulls.tsl -c c.a -i 0,1"), json!([null, "x"]));
    let run = folder.done("convert IMPORT/metadata-not-utf8-pyarrow.parquet -o metadata.tsl");
    has(&run.stderr, &["some metadata was left out", "bin of a, k"]);
}

#[test]
fn a_profile_gives_the_same_bytes_in_each_run_with_any_threads_and_unchecked() {
    let folder = Folder::new();
    let bytes = |words: &str| fs::read(folder.path(folder.speech(words))).unwrap();
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

/// Returns a file of two decimals, 1.50 and -2.25, as integers and as bytes, and of integral
/// decimals.
fn decimals() -> Vec<u8> {
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
    let bytes = [150_i128, -225].map(i128::to_le_bytes).concat();
    let columns =
        [ColumnBatch::fixed(2, &[150_i64, -225]), ColumnBatch::fixed(2, &bytes), ColumnBatch::fixed(2, &[1_i32, 2])];
    written(schema, WriterOptions::new(), |writer| writer.push_batch(&columns).unwrap())
}

#[test]
fn decimals_are_named_cast_or_refused() {
    let folder = Folder::new();
    folder.file("decimals.tsl", decimals());
    // the summary says which columns do not hold values
    let run = folder.done("convert decimals.tsl -o kept.tsl");
    assert_eq!(run.stderr.lines().filter(|line| line.starts_with("note: ")).count(), 2, "{}", run.stderr);
    has(&run.stderr, &["\"price\"", "--cast price=f64", "decimal128[22, 2]", "--cast score=f64"]);
    assert_eq!(folder.done("convert decimals.tsl -o kept.tsl --force --quiet").stderr, "");
    for line in ["append kept.tsl decimals.tsl", "convert decimals.tsl -o dataset --shard-bytes 1GiB"] {
        has(&folder.done(line).stderr, &["--cast price=f64"]);
    }

    // JSON prints values; arrays are refused unless bits are requested
    assert_eq!(folder.json("get decimals.tsl -c price -i 0"), json!("1.50"));
    folder.fails("get decimals.tsl -c price -i 0 --format npy", 2, "convert --cast price=f64");
    folder.fails("get decimals.tsl -c score -i 0 --format npy", 2, "decimal128[22, 2]");
    folder.done("get decimals.tsl -c label -i 0 --format npy");
    folder.done("get decimals.tsl -c price -i 0 --format npy --as bits");
    let outputs = ["o.npz", "o.safetensors", "o.tar"];
    for name in outputs {
        folder.fails(&format!("export decimals.tsl -o {name}"), 2, "convert --cast price=f64");
        assert!(!folder.path(name).exists());
    }

    let run = folder.done("convert decimals.tsl -o cast.tsl --cast price=f32 --cast score=f64 --cast label=u8");
    assert_eq!(run.stderr, "");
    has(&run.text(), &["decimal->f32"]);
    for (column, expected) in [("price", json!(-2.25)), ("score", json!(-2.25)), ("label", json!(2))] {
        assert_eq!(folder.json(&format!("get cast.tsl -c {column} -i 1")), expected);
    }
    for name in outputs {
        folder.done(&format!("export cast.tsl -o {name}"));
    }
    folder.fails("convert decimals.tsl -o no.tsl --cast price=i64", 2, "1.50");
    assert!(!folder.path("no.tsl").exists());
}

#[test]
fn appended_samples_are_read() {
    let folder = folder_of(&["a.tsl"]);
    // the exported values of x are f32, like the values that they were rounded from
    folder.done("export a.tsl -o in.parquet");
    has(&folder.text("append a.tsl in.parquet --profile raw --threads 2"), &["20 samples appended, 40 in all"]);
    folder.done("verify a.tsl --deep");
    for column in NAMES {
        let samples = |range: &str| folder.text(&format!("get a.tsl -c {column} -i {range}"));
        assert_eq!(samples(&format!("..{SAMPLES}")), samples(&format!("{SAMPLES}..")), "{column}");
    }
    let quiet = folder.done("append a.tsl in.parquet -q");
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty());
    folder.file("empty.tsl", empty_file());
    folder.done("append empty.tsl in.parquet");
    assert_eq!(folder.json("inspect empty.tsl --json")["sample_count"], SAMPLES);
}

#[test]
fn a_failed_append_changes_nothing_and_a_tail_stays_until_it_is_discarded() {
    let folder = folder_of(&["a.tsl"]);
    folder.file("text.parquet", b"this is not a Parquet file, however long it may be");
    folder.done("export a.tsl -o all.parquet");
    folder.done("export a.tsl -o part.parquet --columns e,t");
    folder.fails("append a.tsl text.parquet", 2, "text.parquet");
    folder.fails("append a.tsl missing.parquet", 3, "missing.parquet");
    folder.fails("append a.tsl part.parquet", 2, "column \"x\" is missing");
    assert!(fs::read(folder.path("a.tsl")).unwrap() == sample_file());
    folder.fails("append no.tsl part.parquet", 3, "no.tsl");
    assert!(!folder.path("no.tsl").exists());

    folder.file("a.tsl", unfinished_file());
    let refused = folder.fails("append a.tsl all.parquet", 1, "tensilo salvage");
    has(&refused.stderr, &["--discard-tail"]);
    assert!(fs::read(folder.path("a.tsl")).unwrap() == unfinished_file());
    folder.done("append a.tsl all.parquet --discard-tail");
    folder.done("verify a.tsl");
    assert_eq!(folder.json("inspect a.tsl --json")["sample_count"], 2 * SAMPLES);
}

/// Writes an Arrow file with a column `e` of lists of these lengths.
fn lists(folder: &Folder, name: &str, lengths: &[usize]) {
    let values = lengths.iter().map(|&length| Some((0..length).map(|i| Some(i as f32))));
    input(folder, name, "e", Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(values)));
}

fn input(folder: &Folder, name: &str, column: &str, array: ArrayRef) {
    folder.arrow(name, &RecordBatch::try_from_iter([(column, array)]).unwrap());
}

/// Returns the rows of the table of inferred shapes.
fn found(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("inferred")).skip(1);
    lines.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect()
}

/// Checks that a message names flags, and nothing of Rust.
#[track_caller]
fn refused(run: &Run, flags: &[&str]) {
    assert_eq!(run.code, 2, "{run:?}");
    has(&run.stderr, flags);
    assert!(!run.stderr.contains("::") && !run.stderr.contains('`'), "{}", run.stderr);
}

#[test]
fn shapes_are_inferred_and_reported_or_declared() {
    let folder = Folder::new();
    lists(&folder, "a.arrow", &[2; 300]);
    let run = folder.done("convert a.arrow -o out.tsl");
    assert_eq!(run.stderr, "");
    for text in [run.text(), folder.text("inspect out.tsl")] {
        assert_eq!(found(&text), [["e", "[2]", "300", "0"]], "{text}");
    }
    for declared in ["--shape e=*", "--shape e=2"] {
        let text = folder.text(&format!("convert a.arrow -f -o out.tsl {declared}"));
        assert!(!text.contains("found"), "{text}");
    }
    for words in ["e", "=2", "e=2,", "e=x"] {
        folder.fails(&format!("convert a.arrow -f -o out.tsl --shape {words}"), 2, "NAME=EXTENTS");
    }
    folder.fails("convert a.arrow -f -o out.tsl --shape e=2,3", 2, "does not fit");
    folder.fails("convert a.arrow -f -o out.tsl --shape other=2", 2, "there is no column \"other\"");

    // a note names the few samples that differ
    let mut lengths = vec![4; 400];
    lengths[17] = 3;
    lists(&folder, "odd.arrow", &lengths);
    let run = folder.done("convert odd.arrow -o odd.tsl");
    let expected =
        "note: column \"e\": 399 of 400 samples have the shape [4], sample 17 has [3]; --shape e=4 refuses it\n";
    assert_eq!(run.stderr, expected);
    assert_eq!(found(&run.text()), [["e", "[4]", "399", "1"]], "{}", run.text());
    assert_eq!(folder.done("convert odd.arrow -f -o odd.tsl -q").stderr, "");
    let run = folder.run("convert odd.arrow -f -o odd.tsl --shape e=4");
    refused(&run, &["column \"e\": sample 17: ", "[3]", "[4]", "--shape 'e=*'", "--skip e"]);
}

#[test]
fn refusals_speak_of_flags() {
    let folder = Folder::new();
    let nulls = ListArray::from_iter_primitive::<Float32Type, _, _>([Some(vec![None, Some(1.0)])]);
    input(&folder, "nulls.arrow", "x", Arc::new(nulls));
    let run = folder.run("convert nulls.arrow -o out.tsl --null-elements refuse");
    refused(&run, &["--null-elements nan|zero", "--skip x"]);
    input(&folder, "strings.arrow", "s", Arc::new(StringArray::from(vec!["a"])));
    lists(&folder, "two.arrow", &[2, 2]);
    lists(&folder, "three.arrow", &[2, 3]);
    folder.done("convert two.arrow -o out.tsl");
    let run = folder.run("append out.tsl three.arrow");
    refused(&run, &["column \"e\": sample 3: ", "[3]", "[2]", "convert --shape 'e=*'"]);
    assert!(!run.stderr.contains("--skip"), "{}", run.stderr);
    refused(&folder.run("append out.tsl strings.arrow"), &["--skip-extra-columns"]);
}

#[test]
fn other_formats_come_back_as_they_were() {
    let folder = Folder::new();
    for (input, output) in [
        ("npy/f32.npy", "a.npy"),
        ("safetensors/samples.safetensors", "a.safetensors"),
        ("webdataset/train.tar", "a.tar"),
    ] {
        folder.done(&format!("convert FORMATS/{input} -o a.tsl -f"));
        folder.done(&format!("export a.tsl -o {output}"));
        folder.done(&format!("convert {output} -o back.tsl -f"));
        for column in names(&folder, "a.tsl") {
            assert_eq!(folder.all("back.tsl", &column), folder.all("a.tsl", &column), "{input} {column}");
        }
    }
    assert_eq!(fs::read(folder.path("a.npy")).unwrap(), fs::read(super::word("FORMATS/npy/f32.npy")).unwrap());
    folder.done("convert a.npy -o npy.tsl");
    has(&folder.text("append npy.tsl FORMATS/npy/version-2.npy"), &["5 samples appended, 10 in all"]);
    folder.file("cut.npy", &fs::read(folder.path("a.npy")).unwrap()[..200]);
    folder.fails("convert cut.npy -o cut.tsl", 2, "cut.npy: the array is truncated");

    // options apply to all formats
    let words = "--shard-bytes 40 --columns label,half --cast half=bf16";
    folder.done(&format!("convert FORMATS/safetensors/samples.safetensors -o set {words}"));
    assert_eq!(folder.all("set", "label"), json!([0, 1, 2, 3]));
    has(&folder.text("inspect set"), &["bf16"]);
    folder.done("export set -o a.arrows");
    folder.done("convert a.arrows -o stream.tsl");
    assert_eq!(folder.text("get stream.tsl -c label -i 3"), "3\n");
}

#[test]
fn columns_that_cannot_be_stored_are_left_out() {
    let folder = Folder::new();
    let (text, axes) = ("FORMATS/refused/text.npz", "FORMATS/refused/axes.npz");
    folder.fails(&format!("convert {text} -o out.tsl"), 2, "--skip names");
    folder.fails(&format!("convert {axes} -o out.tsl"), 2, "--skip");
    for (input, choice, samples) in
        [(axes, "--skip a", 4), (axes, "--columns a", 3), (text, "--columns mel", 4), (text, "--skip names", 4)]
    {
        folder.done(&format!("convert {input} -o out.tsl -f {choice}"));
        assert_eq!(folder.json("inspect out.tsl --json")["sample_count"], samples, "{choice}");
    }
    folder.fails(&format!("append out.tsl {text}"), 2, "--skip-extra-columns");
    folder.done(&format!("append out.tsl {text} --skip-extra-columns"));
}

#[test]
fn an_array_has_one_column_without_nulls() {
    let folder = folder_of(&["a.tsl"]);
    for (columns, message) in [("x,e", "--columns"), ("n", "is null"), ("r", "several shapes"), ("t", "\"t\"")] {
        folder.fails(&format!("export a.tsl -o out.npy --columns {columns}"), 2, message);
    }
    assert_eq!(folder.names(), ["a.tsl"]);
    folder.done("export a.tsl -o out.npy --columns x");
}

#[test]
fn documents_become_an_index_and_a_file_of_tokens() {
    let folder = Folder::new();
    folder.done("convert FORMATS/megatron/text.idx -o first.tsl");
    folder.done("export first.tsl -o text.idx");
    assert_eq!(folder.names(), ["first.tsl", "text.bin", "text.idx"]);
    folder.fails("export first.tsl -o text.idx", 2, "text.idx");
    fs::remove_file(folder.path("text.idx")).unwrap();
    folder.fails("export first.tsl -o text.idx", 2, "text.bin");
    folder.done("export first.tsl -o text.idx -f");
    folder.done("convert text.idx -o back.tsl");
    assert_eq!(folder.all("back.tsl", "tokens"), folder.all("first.tsl", "tokens"));
    folder.fails("export first.tsl -o - --format megatron --force", 2, "two files are written");
    for output in ["text", "text.bin"] {
        folder.fails(&format!("export first.tsl -o {output} --format megatron -f"), 2, "the extension .idx");
    }
    fs::copy(folder.path("first.tsl"), folder.path("text.bin")).unwrap();
    folder.fails("export text.bin -o text.idx -f", 2, "text.bin: this is the same file as the input");
}

#[test]
fn a_file_of_tensors_is_one_sample_on_demand() {
    let folder = Folder::new();
    let input = "FORMATS/one-sample/weights.safetensors";
    folder.fails(&format!("convert {input} -o a.tsl"), 2, "--file-is-sample");
    folder.done(&format!("convert {input} -o a.tsl --file-is-sample"));
    let twice = folder.text(&format!("append a.tsl {input} --file-is-sample"));
    has(&twice, &["1 samples appended, 2 in all"]);
}

#[test]
fn a_column_that_is_not_there_is_answered_with_a_similar_one() {
    let folder = folder_of(&["a.tsl"]);
    folder.done("export a.tsl -o b.parquet");
    for line in [
        "get a.tsl -c flags -i 0",
        "bench a.tsl -c flags",
        "export a.tsl --columns flags -o a.parquet",
        "convert b.parquet --columns flags -o out.tsl",
        "convert b.parquet --skip flags -o out.tsl",
        "convert b.parquet --cast flags=f16 -o out.tsl",
    ] {
        let message = "there is no column \"flags\"; the most similar is \"flag\"; columns: x, e, t, b, r, flag, n, h";
        folder.fails(line, 2, message);
    }
}
