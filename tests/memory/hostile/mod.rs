//! Tests that small files built to do harm are refused, and that no call on them takes more than 10
//! ms or 16 MiB. `cargo test --release --test memory hostile:: -- --nocapture` prints the table.
//!
//! Every row of the table is opened, read, verified and salvaged. The memory limit is strict. The
//! time limit fails the test only at ten times its value, which no slow or busy machine explains.

mod files;

use crate::support::positional::Positional;
use files::{Refusal, Row};
use std::time::{Duration, Instant};
use tensilo::nested::List;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::{InMemory, Source};
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBuffer, Error, ErrorKind, OpenOptions, Verification};
use tensilo_testing::{ExclusiveTest, exclusive_test};

const EXPECTED_TIME: Duration = Duration::from_millis(10);
const MAX_TIME: Duration = Duration::from_millis(100);
const MAX_PEAK_BYTES: usize = 16 << 20;

fn rule(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::OverLimit => "OverLimit",
        _ => error.rule().unwrap_or("no rule"),
    }
}

/// Returns the rule that verification names first.
fn verify_rule(source: &impl Source, decode: bool) -> Option<&'static str> {
    match verify(source, VerifyOptions::new().deep(decode)) {
        Ok(report) => report.findings.first().map(|damage| rule(&damage.error)),
        Err(error) => Some(rule(&error)),
    }
}

/// Makes every kind of call on a file; returns the rule that opening names, or the first that
/// reading names.
fn walk<S: Source + 'static>(source: S, verification: Verification) -> (Option<&'static str>, Option<&'static str>) {
    let options = OpenOptions::new().verification(verification).max_chunk_bytes(MAX_PEAK_BYTES as u32 / 16);
    let reader = match options.open_source(source) {
        Ok(reader) => reader,
        Err(error) => return (Some(rule(&error)), None),
    };
    let mut first = None;
    let mut note = |error: Option<Error>| first = first.or(error.map(|error| rule(&error)));
    let count = reader.sample_count();
    let samples: Vec<u64> = (0..count.min(4)).chain(count.saturating_sub(2)..count).rev().collect();
    let mut buffer = ColumnBuffer::new();
    for column in reader.columns().take(4) {
        let mut cursor = column.cursor();
        for &i in &samples {
            note(column.chunk_of(i).err());
            if column.schema().levels.is_empty() {
                note(column.view(i).err());
                note(cursor.read(i).map(|sample| drop(sample.as_str())).err());
            } else {
                note(column.view_list(i).err());
                note(cursor.read_list(i).and_then(|list| visit(&list)).err());
            }
        }
        note(column.chunk(0).err());
        note(column.chunk(u64::MAX).err());
        note(cursor.gather_into(&samples, &mut buffer).err());
        note(cursor.range_into(0..count.min(4), &mut buffer).err());
        note(column.explain(0).err());
    }
    (None, first)
}

/// Reads some members of a list.
fn visit(list: &List<'_>) -> tensilo::Result<()> {
    let members = (0..list.len().min(100)).chain(list.len().checked_sub(1));
    if list.has_lists() {
        return members.into_iter().try_for_each(|k| visit(&list.list(k)?));
    }
    members.into_iter().try_for_each(|k| list.item(k).map(|item| drop(item.as_str())))
}

/// A file that several readers share.
type Shared = std::sync::Arc<[u8]>;

/// Salvages a file and reads the result; returns a description of the fault, if any.
fn salvage_and_read(file: &Shared, decode: bool) -> Option<String> {
    let salvaged = match salvage(InMemory(file.clone()), SalvageOptions::new().deep(decode)) {
        Ok(salvaged) => salvaged,
        Err(error) => {
            // either the columns are unknown or a newer release wrote the file: any other fault
            // costs at most its chunk
            let is_hopeless = ["R-2.9", "R-9.1"].contains(&rule(&error));
            return (!is_hopeless).then(|| format!("not salvaged: {error}"));
        }
    };
    let limit = (file.len() as u64 / 64) << 24;
    if salvaged.reader.sample_count() > limit {
        return Some(format!("{} samples, at most {limit} are possible", salvaged.reader.sample_count()));
    }
    let columns = salvaged.reader.columns().zip(&salvaged.losses.columns);
    columns.take(4).find_map(|(column, (_, lost))| {
        let mut cursor = column.cursor();
        let is_small = |i: &u64| column.chunk_of(*i).is_ok_and(|chunk| chunk.raw_bytes <= MAX_PEAK_BYTES as u64 / 16);
        let left = (0..column.sample_count().min(100)).filter(|i| !lost.contains(*i));
        let is_nested = !column.schema().levels.is_empty();
        let mut read = |i| if is_nested { cursor.read_list(i).err() } else { cursor.read(i).err() };
        left.filter(is_small).find_map(&mut read).map(|error| format!("cannot be read: {error}"))
    })
}

/// Returns the minimum time and the peak memory of several runs of `work`.
fn cost<T>(exclusive_test: &ExclusiveTest, work: impl Fn() -> T) -> (T, Duration, usize) {
    let run = || {
        let start = Instant::now();
        let (result, peak) = exclusive_test.peak_bytes(&work);
        (result, start.elapsed(), peak)
    };
    let (mut result, mut time, mut peak) = run();
    for _ in 0..20 {
        if time < EXPECTED_TIME / 2 {
            break;
        }
        let (again, elapsed, bytes) = run();
        (result, time, peak) = (again, time.min(elapsed), peak.max(bytes));
    }
    (result, time, peak)
}

/// Returns the problems of a row.
fn check(exclusive_test: &ExclusiveTest, row: &Row) -> Vec<String> {
    let Row { name, file, refused } = row;
    let mut problems = Vec::new();
    let mut slowest = (Duration::ZERO, 0);
    let mut measured = |what: &str, time: Duration, peak: usize| {
        slowest = (slowest.0.max(time), slowest.1.max(peak));
        if time > MAX_TIME || peak > MAX_PEAK_BYTES {
            problems.push(format!("{name}: {what} takes {time:?} and {peak} bytes"));
        }
    };
    let shared = Shared::from(file.as_slice()); // owned by the reader
    let (in_memory, time, peak) = cost(exclusive_test, || walk(InMemory(shared.clone()), Verification::FirstTouch));
    measured("reading", time, peak);
    let (by_position, time, peak) = cost(exclusive_test, || walk(Positional(shared.clone()), Verification::Always));
    measured("reading by position", time, peak);
    let (_, time, peak) = cost(exclusive_test, || walk(Positional(shared.clone()), Verification::Never));
    measured("reading without checks", time, peak);
    let (shallow, time, peak) = cost(exclusive_test, || verify_rule(&Positional(file), false));
    measured("verifying by position", time, peak);
    let (deep, time, peak) = cost(exclusive_test, || verify_rule(&InMemory(file), true));
    measured("decoding", time, peak);
    let (wrong, peak) = exclusive_test.peak_bytes(|| salvage_and_read(&shared, true));
    // salvage refuses nothing but searches the whole file, so its time is not limited
    measured("salvaging", Duration::ZERO, peak);
    let (opening, reading) = in_memory;
    print_row(name, file, &refused.to_string(), slowest.0, slowest.1);
    let found = match *refused {
        Refusal::Opening(_) => Refusal::Opening(opening.unwrap_or("nothing")),
        Refusal::Verifying(_) => Refusal::Verifying(shallow.unwrap_or("nothing")),
        Refusal::Decoding(_) => Refusal::Decoding(deep.unwrap_or("nothing")),
        Refusal::Reading(..) => Refusal::Reading(deep.unwrap_or("nothing"), reading.unwrap_or("nothing")),
    };
    if found != *refused || by_position != in_memory || opening.is_some() != matches!(refused, Refusal::Opening(_)) {
        problems.push(format!("{name}: expected {refused}, found {found}, by position {by_position:?}"));
    }
    if opening.is_some() && (shallow.is_none() || deep.is_none()) {
        problems.push(format!("{name}: cannot be opened, and is intact"));
    }
    problems.extend(wrong.map(|wrong| format!("{name}: salvaged, and decoded: {wrong}")));
    problems
}

/// Checks the builder: a file that it builds without a fault is intact. Some of these files are
/// much larger when decoded.
fn check_intact(exclusive_test: &ExclusiveTest, (name, file): &(&str, Vec<u8>)) -> Vec<String> {
    let (rule, time, peak) = cost(exclusive_test, || verify_rule(&InMemory(file.as_slice()), true));
    print_row(name, file, "nothing: it is intact", time, peak);
    let is_right = rule.is_none() && time < MAX_TIME && peak < MAX_PEAK_BYTES;
    (!is_right).then(|| format!("{name}: {rule:?}, {time:?}, {peak} bytes")).into_iter().collect()
}

fn print_row(name: &str, file: &[u8], refused: &str, time: Duration, peak: usize) {
    let (ms, mib) = (time.as_secs_f64() * 1e3, peak as f64 / f64::from(1 << 20));
    println!("{name:<58} {:>9} {refused:<46} {ms:>9.3} {mib:>9.3}", file.len());
}

/// One test, so that nothing else runs while time and memory are measured.
#[test]
fn small_files_built_to_do_harm_are_refused_at_once() {
    let exclusive_test = exclusive_test();
    println!("{:<58} {:>9} {:<46} {:>9} {:>9}", "file", "bytes", "refused by", "ms", "MiB");
    let mut problems: Vec<String> = files::all().iter().flat_map(|row| check(&exclusive_test, row)).collect();
    problems.extend(files::intact().iter().flat_map(|file| check_intact(&exclusive_test, file)));
    if !files::all().iter().any(|row| salvage_and_read(&Shared::from(row.file.as_slice()), false).is_some()) {
        problems.push("decoding finds nothing that checksums do not: add a file where it does".to_owned());
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// Salvage takes memory for the chunks that it finds, not for those that a footer counts.
#[test]
fn a_footer_does_not_decide_the_memory_of_a_salvage() {
    let exclusive_test = exclusive_test();
    let file = Shared::from(files::chunks_of_zeros());
    let (salvaged, peak) = exclusive_test.peak_bytes(|| salvage(InMemory(file.clone()), SalvageOptions::new()));
    let salvaged = salvaged.expect("a schema");
    assert_eq!((salvaged.committed_samples, salvaged.unconfirmed.of_all().count()), (Some(1_000_000), 2));
    assert!(peak < MAX_PEAK_BYTES, "{peak} bytes");
}
