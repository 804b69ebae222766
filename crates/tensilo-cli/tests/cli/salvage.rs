//! `tensilo salvage`

use super::{Folder, file_with_damaged_block, on};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

/// Returns a file of 100 samples of two columns, ten to a chunk.
fn file() -> Vec<u8> {
    let names = ["a", "b"].map(|name| ColumnSchema::tensor(name, DType::U64, Shape::scalar()));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(80);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(names), &options).unwrap();
    for i in 0..100_u64 {
        writer.push(&[Value::tensor(&[i]), Value::tensor(&[1000 + i])]).unwrap();
    }
    writer.into_bytes().unwrap()
}

/// Returns that file without samples 20..30 of `a`, and without its trailer.
fn broken(folder: &Folder) -> PathBuf {
    let mut file = file();
    let reader = Reader::from_bytes(file.clone()).unwrap();
    let chunk = reader.column("a").unwrap().chunk(2).unwrap().unwrap();
    file[chunk.file_range.start as usize] ^= 1;
    file.truncate(file.len() - 64);
    folder.file("broken.tsl", file)
}

#[test]
fn a_damaged_file_becomes_a_whole_one_with_nulls_for_what_is_lost() {
    let folder = Folder::new();
    let broken = broken(&folder);
    let before = fs::read(&broken).unwrap();
    let out = folder.path("out.tsl");
    let run = on("salvage", &broken, &format!("-o {}", out.display()));
    assert_eq!(run.code, 1, "{run:?}");
    let text = run.text();
    for due in [
        "20..30",
        "Of 100 samples, 90 are intact in all columns.",
        "there may have been more samples",
        "out.tsl: 100 samples",
    ] {
        assert!(text.contains(due), "{due}: {text}");
    }
    on("verify", &out, "--deep").done();
    let json = |column: &str| on("get", &out, &format!("-c {column} -i 19,20,29,30")).done().json();
    assert_eq!(json("a"), json!([19, null, null, 30]));
    assert_eq!(json("b"), json!([1019, 1020, 1029, 1030]));
    assert_eq!(fs::read(&broken).unwrap(), before);
}

#[test]
fn a_damaged_block_costs_its_samples_and_no_others() {
    let folder = Folder::new();
    let broken = folder.file("broken.tsl", file_with_damaged_block());
    let out = folder.path("out.tsl");
    let run = on("salvage", &broken, &format!("-o {} --json", out.display()));
    assert_eq!(run.code, 1, "{run:?}");
    let column = &run.json()["columns"][0];
    assert_eq!((&column["lost_count"], &column["lost"]), (&json!(8), &json!([[8, 16]])));
    on("verify", &out, "--deep").done();
    let left = on("get", &out, "-c x -i 7,16,63").done().json();
    assert_eq!([0, 1, 2].map(|at| &left[at][0]), [7, 16, 63].map(|i| json!(i * 256)).each_ref());
    assert_eq!(on("get", &out, "-c x -i 8,15").done().json(), json!([null, null]));
}

/// A chunk of an older file is lost while the index is there, and kept without it: the report, the
/// exit code and the metadata of the new file say so.
#[test]
fn samples_that_nothing_confirms_are_named() {
    let folder = Folder::new();
    let (mut stale, out) = (file(), folder.path("out.tsl"));
    let chunk = Reader::from_bytes(stale.clone()).unwrap().column("b").unwrap().chunk(3).unwrap().unwrap();
    let body = usize::try_from(chunk.file_range.start).unwrap()..usize::try_from(chunk.file_range.end).unwrap();
    stale[body.start] ^= 1;
    let head = body.start - 64;
    let body_crc = crc32fast::hash(&stale[body]);
    stale[head + 56..head + 60].copy_from_slice(&body_crc.to_le_bytes());
    let head_crc = crc32fast::hash(&stale[head..head + 60]);
    stale[head + 60..head + 64].copy_from_slice(&head_crc.to_le_bytes());
    let run = on("salvage", &folder.file("stale.tsl", &stale), "--json");
    assert_eq!((run.code, &run.json()["ok"]), (1, &json!(false)));
    let column = &run.json()["columns"][1];
    assert_eq!((&column["lost"], &column["unconfirmed"]), (&json!([[30, 40]]), &json!([])));
    assert_eq!(column["unconfirmed_count"], 0);

    let footer = stale.windows(4).rposition(|bytes| bytes == b"TSLF").unwrap();
    let broken = folder.file("broken.tsl", &stale[..footer]);
    let run = on("salvage", &broken, &format!("--json -o {}", out.display()));
    assert_eq!((run.code, &run.json()["ok"]), (1, &json!(false)));
    let columns = run.json()["columns"].clone();
    assert_eq!((&columns[0]["lost_count"], &columns[0]["unconfirmed"]), (&json!(0), &json!([[0, 100]])));
    assert_eq!(columns[1]["unconfirmed"], json!([[0, 30], [40, 100]])); // the index is there
    assert_eq!(columns[1]["unconfirmed_count"], 90);
    let inspected = on("inspect", &out, "--json").done().json();
    assert_eq!(inspected["columns"][1]["metadata"]["tensilo.unconfirmed"], "0..30, 40..100");
    let run = on("salvage", &broken, "");
    let text = run.text();
    for due in [
        "column \"a\": unconfirmed 0..100\n",
        "column \"b\": unconfirmed 0..30, 40..100\n",
        "Nothing confirms 100 samples",
    ] {
        assert!(text.contains(due), "{due}: {text}");
    }
    assert_eq!(run.code, 1);
}

#[test]
fn lost_samples_can_be_left_out_and_the_json_document_names_them() {
    let folder = Folder::new();
    let out = folder.path("out.tsl");
    let run = on("salvage", &broken(&folder), &format!("-o {} --leave-out --json", out.display()));
    assert_eq!(run.code, 1, "{run:?}");
    let document = run.json();
    assert_eq!(document["schema"], "tensilo.salvage/1");
    assert_eq!(
        (&document["ok"], &document["end_is_known"], &document["header_is_intact"]),
        (&json!(false), &json!(false), &json!(true))
    );
    assert_eq!((&document["sample_count"], &document["committed_samples"]), (&json!(100), &json!(100)));
    let column = |i: usize| [&document["columns"][i]["lost_count"], &document["columns"][i]["lost"]];
    assert_eq!(column(0), [&json!(10), &json!([[20, 30]])]);
    assert_eq!(column(1), [&json!(0), &json!([])]);
    assert_eq!(document["output"]["sample_count"], 90);
    assert_eq!(document["output"]["content_id"].as_str().unwrap().len(), 32);
    on("verify", &out, "--deep").done();
    assert_eq!(on("get", &out, "-c b -i 19..21").done().json(), json!([1019, 1030]));
}

#[test]
fn without_an_output_nothing_is_written_and_a_whole_file_has_lost_nothing() {
    let folder = Folder::new();
    let whole = folder.file("whole.tsl", file());
    let run = on("salvage", &whole, "").done();
    assert!(run.text().contains("All 100 samples are intact."), "{run:?}");
    assert_eq!(on("salvage", &whole, "--json").done().json()["output"], json!(null));
    assert_eq!(folder.names(), ["whole.tsl"]);
}

#[test]
fn the_damaged_file_is_never_overwritten_and_other_files_only_by_force() {
    let folder = Folder::new();
    let broken = broken(&folder);
    let before = fs::read(&broken).unwrap();
    on("salvage", &broken, &format!("-o {} --force", broken.display())).failed(2, "is not overwritten");
    let other = folder.file("other.tsl", b"mine");
    on("salvage", &broken, &format!("-o {}", other.display())).failed(2, "--force");
    assert_eq!((fs::read(&broken).unwrap(), fs::read(&other).unwrap()), (before, b"mine".to_vec()));
    assert_eq!(on("salvage", &broken, &format!("-o {} --force", other.display())).code, 1);
    on("verify", &other, "").done();
}

#[test]
fn files_without_a_schema_are_refused_and_leave_nothing() {
    let folder = Folder::new();
    let out = folder.path("out.tsl");
    let other = folder.file("other.txt", [7; 10_000]);
    on("salvage", &other, &format!("-o {}", out.display())).failed(1, "neither the header nor any footer is intact");
    let empty = folder.file("empty", b"");
    on("salvage", &empty, &format!("-o {}", out.display())).failed(1, "neither the header nor any footer is intact");
    assert!(!out.exists());
}
