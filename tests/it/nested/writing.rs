//! Files of nested columns that are continued, and rewritten.

use super::check::check_file;
use super::model::{Entry, Plan, arbitrary_plan, push_all};
use crate::common::config;
use crate::common::plan::{options, profiles};
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use proptest::prelude::*;
use std::fs;
use tensilo::sink::{AtomicFile, Stream};
use tensilo::{Reader, Schema, Writer, WriterOptions};

fn columns<'a>(
    plans: &'a [Plan],
    samples: &'a [Vec<Entry>],
    range: std::ops::Range<usize>,
) -> Vec<(&'a Plan, &'a [Entry])> {
    plans.iter().zip(samples).map(|(plan, samples)| (plan, &samples[range.clone()])).collect()
}

fn schema(plans: &[Plan]) -> Schema {
    Schema::new(plans.iter().enumerate().map(|(i, plan)| plan.schema(&format!("column {i}"))))
}

fn several_plans() -> impl Strategy<Value = Vec<Plan>> {
    (prop::collection::vec(arbitrary_plan(), 1..4), 0..60_usize)
        .prop_map(|(plans, sample_count)| plans.into_iter().map(|plan| Plan { sample_count, ..plan }).collect())
}

fn written(plans: &[Plan], samples: &[Vec<Entry>], options: &WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), schema(plans), options).unwrap();
    push_all(&mut writer, &columns(plans, samples, 0..plans[0].sample_count), 32);
    writer.finish().unwrap().sink.0
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

#[cfg(feature = "import")]
proptest! {
    #![proptest_config(config(16))]

    /// The result is that of a writer with the new options.
    #[test]
    fn a_converted_file_has_the_same_lists(
        plans in several_plans(),
        profile in prop::sample::select(profiles()),
        chunk_bytes in 50..400_usize,
        chosen in 0..3_usize,
    ) {
        use std::ops::ControlFlow;
        use tensilo::facts::FileId;
        use tensilo::import::{ConvertOptions, convert};
        let samples: Vec<Vec<Entry>> = plans.iter().map(Plan::entries).collect();
        let folder = tensilo_testing::Folder::new();
        let input = folder.file("in.tsl", written(&plans, &samples, &options().chunk_bytes(100)));
        let writer = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes).file_id(FileId([7; 16]));
        let output = folder.path("out.tsl");
        let all = ConvertOptions::new().writer(writer.clone());
        convert(std::slice::from_ref(&input), &output, &all, &mut |_| ControlFlow::Continue(())).unwrap();
        prop_assert!(fs::read(&output).unwrap() == written(&plans, &samples, &writer), "other bytes");
        // one of the columns
        let chosen = chosen % plans.len();
        let output = folder.path("some.tsl");
        let some = all.columns([format!("column {chosen}")]);
        convert(std::slice::from_ref(&input), &output, &some, &mut |_| ControlFlow::Continue(())).unwrap();
        let reader = Reader::from_bytes(fs::read(&output).unwrap()).unwrap();
        assert_intact(reader.source());
        check_file(&reader, &columns(&plans[chosen..chosen + 1], &samples[chosen..chosen + 1], 0..plans[0].sample_count));
    }
}
