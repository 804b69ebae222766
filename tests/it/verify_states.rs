//! Proves that the verification of a file tells a writer that has not finished from damage.

use std::fs;
use std::path::Path;
use tensilo::source::InMemory;
use tensilo::verify::{DamageKind, FileState, VerifyOptions, VerifyReport, verify};
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

fn report(file: &[u8]) -> VerifyReport {
    verify(&InMemory(file), VerifyOptions::new().decode(true)).unwrap()
}

fn kinds(report: &VerifyReport) -> Vec<DamageKind> {
    report.damages.iter().map(|damage| damage.kind).collect()
}

fn options(alignment: u32) -> WriterOptions {
    WriterOptions::new().profile(Profile::Raw).chunk_bytes(256).alignment(alignment)
}

/// Writes 20 samples, and 10 more for each commit that follows.
fn write(path: &Path, alignment: u32) {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[16]))]);
    let mut writer = Writer::create(path, schema, &options(alignment)).unwrap();
    push(&mut writer, 20);
    writer.finish().unwrap();
}

fn push<S: tensilo::sink::Sink>(writer: &mut Writer<S>, count: u8) {
    (0..count).for_each(|i| writer.push(&[Value::tensor(&[i; 16])]).unwrap());
}

#[test]
fn an_append_that_has_not_committed_is_no_damage_wherever_it_ends() {
    for alignment in [64, 4096] {
        let folder = Folder::new();
        let path = folder.path("a.tsl");
        write(&path, alignment);
        let before = fs::read(&path).unwrap().len();
        let mut writer = Writer::append(&path, &options(alignment)).unwrap();
        push(&mut writer, 30);
        writer.finish().unwrap();
        let file = fs::read(&path).unwrap();
        assert_eq!(report(&file[..before]).state(), FileState::Intact);
        assert_eq!(report(&file).state(), FileState::Intact);
        for end in before + 1..file.len() {
            let report = report(&file[..end]);
            let found = (report.state(), kinds(&report), report.sample_count, report.damages[0].error.rule());
            let due = (FileState::Unfinished, vec![DamageKind::Uncommitted], Some(20), Some("R-2.7"));
            assert_eq!(found, due, "alignment {alignment}, {end} of {before}..{}", file.len());
            assert_eq!(report.damages[0].file_range, before as u64..end as u64);
        }
        // a later commit that is damaged was there
        for at in file.len() - 64..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            let report = report(&damaged);
            assert_eq!((report.state(), report.sample_count), (FileState::Damaged, Some(20)), "byte {at}");
        }
        let mut longer = file[..before].to_vec();
        longer.extend([7; 1000]);
        assert_eq!(report(&longer).state(), FileState::Damaged);
    }
}

#[test]
fn a_damaged_append_is_damage() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    write(&path, 64);
    let before = fs::read(&path).unwrap().len();
    let mut writer = Writer::append(&path, &options(64)).unwrap();
    push(&mut writer, 30);
    writer.finish().unwrap();
    let file = fs::read(&path).unwrap();
    // the first chunk of the append: 64 bytes of head, 256 of body
    for at in before..before + 64 + 256 {
        let mut cut = file[..before + 700].to_vec();
        cut[at] ^= 16;
        assert_eq!(report(&cut).state(), FileState::Damaged, "byte {at}");
    }
}

#[test]
fn a_commit_without_an_end_is_unfinished() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    write(&path, 64);
    let mut writer = Writer::append(&path, &options(64)).unwrap();
    push(&mut writer, 10);
    writer.commit().unwrap();
    let committed = report(&fs::read(&path).unwrap());
    assert_eq!((committed.state(), kinds(&committed)), (FileState::Unfinished, vec![DamageKind::Unfinished]));
    assert_eq!((committed.sample_count, committed.damages[0].error.rule()), (Some(30), Some("R-7.8")));
    push(&mut writer, 10);
    drop(writer);
    assert_eq!(report(&fs::read(&path).unwrap()).state(), FileState::Unfinished);
    let mut file = fs::read(&path).unwrap();
    file[200] ^= 1;
    assert_eq!(report(&file).state(), FileState::Damaged);
}
