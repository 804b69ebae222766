//! Inputs: the standard input, many files, odd names, object stores and their cache.

use super::{CommandLine, Folder, Run, SAMPLES, empty_file, folder_of, has};
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tensilo_testing::{HttpFault, HttpServer};

/// Runs a command with a file as its standard input, through a pipe.
fn piped(folder: &Folder, from: &str, line: &str) -> Run {
    let mut command = folder.command(line);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // a program that refuses closes the pipe
    let _ = std::io::copy(&mut File::open(folder.path(from)).unwrap(), &mut pipe);
    drop(pipe);
    child.wait_with_output().unwrap().into()
}

fn numbers(count: i32) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..count));
    RecordBatch::try_from_iter([("n", numbers)]).unwrap()
}

#[test]
fn the_standard_input_may_be_any_sort_of_input() {
    let folder = folder_of(&["a.tsl"]);
    let mut writer =
        StreamWriter::try_new(File::create(folder.path("in.stream")).unwrap(), &numbers(0).schema()).unwrap();
    writer.write(&numbers(20)).unwrap();
    writer.finish().unwrap();
    folder.done("export a.tsl -o in.parquet");
    folder.done("export a.tsl -o in.arrow");
    for input in ["in.parquet", "in.arrow", "in.stream"] {
        piped(&folder, input, "convert - -f -o piped.tsl").failed(0, "");
        folder.done(&format!("convert {input} -f -o read.tsl"));
        assert!(fs::read(folder.path("piped.tsl")).unwrap() == fs::read(folder.path("read.tsl")).unwrap(), "{input}");
    }
    folder.file("empty.tsl", empty_file());
    let text = piped(&folder, "in.parquet", "append empty.tsl -").text();
    has(&text, &[&format!("{SAMPLES} samples appended")]);

    // errors call it "standard input"
    folder.file("text", b"hello, world, this is not Arrow");
    folder.file("nothing", b"");
    for (input, words, message) in
        [("text", "-", "standard input: "), ("nothing", "-", "standard input: "), ("in.parquet", "- -", "twice")]
    {
        piped(&folder, input, &format!("convert -o out.tsl {words}")).failed(2, message);
        assert!(!folder.path("out.tsl").exists());
    }
    // a file called `-`
    fs::copy(folder.path("in.parquet"), folder.path("-")).unwrap();
    piped(&folder, "text", "convert -o out.tsl ./-").failed(0, "");
}

#[cfg(unix)]
#[test]
fn a_terminal_is_not_an_input() {
    let (_master, terminal) = super::pseudo_terminal();
    let folder = folder_of(&["a.tsl"]);
    let before = fs::read(folder.path("a.tsl")).unwrap();
    for line in ["convert - -o out.tsl", "append a.tsl - -q"] {
        let output = folder.command(line).stdin(terminal.try_clone().unwrap()).output().unwrap();
        Run::from(output).failed(2, "standard input: this is a terminal");
    }
    assert_eq!(folder.names(), ["a.tsl"]);
    assert!(fs::read(folder.path("a.tsl")).unwrap() == before);
}

#[cfg(unix)]
#[test]
fn the_number_of_open_files_follows_the_limit() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    (0..300).for_each(|i| folder.arrow(&format!("data/{i:03}.arrow"), &numbers(2)));
    let limited = |limit: u32, words: &str| {
        let script = format!("ulimit -n {limit}; exec {} {words}", env!("CARGO_BIN_EXE_tensilo"));
        let mut command = Command::new("sh");
        Run::from(command.args(["-c", &script]).current_dir(folder.root()).output().unwrap()).failed(0, "");
    };
    limited(280, "convert data -o out.tsl");
    assert_eq!(folder.json("inspect out.tsl --json")["sample_count"], 600);
    for words in [
        "convert data -f -o out.tsl",
        "convert data -o ds --shard-bytes 24",
        "export ds -o all.arrow",
        "verify ds",
        "get ds -c n -i ..",
    ] {
        limited(48, words);
    }
    assert_eq!(folder.json("inspect ds --json")["sample_count"], 600);
    // companion files of an input are closed with it
    let mut indices = String::new();
    for i in 0..60 {
        fs::copy(super::word("FORMATS/megatron/text.idx"), folder.path(format!("{i}.idx"))).unwrap();
        fs::copy(super::word("FORMATS/megatron/text.bin"), folder.path(format!("{i}.bin"))).unwrap();
        indices += &format!(" {i}.idx");
    }
    limited(48, &format!("convert{indices} -o tokens.tsl"));
}

/// Systems other than Linux may refuse such names.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_do_not_disturb_patterns() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder_of(&["a.tsl"]);
    let odd = |name: &[u8]| folder.root().join(std::ffi::OsStr::from_bytes(name));
    folder.done("export a.tsl -o in.parquet");
    fs::write(odd(b"caf\xe9.txt"), "").unwrap();
    for line in [
        "convert *.parquet -o b.tsl",
        "append b.tsl **/*.parquet",
        "convert *.parquet -o ds --shard-bytes 1GiB",
        "verify b*.tsl",
        "inspect b*.tsl",
        "get b*.tsl -c x -i 0",
        "layout b*.tsl",
        "export b*.tsl -o c.parquet",
    ] {
        folder.done(line);
    }
    // inputs, outputs and folders may have such names, too
    fs::create_dir(odd(b"\xe9")).unwrap();
    fs::rename(folder.path("in.parquet"), odd(b"\xe9/a\xe9.parquet")).unwrap();
    for input in [odd(b"\xe9"), odd(b"\xe9/a\xe9.parquet"), odd(b"\xe9/*.parquet")] {
        let mut command = folder.command("convert -f");
        Run::from(command.arg(input).arg("-o").arg(odd(b"o\xe9.tsl")).output().unwrap()).failed(0, "");
    }
    Run::from(folder.command("inspect").arg(odd(b"o\xe9.tsl")).output().unwrap()).failed(0, "");
    // the manifest of a dataset could not name this file
    folder.fails("inspect o*.tsl", 2, "the path is not UTF-8; rename the file");
}

#[test]
fn files_without_data_are_reported_as_what_they_are() {
    let folder = folder_of(&["a.tsl"]);
    let pointer =
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 146946961\n", "0".repeat(64));
    let page = "<!DOCTYPE html><html><body>Please log in, so that you can download the file</body></html>\n";
    for name in ["x.parquet", "x.tar", "x.tfrecord", "x.npy", "x.jsonl", "x.safetensors", "x.tsl"] {
        for (bytes, message) in [(pointer.as_str(), "run \"git lfs pull\""), (page, "an HTML page")] {
            folder.file(name, bytes);
            folder.fails(&format!("convert {name} -o out.tsl"), 2, message);
            folder.fails(&format!("inspect {name}"), 1, message);
        }
    }
    for (address, message) in [
        ("file:///none.parquet", "file:// is not supported; give the path \"/none.parquet\""),
        ("hf://datasets/a/b", "huggingface_hub"),
        ("ftp://host/x.parquet", "ftp:// is not supported"),
    ] {
        folder.fails(&format!("convert {address} -o out.tsl"), 3, message);
        folder.fails(&format!("inspect {address}"), 3, message);
    }
    folder.fails("convert http://127.0.0.1:1/a.parquet?download=true -o out.tsl", 3, "the address has a query");
    assert!(!folder.path("out.tsl").exists());
    folder.done("export a.tsl -o a.parquet");
    folder.file("b.tsl", b"");
    for line in ["inspect FILE", "verify FILE", "get FILE -c x -i 0", "layout FILE", "salvage FILE"] {
        let message = "this is a Parquet file; \"tensilo convert\"";
        folder.fails(&line.replace("FILE", "a.parquet"), 1, message);
        folder.fails(&line.replace("FILE", "b.tsl"), 1, "the file is empty");
    }
}

/// Hosts a file of a folder, or all files below it.
fn hosted(folder: &Folder, name: &str) -> (HttpServer, String) {
    let server = HttpServer::start();
    let files = match folder.path(name).is_dir() {
        true => super::dataset::content(&folder.path(name)),
        false => vec![(Path::new("").into(), fs::read(folder.path(name)).unwrap())],
    };
    for (path, bytes) in files {
        server.put(format!("/{name}/{}", path.display()).trim_end_matches('/'), &bytes);
    }
    let url = server.url(&format!("/{name}"));
    (server, url)
}

#[test]
fn files_and_datasets_of_a_host_are_read_as_local_ones() {
    let folder = Folder::new();
    folder.done("convert SPEECH -o whole.tsl");
    folder.done("convert SPEECH -o data --shard-bytes 30KiB");
    for (name, lines) in [
        (
            "whole.tsl",
            &[
                "inspect FILE --json",
                "verify FILE --deep",
                "get FILE -c mel -i 3,0,1..3",
                "layout FILE --verify --width 60",
                "salvage FILE --json",
                "export FILE -o - --format parquet",
            ][..],
        ),
        ("data", &["inspect FILE", "verify FILE", "get FILE -c mel -i 3,0,1..3", "dataset log FILE"]),
    ] {
        let (_server, url) = hosted(&folder, name);
        for line in lines {
            let (expected, found) =
                (folder.done(&line.replace("FILE", name)), folder.done(&line.replace("FILE", &url)));
            // a drawing shows the end of the path
            let neutral = |run: &Run| String::from_utf8_lossy(&run.stdout).replace(&url, name);
            assert_eq!(neutral(&found), neutral(&expected), "{line}");
        }
    }
    // damage of an object is found
    let mut bytes = fs::read(folder.path("whole.tsl")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.file("whole.tsl", bytes);
    let (_server, url) = hosted(&folder, "whole.tsl");
    let found = folder.run(&format!("verify {url}"));
    assert_eq!((found.code, found.text()), (1, folder.run("verify whole.tsl").text()));
}

#[test]
fn a_file_of_a_host_is_measured() {
    let folder = folder_of(&["a.tsl"]);
    let (_server, url) = hosted(&folder, "a.tsl");
    assert_eq!(folder.json(&format!("bench {url} --seconds 0.01 --json"))["io"], "object");
    folder.fails(&format!("bench {url} --io mmap"), 2, "not objects");
}

#[test]
fn an_output_that_is_an_object_of_the_dataset_is_refused() {
    let folder = folder_of(&["data/a.tsl"]);
    folder.done("dataset create data");
    let (_server, url) = hosted(&folder, "data");
    for (output, message) in
        [("a.tsl", "a file of this dataset"), ("manifest/x.arrow", "in the folder of the manifest")]
    {
        folder.fails(&format!("export {url} -o {url}/{output} --format arrow --force"), 2, message);
    }
}

#[test]
fn a_store_that_refuses_is_no_damage() {
    let folder = folder_of(&["data/a.tsl"]);
    folder.done("dataset create data");
    let (server, url) = hosted(&folder, "data");
    server.set_faults(|request| request.path.ends_with("a.tsl").then_some(HttpFault::Status(403)));
    folder.fails(&format!("verify {url}"), 3, "a.tsl");
    server.set_faults(|request| request.path.ends_with("a.tsl").then_some(HttpFault::Status(404)));
    has(&folder.fails(&format!("verify {url}"), 1, "").text(), &["a.tsl", "damaged: 1 of 1 files"]);
}

#[test]
fn mistakes_in_addresses_are_reported() {
    let (folder, server) = (Folder::new(), HttpServer::start());
    let absent = server.url("/none.tsl");
    folder.fails(&format!("inspect {absent}"), 3, "opening the object: the object does not exist");
    folder.fails(&format!("inspect {}", server.url("/none")), 2, "has neither a manifest nor tensilo files");
    folder.fails("verify s3:///x.tsl", 3, "no bucket");
    folder.fails("append s3://bucket/x.tsl x.parquet", 2, "an object cannot be appended to");
}

#[test]
fn what_is_read_is_cached_until_the_cache_is_cleared() {
    let folder = Folder::new();
    folder.done("convert SPEECH -o whole.tsl");
    let (server, url) = hosted(&folder, "whole.tsl");
    let cached = |line: &str| {
        let mut command = folder.command(line);
        let run = Run::from(command.env("TENSILO_CACHE", "cache").env("TENSILO_CACHE_BYTES", "1GiB").output().unwrap());
        run.failed(0, "");
        run
    };
    let stat = || cached("cache stat --json").json();
    assert_eq!(stat()["entries"], 0);
    cached(&format!("verify {url}"));
    let found = stat();
    assert_eq!((&found["schema"], &found["objects"]), (&"tensilo.cache/1".into(), &1.into()));
    let bytes = fs::metadata(folder.path("whole.tsl")).unwrap().len();
    assert!(found["bytes"].as_u64() > Some(bytes) && found["oldest_use"].is_u64());
    server.take_requests();
    cached(&format!("verify {url}"));
    assert!(server.take_requests().iter().all(|request| request.method == "HEAD"));
    has(&cached("cache stat").text(), &["of 1 object, "]);
    has(&cached("cache clear").text(), &["removed 1 cache entry of 1 object"]);
    assert_eq!(stat()["entries"], 0);

    let mistake = |variables: &[(&str, &str)], message: &str| {
        let mut command = folder.command("cache stat");
        let output = command.env_remove("TENSILO_CACHE").envs(variables.iter().copied()).output().unwrap();
        Run::from(output).failed(2, message);
    };
    let of_folder = |variable: (&str, &str)| {
        let mut command = folder.command("cache stat --folder cache --json");
        let command = command.env_remove("TENSILO_CACHE").env_remove("TENSILO_CACHE_BYTES");
        Run::from(command.env(variable.0, variable.1).output().unwrap()).json()["max_bytes"].as_u64()
    };
    assert_eq!(of_folder(("TENSILO_CACHE_BYTES", "1GiB")), Some(1 << 30));
    assert_eq!(of_folder(("TENSILO_CACHE_BYTES", "")), Some(16 << 30));
    mistake(&[], "set TENSILO_CACHE to a folder");
    mistake(&[("TENSILO_CACHE", "x"), ("TENSILO_CACHE_BYTES", "much")], "expected a number of bytes, such as 200GiB");
}

/// Returns a command with the environment of a store that no server answers, and of no other store.
fn closed(folder: &Folder, line: &str) -> Command {
    let mut command = folder.command(line);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"AWS_")) {
        command.env_remove(name);
    }
    command.envs([
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "y"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_CONFIG_FILE", "none"),
    ]);
    command
}

/// Whatever bytes a variable of the program has, they are used, ignored or named in an error.
#[cfg(unix)]
#[test]
fn any_value_of_a_variable_is_used_or_named() {
    use std::os::unix::ffi::OsStringExt;
    let folder = Folder::new();
    folder.done("convert SPEECH -o data --shard-bytes 30KiB");
    let mut random = tensilo_testing::Random(7);
    for (name, line) in [
        ("TENSILO_CACHE", "cache stat"),
        ("TENSILO_CACHE_BYTES", "cache stat"),
        ("TENSILO_KERNELS", "verify data"),
        ("SOURCE_DATE_EPOCH", "dataset repack data --shard-bytes 40KiB"),
        ("COLUMNS", "inspect data"),
        ("TERM", "inspect data"),
        ("HOME", "inspect data"),
    ] {
        for i in 0..6 {
            let bytes = match i {
                0 => Vec::new(),
                1 => b"18446744073709551616".to_vec(),
                _ => random.bytes(i).into_iter().map(|byte| byte.max(1)).collect(),
            };
            let value = std::ffi::OsString::from_vec(bytes);
            let output = folder.command(line).env("TENSILO_CACHE", "cache").env(name, &value).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            let is_named = text.contains(name) && matches!(output.status.code(), Some(2 | 3));
            assert!(output.status.success() || is_named, "{name}={value:?} {line}: {text}");
        }
    }
}

#[test]
fn tables_in_a_store_make_no_local_folders() {
    let (folder, server) = (folder_of(&["data/a.tsl"]), HttpServer::start());
    let mut command = closed(&folder, "export data --format arrow -o s3://bucket/tables/ --force");
    Run::from(command.env("AWS_ENDPOINT_URL", server.url("")).output().unwrap())
        .failed(3, "s3://bucket/tables/a.arrow");
    assert!(server.take_requests().iter().any(|request| request.method == "PUT"));
    assert_eq!(folder.names(), ["data"]);
}

#[test]
fn an_object_that_cannot_be_read_is_passed_over_with_a_warning_or_an_error() {
    let (folder, server) = (folder_of(&["a.tsl"]), HttpServer::start());
    folder.done("export a.tsl -o a.parquet");
    server.put("/bucket/raw/a.parquet", &fs::read(folder.path("a.parquet")).unwrap());
    let entry = |key: &str| {
        format!("<Contents><Key>{key}</Key><LastModified>2026-11-25T00:00:00Z</LastModified><Size>9</Size></Contents>")
    };
    let list = format!("<R>{}{}</R>", entry("raw//b.parquet"), entry("raw/a.parquet"));
    server.put("/bucket?list-type=2&prefix=raw%2F", list.as_bytes());
    for input in ["s3://bucket/raw", "s3://bucket/raw/*.parquet"] {
        let convert = |words: &str| {
            let mut command = closed(&folder, &format!("convert {input} -f -o out.tsl {words}"));
            Run::from(command.env("AWS_ENDPOINT_URL", server.url("")).output().unwrap())
        };
        convert("").failed(0, "s3://bucket/raw//b.parquet: skipped");
        // nothing is skipped silently
        convert("--quiet").failed(3, "s3://bucket/raw//b.parquet");
    }
}
