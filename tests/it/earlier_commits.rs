//! Tests that a file can be opened at each of its commits.

use crate::support::on_disk::OnDisk;
use tensilo::sink::AtomicFile;
use tensilo::source::InMemory;
use tensilo::verify::VerifyOptions;
use tensilo::{ColumnSchema, DType, OpenOptions, Reader, Schema, Shape, Value, Writer, WriterOptions};

/// Writes a file with this many commits of ten samples. Returns its length after each.
fn write(file: &OnDisk, commits: u32) -> Vec<u64> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::scalar())]);
    let sink = AtomicFile::create(file.path(), true).unwrap();
    let mut writer = Writer::new(sink, schema, &WriterOptions::new()).unwrap();
    let mut lengths = Vec::new();
    for commit in 0..commits {
        for i in 0..10 {
            writer.push(&[Value::tensor(&[commit * 10 + i])]).unwrap();
        }
        writer.commit().unwrap();
        lengths.push(std::fs::metadata(file.path()).unwrap().len());
    }
    lengths
}

fn check(reader: &Reader, commit: u32, bytes: u64, file: &[u8]) {
    assert_eq!(reader.sample_count(), u64::from(commit + 1) * 10);
    assert_eq!((reader.commit_count(), reader.file_bytes(), reader.tail_bytes()), (commit + 1, bytes, 0));
    let alone = Reader::from_bytes(file[..usize::try_from(bytes).unwrap()].to_vec()).unwrap();
    assert_eq!((alone.content_id(), alone.footer_offset()), (reader.content_id(), reader.footer_offset()));
    assert!((1..bytes - 64).contains(&reader.footer_offset()), "before the trailer");
    let report = reader.verify(VerifyOptions::new().deep(true)).unwrap();
    let others = report.findings.iter().filter(|damage| damage.error.rule() != Some("R-7.8"));
    assert_eq!(others.count(), 0, "besides being unfinished: {:?}", report.findings);
    let mut cursor = reader.column("x").unwrap().cursor();
    for i in [0, (commit + 1) * 10 - 1] {
        assert_eq!(cursor.read(i.into()).unwrap().as_slice::<u32>().unwrap(), [i]);
    }
    assert!(cursor.read(u64::from(commit + 1) * 10).is_err());
}

#[test]
fn a_file_is_opened_as_it_was_at_each_commit() {
    let on_disk = OnDisk::new(b"");
    let lengths = write(&on_disk, 3);
    let file = on_disk.bytes();
    for (commit, &bytes) in (0..).zip(&lengths) {
        for more in [0, 1, 63] {
            // the bytes of a commit that is cut off are an uncommitted tail
            let options = OpenOptions::new().commit_within(bytes + more);
            let reader = options.open_source(InMemory(file.clone())).unwrap();
            assert_eq!(reader.tail_bytes(), more.min(file.len() as u64 - bytes));
            assert_eq!(reader.sample_count(), u64::from(commit + 1) * 10);
        }
        let options = OpenOptions::new().commit_within(bytes);
        check(&options.open_source(InMemory(file.clone())).unwrap(), commit, bytes, &file);
        check(&options.open(on_disk.path()).unwrap(), commit, bytes, &file);
        #[cfg(feature = "mmap")]
        // SAFETY: the file is this test's own.
        check(&unsafe { options.map_file(on_disk.path()) }.unwrap(), commit, bytes, &file);
    }
    let whole = OpenOptions::new().commit_within(u64::MAX).open(on_disk.path()).unwrap();
    assert_eq!((whole.sample_count(), whole.file_bytes()), (30, file.len() as u64));
    let error = OpenOptions::new().commit_within(lengths[0] - 1).open(on_disk.path()).err().unwrap();
    assert_eq!(error.path(), Some(on_disk.path().as_path()));
}
