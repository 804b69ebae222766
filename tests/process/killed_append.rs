//! Tests that a file stays valid if the appending process is killed at any time, again and again:
//! it opens at the last commit that the process reported, or at the next one, and can be appended
//! to.

use super::child::{Child, report};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::{Folder, env_or};

const ELEMENTS: usize = 1_024;

/// Returns the number of kills: a few, or one for every hundred crash images of a long run.
fn rounds() -> u64 {
    (env_or("TENSILO_CRASH_IMAGES", 0) / 100).clamp(20, 500)
}

fn options() -> WriterOptions {
    WriterOptions::new().profile(Profile::Raw).discard_tail(true)
}

fn sample(i: u64) -> [u32; ELEMENTS] {
    std::array::from_fn(|element| (i as u32).wrapping_mul(2_654_435_761).wrapping_add(element as u32))
}

/// The environment variable that tells the child its file.
const FILE: &str = "TENSILO_TEST_FILE";

/// Appends forever, in the child.
fn append_until_killed(path: &str) {
    let mut writer = Writer::append(path, &options()).expect("a file that can be appended to");
    report(writer.sample_count());
    // bounded, so that a child whose parent is gone does not fill the disk
    for commit in 0..300_u64 {
        // some batches fit into the writer's buffers, others do not
        for _ in 0..[1, 40, 400][commit as usize % 3] {
            writer.push(&[Value::tensor(&sample(writer.sample_count()))]).expect("disk space");
        }
        writer.commit().expect("disk space");
        report(writer.sample_count());
    }
    std::thread::sleep(Duration::from_secs(60));
}

/// Checks the samples of a file that may have an uncommitted tail; returns the number of samples
/// and the bytes in the tail.
fn check(path: &Path) -> (u64, u64) {
    let reader = Reader::open(path).unwrap_or_else(|error| panic!("{error}"));
    let end = reader.file_bytes() - reader.tail_bytes();
    let report = verify(reader.source(), VerifyOptions::new().deep(true)).expect("a readable file");
    for damage in report.findings {
        let harmless = match damage.error.rule() {
            Some("R-2.7") => damage.file_range.start >= end,
            rule => rule == Some("R-7.8"),
        };
        assert!(harmless, "{}", damage.error);
    }
    let mut cursor = reader.column("x").expect("the column").cursor();
    for i in 0..reader.sample_count() {
        assert_eq!(cursor.read(i).expect("a sample").as_slice::<u32>().expect("u32"), sample(i));
    }
    (reader.sample_count(), reader.tail_bytes())
}

#[test]
fn an_appender_killed_at_any_time_leaves_a_commit_that_it_reported_or_a_later_one() {
    if let Ok(path) = std::env::var(FILE) {
        return append_until_killed(&path);
    }
    let child = "killed_append::an_appender_killed_at_any_time_leaves_a_commit_that_it_reported_or_a_later_one";
    let folder = Folder::new();
    let path = folder.path("data.tsl");
    let (mut tails, mut later, mut commits) = (0, 0, 0);
    for round in 0..rounds() {
        if round % 20 == 0 {
            let _ = fs::remove_file(&path);
            let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[ELEMENTS as u32]))]);
            let writer = Writer::create(&path, schema, &options()).expect("a new file");
            writer.finish().expect("disk space");
        }
        let (before, _) = check(&path);
        let mut child = Child::start(child, [(FILE, &path)]);
        assert_eq!(child.report(), before, "round {round}: the child continues at the end of the file");
        let mut reported = before;
        for _ in 0..round % 5 {
            reported = child.report();
        }
        std::thread::sleep(Duration::from_micros(173 * (round * 7 % 41)));
        reported = child.kill().unwrap_or(reported);
        let (samples, tail) = check(&path);
        assert!(samples >= reported, "round {round}: {samples} samples, {reported} were reported");
        assert!(samples <= reported + 400, "round {round}: {samples} samples, {reported} were reported");
        tails += u64::from(tail > 0);
        later += u64::from(samples > reported);
        commits += u64::from(samples > before);
    }
    assert_eq!(fs::read_dir(folder.root()).expect("a folder").count(), 1, "nothing but the file");
    println!(
        "{} kills: {commits} after a commit, {tails} left a tail, {later} before a report of their commit",
        rounds()
    );
    assert!(tails > 0 && commits > rounds() / 3, "they were killed too early: {tails} tails, {commits} commits");
}
