//! Runs the rounds of a comparison, for any kind of data.
//!
//! Before the first round, each competitor has written and opened its file, and all its values were
//! compared with the input (`tensors.rs`, `nested/comparison.rs`); this also warms it up. A round
//! takes each measurement of all competitors in turn, and each round starts with another
//! competitor, so noise of the machine affects all of them equally. All get the same requests.

use crate::measure::{Random, Stats, seconds_per_call};
use crate::peers::Family;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The number of samples in a gathering request.
pub const GATHER_SAMPLES: usize = 256;

/// The samples of one gathering request.
pub type Request = [usize; GATHER_SAMPLES];

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub rounds: usize,
    /// The minimum duration of a measurement in a round.
    pub min_time: Duration,
}

/// The data of a table, for the reports.
pub struct Facts {
    pub name: String,
    /// The type of the elements, or of a nested column.
    pub dtype: String,
    /// The shape of a sample; `None` for texts and lists.
    pub shape: Option<Vec<u32>>,
    /// The origin of the values.
    pub origin: String,
    pub samples: usize,
    pub raw_bytes: usize,
}

impl Facts {
    /// Returns the mean bytes of a sample.
    pub fn sample_bytes(&self) -> usize {
        self.raw_bytes / self.samples
    }

    /// Returns whether samples are texts or lists, of any length.
    pub fn is_nested(&self) -> bool {
        self.shape.is_none()
    }

    /// Returns a title such as `mel [101,128]` or `captions: list<utf8>`.
    pub fn title(&self) -> String {
        let Some(shape) = &self.shape else { return format!("{}: {}", self.name, self.dtype) };
        let shape: Vec<String> = shape.iter().map(u32::to_string).collect();
        format!("{} [{}]", self.name, shape.join(","))
    }
}

/// The measurements of one competitor. Times are in seconds.
pub struct Row {
    pub name: String,
    pub about: String,
    /// The best settings for this data set, if the competitor tries several.
    pub choice: Option<String>,
    /// Whether all samples are in one chunk that stays decoded, so that their times include no
    /// decoding.
    pub stays_decoded: bool,
    pub family: Family,
    pub stored_bytes: u64,
    pub raw_bytes: usize,
    /// For all data.
    pub encode: Stats,
    /// For all data.
    pub decode: Stats,
    /// For one sample.
    pub sample: Stats,
    /// For `GATHER_SAMPLES` samples.
    pub gather: Stats,
    /// For one sample, read from the file by position.
    pub position: Option<Stats>,
    /// For borrowing one sample, if that is possible.
    pub view: Option<Stats>,
}

impl Row {
    pub fn ratio(&self) -> f64 {
        self.raw_bytes as f64 / self.stored_bytes as f64
    }

    /// Returns GB/s of raw data, given the time for all of it.
    pub fn rate(&self, seconds: Stats) -> Stats {
        seconds.map(|seconds| self.raw_bytes as f64 / seconds / 1e9)
    }
}

/// The results for a data set. The first row is memcpy.
pub struct Table {
    pub facts: Facts,
    pub rows: Vec<Row>,
}

/// A competitor with its file open.
pub trait Measured {
    /// The caller's memory, which is the same for all competitors.
    type Memory;

    /// Writes all samples to a new file.
    fn encode(&self, file: &Path) -> Result<()>;

    fn decode_all(&mut self) -> Result<()>;

    /// Copies sample `i` to `memory`.
    fn sample(&mut self, i: usize, memory: &mut Self::Memory) -> Result<()>;

    fn gather(&mut self, request: &Request, memory: &mut Self::Memory) -> Result<()>;

    /// Reads sample `i` from the file by position, and copies it to `memory`. Returns whether this
    /// is possible.
    fn position(&mut self, _i: usize, _memory: &mut Self::Memory) -> Result<bool> {
        Ok(false)
    }

    /// Borrows sample `i` from the mapped file. Returns whether this is possible.
    fn view(&mut self, i: usize) -> Result<bool>;
}

pub struct Contender<M> {
    pub name: String,
    pub about: String,
    pub choice: Option<String>,
    pub stays_decoded: bool,
    pub family: Family,
    pub stored_bytes: u64,
    pub measured: M,
    pub times: Times,
}

/// The times of one competitor, by round.
#[derive(Default)]
pub struct Times {
    encode: Vec<f64>,
    decode: Vec<f64>,
    sample: Vec<f64>,
    gather: Vec<f64>,
    position: Vec<f64>,
    view: Vec<f64>,
}

/// Measures all competitors on one data set.
pub fn run<M: Measured>(
    facts: Facts,
    mut contenders: Vec<Contender<M>>,
    mut memory: M::Memory,
    settings: Settings,
    folder: &Path,
) -> Result<Table> {
    let scratch = folder.join("scratch");
    for round in 0..settings.rounds {
        eprint!("\r{}: round {} of {} ", facts.name, round + 1, settings.rounds);
        contenders.rotate_left(usize::from(round > 0));
        for Contender { name, measured, times, .. } in &mut contenders {
            times.encode.push(encode(measured, &scratch, settings.min_time).with_context(|| name.clone())?);
        }
        for Contender { measured, times, .. } in &mut contenders {
            times.decode.push(seconds_per_call(settings.min_time, || measured.decode_all())?);
        }
        let seed = round as u64;
        for contender in &mut contenders {
            random(contender, facts.samples, Random::new(seed), &mut memory, settings.min_time)?;
        }
    }
    eprintln!();
    let turns = (settings.rounds - 1) % contenders.len();
    contenders.rotate_right(turns);
    let rows = contenders.into_iter().map(|contender| row(&facts, contender)).collect();
    Ok(Table { facts, rows })
}

pub fn request(random: &mut Random, samples: usize) -> Request {
    std::array::from_fn(|_| random.below(samples))
}

/// Measures encoding to a file, which is removed after each call, while the clock is stopped.
fn encode(measured: &impl Measured, file: &Path, min_time: Duration) -> Result<f64> {
    let (mut elapsed, mut calls) = (0.0, 0);
    while calls == 0 || elapsed < min_time.as_secs_f64() {
        elapsed += seconds_per_call(Duration::ZERO, || measured.encode(file))?;
        calls += 1;
        if file.exists() {
            fs::remove_file(file)?;
        }
    }
    Ok(elapsed / f64::from(calls))
}

/// Takes the measurements of random samples.
fn random<M: Measured>(
    contender: &mut Contender<M>,
    samples: usize,
    mut random: Random,
    memory: &mut M::Memory,
    min_time: Duration,
) -> Result<()> {
    let Contender { measured, times, .. } = contender;
    times.sample.push(batched(min_time, || measured.sample(random.below(samples), memory))?);
    times.gather.push(seconds_per_call(min_time, || measured.gather(&request(&mut random, samples), memory))?);
    if measured.position(0, memory)? {
        times.position.push(batched(min_time, || measured.position(random.below(samples), memory).map(drop))?);
    }
    if measured.view(0)? {
        times.view.push(batched(min_time, || measured.view(random.below(samples)).map(drop))?);
    }
    Ok(())
}

/// Does the same as `seconds_per_call` for calls that are much shorter than reading the clock:
/// reads the clock once per 32 calls.
fn batched(min_time: Duration, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    const CALLS: u32 = 32;
    Ok(seconds_per_call(min_time, || (0..CALLS).try_for_each(|_| work()))? / f64::from(CALLS))
}

fn row<M>(facts: &Facts, contender: Contender<M>) -> Row {
    let Contender { name, about, choice, stays_decoded, family, stored_bytes, times, .. } = contender;
    let some = |times: &[f64]| (!times.is_empty()).then(|| Stats::of(times));
    Row {
        name,
        about,
        choice,
        stays_decoded,
        family,
        stored_bytes,
        raw_bytes: facts.raw_bytes,
        encode: Stats::of(&times.encode),
        decode: Stats::of(&times.decode),
        sample: Stats::of(&times.sample),
        gather: Stats::of(&times.gather),
        position: some(&times.position),
        view: some(&times.view),
    }
}
