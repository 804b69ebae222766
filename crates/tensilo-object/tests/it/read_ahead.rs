//! Prefetched ranges.

use crate::common::{Hosted, file, quick, random_bytes};
use crate::reads::read_ranges;
use std::slice;
use std::time::{Duration, Instant};
use tensilo::OpenOptions;
use tensilo::source::Source;
use tensilo::verify::VerifyOptions;
use tensilo_testing::HttpFault;

#[test]
fn what_was_prefetched_is_requested_once() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.take_ranges();
    file.prefetch(&[200_000..300_000, 250_000..400_000]);
    let found = read_ranges(&file, &[210_000..220_000, 290_000..390_000, 395_000..410_000]);
    assert_eq!(found[1], hosted.bytes[290_000..390_000]);
    assert_eq!(found[2], hosted.bytes[395_000..410_000]);
    assert_eq!(hosted.take_ranges(), ["200000-399999", "400000-409999"]);
    read_ranges(&file, &[200_000..400_000]);
    assert_eq!(hosted.take_ranges(), [""; 0]);
}

#[test]
fn prefetched_ranges_are_in_flight_at_the_same_time() {
    let hosted = Hosted::new(random_bytes(2_000_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.server.set_faults(|_| Some(HttpFault::Late(100)));
    let start = Instant::now();
    let ranges: Vec<_> = (1..16).map(|i| i * 100_000..i * 100_000 + 10_000).collect();
    file.prefetch(&ranges);
    read_ranges(&file, &ranges);
    assert!(start.elapsed() < Duration::from_millis(1000), "15 responses of 100 ms each");
}

#[test]
fn a_failed_prefetch_is_requested_again() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.server.set_faults(|_| Some(HttpFault::Status(404)));
    file.prefetch(slice::from_ref(&(200_000..300_000)));
    assert!(file.read_exact_at(210_000, &mut [0]).is_err());
    hosted.server.set_faults(|_| None);
    assert_eq!(read_ranges(&file, &[210_000..220_000, 0..5])[0], hosted.bytes[210_000..220_000]);
}

#[test]
fn the_memory_is_bounded() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick().memory_bytes(200_000));
    let file = hosted.storage.open(&hosted.address).unwrap();
    let ranges: Vec<_> = (100_000..900_000).step_by(50_000).map(|start| start..start + 50_000).collect();
    file.prefetch(&ranges);
    hosted.take_ranges();
    let whole = read_ranges(&file, &[100_000..900_000, 0..1]);
    assert_eq!(whole[0], hosted.bytes[100_000..900_000]);
    assert!(!hosted.take_ranges().is_empty(), "not all of it stays in memory");
}

#[test]
fn what_follows_is_read_ahead_by_verification() {
    let hosted = Hosted::new(file(60_000), quick());
    hosted.server.set_faults(|_| Some(HttpFault::Late(20)));
    let begun = Instant::now();
    let reader = OpenOptions::new().open_source(hosted.storage.open(&hosted.address).unwrap()).unwrap();
    assert!(reader.verify(VerifyOptions::default()).unwrap().findings.is_empty());
    let requests = hosted.server.take_requests().len();
    println!("verified {} bytes by {requests} requests in {:?}", hosted.bytes.len(), begun.elapsed());
    assert!(requests < 30, "{requests} requests");
}
