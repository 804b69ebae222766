//! Defines what writers do on the disk, and what a reader can find afterwards.

use super::simulated::{Faults, Simulated};
use crate::nested::ListBatch;
use crate::open::InMemory;
use crate::read::{VerifyOptions, verify};
use crate::write::Stream;
use crate::write::sink::{AtomicSink, Sink};
use crate::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Result, Schema, Shape, Writer, WriterOptions,
};
use std::path::Path;

pub const NAME: &str = "folder/data.tsl";

pub fn path() -> &'static Path {
    Path::new(NAME)
}

/// The samples of a file. Each sample is the number of the writer that wrote it. It is `None` if
/// the file does not exist.
pub type Contents = Option<Vec<u32>>;

/// A sequence of steps. Each step is one writer with one or more commits, given by their numbers of
/// samples.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// The file at the start: the number of samples of each commit, and the number of bytes that
    /// are then cut off the end of the file.
    pub before: Option<(Vec<u32>, usize)>,
    pub steps: Vec<Step>,
    pub alignment: u32,
}

#[derive(Clone, Debug)]
pub enum Step {
    /// Commits of a new file, which replaces an existing file.
    Create(Vec<u32>),
    /// Commits of an appender, which may discard the uncommitted tail.
    Append(Vec<u32>),
    /// A step whose last call fails. This call is an `fsync`.
    Failing(Box<Step>),
}

impl Scenario {
    pub fn all() -> Vec<Self> {
        let scenario = |name, before: Option<(&[u32], usize)>, steps: &[Step], alignment| Self {
            name,
            before: before.map(|(commits, tail)| (commits.to_vec(), tail)),
            steps: steps.to_vec(),
            alignment,
        };
        let (create, append) = (|c: &[u32]| Step::Create(c.to_vec()), |c: &[u32]| Step::Append(c.to_vec()));
        let failing = |step| Step::Failing(Box::new(step));
        vec![
            scenario("a new file", None, &[create(&[30])], 64),
            scenario("a new file of several commits", None, &[create(&[12, 25, 1])], 64),
            scenario("overwriting", Some((&[20], 0)), &[create(&[33])], 64),
            scenario("overwriting by several commits", Some((&[20, 3], 0)), &[create(&[11, 14])], 64),
            scenario("appending", Some((&[10], 0)), &[append(&[17])], 64),
            scenario("appending several commits", Some((&[10, 5], 0)), &[append(&[17, 3, 20])], 64),
            scenario("appending twice", Some((&[10], 0)), &[append(&[9, 8]), append(&[7])], 4096),
            scenario("appending after a torn tail", Some((&[10, 25], 700)), &[append(&[16, 4])], 64),
            scenario("appending after a long torn tail", Some((&[10, 40], 130)), &[append(&[2])], 64),
            scenario(
                "appending after an append that failed",
                Some((&[10], 0)),
                &[failing(append(&[20])), append(&[20])],
                64,
            ),
            scenario(
                "appending to a file whose name was not durable",
                None,
                &[failing(create(&[20])), append(&[9])],
                64,
            ),
            scenario("a new file, appended to", None, &[create(&[8, 8]), append(&[8, 8])], 64),
        ]
    }

    /// Returns a disk with the file at the start, and a list with only the state at the start.
    /// [`Scenario::run`] adds the states that a reader can see later.
    pub fn disk(&self, faults: Faults) -> (Simulated, Vec<Contents>) {
        let disk = Simulated::new(faults);
        let Some((commits, tail)) = &self.before else { return (disk, vec![None]) };
        let mut writer = Writer::new(Stream(Vec::new()), schema(), &self.options()).unwrap();
        let mut samples = Vec::new();
        for (i, &count) in commits.iter().enumerate() {
            if i > 0 {
                writer.commit().unwrap();
            }
            if *tail == 0 || i + 1 < commits.len() {
                samples.extend(vec![0; count as usize]);
            }
            push(&mut writer, 0, count).unwrap();
        }
        let mut bytes = writer.into_bytes().unwrap();
        bytes.truncate(bytes.len() - tail);
        (disk.with(path(), &bytes), vec![Some(samples)])
    }

    /// Returns whether the file at the start has bytes after its last commit.
    pub fn has_tail(&self) -> bool {
        self.before.as_ref().is_some_and(|(_, tail)| *tail > 0)
    }

    pub fn options(&self) -> WriterOptions {
        WriterOptions::new().profile(Profile::Raw).chunk_bytes(512).alignment(self.alignment).discard_tail(true)
    }

    /// Runs all steps, up to the first error. Each new state is added to `states` before any of its
    /// bytes are written. When its commit has returned, the log records the state.
    pub fn run(&self, disk: &Simulated, states: &mut Vec<Contents>) -> Result<()> {
        (1..).zip(&self.steps).try_for_each(|(number, step)| self.step(step, number, disk, states))
    }

    fn step(&self, step: &Step, number: u32, disk: &Simulated, states: &mut Vec<Contents>) -> Result<()> {
        match step {
            Step::Create(commits) => {
                let sink = AtomicSink::create(disk.clone(), path(), true)?;
                let writer = Writer::new(sink, schema(), &self.options())?;
                commit_all(writer, disk, states, number, commits, Vec::new())
            }
            Step::Append(commits) => {
                let writer = Writer::continued(disk.clone(), path(), &self.options(), |sink| sink)?;
                let samples = seen(disk, states);
                commit_all(writer, disk, states, number, commits, samples)
            }
            Step::Failing(step) => {
                let faults = disk.state().faults;
                if faults.fail_at.is_some() {
                    return self.step(step, number, disk, states); // another failure is injected
                }
                let rehearsal = disk.copy();
                self.step(step, number, &rehearsal, &mut states.clone())?;
                disk.state().faults.fail_at = rehearsal.state().calls.checked_sub(1);
                assert!(self.step(step, number, disk, states).is_err(), "the step ignored a failed call");
                disk.state().faults = faults;
                Ok(())
            }
        }
    }
}

/// Returns the samples that a reader sees now.
fn seen(disk: &Simulated, states: &[Contents]) -> Vec<u32> {
    let found = contents(&disk.bytes(path()).unwrap()).unwrap();
    assert!(states.contains(&Some(found.clone())), "a reader finds a state that no writer made");
    found
}

fn commit_all<K: Sink>(
    mut writer: Writer<K>,
    disk: &Simulated,
    states: &mut Vec<Contents>,
    number: u32,
    commits: &[u32],
    mut samples: Vec<u32>,
) -> Result<()> {
    for (i, &count) in commits.iter().enumerate() {
        samples.extend(vec![number; count as usize]);
        states.push(Some(samples.clone()));
        let done = push(&mut writer, number, count);
        let last = i + 1 == commits.len();
        if last && done.is_ok() {
            writer.finish()?;
            disk.returned(states.len() - 1);
            return Ok(());
        }
        if let Err(error) = done.and_then(|()| writer.commit()) {
            let calls = disk.state().calls;
            assert!(push(&mut writer, number, 1).is_err() && writer.commit().is_err(), "it continues after {error}");
            assert_eq!(disk.state().calls, calls, "the writer made a call after {error}");
            return Err(error);
        }
        disk.returned(states.len() - 1);
    }
    Ok(())
}

fn schema() -> Schema {
    Schema::new([
        ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[16])),
        ColumnSchema::tensor("y", DType::U8, Shape::ragged()).nullable(),
        ColumnSchema::utf8("z").nullable().list().nullable(),
    ])
}

/// A list of texts. The list and each text can be null.
type Texts = Option<Vec<Option<&'static str>>>;

fn push<K: Sink>(writer: &mut Writer<K>, number: u32, count: u32) -> Result<()> {
    for _ in 0..count {
        let i = writer.sample_count() as u32;
        let (x, y) = sample(number, i);
        let (is_null, y) = (y.is_none(), y.unwrap_or_default());
        let y_extents = [y.len() as u32];
        let y = ColumnBatch::ragged(1, &y_extents, &y).with_validity(if is_null { &[0] } else { &[1] });
        let texts = texts(number, i);
        let (is_null, texts) = (texts.is_none(), texts.unwrap_or_default());
        let bits = texts.iter().rev().fold(0, |bits, text| bits << 1 | u8::from(text.is_some()));
        let z_extents: Vec<u32> = texts.iter().map(|text| text.map_or(0, |text| text.len() as u32)).collect();
        let z: String = texts.iter().flatten().copied().collect();
        let (validity, lengths) = ([bits], [texts.len() as u32]);
        let lists = [ListBatch::new(&lengths).with_validity(if is_null { &[0] } else { &[1] })];
        let z = ColumnBatch::ragged(texts.len(), &z_extents, z.as_bytes()).with_validity(&validity);
        writer.push_batch(&[ColumnBatch::fixed(1, &x), y, z.in_lists(&lists)])?;
    }
    Ok(())
}

fn sample(number: u32, i: u32) -> ([u32; 16], Option<Vec<u8>>) {
    let y = (!i.is_multiple_of(5)).then(|| vec![(number + i) as u8; (i % 7) as usize]);
    ([number * 1_000 + i; 16], y)
}

fn texts(number: u32, i: u32) -> Texts {
    let text = |k: u32| (!(number + k).is_multiple_of(3)).then(|| &"a text of any length"[..((i + k) % 9) as usize]);
    (!i.is_multiple_of(4)).then(|| (0..i % 6).map(text).collect())
}

/// Returns the texts of sample `i` of a buffer.
fn texts_of(buffer: &ColumnBuffer, i: usize) -> Option<Vec<Option<&str>>> {
    let lists = &buffer.lists()[0];
    let text = |k: u64| {
        let bytes = buffer.ragged_bytes(k as usize).unwrap();
        (!buffer.is_null(k as usize)).then(|| std::str::from_utf8(bytes).unwrap())
    };
    (!lists.is_null(i)).then(|| (lists.offsets()[i]..lists.offsets()[i + 1]).map(text).collect())
}

/// Returns the samples that a reader finds. Fails if a sample is wrong or if anything is damaged.
pub fn contents(file: &[u8]) -> std::result::Result<Vec<u32>, String> {
    let reader = Reader::from_bytes(file.to_vec()).map_err(|error| error.to_string())?;
    let mut columns = Vec::new();
    reader
        .rows(&["x", "y", "z"])
        .and_then(|mut rows| rows.range_into(0..reader.sample_count(), &mut columns))
        .map_err(|error| error.to_string())?;
    let found = numbers(&columns, reader.sample_count() as u32)?;
    let report = verify(&InMemory(file), VerifyOptions::new().deep(true)).map_err(|error| error.to_string())?;
    let end = report.file_bytes - reader.tail_bytes();
    let harmless = |damage: &crate::read::Finding| match damage.error.rule() {
        Some("R-2.7") => damage.file_range.start >= end,
        rule => rule == Some("R-7.8"),
    };
    match report.findings.iter().find(|damage| !harmless(damage)) {
        Some(damage) => Err(damage.error.to_string()),
        None => Ok(found),
    }
}

fn numbers(columns: &[ColumnBuffer], count: u32) -> std::result::Result<Vec<u32>, String> {
    let (x, y, z) = (&columns[0], &columns[1], &columns[2]);
    let values = x.values::<u32>().map_err(|error| error.to_string())?;
    let number = |i: u32| {
        let found = &values[i as usize * 16..][..16];
        let number = found[0] / 1_000;
        let expected = sample(number, i);
        let right = found == expected.0.as_slice()
            && expected.1.as_deref().unwrap_or(&[]) == y.ragged_bytes(i as usize).unwrap()
            && expected.1.is_none() == y.is_null(i as usize)
            && texts(number, i) == texts_of(z, i as usize);
        right.then_some(number).ok_or_else(|| format!("sample {i} is wrong"))
    };
    (0..count).map(number).collect()
}

/// Checks that the file can be appended to, and is intact afterwards.
pub fn check_append(file: &[u8], what: &str) {
    let disk = Simulated::default().with(path(), file);
    let options = WriterOptions::new().profile(Profile::Raw).discard_tail(true);
    let appended = Writer::continued(disk.clone(), path(), &options, |sink| sink).and_then(|mut writer| {
        push(&mut writer, 9, 3)?;
        writer.finish()
    });
    appended.unwrap_or_else(|error| panic!("{what}: {error}"));
    let bytes = disk.bytes(path()).unwrap();
    let report = verify(&InMemory(bytes.as_slice()), VerifyOptions::new().deep(true)).unwrap();
    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
    assert!(contents(&bytes).unwrap().ends_with(&[9; 3]), "{what}");
}
