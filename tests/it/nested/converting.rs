//! Tests that files of nested columns can be rewritten with other options.

use super::check::check_file;
use super::model::{Entry, Plan, push_all};
use super::writing::{columns, schema, several_plans};
use crate::common::config;
use crate::common::plan::{options, profiles};
use crate::support::intact::assert_intact;
use proptest::prelude::*;
use std::fs;
use std::ops::ControlFlow;
use tensilo::facts::FileId;
use tensilo::import::{ConvertOptions, convert};
use tensilo::sink::Stream;
use tensilo::{Reader, Writer, WriterOptions};

fn written(plans: &[Plan], samples: &[Vec<Entry>], options: &WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Stream(Vec::new()), schema(plans), options).unwrap();
    push_all(&mut writer, &columns(plans, samples, 0..plans[0].sample_count), 32);
    writer.into_bytes().unwrap()
}

proptest! {
    #![proptest_config(config(16))]

    /// The result equals what a writer with the new options writes.
    #[test]
    fn a_converted_file_has_the_same_lists(
        plans in several_plans(),
        profile in prop::sample::select(profiles()),
        chunk_bytes in 50..400_usize,
        chosen in 0..3_usize,
    ) {
        let samples: Vec<Vec<Entry>> = plans.iter().map(Plan::entries).collect();
        let folder = tensilo_testing::Folder::new();
        let input = folder.file("in.tsl", written(&plans, &samples, &options().chunk_bytes(100)));
        let writer = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes).file_id(FileId([7; 12]));
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
