//! `tensilo dataset`, and other commands on folders and patterns, which they read as one file.

use super::{
    CommandLine, Folder, NAMES, Run, SAMPLES, damaged_file, folder_of, has, raw_file, sample_file, word, written,
};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, LargeStringArray, RecordBatch};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Extent, Reader, Schema, Shape, Value, WriterOptions};
use tensilo_data::{Changes, Dataset};
use tensilo_testing::HttpServer;

/// Converts the speech features to a dataset.
fn convert(folder: &Folder, name: &str, words: &str) -> Run {
    let mut command = folder.command(&format!("convert SPEECH -o {name} {words}"));
    command.env("SOURCE_DATE_EPOCH", "1767225600").output().unwrap().into()
}

/// Returns a folder with the speech features in one file, and in a dataset.
fn speech(words: &str) -> Folder {
    let folder = Folder::new();
    folder.done("convert SPEECH -o whole.tsl");
    convert(&folder, "data", words).failed(0, "");
    folder
}

/// Changes a dataset through the library.
fn change(path: &Path, make: impl FnOnce(&mut Changes)) {
    let mut changes = Dataset::open(path).unwrap().change().unwrap();
    make(&mut changes);
    changes.publish("change").unwrap();
}

/// Returns the paths and contents of all files below a folder.
pub(super) fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap())),
            }
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn a_conversion_to_shards_is_the_same_for_any_number_of_threads() {
    let folder = speech("--shard-bytes 100KiB --threads 1");
    let run = convert(&folder, "more", "--shard-bytes 100KiB --threads 3 --quiet");
    assert_eq!((run.code, run.text()), (0, String::new()));
    let path = folder.path("data");
    assert!(content(&path).len() > 5 && content(&path) == content(&folder.path("more")));
    // the dataset has the samples of the single file
    let whole = Reader::open(folder.path("whole.tsl")).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!((dataset.sample_count(), &dataset.schema().columns), (whole.sample_count(), &whole.schema().columns));
    for column in &whole.schema().columns {
        assert_eq!(folder.all("data", &column.name), folder.all("whole.tsl", &column.name), "{}", column.name);
    }
    folder.done("verify data --deep");
    let before = content(&path);
    convert(&folder, "data", "--shard-bytes 1GiB").failed(2, "the folder already has a dataset, at version 1");
    assert!(content(&path) == before);
    for (words, message) in [("--columns utt_id,nothing", "nothing"), ("--shape tokens=3", "tokens")] {
        convert(&folder, "failed", &format!("--shard-bytes 1KiB {words}")).failed(2, message);
        assert!(!folder.path("failed").exists());
    }
}

#[test]
fn longer_runs_are_advised_for_an_object_store() {
    let folder = speech("--shard-bytes 100KiB");
    folder.done("dataset set-window-sizes data --run-samples 2 --window-runs 3 --streams 4");
    let server = HttpServer::start();
    for (path, bytes) in content(&folder.path("data")) {
        server.put(&format!("/data/{}", path.to_str().unwrap()), &bytes);
    }
    assert_eq!(folder.json("inspect data --json")["advised_window_sizes"], json!(null), "local files");
    let address = server.url("/data");
    let advised = &folder.json(&format!("inspect {address} --json"))["advised_window_sizes"];
    // the dataset is small, so it has one stream
    assert!(advised["run_samples"].as_u64().unwrap() > 50 && advised["streams"] == 1, "{advised}");
    let command = format!("tensilo dataset set-window-sizes {address} --run-samples ");
    has(&folder.text(&format!("inspect {address}")), &["short for an object store", &command]);
}

#[test]
fn the_summary_of_a_dataset_has_its_columns_and_casts() {
    let folder = Folder::new();
    let run = convert(&folder, "data", "--shard-bytes 100KiB --bf16");
    has(&run.text(), &["rounded", "f32->bf16", "mel", "data: ", " files, ", "version 1"]);
    has(&folder.text("inspect data"), &["rounded", "f32->bf16"]);
    folder.done("convert SPEECH -o whole.tsl --bf16");
    // the largest error over all files equals the error of the single file
    let cast = |file: &str| {
        let document = folder.json(&format!("inspect {file} --json"));
        let mel = document["columns"].as_array().unwrap().iter().find(|column| column["name"] == "mel").unwrap();
        mel["cast"].clone()
    };
    assert_eq!(cast("data")["source"], "f32");
    assert_eq!(cast("data"), cast("whole.tsl"));
}

#[test]
fn files_become_versions_that_the_log_lists() {
    let folder = folder_of(&["b.tsl", "a.tsl"]);
    has(&folder.text("dataset create ."), &[&format!("{} samples in 2 files", 2 * SAMPLES)]);
    folder.samples("c.tsl");
    folder.done("dataset add-files . c.tsl");
    let document = folder.json("dataset log . --json");
    assert_eq!(document["schema"], "tensilo.log/1");
    let numbers = |member: &str| -> Vec<Option<u64>> {
        document["versions"].as_array().unwrap().iter().map(|version| version[member].as_u64()).collect()
    };
    let (samples, bytes) = (u64::from(SAMPLES), sample_file().len() as u64);
    assert_eq!(numbers("version"), [Some(2), Some(1)]);
    assert_eq!(numbers("parent"), [Some(1), None]);
    assert_eq!(numbers("sample_count"), [Some(3 * samples), Some(2 * samples)]);
    assert_eq!(numbers("file_count"), [Some(3), Some(2)]);
    assert_eq!(numbers("file_bytes"), [Some(3 * bytes), Some(2 * bytes)]);
    let text = folder.text("dataset log .");
    has(&text, &["add 1 files", "create the dataset from 2 files"]);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn mistakes_with_datasets_are_explained() {
    let folder = folder_of(&["plain/a.tsl", "made/a.tsl"]);
    folder.done("dataset create made -q");
    fs::create_dir(folder.path("crawl")).unwrap();
    fs::copy(word("SPEECH"), folder.path("crawl/a.parquet")).unwrap();
    convert(&folder, "data", "--shard-bytes 1GiB").failed(0, "");
    for (line, code, message) in [
        ("dataset log plain", 2, "tensilo dataset create"),
        ("dataset add-files plain plain/a.tsl", 2, "\"tensilo dataset create "),
        ("dataset log nothing", 3, "nothing"),
        ("dataset log plain/a.tsl", 2, "expected the folder of a dataset"),
        ("dataset drop-column plain x", 2, "\"tensilo dataset create"),
        ("append plain SPEECH", 2, "\"tensilo dataset create"),
        ("dataset add-files made SPEECH", 2, "\"tensilo append"),
        ("dataset gc made --keep 0", 2, "versions to keep, at least 1"),
        ("dataset gc plain", 2, "has no manifest"),
        ("dataset drop-column made xx", 2, "xx"),
        ("dataset set-window-sizes made --run-samples 0 --window-runs 5", 2, "--run-samples"),
        ("dataset repack data --shard-bytes 0", 2, "at least 1 byte"),
        ("dataset repack .", 2, "neither a manifest"),
        ("inspect crawl", 2, "\"tensilo convert"),
        ("verify crawl", 2, "\"tensilo convert"),
        ("inspect data/data", 2, "it belongs to the dataset "),
        ("append none SPEECH --shard-bytes 1GiB", 2, "there is no such folder"),
        ("inspect data --explain", 2, "such as "),
    ] {
        folder.fails(line, code, message);
    }
}

#[test]
fn a_folder_is_inspected_as_the_sum_of_its_files() {
    let folder = speech("--shard-bytes 100KiB");
    let (document, file) = (folder.json("inspect data --json"), folder.json("inspect whole.tsl --json"));
    assert_eq!(document["schema"], "tensilo.inspect-dataset/1");
    assert_eq!(document["sample_count"], file["sample_count"]);
    assert_eq!(document["file_count"], Dataset::open(folder.path("data")).unwrap().groups().count());
    for (column, expected) in document["columns"].as_array().unwrap().iter().zip(file["columns"].as_array().unwrap()) {
        for member in ["name", "dtype", "shape", "nullable", "nullable_levels"] {
            assert_eq!(column[member], expected[member]);
        }
        assert!(
            column["stored_bytes"].as_u64() > Some(0) && column["file_count"] == document["file_count"],
            "{column}"
        );
    }
    has(&folder.text("inspect data"), &["windows of", "mel"]);
}

#[test]
fn samples_are_appended_as_to_a_file() {
    let folder = folder_of(&["whole.tsl", "data/a.tsl"]);
    // x was rounded: its exported values are f32 again
    folder.done("export whole.tsl -o in.parquet");
    folder.done("append whole.tsl in.parquet");
    folder.done("dataset create data -q");
    let text = folder.text("append data in.parquet --shard-bytes 200");
    has(&text, &[&format!("{SAMPLES} samples appended, {} in all", 2 * SAMPLES)]);
    assert!(Dataset::open(folder.path("data")).unwrap().groups().count() > 3);
    for column in NAMES {
        assert_eq!(folder.all("data", column), folder.all("whole.tsl", column), "{column}");
    }
    folder.done("verify data --deep");
    // the default is one file
    assert_eq!(folder.text("append data in.parquet -q --profile raw"), "");
    let versions = folder.json("dataset log data --json")["versions"].clone();
    assert_eq!((&versions[0]["change"], &versions[0]["sample_count"]), (&"append".into(), &(3 * SAMPLES).into()));
    assert_eq!(versions[0]["file_count"].as_u64().unwrap(), versions[1]["file_count"].as_u64().unwrap() + 1);
}

#[test]
fn a_failed_append_leaves_the_dataset_unchanged() {
    let folder = speech("--shard-bytes 100KiB");
    let before = content(&folder.path("data"));
    folder.samples("other.tsl");
    folder.fails("append data other.tsl", 2, "is missing");
    folder.fails("append data missing.parquet", 3, "missing.parquet");
    folder.fails("append data SPEECH --discard-tail", 2, "--discard-tail");
    folder.fails("append other.tsl other.tsl --shard-bytes 1KiB", 2, "--shard-bytes");
    assert!(content(&folder.path("data")) == before);
}

/// The first program reads its input while the second one publishes a version.
#[cfg(unix)]
#[test]
fn the_slower_of_two_appends_is_a_conflict() {
    let folder = speech("--shard-bytes 100KiB");
    let mut slow = folder.command("append data -");
    let mut child = slow.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = fs::read(word("SPEECH")).unwrap();
    let (first, rest) = input.split_at(input.len() - 1);
    let mut pipe = child.stdin.take().unwrap();
    // more than a pipe holds: the program has opened the dataset, and reads
    pipe.write_all(first).unwrap();
    folder.done("append data SPEECH -q");
    let before = content(&folder.path("data"));
    pipe.write_all(rest).unwrap();
    drop(pipe);
    Run::from(child.wait_with_output().unwrap()).failed(3, "another writer has published version 2");
    assert!(content(&folder.path("data")) == before);
}

/// Returns the samples of each group, and the content ids of its files.
fn groups(folder: &Path) -> Vec<(u64, Vec<[u8; 16]>)> {
    let groups = Dataset::open(folder).unwrap().groups().map(Result::unwrap).collect::<Vec<_>>();
    let ids = |group: &tensilo_data::SampleGroup| group.files.iter().map(|file| file.content_id.0).collect();
    groups.iter().map(|group| (group.samples.end - group.samples.start, ids(group))).collect()
}

#[test]
fn a_repack_is_as_a_conversion_to_files_of_that_size() {
    let folder = Folder::new();
    convert(&folder, "small", "--shard-bytes 30KiB --profile raw").failed(0, "");
    convert(&folder, "large", "--shard-bytes 150KiB --profile fast").failed(0, "");
    let [small, large] = ["small", "large"].map(|name| folder.path(name));
    let text = folder.text("dataset repack small --shard-bytes 150KiB --profile fast");
    has(&text, &["version 2", "before: ", "version 1 keeps"]);
    assert!((2..5).contains(&groups(&large).len()), "{} files of 5 samples", groups(&large).len());
    assert_eq!(groups(&small), groups(&large));
    folder.done("verify small --deep");
    has(&folder.text("dataset log small --json"), &["repack into files of at most 153.6 kB, profile fast"]);
    // the default is files of 1 GiB
    let text = folder.text("dataset repack small --quiet --threads 3");
    assert_eq!((text.as_str(), groups(&small).len()), ("", 1));
}

#[test]
fn old_versions_are_listed_and_removed() {
    let folder = folder_of(&["a.tsl", "b.tsl"]);
    folder.done("dataset create .");
    folder.done("dataset repack .");
    let before = content(folder.root());
    // without --keep, all versions stay
    let text = folder.text("dataset gc .");
    assert!(text.ends_with("removed 0 versions and 0 paths, 0 B in total\n"), "{text}");
    let text = folder.text("dataset gc . --keep 1 --dry-run");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "version 1"), "{text}");
    assert!(lines[1].ends_with("a.tsl") && lines[2].ends_with("b.tsl"), "{text}");
    has(lines[3], &["would remove 1 version and 2 paths, "]);
    assert!(content(folder.root()) == before);
    assert_eq!(folder.text("dataset gc . --keep 1 --quiet"), "");
    let names: Vec<_> = content(folder.root()).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["data/0000000002/00000.tsl", "manifest/0000000002.json"].map(Path::new));
    folder.done("verify . --deep");
}

#[test]
fn columns_are_added_renamed_and_dropped_and_the_order_is_set() {
    let folder = folder_of(&["a.tsl", "b.tsl"]);
    folder.done("dataset create .");
    let labels = written(
        Schema::new([ColumnSchema::tensor("label", DType::U32, Shape::scalar())]),
        WriterOptions::new(),
        |writer| (0..SAMPLES).for_each(|i| writer.push(&[Value::tensor(&[i])]).unwrap()),
    );
    ["labels-1.tsl", "labels-2.tsl"].iter().for_each(|name| drop(folder.file(name, &labels)));
    let before = content(folder.root());
    folder.fails("dataset add-columns . labels-1.tsl", 2, "1 files for 2 groups");
    assert!(content(folder.root()) == before);
    let text = folder.text("dataset add-columns . labels-1.tsl labels-2.tsl");
    has(&text, &["in 4 files", "version 2"]);
    let columns = || -> Vec<String> {
        let dataset = Dataset::open(folder.root()).unwrap();
        dataset.schema().columns.iter().map(|column| column.name.clone()).collect()
    };
    assert_eq!(columns(), [&NAMES[..], &["label"]].concat());
    folder.done("dataset rename-column . label class");
    folder.done("dataset drop-column --quiet . x");
    assert_eq!(columns(), [&NAMES[1..], &["class"]].concat());
    folder.fails("dataset drop-column . label", 2, "no column \"label\"");
    folder.fails("dataset rename-column . class e", 2, "has a column");
    folder.done("dataset set-window-sizes . --run-samples 2 --window-runs 5");
    let document = folder.json("inspect . --json");
    assert_eq!((&document["run_samples"], &document["window_runs"]), (&2.into(), &5.into()));
    let log = folder.json("dataset log . --json");
    let changes = log["versions"].as_array().unwrap().iter().map(|version| version["change"].as_str().unwrap());
    let expected = [
        "set the window sizes: windows of 5 runs of 2 samples, in 1 stream",
        "drop column \"x\"",
        "rename column \"label\" to \"class\"",
        "add the columns of 2 files",
        "create the dataset from 2 files",
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    folder.done("verify . --deep");
    assert_eq!(fs::read_dir(folder.path("manifest")).unwrap().count(), 6, "five versions and the folder of pages");
}

#[test]
fn a_dataset_is_exported_as_one_file_with_its_samples() {
    let folder = Folder::new();
    let bytes = |line: &str, output: &str| {
        folder.done(&format!("export {line} -f -o {output}"));
        fs::read(folder.path(output)).unwrap()
    };
    for (name, words) in [("plain", ""), ("rounded", "--bf16")] {
        folder.done(&format!("convert SPEECH -o {name}.tsl {words}"));
        folder.done(&format!("convert SPEECH -o {name} {words} --shard-bytes 30KiB"));
        assert!(Dataset::open(folder.path(name)).unwrap().groups().count() > 2);
        for ending in ["arrow", "parquet"] {
            for words in ["", "--stored-types", "--tensors lists", "--columns mel,utt_id"] {
                let expected = bytes(&format!("{name}.tsl {words}"), &format!("one.{ending}"));
                let found = bytes(&format!("{name} {words}"), &format!("many.{ending}"));
                assert!(found == expected, "{name} {ending} {words}");
            }
        }
    }
    // types that only the saved schema restores
    let texts = ["a", "b", "a", "c", "b"];
    let dictionary: DictionaryArray<Int8Type> = texts.iter().copied().collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("large", Arc::new(LargeStringArray::from_iter_values(texts))),
        ("word", Arc::new(dictionary)),
        ("n", Arc::new(Int64Array::from_iter_values(0..texts.len() as i64))),
    ];
    folder.arrow("in.arrow", &RecordBatch::try_from_iter(columns).unwrap());
    folder.done("convert in.arrow -o types.tsl");
    folder.done("convert in.arrow -o types --shard-bytes 1");
    assert_eq!(Dataset::open(folder.path("types")).unwrap().groups().count(), 5);
    for ending in ["arrow", "parquet"] {
        let expected = bytes("types.tsl", &format!("one.{ending}"));
        assert!(bytes("types", &format!("many.{ending}")) == expected, "{ending}");
    }
}

#[test]
fn columns_that_files_do_not_have_are_null() {
    let folder = folder_of(&["many/a.tsl"]);
    folder.done("dataset create many -q");
    let shapes =
        [Shape::scalar(), Shape::fixed(&[2, 3]), Shape::ragged(), Shape::new([Extent::Fixed(2), Extent::Varying])];
    change(&folder.path("many"), |changes| {
        for (number, shape) in shapes.into_iter().enumerate() {
            let column = ColumnSchema::tensor(format!("new{number}"), DType::I16, shape).nullable();
            changes.add_nullable_column(column.clone()).unwrap();
            let list = ColumnSchema { name: format!("list{number}"), ..column.list().nullable() };
            changes.add_nullable_column(list).unwrap();
        }
        changes.add_nullable_column(ColumnSchema::utf8("text").nullable()).unwrap();
        changes.rename_column("b", "bytes").unwrap();
    });
    for words in ["-o out.arrow", "-o out.parquet", "-o out.arrow --tensors lists -f"] {
        folder.done(&format!("export many {words}"));
        folder.done(&format!("convert {} -f -o back.tsl", words.split(' ').nth(1).unwrap()));
        for column in ["new0", "new1", "new2", "new3", "list0", "list1", "list2", "list3", "text"] {
            assert_eq!(folder.all("back.tsl", column), json!(vec![(); SAMPLES as usize]), "{column} {words}");
        }
        for column in ["e", "t", "r", "flag", "n", "h"] {
            assert_eq!(folder.all("back.tsl", column), folder.all("many/a.tsl", column), "{column}");
        }
        assert_eq!(folder.all("back.tsl", "bytes"), folder.all("many/a.tsl", "b"));
    }
}

#[test]
fn each_data_file_becomes_a_file_of_its_name() {
    let folder = speech("--shard-bytes 30KiB");
    let groups: Vec<_> = Dataset::open(folder.path("data")).unwrap().groups().map(Result::unwrap).collect();
    folder.done("export data --format arrow -o out/");
    for group in &groups {
        let name = group.files[0].path.file_stem().unwrap().to_str().unwrap();
        folder.done(&format!("convert out/{name}.arrow -f -o back.tsl"));
        for column in ["utt_id", "mel"] {
            let range = format!("{}..{}", group.samples.start, group.samples.end);
            let expected = folder.json(&format!("get whole.tsl -c {column} -i {range}"));
            assert_eq!(folder.all("back.tsl", column), expected);
        }
    }
    assert_eq!(fs::read_dir(folder.path("out")).unwrap().count(), groups.len());
    folder.fails("export data --format arrow -o out/", 2, "--force");
    folder.done("export data --format arrow -o out/ --force");
    folder.fails("export data -o out", 2, "--format");
    // files of the same name in two folders
    folder.done("export data/data/*/*.tsl --format arrow -o out/ -f");
    folder.fails("export whole.tsl --format arrow -o out/", 2, "a folder");
    folder.fails("export data --format arrow -o whole.tsl/", 2, "this is a file");
}

#[test]
fn a_damaged_file_gives_no_output() {
    let folder = folder_of(&["a.tsl"]);
    folder.file("b.tsl", damaged_file());
    folder.fails("export ?.tsl -o out.parquet", 1, "b.tsl");
    folder.fails("export ?.tsl -f -o a.tsl", 2, "--format");
    folder.fails("export ?.tsl -f --format arrow -o a.tsl", 2, "a file of this dataset");
    assert_eq!(folder.names(), ["a.tsl", "b.tsl"]);
}

#[test]
fn samples_of_a_dataset_are_printed_as_those_of_a_file() {
    let folder = speech("--shard-bytes 30KiB");
    let reader = Reader::open(folder.path("whole.tsl")).unwrap();
    let last = reader.sample_count() - 1;
    assert!(Dataset::open(folder.path("data")).unwrap().groups().count() > 2);
    let orders = [format!("{last},0,{},1,1,{last},1..4", last / 2), "..".to_owned(), last.to_string()];
    for (column, order) in reader.columns().flat_map(|column| orders.iter().map(move |order| (column.clone(), order))) {
        let schema = column.schema();
        let formats: &[&str] = match schema.levels.is_empty() {
            true if schema.shape.is_ragged() => &["json", "raw"],
            true => &["json", "raw", "npy"],
            false => &["json"],
        };
        for format in formats {
            let words = format!("-c {} -i {order} --format {format} --nulls zero", schema.name);
            let bytes = |file: &str| folder.done(&format!("get {file} {words}")).stdout;
            let expected = bytes("whole.tsl");
            assert!(bytes("data") == expected && bytes("data/data/*/*.tsl") == expected, "{words}");
        }
    }
    folder.fails(&format!("get data -c mel -i {}", last + 1), 2, "there is no sample");
    folder.fails("get data -c mell -i 0", 2, "the most similar is \"mel\"");
}

#[test]
fn columns_that_were_renamed_or_added_are_printed() {
    let folder = folder_of(&["a.tsl"]);
    folder.done("dataset create . -q");
    change(folder.root(), |changes| {
        changes.rename_column("t", "text").unwrap();
        let label = ColumnSchema::tensor("label", DType::F32, Shape::fixed(&[3])).nullable();
        changes.add_nullable_column(label).unwrap();
        changes.add_nullable_column(ColumnSchema::bytes("blob").nullable()).unwrap();
    });
    assert_eq!(folder.json("get . -c text -i 2..5"), json!(["text 2", null, "\"\n"]));
    folder.fails("get . -c t -i 2", 2, "there is no column \"t\"");
    assert_eq!(folder.json("get . -c label -i 2,3"), json!([null, null]));
    folder.fails("get . -c label -i 2 --format npy", 2, "sample 2 is null");
    for (words, expected) in
        [("-c label -i 0,1", &[0; 24][..]), ("-c blob -i ..", b""), ("-c r -i 3..6", &[0, 0, 0, 0, 1, 0, 0, 0])]
    {
        assert_eq!(folder.done(&format!("get . {words} --format raw --nulls zero")).stdout, expected);
    }
}

#[test]
fn an_output_that_is_a_file_of_the_dataset_is_refused() {
    let folder = folder_of(&["a.tsl", "b.tsl"]);
    let refused = |output: &str, message: &str| {
        let before = fs::read(folder.path(output)).ok();
        folder.fails(&format!("get . -c t -i 0 --force -o {output}"), 2, message);
        folder.fails(&format!("export . --format arrow --force -o {output}"), 2, message);
        assert!(fs::read(folder.path(output)).ok() == before, "{output}");
    };
    // the file with the sample, and another one
    refused("a.tsl", "a file of this dataset");
    refused("b.tsl", "a file of this dataset");
    folder.done("dataset create .");
    refused("b.tsl", "a file of this dataset");
    // the files of a manifest, existing or not
    for name in ["0000000001.json", "0000000002.json", "pages/new.arrow"] {
        refused(&format!("manifest/{name}"), "in the folder of the manifest");
    }
    folder.fails("layout . --svg manifest/0000000001.svg", 2, "in the folder of the manifest");
    folder.done("get . -c t -i 0 --force -o new.json");
}

#[test]
fn patterns_are_datasets_in_the_order_of_names() {
    let folder = folder_of(&["b.tsl", "a.tsl", "other", "[a].tsl"]);
    assert_eq!(folder.json("inspect ?.tsl --json")["sample_count"], 2 * SAMPLES);
    assert!(folder.text("verify ?.tsl").starts_with("ok: 2 files"));
    assert_eq!(folder.json("bench ?.tsl --loader --json --seconds 0.02")["file_count"], 2);
    // a file of that name is not a pattern
    assert_eq!(folder.json("inspect [a].tsl --json")["schema"], "tensilo.inspect/1");
    for line in ["inspect no*.tsl", "verify no*.tsl", "bench no*.tsl --loader", "get no*.tsl -c x -i 0"] {
        folder.fails(line, 3, "no file matches this pattern");
    }
    folder.fails("verify [.tsl", 2, "not a pattern");
}

#[test]
fn each_file_of_a_dataset_is_drawn_as_a_bar() {
    let folder = folder_of(&["data/a<b.tsl"]);
    has(&folder.text("layout data/*.tsl --width 80"), &["in 1 file, ", "a<b.tsl", "ratio"]);
    fs::create_dir(folder.path("many")).unwrap();
    let (usual, large) = (raw_file(4, None), raw_file(8, None));
    for number in 0..201 {
        folder.file(format!("many/{number:03}.tsl"), if number == 7 { &large } else { &usual });
    }
    let text = folder.text("layout many --width 80");
    has(&text, &["not drawn: 1 more file"]);
    let bars: Vec<usize> =
        text.lines().filter(|line| line.contains(".tsl")).map(|line| line.matches('\u{2588}').count()).collect();
    assert_eq!(bars.len(), 200);
    assert!(bars.iter().enumerate().all(|(number, bar)| number == 7 || *bar < bars[7]), "{bars:?}");
    let drawing = folder.text("layout data/*.tsl --svg -");
    assert!(drawing.starts_with("<svg ") && drawing.ends_with("</svg>\n"), "{drawing}");
    has(&drawing, &["a&lt;b.tsl"]);
    folder.fails("layout data/*.tsl --verify", 2, "--verify");
    folder.fails("layout data/*.tsl --svg out.png", 2, "SVG");
}
