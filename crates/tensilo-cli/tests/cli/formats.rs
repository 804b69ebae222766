//! Formats of others: `tensilo convert`, `append` and `export`.

use super::{Folder, SampleFile, on, run};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a file of the crate that reads the formats.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tensilo-convert/tests/data").join(name)
}

/// Converts a file of test data.
fn converted(folder: &Folder, name: &str) -> PathBuf {
    let out = folder.path("converted.tsl");
    on("convert", &data(name), &format!("-o {} -f", out.display())).done();
    out
}

#[test]
fn an_array_is_converted_appended_and_exported_to_the_same_bytes() {
    let folder = Folder::new();
    let tsl = converted(&folder, "npy/f32.npy");
    let npy = folder.path("back.npy");
    on("export", &tsl, &format!("-o {}", npy.display())).done();
    assert_eq!(fs::read(&npy).unwrap(), fs::read(data("npy/f32.npy")).unwrap());

    let appended = on("append", &tsl, &data("npy/version-2.npy").display().to_string()).done();
    assert!(appended.text().contains("5 samples appended, 10 in all"), "{appended:?}");
}

#[test]
fn an_input_that_is_cut_off_is_named_with_what_is_missing() {
    let folder = Folder::new();
    let whole = fs::read(data("npy/f32.npy")).unwrap();
    let cut = folder.file("cut.npy", &whole[..200]);
    let out = folder.path("out.tsl");
    on("convert", &cut, &format!("-o {}", out.display())).failed(2, "cut.npy: the array is cut off");
    assert_eq!(folder.names(), ["cut.npy"]);
}

#[test]
fn an_unknown_input_is_answered_with_all_formats() {
    let folder = Folder::new();
    let text = folder.file("a.txt", b"some text that is of no format");
    let out = folder.path("out.tsl");
    let failed = on("convert", &text, &format!("-o {}", out.display()));
    failed.failed(2, "NumPy");
    failed.failed(2, "Parquet");
}

#[test]
fn columns_that_cannot_be_stored_are_left_out() {
    let folder = Folder::new();
    let out = folder.path("out.tsl");
    let (text, axes) = (data("refused/text.npz"), data("refused/axes.npz"));
    on("convert", &text, &format!("-o {}", out.display())).failed(2, "--skip names");
    on("convert", &axes, &format!("-o {}", out.display())).failed(2, "--skip");
    for (input, choice, samples) in
        [(&text, "--skip names", 4), (&text, "--columns mel", 4), (&axes, "--skip a", 4), (&axes, "--columns a", 3)]
    {
        on("convert", input, &format!("-o {} -f {choice}", out.display())).done();
        let inspected = on("inspect", &out, "--json").done().json();
        assert_eq!(inspected["sample_count"], samples, "{choice}: {inspected}");
    }
    on("convert", &text, &format!("-o {} -f --skip names", out.display())).done();
    on("append", &out, &text.display().to_string()).failed(2, "--skip-others");
    on("append", &out, &format!("{} --skip-others", text.display())).done();
}

#[test]
fn an_array_has_one_column_without_nulls() {
    let folder = Folder::new();
    let tsl = folder.samples("a.tsl");
    let npy = folder.path("out.npy");
    let export =
        |columns: &str| run(["export", tsl.to_str().unwrap(), "-o", npy.to_str().unwrap(), "--columns", columns]);
    export("x,e").failed(2, "--columns");
    export("n").failed(2, "is null");
    export("r").failed(2, "several shapes");
    export("t").failed(2, "\"t\"");
    assert_eq!(folder.names(), ["a.tsl"]);
    export("x").done();
}

#[test]
fn tensors_and_archives_come_back_as_they_were() {
    let folder = Folder::new();
    for (name, output) in [("safetensors/samples.safetensors", "a.safetensors"), ("webdataset/train.tar", "a.tar")] {
        let first = converted(&folder, name);
        let (exported, back) = (folder.path(output), folder.path("back.tsl"));
        on("export", &first, &format!("-o {}", exported.display())).done();
        on("convert", &exported, &format!("-o {} -f", back.display())).done();
        let inspected = |path: &Path| on("inspect", path, "--json").done().json()["columns"].clone();
        for column in inspected(&first).as_array().unwrap() {
            let words = format!("-c {} -i ..", column["name"].as_str().unwrap());
            assert_eq!(
                on("get", &back, &words).done().text(),
                on("get", &first, &words).done().text(),
                "{name} {words}"
            );
        }
    }
}

#[test]
fn documents_become_an_index_and_a_file_of_tokens() {
    let folder = Folder::new();
    let first = converted(&folder, "megatron/text.idx");
    let index = folder.path("text.idx");
    let export = |words: &str| on("export", &first, &format!("-o {} {words}", index.display()));
    export("").done();
    let names = folder.names();
    assert!(names.iter().any(|name| name == "text.bin") && names.len() == 3, "{names:?}");
    export("").failed(2, "text.idx");
    fs::remove_file(&index).unwrap();
    export("").failed(2, "text.bin");
    export("-f").done();
    let back = folder.path("back.tsl");
    on("convert", &index, &format!("-o {}", back.display())).done();
    let tokens = |path: &Path| on("get", path, "-c tokens -i ..").done().text();
    assert_eq!(tokens(&back), tokens(&first));
    on("export", &first, "-o - --format megatron --force").failed(2, "two files are written");
}

#[test]
fn a_file_of_tensors_is_one_sample_on_demand() {
    let folder = Folder::new();
    let (input, out) = (data("one-sample/weights.safetensors"), folder.path("a.tsl"));
    on("convert", &input, &format!("-o {}", out.display())).failed(2, "--file-is-sample");
    on("convert", &input, &format!("-o {} --file-is-sample", out.display())).done();
    let twice = on("append", &out, &format!("{} --file-is-sample", input.display())).done();
    assert!(twice.text().contains("1 samples appended, 2 in all"), "{twice:?}");
}

#[test]
fn what_is_done_to_parquet_is_done_to_other_formats() {
    let folder = Folder::new();
    let out = folder.path("set");
    let words = format!("-o {} --shard-bytes 40 --columns label,half --cast half=bf16", out.display());
    on("convert", &data("safetensors/samples.safetensors"), &words).done();
    assert_eq!(on("get", &out, "-c label -i ..").done().json(), serde_json::json!([0, 1, 2, 3]));
    assert!(on("inspect", &out, "").done().text().contains("bf16"));
    let stream = folder.path("a.arrows");
    on("export", &out, &format!("-o {}", stream.display())).done();
    let back = folder.path("back.tsl");
    on("convert", &stream, &format!("-o {}", back.display())).done();
    assert_eq!(on("get", &back, "-c label -i 3").done().text(), "3\n");
}
