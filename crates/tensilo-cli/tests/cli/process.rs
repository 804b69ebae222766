//! Help, exit codes, pipes and colours.

use super::{Folder, SampleFile, damaged_file, on, program, run, sample_file, too_new_file};
use std::fs::File;
use std::process::Stdio;

#[test]
fn help_has_examples() {
    let text = run(["--help"]).done().text();
    assert!(text.contains("Examples:") && text.contains("Exit codes:") && text.contains("NO_COLOR"), "{text}");
    assert_eq!(run(["help"]).done().text(), text);
    for (command, example) in [
        ("convert", "--bf16"),
        ("append", "--skip-others"),
        ("inspect", "tensilo.inspect/1"),
        ("verify", "tensilo.verify/1"),
        ("get", "--format npy"),
        ("export", ".parquet"),
        ("bench", "tensilo.bench/1"),
        ("map", "--svg train.svg"),
        ("dataset", "tensilo.log/1"),
    ] {
        let text = run([command, "--help"]).done().text();
        assert!(text.contains("Examples:") && text.contains(example), "{text}");
        let (_, examples) = text.split_once("Examples:").unwrap(); // their lines are not wrapped
        assert!(examples.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}

#[test]
fn help_has_every_option_of_the_contract() {
    for (command, options) in [
        (
            "convert",
            "-o --bf16 --cast --columns --skip --shape --profile --chunk-bytes --block-bytes --no-check --align --threads --force --null-elements",
        ),
        (
            "append",
            "--skip-others --discard-tail --profile --chunk-bytes --block-bytes --no-check --threads --null-elements",
        ),
        ("inspect", "--json --explain --chunk --sample --quiet"),
        ("verify", "--json --deep"),
        ("get", "-c -i --format --as -o --nulls --force"),
        ("export", "-o --columns --force"),
        ("map", "--svg --width --force"),
        ("bench", "-c --pattern --batch --threads --cold --seconds --verification --json"),
    ] {
        let text = run([command, "-h"]).done().text();
        for option in options.split_whitespace() {
            assert!(text.contains(option), "{command} {option}: {text}");
        }
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let due = format!("tensilo {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(["--version"]).done().text(), due);
}

#[test]
fn bad_usage_exits_with_2() {
    for line in [
        "",
        "nonsense",
        "inspect",
        "inspect a b",
        "inspect a --chunk 0",
        "inspect a --sample 0",
        "inspect a --explain --chunk 0 --sample 0",
        "inspect a --explain --chunk -1",
        "convert in.parquet",
        "convert -o out.tsl",
        "convert in.parquet -o out.tsl --profile best",
        "convert in.parquet -o out.tsl --chunk-bytes 64KB",
        "convert in.parquet -o out.tsl --block-bytes 512",
        "convert in.parquet -o out.tsl --block-bytes 0",
        "append in.tsl in.parquet --block-bytes 1MiB",
        "convert in.parquet -o out.tsl --align 512",
        "convert in.parquet -o out.tsl --threads 0",
        "convert in.parquet -o out.tsl --cast x=utf8",
        "convert in.parquet -o out.tsl --columns a,",
        "convert in.parquet -o out.tsl --null-elements drop",
        "append",
        "append in.tsl",
        "append in.tsl in.parquet --profile best",
        "append in.tsl in.parquet --align 64",
        "get in.tsl -c x -i one",
        "get in.tsl -c x -i 1 --format csv",
        "export in.tsl",
        "bench",
        "bench in.tsl --pattern backwards",
        "bench in.tsl --batch 0",
        "bench in.tsl --threads 0",
        "bench in.tsl --seconds 0",
        "map",
        "map in.tsl --width 39",
        "map in.tsl --width 1001",
        "map in.tsl --svg out.svg --width 599",
        "map in.tsl --force",
    ] {
        let run = run(line.split_whitespace());
        assert_eq!(run.code, 2, "{line}: {run:?}");
        assert!(!run.stderr.is_empty() && run.stdout.is_empty(), "{line}: {run:?}");
    }
}

#[test]
fn a_missing_file_exits_with_3() {
    let folder = Folder::new();
    let missing = folder.path("missing.tsl");
    on("inspect", &missing, "").failed(3, "missing.tsl");
    on("get", &missing, "-c x -i 0").failed(3, "missing.tsl");
    on("export", &missing, &format!("-o {}", folder.path("out.parquet").display())).failed(3, "missing.tsl");
    on("get", folder.root(), "-c x -i 0").failed(2, "neither a manifest nor tensilo files");
    let name = folder.root().file_name().unwrap().to_string_lossy().into_owned();
    on("inspect", folder.root(), "").failed(2, &name);
}

#[test]
fn damaged_and_foreign_files_exit_with_1() {
    let folder = Folder::new();
    let text = folder.file("a.txt", b"this is not a tensilo file, however long it may be, at least 64 bytes or so");
    on("inspect", &text, "").failed(1, "not a tensilo file");
    on("inspect", &folder.file("empty.tsl", b""), "").failed(1, "empty.tsl");
    let whole = sample_file();
    on("inspect", &folder.file("half.tsl", &whole[..whole.len() / 2]), "").failed(1, "tensilo verify");
    let mut runs = ["x", "e", "t", "b", "r", "flag", "n", "h"].iter().map(|column| {
        let path = folder.file("damaged.tsl", damaged_file());
        on("get", &path, &format!("-c {column} -i .."))
    });
    assert!(runs.any(|run| run.code == 1));
}

#[test]
fn files_of_newer_releases_exit_with_2() {
    let folder = Folder::new();
    on("inspect", &folder.file("new.tsl", too_new_file()), "").failed(2, "newer tensilo");
}

#[test]
fn an_output_folder_that_is_missing_exits_with_3() {
    let folder = Folder::new();
    let out = folder.path("missing").join("out.npy");
    let words = format!("-c x -i 0 --format npy -o {}", out.display());
    on("get", &folder.samples("a.tsl"), &words).failed(3, "out.npy");
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    let indices = vec!["0..20"; 5_000].join(",");
    for format in ["json", "npy", "raw"] {
        let mut child = program()
            .arg("get")
            .arg(&path)
            .args(["-c", "x", "--format", format, "-i", &indices])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take()); // the output is larger than a pipe holds
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_output_that_cannot_be_written_exits_with_3() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for words in ["inspect", "inspect --json", "get -c x -i 0"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut words = words.split(' ');
        let output = program().args(words.next()).arg(&path).args(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert!(String::from_utf8(output.stderr).unwrap().contains("writing the output"));
    }
}

#[test]
fn a_closed_standard_error_does_no_harm() {
    let folder = Folder::new();
    let mut child = program()
        .arg("inspect")
        .arg(folder.path("missing.tsl"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn nothing_is_coloured_that_is_not_a_terminal() {
    let folder = Folder::new();
    let path = folder.samples("a.tsl");
    for words in
        ["inspect", "inspect --json", "verify", "map", "get -c x -i 0", "get -c nothing -i 0", "get --wrong", "help"]
    {
        let mut words = words.split(' ');
        let run = program().args(words.next()).arg(&path).args(words).output().unwrap();
        assert!(!run.stdout.contains(&0x1B) && !run.stderr.contains(&0x1B), "{run:?}");
    }
}

#[test]
fn no_color_wins_over_a_wish_for_colour() {
    let run = program().arg("--wrong").env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output().unwrap();
    assert!(!run.stderr.contains(&0x1B) && !run.stderr.is_empty());
    let run = program().arg("--wrong").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(run.stderr.contains(&0x1B), "else this test shows nothing");
}
