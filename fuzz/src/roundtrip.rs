//! A reader returns what was written, for any schema and samples.
//!
//! The bytes of a file depend only on the samples and the options: pushing other numbers of samples
//! at a time, or encoding on more threads, must give the same file. It must also verify.

use super::case::{self, Case};
use arbitrary::Unstructured;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBuffer, Reader};

pub fn run(input: &[u8]) {
    case::run(input, check);
}

fn check(case: &Case, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let file = case.write(Stream(Vec::new()), &case.options, usize::MAX).unwrap().0;
    // one of them or none: each takes as long as everything else
    match case.dice / 64 % 4 {
        0 => check_again(case, &file, u)?,
        1 => {
            let report = verify(&InMemory(&file), VerifyOptions::new().deep(true)).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        }
        _ => {}
    }
    check_read(case, &file);
    Ok(())
}

fn check_again(case: &Case, file: &[u8], u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let step = u.int_in_range(1..=20)?;
    let threads = if (case.dice / 256).is_multiple_of(64) { 2 } else { 1 }; // expensive
    let again = case.write(Stream(Vec::new()), &case.options.clone().threads(threads), step).unwrap().0;
    assert!(file == again, "the bytes differ if {step} samples are pushed at a time");
    Ok(())
}

fn check_read(case: &Case, file: &[u8]) {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    assert_eq!((reader.commit_count() as usize, reader.is_finished()), (case.commits.len() + 1, true));
    let mut buffer = ColumnBuffer::new();
    for (column, expected) in reader.columns().zip(&case.columns) {
        assert_eq!(column.schema(), &expected.schema);
        column.cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
        expected.assert_holds(&buffer, 0..case.sample_count);
    }
}
