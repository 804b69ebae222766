//! Tests that the first of several damages is named, whatever order bytes arrive in.

use crate::stages::raw_chunks;
use crate::support::positional::Positional;
use crate::support::reversed::Reversed;
use tensilo::source::InMemory;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{ColumnBuffer, Error, OpenOptions, Reader};

/// Opens a file from sources of all kinds.
fn readers(file: &[u8]) -> [Reader; 4] {
    let file = || file.to_vec();
    [
        OpenOptions::new().open_source(InMemory(file())),
        OpenOptions::new().open_source(Positional(file())),
        OpenOptions::new().open_source(Reversed { file: file(), fragment_bytes: 1000, gap_bytes: 0, max_in_flight: 2 }),
        OpenOptions::new().open_source(Reversed {
            file: file(),
            fragment_bytes: usize::MAX,
            gap_bytes: 1 << 20,
            max_in_flight: 100,
        }),
    ]
    .map(tensilo::Result::unwrap)
}

/// Returns the errors of reading samples of a file, by cursor and by plan.
fn errors_of(readers: &[Reader]) -> Vec<Error> {
    let indices: Vec<u64> = (0..640_u32).rev().step_by(9).map(u64::from).collect();
    let of_reader = |reader: &Reader| {
        let column = reader.column("x").unwrap();
        let mut out = [ColumnBuffer::new()];
        let by_cursor = column.cursor().gather_into(&indices, &mut out[0]).unwrap_err();
        let (mut plan, mut fetched) = (ReadPlan::new(), FetchedBytes::new());
        let planned = plan.select(&[column], &indices).and_then(|()| plan.fetch(&mut fetched));
        let by_plan = planned.and_then(|()| Decoder::new().decode(&plan, &fetched, &mut out)).unwrap_err();
        [by_cursor, by_plan]
    };
    readers.iter().flat_map(of_reader).collect()
}

/// Flips a bit of each of these bytes.
fn damaged(mut file: Vec<u8>, bytes: &[usize]) -> Vec<u8> {
    bytes.iter().for_each(|&at| file[at] ^= 4);
    file
}

/// Returns where the bodies of three chunks start: of samples 198, 324 and 513, which are all read.
fn three_chunks(file: &[u8]) -> [usize; 3] {
    let column = Reader::from_bytes(file.to_vec()).unwrap().column("x").unwrap();
    [198, 324, 513].map(|i| column.chunk_of(i).unwrap().file_range.start as usize)
}

/// Whatever arrives first, the error is the one that reading in order would meet first.
#[test]
fn the_first_of_several_damaged_samples_is_named() {
    let file = raw_chunks(640, 8 << 10);
    let bytes = three_chunks(&file).map(|start| start + 77);
    let errors = errors_of(&readers(&damaged(file, &bytes)));
    let facts = |error: &Error| (error.rule(), error.column().map(str::to_owned), error.to_string());
    assert!(errors.iter().all(|error| facts(error) == facts(&errors[0])), "{errors:?}");
    assert_eq!((errors[0].rule(), errors[0].column()), (Some("R-2.6"), Some("x")));
}

#[test]
fn the_first_of_several_damaged_chunks_in_blocks_is_named() {
    let file = raw_chunks(640, 64 << 10);
    let damaged_at = |at: usize| damaged(file.clone(), &three_chunks(&file).map(|start| start + at));
    let of_block_indexes = errors_of(&readers(&damaged_at(77)));
    let of_blocks = errors_of(&readers(&damaged_at(128 + 77)));
    for error in [of_block_indexes, of_blocks].iter().flatten() {
        let samples = error.samples().unwrap();
        assert!(192 <= samples.start && samples.end <= 256, "{error}");
        let is_checksum = [Some("R-2.6"), Some("R-5.15"), Some("R-5.16")].contains(&error.rule());
        assert_eq!((is_checksum, error.column()), (true, Some("x")), "{error}");
    }
}
