//! Responses that are late, wrong or missing.

use crate::common::{Hosted, file, quick, random_bytes, sample};
use crate::reads::read_ranges;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tensilo::source::Source;
use tensilo::{ErrorKind as FileErrorKind, OpenOptions};
use tensilo_testing::{HttpFault, Random, mix};

/// Every fault that a server can have.
const FAULTS: [HttpFault; 9] = [
    HttpFault::Status(500),
    HttpFault::Status(503),
    HttpFault::Reset,
    HttpFault::Cut(10),
    HttpFault::Short(1),
    HttpFault::Stall(400),
    HttpFault::Whole,
    HttpFault::Shifted(1),
    HttpFault::Late(50),
];

#[test]
fn transient_faults_are_retried() {
    let passes = [0, 1, 2, 3, 4, 5, 8].map(|fault| FAULTS[fault]);
    for fault in passes {
        let hosted = Hosted::new(random_bytes(300_000), quick());
        let file = hosted.storage.open(&hosted.address).unwrap();
        let count = AtomicU64::new(0);
        hosted.server.set_faults(move |_| (count.fetch_add(1, Ordering::Relaxed) == 0).then_some(fault));
        let range = 100_000..200_000;
        assert_eq!(read_ranges(&file, std::slice::from_ref(&range))[0], hosted.bytes[100_000..200_000], "{fault:?}");
    }
}

#[test]
fn permanent_faults_are_errors() {
    for fault in &FAULTS[..8] {
        let hosted = Hosted::new(random_bytes(300_000), quick());
        let file = hosted.storage.open(&hosted.address).unwrap();
        hosted.server.set_faults(|_| Some(*fault));
        let error = file.read_exact_at(100_000, &mut [0; 1000]).unwrap_err();
        assert!(!matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof), "{fault:?}: {error}");
    }
}

#[test]
fn a_replaced_object_is_an_error_and_never_a_mixture() {
    let hosted = Hosted::new(random_bytes(300_000), quick());
    let file = hosted.storage.open(&hosted.address).unwrap();
    hosted.server.put("/data/x.tsl", &vec![0; 300_000]);
    let mut out = vec![0; 1000];
    let error = file.read_exact_at(100_000, &mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StaleNetworkFileHandle);
    assert!(error.to_string().contains("was replaced"), "{error}");
    file.read_exact_at(100, &mut out).unwrap();
    assert_eq!(out, hosted.bytes[100..1100], "cached bytes are of the version that was opened");
    let again = hosted.storage.open(&hosted.address).unwrap();
    again.read_exact_at(100, &mut out).unwrap();
    assert_eq!(out, [0; 1000]);
}

#[test]
fn a_replaced_object_is_not_reported_as_damage() {
    let hosted = Hosted::new(file(50_000), quick());
    let reader = OpenOptions::new().open_source(hosted.storage.open(&hosted.address).unwrap()).unwrap();
    let mut cursor = reader.column("x").unwrap().cursor();
    hosted.server.put("/data/x.tsl", &file(50_001));
    let error = cursor.read(25_000).unwrap_err();
    assert_eq!(error.kind(), FileErrorKind::Io, "{error}");
    assert!(error.to_string().contains("was replaced"), "{error}");
}

#[test]
fn random_faults_give_right_samples_or_errors() {
    let (mut right, mut errors) = (0, 0);
    for seed in 0..20 {
        let hosted = Hosted::new(file(2000), quick().retries(1, Duration::from_secs(5)));
        let count = AtomicU64::new(0);
        hosted.server.set_faults(move |_| {
            let mut random = Random(mix(seed, count.fetch_add(1, Ordering::Relaxed)));
            random.one_in(3).then(|| random.pick(&FAULTS))
        });
        for number in [0, 999, 1999, 500] {
            let read = || -> tensilo::Result<Vec<i32>> {
                let file = hosted.storage.open(&hosted.address).map_err(std::io::Error::other);
                let reader =
                    OpenOptions::new().open_source(file.map_err(|error| tensilo::Error::io("opening", error))?)?;
                let mut cursor = reader.column("x")?.cursor();
                Ok(cursor.read(number)?.as_slice::<i32>()?.to_vec())
            };
            match read() {
                Ok(found) => {
                    assert_eq!(found, sample(number as u32));
                    right += 1;
                }
                Err(error) => {
                    assert_ne!(error.kind(), FileErrorKind::Corrupt, "{error}");
                    errors += 1;
                }
            }
        }
    }
    assert!(right > 20 && errors > 0, "{right} right, {errors} errors");
}
