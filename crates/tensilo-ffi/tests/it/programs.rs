//! The examples in C and C++, compiled with all warnings, linked with the static library, and run
//! twice: normally, and under the address sanitizer, which also finds leaks.
//!
//! If a compiler is missing, a test is reported as not run, or fails if `TENSILO_REQUIRE_C=1`.

use crate::support::{SAMPLES, file};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tensilo::Profile;
use tensilo_testing::{Folder, available};

/// The libraries that Rust's standard library and the C code of the crates need on Linux
/// (`rustc --print native-static-libs`).
const LIBRARIES: [&str; 5] = ["-lpthread", "-ldl", "-lm", "-lrt", "-lutil"];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Returns the static library of this build, which is next to the test program.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    program.parent().expect("a folder").join("libtensilo_ffi.a")
}

fn is_present(compiler: &str) -> bool {
    let found = match Command::new(compiler).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    };
    available(compiler, found, "TENSILO_REQUIRE_C").is_some()
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Compiles an example in `folder`; `None` if there is no compiler.
fn compile(folder: &Folder, name: &str, more: &[&str]) -> Option<PathBuf> {
    let (compiler, standard) = if name.ends_with(".cpp") { ("c++", "-std=c++17") } else { ("cc", "-std=c11") };
    if !is_present(compiler) {
        return None;
    }
    let program = folder.path(format!("{name}{}.out", more.join("")));
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1"]).args(more);
    command.arg("-I").arg(source("include")).arg(source("examples").join(name)).arg(library());
    command.args(LIBRARIES).arg("-o").arg(&program);
    let output = run(&mut command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Runs an example normally and under the sanitizer, and returns its output and whether it
/// succeeded. `None` if there is no compiler.
fn outputs(folder: &Folder, name: &str, arguments: &[&str]) -> Option<(String, bool)> {
    let mut found: Option<(String, bool)> = None;
    for more in [&[][..], &["-fsanitize=address"]] {
        let program = compile(folder, name, more)?;
        let output = run(Command::new(&program).args(arguments).env("ASAN_OPTIONS", "detect_leaks=1"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("Sanitizer") && output.status.code().is_some(), "{name}: {errors}");
        let this = (String::from_utf8_lossy(&output.stdout).into_owned() + &errors, output.status.success());
        assert!(found.as_ref().is_none_or(|found| *found == this), "{name}: {found:?} and {this:?}");
        found = Some(this);
    }
    found
}

fn made_file(folder: &Folder) -> String {
    file(folder, Profile::Balanced).to_str().expect("UTF-8").to_owned()
}

#[test]
fn the_schema_is_printed() {
    let folder = Folder::new();
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "schema.c", &[&path]) else { return };
    assert!(is_done, "{text}");
    assert!(text.starts_with("1000 samples, "), "{text}");
    for line in [
        "embedding: f32 [2,3], 24 bytes",
        "  model = a", // the rest is after a NUL
        "label: i64 [], nullable, 8 bytes",
        "text: utf8 [*], nullable",
        "pitch: f32 [*]",
        "words: list<utf8> [*], nullable",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn errors_say_what_to_do() {
    let folder = Folder::new();
    let path = folder.file("no.tsl", "no file of tensilo, but a text that is as long as a header would be: 64 bytes");
    let Some((text, is_done)) = outputs(&folder, "schema.c", &[path.to_str().expect("UTF-8")]) else { return };
    assert!(!is_done && text.contains("no.tsl") && text.contains("R-2.2"), "{text}");
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "gather.c", &[&path, "embeding", "1"]) else { return };
    assert!(!is_done && text.contains("\"embedding\""), "the most similar column: {text}");
}

#[test]
fn samples_are_gathered() {
    let folder = Folder::new();
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "gather.c", &[&path, "label", "3", "999", "7", "3"]) else { return };
    assert!(is_done, "{text}");
    let expected = "4 samples of 8 bytes, 1 of them null\n\
        3: 03 00 00 00 00 00 00 00\n\
        999: e7 03 00 00 00 00 00 00\n\
        7: 00 00 00 00 00 00 00 00\n\
        3: 03 00 00 00 00 00 00 00\n";
    assert_eq!(text, expected);
}

#[test]
#[cfg(feature = "arrow")]
fn files_are_arrow_streams() {
    let folder = Folder::new();
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "arrow.c", &[&path]) else { return };
    assert!(is_done, "{text}");
    for line in ["label: l", "a batch of 1000 samples", "  column 1: 143 nulls", "  column 3: 0 nulls"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn loaders_stop_and_go_on() {
    let folder = Folder::new();
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "loader.c", &[&path, "64"]) else { return };
    assert!(is_done, "{text}");
    let sum = SAMPLES * (SAMPLES - 1) / 2;
    assert_eq!(text, format!("stopped after 128 samples\n{SAMPLES} samples in all, sum {sum}\n"));
    let (text, is_done) = outputs(&folder, "loader.c", &[&path, "0"]).expect("a compiler");
    assert!(!is_done, "a batch of no samples: {text}");
}

#[test]
fn batches_are_handles_of_cpp() {
    let folder = Folder::new();
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "batches.cpp", &[&path, "500"]) else { return };
    assert!(is_done, "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.starts_with("500 samples: embedding 12000 label 4000 text "), "{text}");
    let (text, is_done) = outputs(&folder, "batches.cpp", &["no such file", "500"]).expect("a compiler");
    assert!(!is_done && text.contains("no such file"), "{text}");
}

#[test]
fn damage_is_listed() {
    let folder = Folder::new();
    let path = made_file(&folder);
    let Some((text, is_done)) = outputs(&folder, "verify.c", &[&path]) else { return };
    assert!(is_done && text.ends_with("bytes checked\nintact\n"), "{text}");
    let mut bytes = std::fs::read(&path).expect("the file");
    bytes[700] ^= 1;
    let path = folder.file("damaged.tsl", bytes);
    let (text, is_done) = outputs(&folder, "verify.c", &[path.to_str().expect("UTF-8")]).expect("a compiler");
    assert!(!is_done && text.contains("damaged: ") && text.contains("damaged.tsl"), "{text}");
}
