//! Facts that salvage states about a file, and its progress.

use super::{numbers, salvage_file};
use crate::common::damage::{chunks, regions};
use crate::common::files::FilePlan;
use std::ops::ControlFlow;
use tensilo::Reader;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::InMemory;
use tensilo_testing::Random;

#[test]
fn a_file_that_is_whole_has_lost_nothing_and_its_end_is_known() {
    let (table, file) = FilePlan::arbitrary(&mut Random(1)).write("");
    let salvaged = salvage(InMemory(file.to_vec()), SalvageOptions::new().deep(true)).expect("a whole file");
    assert!(salvaged.losses.is_empty() && salvaged.file_header_is_intact && salvaged.end_is_known);
    assert_eq!(salvaged.committed_samples, Some(table.sample_count as u64));
    let reader = Reader::from_bytes(file.to_vec()).expect("a whole file");
    for (column, salvaged) in reader.columns().zip(salvaged.reader.columns()) {
        assert_eq!(column.facts(), salvaged.facts());
    }
    let cut = &file[..file.len() - 64];
    let salvaged = salvage_file(cut);
    assert!(!salvaged.end_is_known && salvaged.losses.is_empty());
}

/// The majority of intact chunks decides which file it is, not the header or the many footers
/// behind.
#[test]
fn a_file_that_was_partly_overwritten_by_another_is_still_itself() {
    let (file, other) = (numbers(100, u64::MAX, 1), numbers(90, 1, 2));
    let header = regions(&file, &[b"\x89TSL"])[0].clone();
    let mut mixed = other.clone();
    mixed[header.end..file.len()].copy_from_slice(&file[header.end..]);
    let salvaged = salvage_file(&mixed);
    assert_eq!(salvaged.reader.file_id(), Reader::from_bytes(file.to_vec()).expect("a file").file_id());
    assert!(salvaged.losses.is_empty() && !salvaged.file_header_is_intact && salvaged.end_is_known);
    assert_eq!(salvaged.reader.sample_count(), 100);
    mixed[..header.end].fill(0);
    let salvaged = salvage_file(&mixed);
    assert_eq!((salvaged.losses.is_empty(), salvaged.reader.sample_count()), (true, 100));
}

#[test]
fn a_page_of_the_index_counts_samples_that_nothing_else_counts() {
    let mut file = numbers(50, u64::MAX, 1);
    regions(&file, &[b"TSLF", b"TSLE"]).into_iter().for_each(|location| file[location].fill(0));
    let chunks = regions(&file, &[b"TSLC"]);
    file[chunks[49].clone()].fill(0);
    let of = |file: &[u8]| {
        let salvaged = salvage_file(file);
        assert!(!salvaged.end_is_known && salvaged.committed_samples.is_none());
        let lost = salvaged.losses.of_all();
        (salvaged.reader.sample_count(), lost.ranges().iter().map(|range| (range.start, range.end)).collect::<Vec<_>>())
    };
    assert_eq!(of(&file), (50, vec![(49, 50)]));
    regions(&file, &[b"TSLI"]).into_iter().for_each(|location| file[location].fill(0));
    assert_eq!(of(&file), (49, vec![]));
}

#[test]
fn the_end_of_a_file_that_was_not_finished_is_not_known() {
    let file = numbers(10, 5, 1);
    let trailers = regions(&file, &[b"TSLE"]);
    for (trailer, expected) in [(0, 5), (1, 10)] {
        let committed = &file[..trailers[trailer].end];
        let salvaged = salvage_file(committed);
        assert_eq!((salvaged.reader.sample_count(), salvaged.committed_samples), (expected, Some(expected)));
        assert!(salvaged.losses.is_empty() && !salvaged.end_is_known && !salvaged.reader.is_finished());
    }
    assert!(salvage_file(&file).end_is_known);
}

#[test]
fn progress_ends_when_all_bytes_have_been_read() {
    let (_, file) = FilePlan::arbitrary(&mut Random(1)).write("");
    let bodies: u64 = chunks(&file).iter().map(|chunk| chunk.bytes.len() as u64 - 64).sum();
    for decode in [false, true] {
        let mut calls = Vec::new();
        let mut progress = |done, total| {
            calls.push((done, total));
            ControlFlow::Continue(())
        };
        let options = SalvageOptions::new().deep(decode).progress(&mut progress);
        salvage(InMemory(file.to_vec()), options).expect("a whole file");
        assert!(calls.len() > chunks(&file).len() && calls.is_sorted(), "{calls:?}");
        let bytes = file.len() as u64;
        let &(done, total) = calls.last().expect("calls");
        assert_eq!(done, total, "{calls:?}");
        assert!(if decode { total >= bytes + bodies } else { total == bytes }, "{calls:?}");
        // the first pass goes through the file
        assert!(
            calls.iter().any(|&(done, _)| 0 < done && done < bytes) && calls.contains(&(bytes, bytes)),
            "{calls:?}"
        );
    }
}
