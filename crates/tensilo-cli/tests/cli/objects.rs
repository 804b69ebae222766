//! Commands that read files and datasets from a host of objects.

use super::dataset::convert;
use super::dataset_reads::whole;

use super::{Folder, Run, SampleFile, on, program, run};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tensilo_testing::HttpServer;

/// Hosts a file, or the files of a folder, under its name.
fn hosted(path: &Path) -> (HttpServer, PathBuf) {
    let server = HttpServer::start();
    let url = format!("/{}", path.file_name().unwrap().to_str().unwrap());
    put(&server, path, &url);
    let url = server.url(&url).into();
    (server, url)
}

fn put(server: &HttpServer, path: &Path, url: &str) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            put(server, &path, &format!("{url}/{}", path.file_name().unwrap().to_str().unwrap()));
        }
    } else {
        server.put(url, &fs::read(path).unwrap());
    }
}

/// Runs a command on both, and asserts that it prints the same.
fn same(command: &str, local: &Path, remote: &Path, words: &str) -> Run {
    let (due, found) = (on(command, local, words).done(), on(command, remote, words).done());
    let neutral = |run: &Run, path: &Path| run.text().replace(path.to_str().unwrap(), "PATH");
    assert_eq!(neutral(&found, remote), neutral(&due, local), "{command} {words}");
    found
}

#[test]
fn a_file_of_a_host_is_read_as_a_local_one() {
    let folder = Folder::new();
    let local = whole(&folder);
    let (_server, remote) = hosted(&local);
    same("inspect", &local, &remote, "--json");
    same("verify", &local, &remote, "--deep");
    same("get", &local, &remote, "-c mel -i 3,0,1..3");
    same("map", &local, &remote, "--verify --width 60");
    same("salvage", &local, &remote, "--json");
    let tables = [(&local, "local.parquet"), (&remote, "remote.parquet")].map(|(from, name)| {
        let to = folder.path(name);
        run([OsStr::new("export"), from.as_os_str(), OsStr::new("-o"), to.as_os_str()]).done();
        fs::read(to).unwrap()
    });
    assert!(tables[0] == tables[1]);
}

#[test]
fn a_dataset_of_a_host_is_read_as_a_local_one() {
    let folder = Folder::new();
    let (local, converted) = convert(&folder, "data", "--shard-bytes 30KiB");
    converted.done();
    let (_server, remote) = hosted(&local);
    same("inspect", &local, &remote, "");
    same("verify", &local, &remote, "");
    same("get", &local, &remote, "-c mel -i 3,0,1..3");
    let logs = [&local, &remote].map(|path| run([OsStr::new("dataset"), OsStr::new("log"), path.as_os_str()]).done());
    assert_eq!(logs[0].text(), logs[1].text());
}

#[test]
fn damage_of_an_object_is_found() {
    let folder = Folder::new();
    let path = whole(&folder);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let (_server, remote) = hosted(&path);
    let found = on("verify", &remote, "");
    assert_eq!(found.code, 1, "{found:?}");
    assert_eq!(found.text(), on("verify", &path, "").text());
}

#[test]
fn mistakes_in_addresses_are_told() {
    let server = HttpServer::start();
    let absent = PathBuf::from(server.url("/none.tsl"));
    on("inspect", &absent, "").failed(3, "opening the object: the object does not exist");
    let none = PathBuf::from(server.url("/none"));
    on("inspect", &none, "").failed(2, "has neither a manifest nor tensilo files");
    on("verify", Path::new("s3:///x.tsl"), "").failed(3, "no bucket");
    run(["append", "s3://bucket/x.tsl", "x.parquet"]).failed(2, "an object is not appended to");
}

#[test]
fn what_is_read_is_kept_in_the_cache_until_it_is_cleared() {
    let folder = Folder::new();
    let local = whole(&folder);
    let (server, remote) = hosted(&local);
    let run = |words: &[&str]| {
        let mut command = program();
        command.env("TENSILO_CACHE", folder.path("cache")).env("TENSILO_CACHE_BYTES", "1GiB").args(words);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let stat = || serde_json::from_str::<serde_json::Value>(&run(&["cache", "stat", "--json"])).unwrap();
    assert_eq!(stat()["pieces"], 0);
    run(&["verify", remote.to_str().unwrap()]);
    let found = stat();
    assert_eq!((&found["schema"], &found["objects"]), (&"tensilo.cache/1".into(), &1.into()));
    assert!(found["bytes"].as_u64() > Some(fs::metadata(&local).unwrap().len()) && found["oldest_use"].is_u64());
    server.take_requests();
    run(&["verify", remote.to_str().unwrap()]);
    assert!(server.take_requests().iter().all(|request| request.method == "HEAD"));
    assert!(run(&["cache", "stat"]).contains("of 1 object, "));
    assert!(run(&["cache", "clear"]).contains("removed 1 piece of 1 object"));
    assert_eq!(stat()["pieces"], 0);
}

#[test]
fn mistakes_about_the_cache_are_told() {
    let mistake = |variables: &[(&str, &str)], due: &str| {
        let mut command = program();
        command.env_remove("TENSILO_CACHE").envs(variables.iter().copied()).args(["cache", "stat"]);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(due), "{text}");
    };
    mistake(&[], "set TENSILO_CACHE to a folder");
    mistake(&[("TENSILO_CACHE", "x"), ("TENSILO_CACHE_BYTES", "much")], "expected a number of bytes, such as 200GiB");
}

/// Returns a program with the variables of a store that no server answers, and no others.
fn closed() -> Command {
    let mut command = program();
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

#[test]
fn a_variable_that_cannot_work_is_named() {
    for (name, value) in [
        ("AWS_ENDPOINT_URL", "localhost:9000"),
        ("AWS_ENDPOINT_URL", "http://"),
        ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:99999"),
        ("AWS_ACCESS_KEY_ID", "x\n"),
    ] {
        let mut command = closed();
        command.env(name, value).args(["inspect", "s3://bucket/ds"]);
        let run = Run::from(command.output().unwrap());
        assert!(run.code == 3 && run.stderr.contains(name) && !run.stderr.contains("panicked"), "{run:?}");
    }
}

/// Any bytes of a variable of the program are used, ignored or named.
#[cfg(unix)]
#[test]
fn any_value_of_a_variable_is_used_or_named() {
    use std::os::unix::ffi::OsStringExt;
    let folder = Folder::new();
    let (data, _) = convert(&folder, "data", "--shard-bytes 30KiB");
    let mut random = tensilo_testing::Random(7);
    for (name, words) in [
        ("TENSILO_CACHE", &["cache", "stat"][..]),
        ("TENSILO_CACHE_BYTES", &["cache", "stat"]),
        ("TENSILO_KERNELS", &["verify", "data"]),
        ("SOURCE_DATE_EPOCH", &["dataset", "repack", "data", "--shard-bytes", "40KiB"]),
        ("COLUMNS", &["inspect", "data"]),
        ("TERM", &["inspect", "data"]),
        ("HOME", &["inspect", "data"]),
    ] {
        for i in 0..6 {
            let bytes = match i {
                0 => Vec::new(),
                1 => b"18446744073709551616".to_vec(),
                _ => random.bytes(i).into_iter().map(|byte| byte.max(1)).collect(),
            };
            let value = std::ffi::OsString::from_vec(bytes);
            let mut command = program();
            command.current_dir(data.parent().unwrap()).env("TENSILO_CACHE", "cache").env(name, &value).args(words);
            let output = command.output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            let is_named = text.contains(name) && matches!(output.status.code(), Some(2 | 3));
            assert!(output.status.success() || is_named, "{name}={value:?} {words:?}: {text}");
        }
    }
}

#[test]
fn an_object_that_cannot_be_read_is_passed_over_with_a_warning_or_an_error() {
    let folder = Folder::new();
    let server = HttpServer::start();
    let parquet = folder.path("a.parquet");
    on("export", &folder.samples("a.tsl"), &format!("-o {}", parquet.display())).done();
    server.put("/bucket/raw/a.parquet", &fs::read(&parquet).unwrap());
    let entry = |key: &str| {
        format!("<Contents><Key>{key}</Key><LastModified>2026-11-25T00:00:00Z</LastModified><Size>9</Size></Contents>")
    };
    let list = format!("<R>{}{}</R>", entry("raw//b.parquet"), entry("raw/a.parquet"));
    server.put("/bucket?list-type=2&prefix=raw%2F", list.as_bytes());
    for input in ["s3://bucket/raw", "s3://bucket/raw/*.parquet"] {
        let convert = |words: &[&str]| {
            let mut command = closed();
            command.env("AWS_ENDPOINT_URL", server.url("")).args(["convert", input, "-f", "-o"]);
            Run::from(command.arg(folder.path("out.tsl")).args(words).output().unwrap())
        };
        let run = convert(&[]).done();
        assert!(run.stderr.contains("s3://bucket/raw//b.parquet: passed over"), "{run:?}");
        // nothing is left out in silence
        convert(&["--quiet"]).failed(3, "s3://bucket/raw//b.parquet");
    }
}
