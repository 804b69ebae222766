//! Inputs of `tensilo convert` and `tensilo append`: the standard input, and many files.

use super::{Folder, Run, SAMPLES, SampleFile, empty_file, on, program, run};
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Runs the program with a file as its standard input, through a pipe.
fn piped(from: &Path, words: &[&str]) -> Run {
    let mut child =
        program().args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // a program that refuses closes the pipe
    let _ = std::io::copy(&mut File::open(from).unwrap(), &mut pipe);
    drop(pipe);
    child.wait_with_output().unwrap().into()
}

fn numbers(count: i32) -> RecordBatch {
    let numbers: ArrayRef = std::sync::Arc::new(Int32Array::from_iter_values(0..count));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

fn exported(folder: &Folder, ending: &str) -> PathBuf {
    let path = folder.path(format!("in.{ending}"));
    on("export", &folder.samples("a.tsl"), &format!("-f -o {}", path.display())).done();
    path
}

#[test]
fn the_standard_input_may_be_any_sort_of_input() {
    let folder = Folder::new();
    let stream = folder.path("in.stream");
    let mut writer = StreamWriter::try_new(File::create(&stream).unwrap(), &numbers(0).schema()).unwrap();
    writer.write(&numbers(20)).unwrap();
    writer.finish().unwrap();
    for input in [exported(&folder, "parquet"), exported(&folder, "arrow"), stream] {
        let (piped_to, read_to) = (folder.path("piped.tsl"), folder.path("read.tsl"));
        piped(&input, &["convert", "-", "-f", "-o", piped_to.to_str().unwrap()]).done();
        on("convert", &input, &format!("-f -o {}", read_to.display())).done();
        assert!(fs::read(&piped_to).unwrap() == fs::read(&read_to).unwrap(), "{}", input.display());
    }
    let parquet = exported(&folder, "parquet");
    let file = folder.file("empty.tsl", empty_file());
    let text = piped(&parquet, &["append", file.to_str().unwrap(), "-"]).done().text();
    assert!(text.contains(&format!("{SAMPLES} samples appended")), "{text}");
}

#[test]
fn errors_of_the_standard_input_call_it_so() {
    let folder = Folder::new();
    let (parquet, out) = (exported(&folder, "parquet"), folder.path("out.tsl"));
    let text = folder.file("text", b"hello, world, this is no Arrow");
    let convert =
        |from: &Path, inputs: &[&str]| piped(from, &[&["convert", "-o", out.to_str().unwrap()], inputs].concat());
    convert(&text, &["-"]).failed(2, "standard input: ");
    convert(&folder.file("empty", b""), &["-"]).failed(2, "standard input: ");
    convert(&parquet, &["-", "-"]).failed(2, "twice");
    assert!(!out.exists());
    // a file called `-`
    folder.file("-", fs::read(&parquet).unwrap());
    convert(&text, &[folder.path("-").to_str().unwrap()]).done();
}

#[cfg(unix)]
#[test]
fn a_terminal_is_no_input() {
    let (_master, terminal) = super::pseudo_terminal();
    let folder = Folder::new();
    let file = folder.samples("a.tsl");
    let before = fs::read(&file).unwrap();
    for words in [&["convert", "-", "-o", "out.tsl"], &["append", "a.tsl", "-", "-q"]] {
        let mut command = program();
        command.args(words).current_dir(folder.root()).stdin(terminal.try_clone().unwrap());
        Run::from(command.output().unwrap()).failed(2, "standard input: is a terminal");
    }
    assert_eq!(folder.names(), ["a.tsl"]);
    assert!(fs::read(&file).unwrap() == before);
}

#[cfg(unix)]
#[test]
fn more_inputs_than_files_may_be_open_are_converted() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    for i in 0..300 {
        let file = File::create(folder.path(format!("data/{i:03}.arrow"))).unwrap();
        let mut writer = FileWriter::try_new(file, &numbers(0).schema()).unwrap();
        writer.write(&numbers(2)).unwrap();
        writer.finish().unwrap();
    }
    let out = folder.path("out.tsl");
    let script = format!(
        "ulimit -n 280; exec {} convert {} -o {}",
        env!("CARGO_BIN_EXE_tensilo"),
        folder.path("data").display(),
        out.display()
    );
    Run::from(std::process::Command::new("sh").args(["-c", &script]).output().unwrap()).done();
    assert_eq!(run(["inspect", "--json", out.to_str().unwrap()]).done().json()["sample_count"], 600);
}

/// Systems other than Linux may refuse such names.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_do_not_disturb_patterns() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::new();
    let odd = |name: &[u8]| folder.root().join(std::ffi::OsStr::from_bytes(name));
    exported(&folder, "parquet");
    fs::write(odd(b"caf\xe9.txt"), "").unwrap();
    let within = |words: &[&str]| Run::from(program().args(words).current_dir(folder.root()).output().unwrap());
    for words in [
        &["convert", "*.parquet", "-o", "b.tsl"][..],
        &["append", "b.tsl", "**/*.parquet"],
        &["convert", "*.parquet", "-o", "ds", "--shard-bytes", "1GiB"],
        &["verify", "b*.tsl"],
        &["inspect", "b*.tsl"],
        &["get", "b*.tsl", "-c", "x", "-i", "0"],
        &["map", "b*.tsl"],
        &["export", "b*.tsl", "-o", "c.parquet"],
    ] {
        within(words).done();
    }
    // inputs, outputs and folders may have such names themselves
    fs::create_dir(odd(b"\xe9")).unwrap();
    fs::rename(folder.path("in.parquet"), odd(b"\xe9/a\xe9.parquet")).unwrap();
    for input in [odd(b"\xe9"), odd(b"\xe9/a\xe9.parquet"), odd(b"\xe9/*.parquet")] {
        let mut command = program();
        command.arg("convert").arg(input).arg("-f").arg("-o").arg(odd(b"o\xe9.tsl"));
        Run::from(command.output().unwrap()).done();
    }
    Run::from(program().arg("inspect").arg(odd(b"o\xe9.tsl")).output().unwrap()).done();
    // the manifest of a dataset could not name this file
    within(&["inspect", "o*.tsl"]).failed(2, "the path is not UTF-8; rename the file");
}

#[cfg(unix)]
#[test]
fn the_number_of_open_files_follows_the_limit() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    for i in 0..100 {
        let file = File::create(folder.path(format!("data/{i:03}.arrow"))).unwrap();
        let mut writer = FileWriter::try_new(file, &numbers(0).schema()).unwrap();
        writer.write(&numbers(2)).unwrap();
        writer.finish().unwrap();
    }
    let limited = |words: &str| {
        let script = format!("ulimit -n 48; exec {} {words}", env!("CARGO_BIN_EXE_tensilo"));
        let mut command = std::process::Command::new("sh");
        Run::from(command.args(["-c", &script]).current_dir(folder.root()).output().unwrap())
    };
    limited("convert data -o out.tsl").done();
    limited("convert data -o ds --shard-bytes 8").done();
    let inspected = run(["inspect", "--json", folder.path("ds").to_str().unwrap()]).done().json();
    assert_eq!(inspected["sample_count"], 200);
    limited("export ds -o all.arrow").done();
    limited("verify ds").done();
    limited("get ds -c n -i ..").done();
    // files that belong to an input are closed with it
    let megatron = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tensilo-convert/tests/data/megatron");
    let indices: Vec<String> = (0..60).map(|i| format!("{i}.idx")).collect();
    for i in 0..60 {
        fs::copy(megatron.join("text.idx"), folder.path(format!("{i}.idx"))).unwrap();
        fs::copy(megatron.join("text.bin"), folder.path(format!("{i}.bin"))).unwrap();
    }
    limited(&format!("convert {} -o tokens.tsl", indices.join(" "))).done();
}

#[test]
fn what_is_no_data_is_reported_as_what_it_is() {
    let folder = Folder::new();
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0000000000000000000000000000000000000000000000000000000000000000\nsize 146946961\n";
    let page = b"<!DOCTYPE html><html><body>Please log in, so that you can download the file</body></html>\n";
    let out = folder.path("out.tsl");
    for name in ["x.parquet", "x.tar", "x.tfrecord", "x.npy", "x.jsonl", "x.safetensors", "x.tsl"] {
        for (bytes, due) in [(&pointer[..], "run \"git lfs pull\""), (page, "an HTML page")] {
            let path = folder.file(name, bytes);
            on("convert", &path, &format!("-o {}", out.display())).failed(2, due);
            on("inspect", &path, "").failed(1, due);
        }
    }
    for (path, due) in [
        ("file:///none.parquet", "file:// is not read; give the path \"/none.parquet\""),
        ("hf://datasets/a/b", "huggingface_hub"),
        ("ftp://host/x.parquet", "ftp:// is not read"),
    ] {
        on("convert", Path::new(path), &format!("-o {}", out.display())).failed(3, due);
        on("inspect", Path::new(path), "").failed(3, due);
    }
    let address = Path::new("http://127.0.0.1:1/a.parquet?download=true");
    on("convert", address, &format!("-o {}", out.display())).failed(3, "the address has a query");
    assert!(!out.exists());
}
