//! `tensilo verify` and `tensilo salvage`, of files and datasets.

use super::dataset::content;
use super::{
    CommandLine, Folder, SAMPLES, damage, damaged_file, file_with_damaged_block, folder_of, has, sample_file, written,
};
use serde_json::{Value, json};
use std::fs;
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_data::Dataset;
use tensilo_testing::{vector, vector_files};

#[test]
fn an_intact_file_is_ok() {
    let folder = folder_of(&["a.tsl"]);
    for line in ["verify a.tsl", "verify a.tsl --deep"] {
        let text = folder.text(line);
        assert!(text.starts_with(&format!("ok: {} bytes, ", sample_file().len())), "{text}");
        assert!(text.ends_with(&format!(" chunks, {SAMPLES} samples\n")), "{text}");
    }
    let document = folder.json("verify a.tsl --json");
    for (member, expected) in [
        ("schema", json!("tensilo.verify/1")),
        ("ok", json!(true)),
        ("findings", json!([])),
        ("file_bytes", json!(sample_file().len())),
        ("sample_count", json!(SAMPLES)),
    ] {
        assert_eq!(document[member], expected);
    }
    assert!(document["chunk_count"].as_u64().unwrap() > 8);
    let run = folder.done("verify a.tsl --quiet");
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", ""));
    folder.fails("verify missing.tsl", 3, "missing.tsl");
    fs::create_dir(folder.path("none")).unwrap();
    folder.fails("verify none", 2, "nor tensilo files");
}

#[test]
fn damage_is_named_with_the_samples_that_it_costs() {
    let folder = Folder::new();
    folder.file("a.tsl", damaged_file());
    let text = folder.fails("verify a.tsl", 1, "").text();
    let line = text.lines().next().unwrap();
    assert!(line.starts_with("bytes ") && line.ends_with("(rule R-2.6)"), "{text}");
    has(&text, &[": chunk, column \"", "\ndamaged: 1 range in "]);
    let document = folder.fails("verify a.tsl --json", 1, "").json();
    let damage = &document["findings"][0];
    assert_eq!(
        (&document["ok"], &document["state"], &damage["kind"]),
        (&json!(false), &json!("damaged"), &json!("damaged"))
    );
    assert_eq!((damage["region"].as_str(), damage["rule"].as_str()), (Some("chunk"), Some("R-2.6")));
    assert!(damage["bytes"].as_u64().unwrap() > 0 && damage["offset"].as_u64().unwrap().is_multiple_of(64));
    assert_eq!(damage["samples"].as_array().unwrap().len(), 2);
    has(damage["message"].as_str().unwrap(), &["checksum"]);
    // any number of threads prints the same
    for words in ["--json", "--deep", "--deep --json"] {
        let expected = folder.fails(&format!("verify a.tsl {words} --threads 1"), 1, "").text();
        for threads in ["", "--threads 2", "--threads 7"] {
            assert_eq!(folder.run(&format!("verify a.tsl {words} {threads}")).text(), expected, "{words} {threads}");
        }
    }
    folder.fails("verify a.tsl --threads 0", 2, "--threads");

    folder.file("block.tsl", file_with_damaged_block());
    for line in ["verify block.tsl", "verify block.tsl --deep"] {
        let text = folder.run(line).text();
        let expected = "; 8 of 64 samples of the chunk are lost (block 2 of 8) (rule R-5.16)\ndamaged: 1 range in ";
        has(&text, &[": chunk, column \"x\", samples 8..16: ", expected]);
    }
    let damage = folder.run("verify block.tsl --json").json()["findings"][0].clone();
    assert_eq!((&damage["samples"], &damage["bytes"]), (&json!([8, 16]), &json!(8192)));

    // a dictionary that only the last chunk needs
    let mut file = vector("valid/zstd-dictionary.hex");
    let table = file.windows(4).rposition(|bytes| bytes == b"TSLT").unwrap();
    file[table + 64 + 8] ^= 1;
    folder.file("table.tsl", file);
    has(&folder.run("verify table.tsl").text(), &[": table, column ", "--deep lists their samples\n"]);
    let text = folder.run("verify table.tsl --deep").text();
    assert!(text.contains(": chunk, column ") && !text.contains("--deep"), "{text}");

    let whole = sample_file();
    let text = b"this is not a tensilo file, however long it may be, at least 64 bytes or so";
    for bytes in [&text[..], &whole[..whole.len() / 2], b""] {
        folder.file("b.tsl", bytes);
        assert_eq!(folder.fails("verify b.tsl --json", 1, "").json()["ok"], false);
    }
}

#[test]
fn a_file_whose_writer_has_not_finished_is_not_damaged() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[16]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    Writer::create(&path, schema, &options).unwrap().finish().unwrap();
    let mut writer = Writer::append(&path, &options).unwrap();
    for kind in ["unfinished", "uncommitted"] {
        (0..100_000).for_each(|_| writer.push(&[tensilo::Value::tensor(&[kind.len() as u8; 16])]).unwrap());
        if kind == "unfinished" {
            writer.commit().unwrap();
        }
        let text = folder.fails("verify a.tsl", 5, "").text();
        has(&text, &["\nunfinished: ", ", 100000 samples; all of these are intact"]);
        folder.fails("verify a.tsl --quiet", 5, "");
        let document = folder.run("verify a.tsl --json").json();
        assert_eq!((&document["ok"], &document["state"]), (&json!(false), &json!("unfinished")));
        assert_eq!(document["findings"][0]["kind"], kind);
        has(&folder.fails("verify *.tsl", 5, "").text(), &["unfinished: 1 of 1 files"]);
        folder.done("layout a.tsl --verify");
    }
    writer.finish().unwrap();
    assert_eq!(folder.json("verify a.tsl --json")["state"], "ok");
}

#[test]
fn verify_names_the_damaged_files_of_a_dataset() {
    let folder = folder_of(&["a.tsl", "b.tsl", "c.tsl"]);
    folder.done("dataset create . --quiet");
    assert!(folder.text("verify .").starts_with("ok: 3 files, "));
    let mut bytes = sample_file();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.file("b.tsl", &bytes);
    fs::remove_file(folder.path("c.tsl")).unwrap();
    let text = folder.fails("verify .", 1, "").text();
    assert!(text.contains("b.tsl:\nbytes ") && text.contains("c.tsl") && !text.contains("a.tsl"), "{text}");
    assert!(text.ends_with("damaged: 2 of 3 files; 60 samples, version 1\n"), "{text}");
    let quiet = folder.fails("verify . --quiet", 1, "").text();
    assert!(
        quiet.contains("b.tsl:\nbytes ") && text.contains("are intact") && !quiet.contains("are intact"),
        "{quiet}"
    );
    let document = folder.run("verify . --json").json();
    let ok: Vec<_> = document["files"].as_array().unwrap().iter().map(|file| file["ok"].as_bool()).collect();
    assert_eq!((document["ok"].as_bool(), ok), (Some(false), vec![Some(true), Some(false), Some(false)]));

    // without the manifest, the files are independent, even if one cannot be opened
    fs::rename(folder.path("manifest"), folder.path("away")).unwrap();
    folder.file("c.tsl", &sample_file()[..200]);
    folder.file("d.tsl", super::raw_file(4, None));
    for line in ["verify .", "verify *.tsl"] {
        let text = folder.fails(line, 1, "").text();
        assert!(text.contains("b.tsl:\nbytes ") && text.contains("c.tsl:\n") && !text.contains("d.tsl"), "{text}");
        has(&text, &["damaged: 2 of 4 files; "]);
    }
    fs::rename(folder.path("away"), folder.path("manifest")).unwrap();

    // damage of the manifest itself
    let path = folder.path("manifest/0000000001.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("create", "Create")).unwrap();
    folder.fails("verify .", 1, "0000000001.json: the file is damaged");
}

/// M-3.5
#[test]
fn a_dataset_with_a_wrong_id_or_parent_is_damaged() {
    for name in ["M-3.5-id", "M-3.5-parent-id", "M-3.5-parent-digest"] {
        let folder = folder_of(&["data/0000000001/00000.tsl", "manifest/any"]);
        folder.file("data/0000000001/00000.tsl", vector("valid/worked.hex"));
        fs::remove_file(folder.path("manifest/any")).unwrap();
        for (path, text) in vector_files() {
            if let Some(file) = path.strip_prefix(&format!("manifests/invalid/{name}/manifest/")) {
                folder.file(format!("manifest/{file}"), text);
            }
        }
        has(&folder.fails("verify .", 1, "").text(), &["M-3.5", "damaged: 1 of "]);
        assert_eq!(folder.run("verify . --json").json()["ok"], false);
    }
}

/// Returns a file of 100 samples of two columns, ten to a chunk.
fn file() -> Vec<u8> {
    let names = ["a", "b"].map(|name| ColumnSchema::tensor(name, DType::U64, Shape::scalar()));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(80);
    written(Schema::new(names), options, |writer| {
        for i in 0..100_u64 {
            writer.push(&[tensilo::Value::tensor(&[i]), tensilo::Value::tensor(&[1000 + i])]).unwrap();
        }
    })
}

/// Returns a folder with that file, without samples 20..30 of `a` and without its trailer.
fn broken() -> Folder {
    let (folder, mut file) = (Folder::new(), file());
    damage(&mut file, "a", 2);
    file.truncate(file.len() - 64);
    folder.file("broken.tsl", file);
    folder
}

#[test]
fn a_damaged_file_becomes_a_whole_one_with_nulls_for_what_is_lost() {
    let folder = broken();
    let before = fs::read(folder.path("broken.tsl")).unwrap();
    let text = folder.fails("salvage broken.tsl -o out.tsl", 1, "").text();
    has(&text, &["20..30", "90 of 100 samples are intact in all columns", "the file could have had more samples"]);
    has(&text, &["out.tsl: 100 samples"]);
    folder.done("verify out.tsl --deep");
    assert_eq!(folder.json("get out.tsl -c a -i 19,20,29,30"), json!([19, null, null, 30]));
    assert_eq!(folder.json("get out.tsl -c b -i 19,20,29,30"), json!([1019, 1020, 1029, 1030]));
    // other files are replaced only by force, and the damaged one never
    folder.fails("salvage broken.tsl -o broken.tsl --force", 2, "is never overwritten");
    folder.file("other.tsl", b"mine");
    folder.fails("salvage broken.tsl -o other.tsl", 2, "--force");
    assert_eq!(fs::read(folder.path("other.tsl")).unwrap(), b"mine");
    folder.fails("salvage broken.tsl -o other.tsl --force", 1, "");
    folder.done("verify other.tsl");
    assert_eq!(fs::read(folder.path("broken.tsl")).unwrap(), before);
}

#[test]
fn a_damaged_block_costs_its_samples_and_no_others() {
    let folder = Folder::new();
    folder.file("broken.tsl", file_with_damaged_block());
    let column = folder.fails("salvage broken.tsl -o out.tsl --json", 1, "").json()["columns"][0].clone();
    assert_eq!((&column["lost_count"], &column["lost"]), (&json!(8), &json!([[8, 16]])));
    folder.done("verify out.tsl --deep");
    let left = folder.json("get out.tsl -c x -i 7,16,63");
    assert_eq!([0, 1, 2].map(|at| &left[at][0]), [7, 16, 63].map(|i| json!(i * 256)).each_ref());
    assert_eq!(folder.json("get out.tsl -c x -i 8,15"), json!([null, null]));
}

/// A chunk of an older file is lost if the index is intact, and copied otherwise. The report, the
/// exit code and the metadata of the new file then say that it is unconfirmed.
#[test]
fn samples_that_nothing_confirms_are_named() {
    let (folder, mut stale) = (Folder::new(), file());
    let chunk = Reader::from_bytes(stale.clone()).unwrap().column("b").unwrap().chunk(3).unwrap().unwrap();
    let body = usize::try_from(chunk.file_range.start).unwrap()..usize::try_from(chunk.file_range.end).unwrap();
    stale[body.start] ^= 1;
    let header_start = body.start - 64;
    let body_crc = crc32fast::hash(&stale[body]);
    stale[header_start + 56..header_start + 60].copy_from_slice(&body_crc.to_le_bytes());
    let header_crc = crc32fast::hash(&stale[header_start..header_start + 60]);
    stale[header_start + 60..header_start + 64].copy_from_slice(&header_crc.to_le_bytes());
    folder.file("stale.tsl", &stale);
    let document = folder.fails("salvage stale.tsl --json", 1, "").json();
    let column = &document["columns"][1];
    assert_eq!((&document["ok"], &column["lost"]), (&json!(false), &json!([[30, 40]])));
    assert_eq!((&column["unconfirmed"], &column["unconfirmed_count"]), (&json!([]), &json!(0)));

    let footer = stale.windows(4).rposition(|bytes| bytes == b"TSLF").unwrap();
    folder.file("broken.tsl", &stale[..footer]);
    let document = folder.fails("salvage broken.tsl --json -o out.tsl", 1, "").json();
    let columns = &document["columns"];
    assert_eq!((&document["ok"], &columns[0]["lost_count"]), (&json!(false), &json!(0)));
    assert_eq!(columns[0]["unconfirmed"], json!([[0, 100]]));
    assert_eq!(columns[1]["unconfirmed"], json!([[0, 30], [40, 100]])); // the index is intact
    assert_eq!(columns[1]["unconfirmed_count"], 90);
    let inspected = folder.json("inspect out.tsl --json");
    assert_eq!(inspected["columns"][1]["metadata"]["tensilo.unconfirmed"], "0..30, 40..100");
    let text = folder.fails("salvage broken.tsl", 1, "").text();
    has(&text, &["unconfirmed samples", " 0..100\n", " 0..30, 40..100\n", "unconfirmed: 100 samples; "]);
}

#[test]
fn lost_samples_can_be_left_out_and_the_json_document_names_them() {
    let folder = broken();
    let document = folder.fails("salvage broken.tsl -o out.tsl --drop-lost --json", 1, "").json();
    for (member, expected) in [
        ("schema", json!("tensilo.salvage/1")),
        ("ok", json!(false)),
        ("end_is_known", json!(false)),
        ("file_header_is_intact", json!(true)),
        ("sample_count", json!(100)),
        ("committed_samples", json!(100)),
    ] {
        assert_eq!(document[member], expected);
    }
    let column = |i: usize| [&document["columns"][i]["lost_count"], &document["columns"][i]["lost"]];
    assert_eq!(column(0), [&json!(10), &json!([[20, 30]])]);
    assert_eq!(column(1), [&json!(0), &json!([])]);
    assert_eq!(document["output"]["sample_count"], 90);
    assert_eq!(document["output"]["content_id"].as_str().unwrap().len(), 32);
    folder.done("verify out.tsl --deep");
    assert_eq!(folder.json("get out.tsl -c b -i 19..21"), json!([1019, 1030]));
}

#[test]
fn a_whole_file_has_lost_nothing_and_one_without_a_schema_everything() {
    let folder = Folder::new();
    folder.file("whole.tsl", file());
    has(&folder.text("salvage whole.tsl"), &["all 100 samples are intact"]);
    assert_eq!(folder.json("salvage whole.tsl --json")["output"], json!(null));
    folder.file("other.txt", [7; 10_000]);
    folder.file("empty", b"");
    for name in ["other.txt", "empty"] {
        let message = "neither the header nor any footer is intact";
        folder.fails(&format!("salvage {name} -o out.tsl"), 1, message);
    }
    assert_eq!(folder.names(), ["empty", "other.txt", "whole.tsl"]);
}

#[test]
fn a_damaged_dataset_becomes_a_whole_one_with_nulls_for_what_is_lost() {
    let folder = folder_of(&["data/a.tsl", "data/b.tsl", "data/c.tsl", "data/d.tsl", "data/e.tsl"]);
    folder.done("dataset create data -q");
    folder.done("dataset rename-column data e energy");
    let all = |path: &str, column: &str| folder.all(path, column).as_array().unwrap().clone();
    let expected = ["energy", "t", "b", "r"].map(|column| (column, all("data", column)));

    // b: a chunk of `e` is damaged; c: cut off; d: missing; e: another file
    let (whole, mut bytes) = (sample_file(), sample_file());
    let chunk = Reader::from_bytes(bytes.clone()).unwrap().column("e").unwrap().chunk(0).unwrap().unwrap();
    damage(&mut bytes, "e", 0);
    let lost_of_b: Vec<u64> = chunk.samples.map(|sample| sample + u64::from(SAMPLES)).collect();
    folder.file("data/b.tsl", &bytes);
    folder.file("data/c.tsl", &whole[..whole.len() - 200]);
    fs::remove_file(folder.path("data/d.tsl")).unwrap();
    folder.file("data/e.tsl", super::empty_file());
    let before = content(&folder.path("data"));

    let document = folder.fails("salvage data --json -o out/", 1, "").json();
    assert!(content(&folder.path("data")) == before);
    assert_eq!((&document["schema"], &document["ok"]), (&json!("tensilo.salvage-dataset/1"), &json!(false)));
    let ok: Vec<_> = document["files"].as_array().unwrap().iter().map(|file| file["ok"].as_bool()).collect();
    assert_eq!(ok, [Some(true), Some(false), Some(false), Some(false), Some(false)]);
    // everything in c is intact, but unconfirmed
    let first = 2 * u64::from(SAMPLES);
    for column in document["files"][2]["columns"].as_array().unwrap() {
        assert_eq!((&column["lost"], &column["lost_count"]), (&json!([]), &json!(0)));
        assert_eq!(column["unconfirmed"], json!([[first, first + u64::from(SAMPLES)]]));
        assert_eq!(column["unconfirmed_count"], SAMPLES);
    }
    assert_eq!(document["output"]["sample_count"], 5 * SAMPLES);
    has(document["files"][4]["message"].as_str().unwrap(), &["this is not the file that the manifest lists"]);

    folder.done("verify out --deep");
    for (column, expected) in expected {
        for (number, (found, expected)) in (0_u64..).zip(all("out", column).iter().zip(&expected)) {
            let is_lost = number >= 3 * u64::from(SAMPLES) || column == "energy" && lost_of_b.contains(&number);
            assert_eq!(found, if is_lost { &Value::Null } else { expected }, "{column} {number}");
        }
    }
    let text = folder.run("salvage data").text();
    has(&text, &["b.tsl:\ncolumn \"energy\": lost 20..", "4 of 5 files are damaged"]);
    folder.fails("salvage data -o out", 2, "the folder already has a dataset");
    folder.fails("salvage data --drop-lost", 2, "--drop-lost");
}

#[test]
fn a_whole_dataset_has_lost_nothing_and_stays_the_same() {
    let folder = folder_of(&["data/a.tsl", "data/b.tsl"]);
    folder.done("dataset create data -q");
    // a column in files of its own
    folder.done("convert data/a.tsl -o data/t-1.tsl --columns t");
    fs::copy(folder.path("data/t-1.tsl"), folder.path("data/t-2.tsl")).unwrap();
    folder.done("dataset drop-column data t");
    folder.done("dataset add-columns data data/t-1.tsl data/t-2.tsl");
    has(&folder.text("salvage data"), &["all 40 samples in 4 files are intact"]);
    folder.done("salvage data -o out");
    let [old, new] = ["data", "out"].map(|name| Dataset::open(folder.path(name)).unwrap());
    assert_eq!((old.schema(), old.window_sizes()), (new.schema(), new.window_sizes()));
    for column in ["x", "t", "n"] {
        assert_eq!(folder.all("out", column), folder.all("data", column));
    }
}
