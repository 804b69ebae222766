//! Declared shapes, inferred shapes, and advice in terms of the command line.

use super::{Folder, Run, run};
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, ListArray, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes an Arrow file with a column `e` of lists of these lengths.
fn lists(folder: &Folder, name: &str, lengths: &[usize]) -> PathBuf {
    let values = lengths.iter().map(|&length| Some((0..length).map(|i| Some(i as f32))));
    input(folder, name, vec![("e", Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(values)))])
}

fn input(folder: &Folder, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = FileWriter::try_new(File::create(folder.path(name)).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    folder.path(name)
}

fn convert(input: &Path, output: &Path, words: &str) -> Run {
    let fixed = [OsStr::new("convert"), input.as_os_str(), OsStr::new("-o"), output.as_os_str(), OsStr::new("-f")];
    run(fixed.into_iter().chain(words.split_whitespace().map(OsStr::new)))
}

/// Checks that a message names flags, and nothing of Rust.
#[track_caller]
fn check_words(run: &Run, flags: &[&str]) {
    assert_eq!(run.code, 2, "{run:?}");
    for flag in flags {
        assert!(run.stderr.contains(flag), "{flag}: {}", run.stderr);
    }
    assert!(!run.stderr.contains("::") && !run.stderr.contains('`'), "{}", run.stderr);
}

/// Returns the rows of the table of inferred shapes.
fn found(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("shape found")).skip(1);
    lines.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn a_table_and_inspect_say_what_was_found() {
    let folder = Folder::new();
    let (input, out) = (lists(&folder, "a.arrow", &[2; 300]), folder.path("out.tsl"));
    let run = convert(&input, &out, "").done();
    assert_eq!(found(&run.text()), [["e", "[2]", "300", "0"]], "{}", run.text());
    assert_eq!(run.stderr, "");
    let text = super::on("inspect", &out, "").done().text();
    assert_eq!(found(&text), [["e", "[2]", "300", "0"]], "{text}");
    for declared in ["--shape e=*", "--shape e=2"] {
        let text = convert(&input, &out, declared).done().text();
        assert!(!text.contains("found"), "{text}");
    }
}

#[test]
fn a_note_tells_of_the_few_samples_that_differ() {
    let folder = Folder::new();
    let mut lengths = vec![4; 400];
    lengths[17] = 3;
    let (input, out) = (lists(&folder, "a.arrow", &lengths), folder.path("out.tsl"));
    let run = convert(&input, &out, "").done();
    let due = "note: column \"e\": 399 of 400 samples have the shape [4], sample 17 has [3]; --shape e=4 refuses it\n";
    assert_eq!(run.stderr, due);
    assert_eq!(found(&run.text()), [["e", "[4]", "399", "1"]], "{}", run.text());
    assert_eq!(convert(&input, &out, "-q").done().stderr, "");
    let run = convert(&input, &out, "--shape e=4");
    check_words(&run, &["column \"e\": sample 17: ", "[3]", "[4]", "--shape 'e=*'", "--skip e"]);
}

#[test]
fn a_shape_is_written_with_commas_and_stars() {
    let folder = Folder::new();
    let (input, out) = (lists(&folder, "a.arrow", &[2]), folder.path("out.tsl"));
    for words in ["--shape e", "--shape =2", "--shape e=2,", "--shape e=x"] {
        convert(&input, &out, words).failed(2, "NAME=EXTENTS");
    }
    convert(&input, &out, "--shape e=2,3").failed(2, "does not fit");
    convert(&input, &out, "--shape other=2").failed(2, "there is no column \"other\"");
}

#[test]
fn refusals_speak_of_flags() {
    let folder = Folder::new();
    let out = folder.path("out.tsl");
    let nulls = ListArray::from_iter_primitive::<Float32Type, _, _>([Some(vec![None, Some(1.0)])]);
    let with_null = input(&folder, "nulls.arrow", vec![("x", Arc::new(nulls))]);
    let refused = convert(&with_null, &out, "--null-elements refuse");
    check_words(&refused, &["--null-elements nan|zero", "--skip x"]);
    let strings = input(&folder, "strings.arrow", vec![("s", Arc::new(StringArray::from(vec!["a"])))]);

    convert(&lists(&folder, "two.arrow", &[2, 2]), &out, "").done();
    let append = |input: &Path| run([OsStr::new("append"), out.as_os_str(), input.as_os_str()]);
    let refused = append(&lists(&folder, "three.arrow", &[2, 3]));
    check_words(&refused, &["column \"e\": sample 3: ", "[3]", "[2]", "convert --shape 'e=*'"]);
    assert!(!refused.stderr.contains("--skip"), "{}", refused.stderr);
    check_words(&append(&strings), &["--skip-others"]);
}
