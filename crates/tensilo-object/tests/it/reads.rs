//! Reads of an object.

use crate::common::{Hosted, file, quick, random_bytes, sample};
use std::io::ErrorKind;
use std::ops::Range;
use tensilo::OpenOptions;
use tensilo::source::{CoalesceConfig, Source};
use tensilo_object::{Address, ObjectError, ObjectFile, ObjectOptions};
use tensilo_testing::{HttpFault, Random};

/// Reads ranges, and returns the bytes of each.
pub fn read_ranges(file: &ObjectFile, ranges: &[Range<u64>]) -> Vec<Vec<u8>> {
    let lengths = ranges.iter().map(|range| (range.end - range.start) as usize);
    let mut bytes = vec![0; lengths.clone().sum()];
    file.read_ranges(ranges, &mut bytes).unwrap();
    let mut rest = &*bytes;
    lengths.map(|length| rest.split_off(..length).unwrap().to_vec()).collect()
}

/// Returns a config for coalescing with this gap, length and number of requests.
pub fn coalesce(gap_bytes: u64, max_request_bytes: u64, max_in_flight: usize) -> CoalesceConfig {
    let mut config = CoalesceConfig::OBJECT_STORE;
    (config.gap_bytes, config.max_request_bytes, config.max_in_flight) = (gap_bytes, max_request_bytes, max_in_flight);
    config
}

#[test]
fn any_ranges_are_read_right() {
    for length in [0, 1, 1000, 65_535, 65_536, 65_537, 131_072, 1_000_000] {
        let hosted = Hosted::new(random_bytes(length), quick().coalesce(coalesce(65_536, 100_000, 3)));
        let file = hosted.storage.open(&hosted.address).unwrap();
        assert_eq!(file.byte_count(), length as u64);
        let mut random = Random(length as u64);
        for _ in 0..20 {
            let mut range = || {
                let start = random.below(length as u64);
                start..start + random.below(length as u64 - start) + 1
            };
            if length == 0 {
                break;
            }
            let ranges: Vec<_> = (0..4).map(|_| range()).collect();
            let of = |range: &Range<u64>| &hosted.bytes[range.start as usize..range.end as usize];
            for (found, range) in read_ranges(&file, &ranges).iter().zip(&ranges) {
                assert_eq!(found, of(range));
            }
            let mut out = vec![0; (ranges[0].end - ranges[0].start) as usize];
            file.read_exact_at(ranges[0].start, &mut out).unwrap();
            assert_eq!(out, of(&ranges[0]));
        }
        let behind = file.read_exact_at(length as u64, &mut [0]).unwrap_err();
        assert_eq!(behind.kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn samples_of_a_file_are_read() {
    let hosted = Hosted::new(file(5000), quick());
    let reader = OpenOptions::new().open_source(hosted.storage.open(&hosted.address).unwrap()).unwrap();
    let mut cursor = reader.column("x").unwrap().cursor();
    for number in [0, 17, 4999, 2500] {
        assert_eq!(cursor.read(number).unwrap().as_slice::<i32>().unwrap(), sample(number as u32));
    }
}

#[test]
fn opening_is_two_requests_at_the_same_time() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    assert_eq!(hosted.take_ranges(), ["-65536", "0-65535"]);
    file.read_exact_at(100, &mut [0; 1000]).unwrap();
    file.read_exact_at(999_000, &mut [0; 1000]).unwrap();
    assert_eq!(hosted.take_ranges(), [""; 0], "both ends are cached");
}

#[test]
fn small_structures_are_read_in_lines() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.take_ranges();
    // a third sequential read would cause read-ahead
    for offset in [259_000, 200_000] {
        file.read_exact_at(offset, &mut [0; 64]).unwrap();
    }
    assert_eq!(hosted.take_ranges(), ["196608-262143"]);
}

#[test]
fn long_ranges_are_several_requests() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick().coalesce(coalesce(65_536, 200_000, 16)));
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.take_ranges();
    read_ranges(&file, &[100_000..600_000]);
    assert_eq!(hosted.take_ranges(), ["100000-299999", "300000-499999", "500000-599999"]);
}

#[test]
fn ranges_with_small_gaps_are_one_request() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick().coalesce(coalesce(1000, 8 << 20, 16)));
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.take_ranges();
    let ranges = [300_000..300_100, 100_000..100_100, 100_500..100_600, 101_600..101_700, 102_701..102_800];
    for (found, range) in read_ranges(&file, &ranges).iter().zip(ranges) {
        assert_eq!(found, &hosted.bytes[range.start as usize..range.end as usize]);
    }
    assert_eq!(hosted.take_ranges(), ["100000-101699", "102701-102799", "300000-300099"]);
}

#[test]
fn a_range_that_cannot_be_read_is_named_once_those_before_it_are_read() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick().coalesce(coalesce(0, 65_536, 4)));
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted
        .server
        .set_faults(|request| (request.range.as_deref() == Some("500000-500099")).then_some(HttpFault::Status(404)));
    let ranges = [100_000..300_000, 500_000..500_100, 700_000..700_100];
    let mut out = vec![0; 200_200];
    let error = file.read_ranges(&ranges, &mut out).unwrap_err();
    assert_eq!((error.range, error.error.kind()), (1, ErrorKind::NotFound));
    assert_eq!(out[..200_000], hosted.bytes[100_000..300_000]);
}

#[test]
fn threads_read_at_the_same_time() {
    let hosted = Hosted::new(random_bytes(1_000_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (file, bytes) = (&file, &hosted.bytes);
            scope.spawn(move || {
                let mut random = Random(thread);
                for _ in 0..50 {
                    let start = random.below(990_000);
                    let mut out = [0; 5000];
                    file.read_exact_at(start, &mut out).unwrap();
                    assert_eq!(out, bytes[start as usize..][..5000]);
                }
            });
        }
    });
}

#[test]
fn an_object_that_is_not_there_is_an_error() {
    let hosted = Hosted::new(random_bytes(10), ObjectOptions::new());
    let absent = Address::parse(&hosted.server.url("/data/y.tsl")).unwrap();
    let error = hosted.storage.open(&absent).unwrap_err();
    assert!(matches!(&error, ObjectError::Io { error, .. } if error.kind() == ErrorKind::NotFound));
    let text = error.to_string();
    assert!(text.contains("/data/y.tsl: opening: the object does not exist"), "{text}");
    let other = Address::parse("s3://bucket/x").unwrap();
    assert!(hosted.storage.open(&other).unwrap_err().to_string().contains("the address is not in the store http://"));
}
