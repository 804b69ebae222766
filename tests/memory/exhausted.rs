//! Tests that running out of memory is an error and does not end the process: a process with a
//! limited address space reads small files of large samples.

use crate::support::build::{ABSENT, Build, Chunk, column};
use std::env;
use std::process::Command;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBuffer, ErrorKind, Reader, Result};

const SAMPLE: u32 = 4 << 20 << 8; // 1 GiB
const ELEMENTS: u32 = SAMPLE / 4;
const F32: u8 = 3;
const U16: u8 = 10;
const VARYING: u32 = u32::MAX;

fn file(extent: u32, chunk: &Chunk, encodings: &[(u16, u64)]) -> Vec<u8> {
    let mut build = Build::new(&[column("x", F32, false, &[extent])]);
    build.chunk(chunk);
    build.finish(0, encodings)
}

/// Byte planes: one byte, repeated.
fn planes() -> Vec<u8> {
    let mut stored = vec![0; 16];
    stored.extend([8, 0, 0, 0, 0, 0, 0, 0]);
    (0..4).for_each(|_| stored.extend([1, 0, 0, 0, 1, 0, 0, 0]));
    stored.extend([1, 2, 3, 4]);
    stored
}

/// A Zstandard frame of blocks that repeat a byte.
fn frame() -> Vec<u8> {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xC0, 7 << 3];
    frame.extend(u64::from(SAMPLE).to_le_bytes());
    let blocks = SAMPLE >> 17;
    for block in 1..=blocks {
        let header = u32::from(block == blocks) | 1 << 1 | (128 << 10) << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(1);
    }
    frame
}

/// Returns files of one sample of 1 GiB, one for each encoding that can expand that far, and
/// whether checking the file needs that much memory.
fn files() -> Vec<(&'static str, Vec<u8>, bool)> {
    let values = |encoding, stored: &[u8]| Chunk::of_values(1, (encoding, SAMPLE, stored));
    let ends = ELEMENTS.to_le_bytes();
    let ragged = Chunk::of_parts(1, [ABSENT, (0, 4, &ends), (1, SAMPLE, &[1, 2, 3, 4])]);
    vec![
        ("constant", file(ELEMENTS, &values(1, &[1, 2, 3, 4]), &[(1, 1)]), false),
        ("constant and ragged", file(VARYING, &ragged, &[(0, 0), (1, 1)]), false),
        ("zstd", file(ELEMENTS, &values(2, &[&[0xFF; 4][..], &frame()].concat()), &[(2, 1)]), true),
        ("bitshuffle-zstd", file(ELEMENTS, &values(3, &frame()), &[(3, 1)]), true),
        ("planes-zstd", file(ELEMENTS, &values(7, &planes()), &[(7, 1)]), true),
    ]
}

/// Bins of one element, whose tables have 255 dictionaries of 65,536 numbers: 50 MB.
fn large_tables() -> Vec<u8> {
    let mut tables = vec![0; 20];
    tables.extend([0, 2, 1, 1]); // low bytes, bins, classes, and the mapping
    tables.extend([7, 7, 0, 2, 128, 128]); // the bins, and the frequencies of the class
    tables.extend([1, 0, 255, 0]);
    for _ in 0..255 {
        tables.extend(u16::MAX.to_le_bytes());
        tables.extend([0xFF, 0xFF, 3].repeat(1 << 16));
    }
    let table_bytes = tables.len() as u32;
    tables[..4].copy_from_slice(&table_bytes.to_le_bytes());
    tables.resize(tables.len().next_multiple_of(16), 0);
    tables.extend([0, 0, 0, 2]); // no patches, and the state
    let mut build = Build::new(&[column("x", U16, false, &[])]);
    build.chunk(&Chunk::of_values(1, (6, 2, &tables)));
    build.finish(0, &[(6, 1)])
}

fn assert_over_limit<T>(result: Result<T>, what: &str) {
    let error = result.map(|_| ()).expect_err(what);
    assert_eq!(error.kind(), ErrorKind::OverLimit, "{what}: {error}");
    assert!(error.message().contains("bytes of memory"), "{what}: {error}");
}

/// Runs in a process that the test below starts.
#[test]
fn child() {
    if env::var_os("TENSILO_LIMITED").is_none() {
        return;
    }
    for (name, file, is_expanded) in files() {
        let reader = Reader::from_bytes(file.to_vec()).expect(name);
        let column = reader.column("x").expect(name);
        let mut buffer = ColumnBuffer::new();
        assert_over_limit(column.cursor().read(0).map(|_| ()), &format!("read, {name}"));
        assert_over_limit(column.cursor().gather_into(&[0], &mut buffer), &format!("gather_into, {name}"));
        assert_over_limit(column.cursor().range_into(0..1, &mut buffer), &format!("range_into, {name}"));
        assert_over_limit(column.explain(0), &format!("explain, {name}"));
        let report = verify(&InMemory(file.as_slice()), VerifyOptions::new().deep(true));
        if is_expanded {
            assert_over_limit(report, &format!("verify, {name}"));
        } else {
            assert!(report.expect(name).findings.is_empty(), "{name}");
        }
    }
    println!("every file was refused");
}

/// Runs a test in a process with a limited address space.
fn run_limited(test: &str) {
    let limit = format!("ulimit -v 700000; exec \"$0\" --exact {test} --nocapture --test-threads 1");
    let run =
        Command::new("sh").args(["-c", &limit]).arg(env::current_exe().unwrap()).env("TENSILO_LIMITED", "1").output();
    let run = run.unwrap();
    let (out, error) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out.contains("every file was refused"), "{}: {out}\n{error}", run.status);
}

#[test]
fn memory_that_runs_out_is_an_error_and_not_the_end_of_the_process() {
    run_limited("exhausted::child");
}

/// Runs in a process that the test below starts.
#[test]
fn child_with_more_and_more() {
    if env::var_os("TENSILO_LIMITED").is_none() {
        return;
    }
    let reader = Reader::from_bytes(large_tables()).expect("it opens");
    let column = reader.column("x").expect("a column");
    let mut taken: Vec<Vec<u8>> = Vec::with_capacity(1000);
    let allocation = || {
        let mut allocation = Vec::new();
        allocation.try_reserve_exact(4 << 20).map(|()| allocation)
    };
    taken.extend(std::iter::from_fn(|| allocation().ok()));
    let mut refused = 0;
    while let Err(error) = column.cursor().read(0).map(|_| ()) {
        assert_over_limit::<()>(Err(error), "tables");
        refused += 1;
        taken.pop().expect("all of the memory suffices");
    }
    assert!(refused > 20, "refused {refused} times");
    println!("every file was refused");
}

/// Memory may run out at any allocation, so the limit rises in steps of 4 MiB.
#[test]
fn any_amount_of_memory_is_enough_or_an_error() {
    run_limited("exhausted::child_with_more_and_more");
}

/// Without a limit the same files are read: nothing else is wrong with them.
#[test]
fn the_same_files_are_intact_with_enough_memory() {
    for (name, file, is_expanded) in files() {
        let reader = Reader::from_bytes(file.to_vec()).expect(name);
        assert_eq!(reader.column("x").unwrap().chunk(0).unwrap().unwrap().samples, 0..1);
        let report = verify(&InMemory(file.as_slice()), VerifyOptions::new().deep(!is_expanded)).expect(name);
        assert!(report.findings.is_empty(), "{name}: {:?}", report.findings);
    }
}
