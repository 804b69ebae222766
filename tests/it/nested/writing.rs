//! Tests that files of nested columns can be continued.

use super::check::check_file;
use super::model::{Entry, Plan, arbitrary_plan, push_all};
use crate::common::config;
use crate::common::plan::options;
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use proptest::prelude::*;
use std::fs;
use tensilo::sink::AtomicFile;
use tensilo::{Reader, Schema, Writer};

pub fn columns<'a>(
    plans: &'a [Plan],
    samples: &'a [Vec<Entry>],
    range: std::ops::Range<usize>,
) -> Vec<(&'a Plan, &'a [Entry])> {
    plans.iter().zip(samples).map(|(plan, samples)| (plan, &samples[range.clone()])).collect()
}

pub fn schema(plans: &[Plan]) -> Schema {
    Schema::new(plans.iter().enumerate().map(|(i, plan)| plan.schema(&format!("column {i}"))))
}

pub fn several_plans() -> impl Strategy<Value = Vec<Plan>> {
    (prop::collection::vec(arbitrary_plan(), 1..4), 0..60_usize)
        .prop_map(|(plans, sample_count)| plans.into_iter().map(|plan| Plan { sample_count, ..plan }).collect())
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn an_appended_file_has_the_samples_of_both_writers(plans in several_plans(), cut in 0..60_usize, chunk_bytes in 50..400_usize) {
        let samples: Vec<Vec<Entry>> = plans.iter().map(Plan::entries).collect();
        let count = plans[0].sample_count;
        let cut = cut.min(count);
        let file = OnDisk::absent();
        let options = options().chunk_bytes(chunk_bytes);
        let mut writer = Writer::new(AtomicFile::create(file.path(), false).unwrap(), schema(&plans), &options).unwrap();
        push_all(&mut writer, &columns(&plans, &samples, 0..cut), 16);
        writer.finish().unwrap();
        let mut writer = Writer::append(file.path(), &options).unwrap();
        push_all(&mut writer, &columns(&plans, &samples, cut..count), 16);
        writer.finish().unwrap();
        let reader = Reader::from_bytes(fs::read(file.path()).unwrap()).unwrap();
        assert_intact(reader.source());
        prop_assert_eq!(reader.commit_count(), 2);
        check_file(&reader, &columns(&plans, &samples, 0..count));
    }
}
