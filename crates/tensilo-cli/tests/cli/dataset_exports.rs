//! `tensilo export` of datasets.

use super::dataset::{convert, dataset};
use super::dataset_reads::whole;
use super::{Folder, SAMPLES, SPEECH, SampleFile, on};
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, LargeStringArray, RecordBatch};
use arrow_ipc::writer::FileWriter;
use serde_json::json;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::{ColumnSchema, DType, Extent, Shape};
use tensilo_data::Dataset;

fn export(from: &Path, to: &Path, words: &str) -> Vec<u8> {
    on("export", from, &format!("-o {} {words}", to.display())).done();
    fs::read(to).unwrap()
}

#[test]
fn a_dataset_is_exported_as_one_file_with_its_samples() {
    let folder = Folder::new();
    let input = Path::new(SPEECH);
    for (name, words) in [("plain", ""), ("rounded", "--bf16")] {
        let (one, path) = (folder.path(format!("{name}.tsl")), folder.path(name));
        on("convert", input, &format!("-o {} {words}", one.display())).done();
        on("convert", input, &format!("-o {} {words} --shard-bytes 30KiB", path.display())).done();
        assert!(Dataset::open(&path).unwrap().groups().count() > 2);
        for ending in ["arrow", "parquet"] {
            for (number, words) in ["", "--stored-types", "--tensors lists", "--columns mel,utt_id"].iter().enumerate()
            {
                let to = |name: &str| folder.path(format!("{name}-{number}.{ending}"));
                let due = export(&one, &to(&format!("{name}-one")), words);
                assert!(export(&path, &to(&format!("{name}-many")), words) == due, "{name} {ending} {words}");
            }
        }
    }
}

#[test]
fn columns_of_several_files_are_exported_together() {
    let folder = Folder::new();
    let path = folder.path("several");
    fs::create_dir(&path).unwrap();
    for (name, columns) in [("a.tsl", "utt_id,text"), ("b.tsl", "mel,f0_hz")] {
        let words = format!("-o {} --columns {columns}", path.join(name).display());
        on("convert", Path::new(SPEECH), &words).done();
    }
    dataset("create", &[], [path.as_path(), &path.join("a.tsl")]).done();
    dataset("add-columns", &[], [path.as_path(), &path.join("b.tsl")]).done();
    let (exported, back) = (folder.path("out.parquet"), folder.path("back.tsl"));
    export(&path, &exported, "");
    on("convert", &exported, &format!("-o {}", back.display())).done();
    for column in ["utt_id", "text", "mel", "f0_hz"] {
        let words = format!("-c {column} -i ..");
        let of = |from: &Path| on("get", from, &words).done().text();
        assert_eq!(of(&back), of(&path), "{column}");
    }
}

/// Writes an Arrow file of types that only a saved schema restores.
fn dictionaries(folder: &Folder, name: &str, texts: &[&str]) -> PathBuf {
    let dictionary: DictionaryArray<Int8Type> = texts.iter().copied().collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("large", Arc::new(LargeStringArray::from_iter_values(texts))),
        ("word", Arc::new(dictionary)),
        ("n", Arc::new(Int64Array::from_iter_values(0..texts.len() as i64))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = FileWriter::try_new(File::create(folder.path(name)).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    folder.path(name)
}

#[test]
fn the_types_of_the_source_survive() {
    let folder = Folder::new();
    let input = dictionaries(&folder, "in.arrow", &["a", "b", "a", "c", "b"]);
    let (one, path) = (folder.path("one.tsl"), folder.path("many"));
    on("convert", &input, &format!("-o {}", one.display())).done();
    on("convert", &input, &format!("-o {} --shard-bytes 1", path.display())).done();
    assert_eq!(Dataset::open(&path).unwrap().groups().count(), 5);
    for ending in ["arrow", "parquet"] {
        let due = export(&one, &folder.path(format!("one.{ending}")), "");
        assert!(export(&path, &folder.path(format!("many.{ending}")), "") == due, "{ending}");
    }
}

#[test]
fn columns_that_files_do_not_have_are_null() {
    let folder = Folder::new();
    let many = folder.path("many");
    fs::create_dir(&many).unwrap();
    let first = folder.samples("many/a.tsl");
    dataset("create", &["-q"], [many.as_path()]).done();
    let shapes =
        [Shape::scalar(), Shape::fixed(&[2, 3]), Shape::ragged(), Shape::new([Extent::Fixed(2), Extent::Varying])];
    let mut changes = Dataset::open(&many).unwrap().change().unwrap();
    for (number, shape) in shapes.into_iter().enumerate() {
        let column = ColumnSchema::tensor(format!("new{number}"), DType::I16, shape).nullable();
        changes.add_nullable_column(column.clone()).unwrap();
        changes
            .add_nullable_column(ColumnSchema { name: format!("list{number}"), ..column.list().nullable() })
            .unwrap();
    }
    changes.add_nullable_column(ColumnSchema::utf8("text").nullable()).unwrap();
    changes.rename_column("b", "bytes").unwrap();
    changes.publish("add columns").unwrap();
    for (ending, words) in [("arrow", ""), ("parquet", ""), ("arrow", "--tensors lists -f")] {
        let (table, back) = (folder.path(format!("out.{ending}")), folder.path("back.tsl"));
        export(&many, &table, words);
        on("convert", &table, &format!("-f -o {}", back.display())).done();
        let get = |file: &Path, column: &str| on("get", file, &format!("-c {column} -i ..")).done().json();
        for column in ["new0", "new1", "new2", "new3", "list0", "list1", "list2", "list3", "text"] {
            assert_eq!(get(&back, column), json!(vec![(); SAMPLES as usize]), "{column} {ending}");
        }
        for column in ["e", "t", "r", "flag", "n", "h"] {
            assert_eq!(get(&back, column), get(&first, column), "{column}");
        }
        assert_eq!(get(&back, "bytes"), get(&first, "b"));
    }
}

#[test]
fn each_data_file_becomes_a_file_of_its_name() {
    let folder = Folder::new();
    let (path, run) = convert(&folder, "data", "--shard-bytes 30KiB");
    run.done();
    let whole = whole(&folder);
    let groups: Vec<_> = Dataset::open(&path).unwrap().groups().map(Result::unwrap).collect();
    let out = folder.path("out/");
    let words = format!("--format arrow -o {}/", out.display());
    on("export", &path, &words).done();
    for group in &groups {
        let name = group.files[0].path.file_name().unwrap();
        let (table, back) = (out.join(name).with_extension("arrow"), folder.path("back.tsl"));
        on("convert", &table, &format!("-f -o {}", back.display())).done();
        let range = format!("{}..{}", group.samples.start, group.samples.end);
        for column in ["utt_id", "mel"] {
            let due = on("get", &whole, &format!("-c {column} -i {range}")).done().text();
            assert_eq!(on("get", &back, &format!("-c {column} -i ..")).done().text(), due);
        }
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), groups.len());
    on("export", &path, &words).failed(2, "--force");
    on("export", &path, &format!("{words} --force")).done();
    on("export", &path, &format!("-o {}", out.display())).failed(2, "--format");
    // files of one name in two folders
    let again = path.join("data/*/*.tsl");
    on("export", &again, &format!("{words} -f")).done();
    on("export", &whole, &words).failed(2, "a folder");
}

#[test]
fn a_damaged_file_gives_no_output() {
    let folder = Folder::new();
    for name in ["a.tsl", "b.tsl"] {
        folder.samples(name);
    }
    let pattern = folder.path("?.tsl");
    let out = folder.path("out.parquet");
    folder.file("b.tsl", super::damaged_file());
    on("export", &pattern, &format!("-o {}", out.display())).failed(1, "b.tsl");
    on("export", &pattern, &format!("-f -o {}", folder.path("a.tsl").display())).failed(2, "--format");
    on("export", &pattern, &format!("-f --format arrow -o {}", folder.path("a.tsl").display())).failed(2, "itself");
    assert_eq!(folder.names(), ["a.tsl", "b.tsl"]);
}
