//! Writes to a sink that fails, is interrupted, or takes a few bytes at a time.
//!
//! If the sink fails, the writer must return an error, the bytes so far must be the start of the
//! intact file, and all samples of published commits must be readable. If it does not fail, short
//! and interrupted writes must not change a byte.

use super::case::{self, Case, rarely};
use super::faulty_sink::FaultySink;
use arbitrary::Unstructured;
use std::io::ErrorKind;
use tensilo::sink::Stream;
use tensilo::{ColumnBuffer, Reader};

pub fn run(input: &[u8]) {
    case::run(input, check);
}

fn check(case: &Case, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let expected = case.write(Stream(Vec::new()), &case.options, usize::MAX).unwrap().0;
    let kinds = [ErrorKind::StorageFull, ErrorKind::WriteZero, ErrorKind::BrokenPipe, ErrorKind::Other];
    let mut sink = FaultySink::new();
    sink.accepted = vec![u.int_in_range(1..=200)?];
    sink.interrupted_each = u.int_in_range(2..=20)?;
    sink.calls_left = if rarely(u, 4)? { usize::MAX } else { u.int_in_range(0..=300)? };
    sink.error = *u.choose(&kinds)?;
    let step = u.int_in_range(1..=20)?;
    let result = case.write(&mut sink, &case.options, step).map(|_| ());
    assert_eq!(result.is_err(), sink.has_failed, "{result:?}");
    if result.is_ok() {
        assert!(sink.bytes == expected, "the bytes differ from the file without faults");
    } else {
        assert!(expected.starts_with(&sink.bytes), "the bytes before the fault are not the start of the intact file");
    }
    if let Some(&published) = sink.published.last() {
        check_committed(case, &sink.bytes[..published], sink.published.len());
        check_committed(case, &sink.bytes, sink.published.len());
    } else if let Ok(reader) = Reader::from_bytes(sink.bytes.clone()) {
        // the first commit was written, but not made durable
        assert_eq!(reader.commit_count(), 1);
    }
    Ok(())
}

/// Checks that the file has these commits, or one more that was written but not published.
fn check_committed(case: &Case, file: &[u8], commits: usize) {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let found = reader.commit_count() as usize;
    assert!(found == commits || found == commits + 1, "found {found} commits, {commits} were published");
    let samples = case.commits.get(found - 1).copied().unwrap_or(case.sample_count);
    let samples = if case.columns.is_empty() { 0 } else { samples };
    assert_eq!(reader.sample_count(), samples as u64);
    let mut buffer = ColumnBuffer::new();
    for (column, expected) in reader.columns().zip(&case.columns) {
        column.cursor().range_into(0..samples as u64, &mut buffer).unwrap();
        expected.assert_holds(&buffer, 0..samples);
    }
}
