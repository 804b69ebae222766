//! Tests that a file can be appended to while it is mapped: a failed append cuts off only its own
//! bytes, which were never mapped. A mistake raises `SIGBUS`, so the test runs in a child.

use super::child::arguments;
use std::path::Path;
use std::process::Command;
use tensilo::source::Source;
use tensilo::verify::{FileState, FindingKind, VerifyOptions};
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

const ELEMENTS: u32 = 1_024;

fn options() -> WriterOptions {
    WriterOptions::new().profile(Profile::Raw)
}

fn push<S: tensilo::sink::Sink>(writer: &mut Writer<S>, count: u32) {
    for i in 0..count {
        writer.push(&[Value::tensor(&[i; ELEMENTS as usize])]).expect("disk space");
    }
}

fn check_samples(reader: &Reader) {
    let column = reader.column("x").expect("the column");
    assert_eq!(reader.sample_count(), 100);
    for i in 0..100 {
        let view = column.view(i).expect("a sample").expect("raw and mapped");
        assert_eq!(view.as_slice::<u32>().expect("u32"), [i as u32; ELEMENTS as usize]);
    }
}

/// Maps a file during an append, then lets the append fail.
fn append_and_fail(path: &Path) {
    let mut writer = Writer::append(path, &options()).expect("a file");
    push(&mut writer, 1_000);
    // SAFETY: only an append changes the file.
    let reader = unsafe { Reader::map(path) }.expect("a file");
    assert!(reader.tail_bytes() > 1 << 20, "{}", reader.tail_bytes());
    assert!(reader.source().byte_count() + reader.tail_bytes() == reader.file_bytes());
    let report = reader.verify(VerifyOptions::new()).expect("a readable file");
    assert_eq!((report.state(), report.findings[0].kind), (FileState::Unfinished, FindingKind::Uncommitted));
    drop(writer); // the append has failed
    check_samples(&reader);
    let report = reader.verify(VerifyOptions::new().deep(true)).expect("a readable file");
    assert_eq!(report.state(), FileState::Intact, "{:?}", report.findings);
    // a second append succeeds
    let mut writer = Writer::append(path, &options()).expect("a file");
    push(&mut writer, 10);
    writer.finish().expect("disk space");
    check_samples(&reader);
}

#[test]
fn an_append_that_fails_takes_no_mapped_byte_away() {
    const FILE: &str = "TENSILO_TEST_FILE";
    if let Some(path) = std::env::var_os(FILE) {
        return append_and_fail(Path::new(&path));
    }
    let folder = Folder::new();
    let path = folder.path("data.tsl");
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[ELEMENTS]))]);
    let mut writer = Writer::create(&path, schema, &options()).expect("a new file");
    push(&mut writer, 100);
    writer.finish().expect("disk space");
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    let test = "mapped_append::an_append_that_fails_takes_no_mapped_byte_away";
    let output = child.args(arguments(test)).env(FILE, &path).output().expect("this program can start itself");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {text}", output.status);
}
