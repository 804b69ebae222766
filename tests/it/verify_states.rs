//! Tests that verification distinguishes a writer that has not finished from damage.
//!
//! A file that ends anywhere within an append is unfinished. Any other bytes after the last commit
//! are damage, and so is an append with a wrong bit.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fs, io};
use tensilo::source::{InMemory, Source};
use tensilo::verify::{FileState, FindingKind, VerifyOptions, VerifyReport, verify};
use tensilo::{ColumnSchema, DType, OpenOptions, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Folder;

fn report(file: &[u8]) -> VerifyReport {
    verify(&InMemory(file), VerifyOptions::new().deep(true)).unwrap()
}

fn kinds(report: &VerifyReport) -> Vec<FindingKind> {
    report.findings.iter().map(|damage| damage.kind).collect()
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

/// Returns a file of two commits, and the end of the first one.
fn appended(alignment: u32) -> (Vec<u8>, usize) {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    write(&path, alignment);
    let before = fs::read(&path).unwrap().len();
    let mut writer = Writer::append(&path, &options(alignment)).unwrap();
    push(&mut writer, 30);
    writer.finish().unwrap();
    (fs::read(&path).unwrap(), before)
}

#[test]
fn an_uncommitted_append_is_not_damage_wherever_it_ends() {
    for alignment in [64, 4096] {
        let (file, before) = appended(alignment);
        assert_eq!(report(&file[..before]).state(), FileState::Intact);
        assert_eq!(report(&file).state(), FileState::Intact);
        for end in before + 1..file.len() {
            let report = report(&file[..end]);
            let found = (report.state(), kinds(&report), report.sample_count, report.findings[0].error.rule());
            let expected = (FileState::Unfinished, vec![FindingKind::Uncommitted], Some(20), Some("R-2.7"));
            assert_eq!(found, expected, "alignment {alignment}, {end} of {before}..{}", file.len());
            assert_eq!(report.findings[0].file_range, before as u64..end as u64);
        }
        // a damaged trailer shows that a later commit existed
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

/// A header that is cut off is checked as far as its bytes are known: padding, magic, file id and
/// offset.
#[test]
fn a_few_other_bytes_after_the_last_commit_are_damage() {
    for alignment in [64, 4096] {
        let (file, before) = appended(alignment);
        let check = |tail: &[u8], what: &str| {
            let report = report(&[&file[..before], tail].concat());
            assert_eq!((report.state(), report.findings.len()), (FileState::Damaged, 1), "{alignment}, {what}");
        };
        for length in [1, 4, 20, 63] {
            check(&vec![7; length], &format!("{length} of 7"));
            check(&[&[0; 4][..], &vec![7; length]].concat(), &format!("{length} of 7 after zeros"));
        }
        let header = (before + 64).next_multiple_of(alignment as usize) - 64;
        let padding = (before..header).step_by(7);
        for at in padding.chain(header..header + 4).chain(header + 8..header + 32) {
            for end in [at + 1, (at + 40).min(header + 63), header + 63, header + 64 + 20] {
                let mut tail = file[before..end].to_vec();
                tail[at - before] ^= 1;
                check(&tail, &format!("byte {at} of {before}..{end}, header at {header}"));
            }
        }
    }
}

/// A file that can lose its last bytes while it is open.
struct ShrinkingSource {
    file: Vec<u8>,
    whole: usize,
    error: Mutex<Option<io::ErrorKind>>,
}

impl Source for ShrinkingSource {
    fn byte_count(&self) -> u64 {
        self.file.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match *self.error.lock().unwrap() {
            Some(error) if offset as usize + out.len() > self.whole => Err(error.into()),
            _ => InMemory(&self.file).read_exact_at(offset, out),
        }
    }
}

/// Only a file that became shorter counts as a failed append.
#[test]
fn a_tail_that_cannot_be_read_is_not_intact() {
    let (mut file, before) = appended(64);
    file.truncate(file.len() - 64); // the trailer
    for (error, expected) in [(io::ErrorKind::UnexpectedEof, true), (io::ErrorKind::Other, false)] {
        let source = Arc::new(ShrinkingSource { file: file.clone(), whole: before, error: Mutex::default() });
        let reader = OpenOptions::new().open_source(source.clone()).unwrap();
        assert_eq!(reader.verify(VerifyOptions::new()).unwrap().state(), FileState::Unfinished);
        *source.error.lock().unwrap() = Some(error);
        let report = reader.verify(VerifyOptions::new());
        assert_eq!(report.is_ok_and(|report| report.state() == FileState::Intact), expected, "{error}");
    }
}

#[test]
fn a_damaged_append_is_damage() {
    let (file, before) = appended(64);
    // the first chunk of the append: 64 bytes of header, 256 of body
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
    assert_eq!((committed.state(), kinds(&committed)), (FileState::Unfinished, vec![FindingKind::Unfinished]));
    assert_eq!((committed.sample_count, committed.findings[0].error.rule()), (Some(30), Some("R-7.8")));
    push(&mut writer, 10);
    drop(writer);
    assert_eq!(report(&fs::read(&path).unwrap()).state(), FileState::Unfinished);
    let mut file = fs::read(&path).unwrap();
    file[200] ^= 1;
    assert_eq!(report(&file).state(), FileState::Damaged);
}
