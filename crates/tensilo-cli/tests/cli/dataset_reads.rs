//! Commands that read a folder, or files that match a pattern, as they read one file.

use super::dataset::{convert, dataset};
use super::{Folder, SAMPLES, SPEECH, SampleFile, on, run};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, StructArray};
use arrow_ipc::writer::FileWriter;
use serde_json::json;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Reader, Shape};
use tensilo_data::Dataset;

/// Converts the speech features to one file.
pub(super) fn whole(folder: &Folder) -> PathBuf {
    let path = folder.path("whole.tsl");
    run([OsStr::new("convert"), OsStr::new(SPEECH), OsStr::new("-o"), path.as_os_str()]).done();
    path
}

#[test]
fn samples_of_a_dataset_are_printed_as_those_of_a_file() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 30KiB");
    run.done();
    let whole = whole(&folder);
    let reader = Reader::open(&whole).unwrap();
    let last = reader.sample_count() - 1;
    assert!(Dataset::open(&path).unwrap().groups().count() > 2);
    let orders = [format!("{last},0,{},1,1,{last},1..4", last / 2), "..".to_owned(), last.to_string()];
    let pattern = path.join("data/*/*.tsl");
    for (column, order) in reader.columns().flat_map(|column| orders.iter().map(move |order| (column.clone(), order))) {
        let schema = column.schema();
        let formats: &[&str] = match schema.levels.is_empty() {
            true if schema.shape.is_ragged() => &["json", "raw"],
            true => &["json", "raw", "npy"],
            false => &["json"],
        };
        for format in formats {
            let words = format!("-c {} -i {order} --format {format} --nulls zero", schema.name);
            let due = on("get", &whole, &words).done().stdout;
            assert!(on("get", &path, &words).done().stdout == due, "{words}");
            assert!(on("get", &pattern, &words).done().stdout == due, "{words}");
        }
    }
    on("get", &path, &format!("-c mel -i {}", last + 1)).failed(2, "there is no sample");
    on("get", &path, "-c mell -i 0").failed(2, "the most similar is \"mel\"");
}

#[test]
fn columns_that_were_renamed_or_added_are_printed() {
    let folder = Folder::new();
    folder.samples("a.tsl");
    dataset("create", &["-q"], [folder.root()]).done();
    let mut changes = Dataset::open(folder.root()).unwrap().change().unwrap();
    changes.rename_column("t", "text").unwrap();
    let label = ColumnSchema::tensor("label", DType::F32, Shape::fixed(&[3])).nullable();
    changes.add_nullable_column(label).unwrap();
    changes.add_nullable_column(ColumnSchema::bytes("blob").nullable()).unwrap();
    changes.publish("change columns").unwrap();
    let get = |words: &str| on("get", folder.root(), words);
    assert_eq!(get("-c text -i 2..5").done().json(), json!(["text 2", null, "\"\n"]));
    get("-c t -i 2").failed(2, "there is no column \"t\"");
    assert_eq!(get("-c label -i 2,3").done().json(), json!([null, null]));
    get("-c label -i 2 --format npy").failed(2, "sample 2 is null");
    assert_eq!(get("-c label -i 0,1 --format raw --nulls zero").done().stdout, [0; 24]);
    assert_eq!(get("-c blob -i .. --format raw --nulls zero").done().stdout, b"");
    assert_eq!(get("-c r -i 3..6 --format raw --nulls zero").done().stdout, [0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn structs_of_a_dataset_are_objects() {
    let folder = Folder::new();
    let table = folder.path("structs.arrow");
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let structs: ArrayRef = Arc::new(StructArray::try_from(vec![("number", numbers), ("text", texts)]).unwrap());
    let batch = RecordBatch::try_from_iter([("s", structs)]).unwrap();
    let mut writer = FileWriter::try_new(File::create(&table).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    let (whole, path) = (folder.path("whole.tsl"), folder.path("data"));
    for (out, words) in [(&whole, ""), (&path, "--shard-bytes 1")] {
        on("convert", &table, &format!("-o {} {words}", out.display())).done();
    }
    let due = on("get", &whole, "-c s -i 2,0..").done().text();
    assert!(due.starts_with("[\n{\"number\":3,\"text\":\"z\"},") && due.contains("null"), "{due}");
    assert_eq!(Dataset::open(&path).unwrap().groups().count(), 3);
    assert_eq!(on("get", &path, "-c s -i 2,0..").done().text(), due);
}

#[test]
fn an_output_that_is_a_file_of_the_dataset_is_refused() {
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    let to = |output: &Path, words: &str| format!("{words} --force -o {}", output.display());
    let refused = |path: &Path, output: &Path, why: &str| {
        let before = fs::read(output).ok();
        on("get", path, &to(output, "-c t -i 0")).failed(2, why);
        on("export", path, &to(output, "--format arrow")).failed(2, why);
        assert!(fs::read(output).ok() == before, "{}", output.display());
    };
    refused(folder.root(), &file, "itself");
    // another file than that with the sample, and the texts of a manifest, whether there or not
    let other = folder.samples("b.tsl");
    refused(folder.root(), &other, "itself");
    dataset("create", &[], [folder.root()]).done();
    refused(folder.root(), &other, "itself");
    for name in ["0000000001.json", "0000000002.json", "pages/new.arrow"] {
        refused(folder.root(), &folder.path("manifest").join(name), "in the manifest");
    }
    let svg = folder.path("manifest/0000000001.svg");
    on("map", folder.root(), &format!("--svg {}", svg.display())).failed(2, "in the manifest");
    on("bench", folder.root(), &format!("--loader --svg {}", svg.display())).failed(2, "in the manifest");
    on("get", folder.root(), &to(&folder.path("new.json"), "-c t -i 0")).done();
}

#[test]
fn patterns_are_datasets_in_the_order_of_names() {
    let folder = Folder::new();
    for name in ["b.tsl", "a.tsl", "other", "[a].tsl"] {
        folder.samples(name);
    }
    let pattern = folder.path("?.tsl");
    let count = on("inspect", &pattern, "--json").done().json()["sample_count"].clone();
    assert_eq!(count, 2 * SAMPLES);
    assert!(on("verify", &pattern, "").done().text().starts_with("ok: 2 files"));
    let document = on("bench", &pattern, "--loader --json --seconds 0.02").done().json();
    assert_eq!(document["files"], 2);
    // a file of that name is no pattern
    assert_eq!(on("inspect", &folder.path("[a].tsl"), "--json").done().json()["schema"], "tensilo.inspect/1");
    for command in ["inspect", "verify", "bench --loader", "get -c x -i 0"] {
        let (command, words) = command.split_once(' ').unwrap_or((command, ""));
        on(command, &folder.path("no*.tsl"), words).failed(3, "no file matches this pattern");
    }
    on("verify", &folder.path("[.tsl"), "").failed(2, "not a pattern");
}

#[test]
fn each_file_of_a_dataset_is_drawn_as_a_bar() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.samples("data/a<b.tsl");
    let large = super::raw_file(4, None);
    let pattern = folder.path("data/*.tsl");
    let text = on("map", &pattern, "--width 80").done().text();
    assert!(text.contains("in 1 file, ") && text.contains("a<b.tsl") && text.contains("ratio"), "{text}");
    let (many, svg) = (folder.path("many"), folder.path("out.svg"));
    fs::create_dir(&many).unwrap();
    for number in 0..201 {
        folder
            .file(format!("many/{number:03}.tsl"), if number == 7 { super::raw_file(8, None) } else { large.clone() });
    }
    let text = on("map", &many, "--width 80").done().text();
    assert!(text.contains("not drawn: 1 more file"), "{text}");
    let bars: Vec<usize> =
        text.lines().filter(|line| line.contains(".tsl")).map(|line| line.matches('\u{2588}').count()).collect();
    assert_eq!(bars.len(), 200);
    assert!(bars.iter().enumerate().all(|(number, bar)| number == 7 || *bar < bars[7]), "{bars:?}");
    on("map", &pattern, &format!("--svg {}", svg.display())).done();
    let drawing = fs::read_to_string(&svg).unwrap();
    assert!(
        drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n") && drawing.contains("a&lt;b.tsl"),
        "{drawing}"
    );
    on("map", &pattern, "--verify").failed(2, "--verify");
    on("map", &pattern, "--svg out.png").failed(2, "SVG");
}
