//! Tests that any number of threads gives the same bytes and the same errors, and stops when
//! cancelled.

use super::common::{GO_ON, convert_with, mixed, write_arrow, write_old, write_parquet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tensilo::import::{ConvertOptions, convert};
use tensilo::{Error, ErrorKind, Profile, WriterOptions};
use tensilo_testing::Folder;

const THREADS: [usize; 4] = [1, 2, 3, 16];

fn on(threads: usize) -> ConvertOptions {
    let writer = WriterOptions::new().profile(Profile::Raw).chunk_bytes(2000).threads(threads);
    ConvertOptions::new().writer(writer)
}

/// Writes nine row groups, two with another shape; a small file; and an Arrow file of batches.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let (many, few, arrow) = (folder.join("a.parquet"), folder.join("b.parquet"), folder.join("c.arrow"));
    write_parquet(&many, &[mixed(850, 0)]);
    write_parquet(&few, &[mixed(7, 850)]);
    write_arrow(&arrow, &[mixed(40, 857), mixed(3, 897)]);
    vec![many, few, arrow]
}

fn bytes_on(threads: usize, inputs: &[PathBuf], folder: &Path) -> Result<Vec<u8>, Error> {
    let output = folder.join("out.tsl");
    convert_with(inputs, &output, &on(threads))?;
    let bytes = fs::read(&output).unwrap();
    fs::remove_file(output).unwrap();
    Ok(bytes)
}

#[test]
fn the_bytes_do_not_depend_on_threads() {
    let folder = Folder::new();
    let inputs = inputs(folder.root());
    let expected = bytes_on(1, &inputs, folder.root()).unwrap();
    for threads in THREADS {
        assert!(bytes_on(threads, &inputs, folder.root()).unwrap() == expected, "{threads} threads");
    }
}

#[test]
fn the_error_does_not_depend_on_threads() {
    let folder = Folder::new();
    let inputs = inputs(folder.root());
    let good = fs::read(&inputs[0]).unwrap();
    let mut refused = 0;
    for at in (100..good.len()).step_by(good.len() / 25) {
        let mut bytes = good.clone();
        bytes[at..][..8.min(good.len() - at)].fill(0xA5);
        write_old(&inputs[0], &bytes);
        let expected = bytes_on(1, &inputs, folder.root()).map_err(|error| error.to_string());
        for threads in THREADS {
            let found = bytes_on(threads, &inputs, folder.root()).map_err(|error| error.to_string());
            assert!(found == expected, "{threads} threads, byte {at}: {:?} and {:?}", found.err(), expected.err());
        }
        refused += usize::from(expected.is_err());
    }
    assert!(refused > 5, "{refused}");
    assert_eq!(folder.names(), ["a.parquet", "b.parquet", "c.arrow"]);
}

#[test]
fn a_conversion_on_several_threads_ends_when_it_is_cancelled() {
    let folder = Folder::new();
    let inputs = inputs(folder.root());
    let mut cancelled = 0_i32;
    loop {
        let mut left = cancelled;
        let output = folder.path("out.tsl");
        let result = convert(&inputs, &output, &on(2), &mut |_| {
            left -= 1;
            if left < 0 { ControlFlow::Break(()) } else { GO_ON }
        });
        let Err(error) = result else { break };
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(folder.names(), ["a.parquet", "b.parquet", "c.arrow"]);
        cancelled += 1;
    }
    assert!(cancelled > 10, "{cancelled}");
}
