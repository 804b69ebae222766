//! Lost samples, and the policies for reading around them.

use super::{numbers, salvage_file};
use crate::common::config;
use crate::common::damage::chunks;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tensilo::salvage::{LostSamples, OnLoss};
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};

/// Damages the chunks of the samples in `lost`, in a file of one column and one sample per chunk;
/// returns the losses.
fn lost_samples(sample_count: u64, lost: &BTreeSet<u64>) -> LostSamples {
    let mut file = numbers(sample_count, u64::MAX, 0);
    let locations = chunks(&file);
    lost.iter().for_each(|&i| file[locations[i as usize].bytes.end - 1] ^= 1);
    let salvaged = salvage_file(&file);
    salvaged.losses.of(&["x"]).expect("a column")
}

proptest! {
    #![proptest_config(config(64))]

    /// Compares losses with sets of samples.
    #[test]
    fn losses_and_policies_agree_with_a_set_of_lost_samples(
        sample_count in 1..60_u64,
        flips in prop::collection::vec(0..60_u64, 0..60),
        requested in prop::collection::vec(0..60_u64, 0..40),
    ) {
        let lost: BTreeSet<u64> = flips.into_iter().filter(|&i| i < sample_count).collect();
        let intact: Vec<u64> = (0..sample_count).filter(|i| !lost.contains(i)).collect();
        let requested: Vec<u64> = requested.into_iter().filter(|&i| i < sample_count).collect();
        let found = lost_samples(sample_count, &lost);
        prop_assert_eq!(found.ranges().iter().flat_map(Clone::clone).collect::<BTreeSet<_>>(), lost.clone());
        prop_assert!(found.ranges().windows(2).all(|pair| pair[0].end < pair[1].start));
        prop_assert_eq!((found.count(), found.intact_count()), (lost.len() as u64, intact.len() as u64));
        for i in 0..=sample_count {
            prop_assert_eq!(found.intact_before(i), intact.iter().filter(|&&left| left < i).count() as u64);
            prop_assert_eq!(found.touches(&(i..i + 3)), (i..i + 3).any(|i| lost.contains(&i)));
            prop_assert!(!found.touches(&(i..i)));
        }
        for n in 0..=intact.len() {
            prop_assert_eq!(found.intact(n as u64), intact.get(n).copied());
        }
        let mut out = vec![7];
        let first_lost = requested.iter().find(|i| lost.contains(i));
        match found.resolve(&requested, OnLoss::Error, &mut out) {
            Ok(()) => prop_assert!(first_lost.is_none() && out == requested),
            Err(error) => {
                prop_assert!(error.samples().is_some_and(|samples| samples.contains(first_lost.expect("a lost one"))));
                prop_assert_eq!(&out, &[7]);
            }
        }
        found.resolve(&requested, OnLoss::Skip, &mut out).expect("skipping never fails");
        prop_assert_eq!(&out, &requested.iter().copied().filter(|i| !lost.contains(i)).collect::<Vec<_>>());
        let substituted = found.resolve(&requested, OnLoss::Substitute, &mut out);
        prop_assert_eq!(substituted.is_ok(), first_lost.is_none() || !intact.is_empty());
        if substituted.is_ok() {
            prop_assert_eq!(out.len(), requested.len());
            for (&i, &read) in requested.iter().zip(&out) {
                let is_right = if lost.contains(&i) { intact.contains(&read) } else { read == i };
                prop_assert!(is_right, "{} for {}", read, i);
            }
        }
    }
}

#[test]
fn a_substitute_is_the_same_in_every_release() {
    let lost = lost_samples(1000, &(100..200).collect());
    let read: Vec<_> = (98..106).map(|i| lost.substitute(i).expect("some are left")).collect();
    assert_eq!(read, [98, 99, 324, 811, 700, 628, 446, 231]);
}

#[test]
fn losses_of_several_columns_add_up() {
    let names = ["a", "b", "c"].map(|name| ColumnSchema::tensor(name, DType::U64, Shape::scalar()));
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(80);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new(names), &options).expect("a writer");
    (0..50_u64)
        .for_each(|i| writer.push(&[Value::tensor(&[i]), Value::tensor(&[i]), Value::tensor(&[i])]).expect("a sample"));
    let mut file = writer.into_bytes().expect("a file");
    for location in chunks(&file)
        .into_iter()
        .filter(|location| [(0, 10), (1, 20), (1, 40)].contains(&(location.column, location.samples.start)))
    {
        file[location.bytes.start + 64] ^= 0x80;
    }
    let salvaged = salvage_file(&file);
    let of = |columns: &[&str]| salvaged.losses.of(columns).map(|lost| lost.ranges().to_vec());
    assert_eq!(of(&["a"]).unwrap(), vec![10..20]);
    assert_eq!(of(&["b"]).unwrap(), [20..30, 40..50]);
    assert_eq!(of(&["a", "b"]).unwrap(), [10..30, 40..50]);
    assert_eq!(of(&["c"]).unwrap(), []);
    assert_eq!(salvaged.losses.of_all().ranges(), [10..30, 40..50]);
    assert!(!salvaged.losses.is_empty());
    assert_eq!(of(&["d"]).unwrap_err().kind(), tensilo::ErrorKind::UnknownColumn);
}
