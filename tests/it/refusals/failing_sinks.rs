//! Tests of sinks that fail.

use super::{refused, schema};
use crate::common::Table;
use crate::common::data::arbitrary_table;
use crate::common::plan::{Step, WritePlan, arbitrary_plan, push_all, write};
use crate::support::faulty_sink::FaultySink;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::io::ErrorKind as Io;
use tensilo::ErrorKind::BadArgument;
use tensilo::sink::Stream;
use tensilo::{Error, ErrorKind, Profile, Reader, Writer, WriterOptions};

fn small_case(runner: &mut TestRunner) -> (Table, WritePlan) {
    let strategy = (arbitrary_table(30), arbitrary_plan());
    let (table, plan) = strategy.new_tree(runner).expect("a table").current();
    let half = table.sample_count / 2;
    let steps = vec![Step::OneByOne(half / 2), Step::Commit, Step::Batch(half), Step::Commit];
    (table, WritePlan { steps, chunk_bytes: plan.chunk_bytes.max(200), ..plan })
}

/// Checks that the bytes that a sink took before it failed are the last commit or nothing.
fn check_remains(sink: &FaultySink, table: &Table, plan: &WritePlan) {
    let commits = plan.commits(table.sample_count);
    let reader = match Reader::from_bytes(sink.bytes.clone()) {
        Ok(reader) => reader,
        Err(error) => {
            assert!(sink.published.is_empty(), "a published commit is lost: {error}");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            return;
        }
    };
    // a trailer that was written is valid, even if the failure came before its commit was reported
    let count = reader.commit_count() as usize;
    assert!(count == sink.published.len() || count == sink.published.len() + 1);
    let samples = commits.get(count - 1).copied().unwrap_or(table.sample_count);
    assert_eq!(reader.is_finished(), count > commits.len());
    let head = table.head(samples);
    let as_written = WritePlan { steps: plan.steps[..plan.steps.len().min(2 * count - 1)].to_vec(), ..plan.clone() };
    crate::common::check::check(&reader, &head, &as_written, 3);
}

#[test]
fn a_sink_that_fails_at_any_call_leaves_the_last_commit_and_a_writer_that_refuses_everything() {
    let runner = &mut TestRunner::deterministic();
    let mut failures = 0;
    for _ in 0..12 {
        let (table, plan) = small_case(runner);
        for call in 0.. {
            let error = [Io::StorageFull, Io::BrokenPipe, Io::WriteZero, Io::Other][call % 4];
            let mut sink = FaultySink::failing_at(call, error);
            if write_until_failure(&mut sink, &table, &plan) {
                assert!(sink.bytes == write(&table, &plan));
                break;
            }
            failures += 1;
            assert!(sink.has_failed, "the error does not come from the sink");
            check_remains(&sink, &table, &plan);
        }
    }
    assert!(failures > 500, "only {failures} calls failed");
}

/// Writes a file; returns whether the sink took all of it.
fn write_until_failure(sink: &mut FaultySink, table: &Table, plan: &WritePlan) -> bool {
    let kind = sink.error;
    let check_io = |error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.map(std::io::Error::kind), Some(kind), "{error}");
        assert!(error.offset().is_some(), "{error}");
    };
    let mut writer = match Writer::new(sink, table.schema.clone(), &plan.options()) {
        Ok(writer) => writer,
        Err(error) => {
            check_io(&error);
            return false;
        }
    };
    if let Err(error) = push_all(&mut writer, table, plan) {
        check_io(&error);
        refused(writer.commit(), BadArgument, None);
        assert!(crate::common::plan::push_batch(&mut writer, table, 0..0).is_err());
        if table.sample_count > 0 {
            refused(crate::common::plan::push_one(&mut writer, table, 0), BadArgument, None);
        }
        refused(writer.finish(), BadArgument, None);
        return false;
    }
    writer.finish().inspect_err(check_io).is_ok()
}

/// A sink that takes no bytes and returns no error.
#[test]
fn a_sink_that_takes_no_bytes_is_an_error_and_not_an_endless_loop() {
    let mut full = [0_u8; 100];
    let result = Writer::new(Stream(full.as_mut_slice()), schema(), &WriterOptions::new().profile(Profile::Raw));
    let error = result.map(|_| ()).expect_err("space for 100 bytes");
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.offset(), Some(100));
}
