//! What is pushed is read back, from memory and by position.

use super::check::check_file;
use super::model::{Entry, Plan, arbitrary_plan, push_all};
use crate::common::config;
use crate::common::plan::profiles;
use crate::support::intact::assert_intact;
use crate::support::positional::Positional;
use crate::support::reversed::Reversed;
use proptest::prelude::*;
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::{OpenOptions, Reader, Schema, Verification, Writer, WriterOptions};

/// Checks a file that is read from this source.
fn check_source(source: impl Source + 'static, verification: Verification, columns: &[(&Plan, &[Entry])]) {
    let reader = OpenOptions::new().verification(verification).open_source(source).unwrap();
    check_file(&reader, columns);
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn lists_are_read_as_they_were_pushed(
        plan in arbitrary_plan(),
        profile in prop::sample::select(profiles()),
        chunk_bytes in prop::sample::select(vec![1, 100, 1 << 16]),
        batch in 1..50_usize,
        commit_after in 0..80_usize,
        mode in 0..3_usize,
    ) {
        let samples = plan.entries();
        let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
        let schema = Schema::new([plan.schema("x")]);
        let mut writer = Writer::new(Stream(Vec::new()), schema.clone(), &options).unwrap();
        let (first, second) = samples.split_at(commit_after.min(samples.len()));
        push_all(&mut writer, &[(&plan, first)], batch);
        writer.commit().unwrap();
        push_all(&mut writer, &[(&plan, second)], batch);
        let file = writer.into_bytes().unwrap();
        assert_intact(&InMemory(&file));
        let reader = Reader::from_bytes(file.clone()).unwrap();
        prop_assert_eq!(reader.schema(), &schema);
        let columns = [(&plan, samples.as_slice())];
        let verification = [Verification::FirstTouch, Verification::Always, Verification::Never][mode];
        check_source(InMemory(file.clone()), verification, &columns);
        check_source(Positional(file.clone()), verification, &columns);
        for (fragment_bytes, gap_bytes) in [(50, 100), (7, 0), (1 << 20, 1 << 20)] {
            check_source(Reversed { file: file.clone(), fragment_bytes, gap_bytes, max_in_flight: 4 }, verification, &columns);
        }
    }

    #[test]
    fn columns_of_several_depths_are_read_together(
        plans in prop::collection::vec(arbitrary_plan(), 2..4),
        sample_count in 0..60_usize,
        threads in 1..3_usize,
        chunk_bytes in 50..500_usize,
    ) {
        let plans: Vec<Plan> = plans.into_iter().map(|plan| Plan { sample_count, ..plan }).collect();
        let samples: Vec<Vec<Entry>> = plans.iter().map(Plan::entries).collect();
        let columns: Vec<(&Plan, &[Entry])> = plans.iter().zip(&samples).map(|(plan, samples)| (plan, &samples[..])).collect();
        let schema = Schema::new(plans.iter().enumerate().map(|(i, plan)| plan.schema(&format!("column {i}"))));
        let options = crate::common::plan::options().chunk_bytes(chunk_bytes).threads(threads);
        let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
        push_all(&mut writer, &columns, 16);
        let file = writer.into_bytes().unwrap();
        assert_intact(&InMemory(&file));
        check_file(&Reader::from_bytes(file).unwrap(), &columns);
    }
}
