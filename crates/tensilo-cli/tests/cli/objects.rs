//! Commands that read files and datasets from a host of objects.

use super::dataset::convert;
use super::dataset_reads::whole;
use super::{Folder, Run, on, run};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
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
    run(["convert", "s3://bucket/x.parquet", "-o", "x.tsl"]).failed(2, "copy the object first");
    run(["append", "s3://bucket/x.tsl", "x.parquet"]).failed(2, "an object is not appended to");
}
