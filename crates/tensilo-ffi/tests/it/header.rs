//! The committed header matches the sources.
//! `TENSILO_WRITE_GOLDEN=1 cargo test -p tensilo-ffi header` regenerates it.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_generated_from_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("cbindgen.toml");
    let made = cbindgen::Builder::new().with_crate(folder).with_config(config).generate().expect("a header");
    let mut text = Vec::new();
    made.write(&mut text);
    let text = String::from_utf8(text).expect("UTF-8");
    let path = folder.join("include/tensilo.h");
    if std::env::var("TENSILO_WRITE_GOLDEN").is_ok() {
        fs::write(&path, &text).expect("a writable header");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(text.lines()).position(|(found, expected)| found != expected);
    assert!(
        found == text,
        "include/tensilo.h differs from the sources, first at line {:?}; TENSILO_WRITE_GOLDEN=1 regenerates it",
        differs.map(|line| line + 1)
    );
}

#[test]
fn the_header_defines_each_constant() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = fs::read_to_string(folder.join("include/tensilo.h")).expect("the header");
    let mut folders = vec![folder.join("src")];
    let mut constants = 0;
    while let Some(entries) = folders.pop().map(|folder| fs::read_dir(folder).expect("a source folder")) {
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(path).expect("a source file");
            for constant in source.lines().filter_map(|line| line.trim().strip_prefix("pub const TENSILO_")) {
                let (name, _) = constant.split_once(':').expect("a typed constant");
                assert!(header.contains(&format!("#define TENSILO_{name} ")), "TENSILO_{name} is not in the header");
                constants += 1;
            }
        }
    }
    assert!(constants > 50, "only {constants} constants were found");
}
