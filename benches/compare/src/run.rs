//! Runs all competitors on one data set.
//!
//! First each writes its file, opens it, and has all its values compared with the input: a
//! competitor that is wrong is an error. This also warms it up. Then come the rounds. In each,
//! every measurement is taken of every competitor in turn, beginning with another one each time, so
//! that noise of the machine affects all alike. All get the same requests.

use crate::data::Dataset;
use crate::measure::{Random, Stats, seconds_per_call};
use crate::peers::{Family, Peer, Store};
use anyhow::{Context, Result, bail, ensure};
use half::bf16;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

/// Samples of one gathering request.
pub const GATHERED: usize = 256;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub rounds: usize,
    /// The shortest time of a measurement in a round.
    pub least: Duration,
}

/// The measurements of one competitor. Times are in seconds.
pub struct Row {
    pub name: String,
    pub about: String,
    pub family: Family,
    pub stored_bytes: u64,
    pub raw_bytes: usize,
    /// For all data.
    pub encode: Stats,
    pub decode: Stats,
    /// For one sample.
    pub sample: Stats,
    /// For `GATHERED` samples.
    pub gather: Stats,
    /// To borrow one sample, where that is possible.
    pub view: Option<Stats>,
}

impl Row {
    pub fn ratio(&self) -> f64 {
        self.raw_bytes as f64 / self.stored_bytes as f64
    }

    /// GB/s of raw data, from the time for all of it.
    pub fn rate(&self, seconds: Stats) -> Stats {
        seconds.map(|seconds| self.raw_bytes as f64 / seconds / 1e9)
    }
}

/// All rows of a data set; the first is memcpy.
pub struct Table {
    pub data: Dataset,
    pub rows: Vec<Row>,
}

/// The times of one competitor, by round.
#[derive(Default)]
struct Times {
    encode: Vec<f64>,
    decode: Vec<f64>,
    sample: Vec<f64>,
    gather: Vec<f64>,
    view: Vec<f64>,
}

struct Contender {
    peer: Box<dyn Peer>,
    store: Box<dyn Store>,
    stored_bytes: u64,
    times: Times,
}

pub fn run(data: Dataset, peers: Vec<Box<dyn Peer>>, settings: Settings, folder: &Path) -> Result<Table> {
    let mut contenders = Vec::new();
    for (number, peer) in peers.into_iter().enumerate() {
        let contender = prepare(&data, peer, &folder.join(format!("{}-{number}", data.name)));
        contenders.push(contender?);
    }
    let mut memory = vec![bf16::ZERO; GATHERED * data.elements()];
    let scratch = folder.join("scratch");
    for round in 0..settings.rounds {
        eprint!("\r{}: round {} of {} ", data.name, round + 1, settings.rounds);
        contenders.rotate_left(usize::from(round > 0));
        for contender in &mut contenders {
            contender.times.encode.push(encode(contender.peer.as_ref(), &data, &scratch, settings.least)?);
        }
        for contender in &mut contenders {
            let store = &mut contender.store;
            contender.times.decode.push(seconds_per_call(settings.least, || {
                black_box(store.decode_all()?);
                Ok(())
            })?);
        }
        let seed = round as u64;
        for contender in &mut contenders {
            random(contender, &data, Random::new(seed), &mut memory, settings.least)?;
        }
    }
    eprintln!();
    let turns = (settings.rounds - 1) % contenders.len();
    contenders.rotate_right(turns);
    let rows = contenders.into_iter().map(|contender| row(&data, contender)).collect();
    Ok(Table { data, rows })
}

/// Writes, opens, checks.
fn prepare(data: &Dataset, peer: Box<dyn Peer>, file: &Path) -> Result<Contender> {
    let result = (|| {
        peer.encode(data, file)?;
        let mut store = peer.open(data, file)?;
        check(data, store.as_mut())?;
        Ok((peer.stored_bytes(data, file)?, store))
    })();
    let (stored_bytes, store) =
        result.map_err(|error: anyhow::Error| error.context(format!("{} on {}", peer.name(), data.name)))?;
    Ok(Contender { peer, store, stored_bytes, times: Times::default() })
}

/// Whether everything comes back as it was, to the bit.
fn check(data: &Dataset, store: &mut dyn Store) -> Result<()> {
    let same = |a: &[bf16], b: &[bf16]| bytemuck::cast_slice::<_, u16>(a) == bytemuck::cast_slice::<_, u16>(b);
    ensure!(same(store.decode_all()?, &data.values), "decoding all gives other values");
    let mut out = vec![bf16::ZERO; data.elements()];
    let mut random = Random::new(u64::MAX);
    for i in (0..data.samples()).map(|_| random.below(data.samples())) {
        out.fill(bf16::NAN);
        store.sample(i, &mut out)?;
        ensure!(same(&out, data.sample(i)), "sample {i} has other values");
        if let Some(view) = store.view(i)? {
            ensure!(same(view, data.sample(i)), "the view of sample {i} has other values");
        }
    }
    let mut out = vec![bf16::NAN; GATHERED * data.elements()];
    for _ in 0..3 {
        let request = request(&mut random, data);
        store.gather(&request, &mut out)?;
        for (&i, sample) in request.iter().zip(out.chunks_exact(data.elements())) {
            ensure!(same(sample, data.sample(i)), "gathered sample {i} has other values");
        }
    }
    Ok(())
}

fn request(random: &mut Random, data: &Dataset) -> [usize; GATHERED] {
    std::array::from_fn(|_| random.below(data.samples()))
}

/// Encodes to a file that is removed when the clock has stopped.
fn encode(peer: &dyn Peer, data: &Dataset, file: &Path, least: Duration) -> Result<f64> {
    let (mut passed, mut calls) = (0.0, 0);
    while calls == 0 || passed < least.as_secs_f64() {
        passed += seconds_per_call(Duration::ZERO, || peer.encode(data, file)).with_context(|| peer.name())?;
        calls += 1;
        if file.exists() {
            fs::remove_file(file)?;
        }
    }
    Ok(passed / f64::from(calls))
}

/// The measurements of random samples.
fn random(
    contender: &mut Contender,
    data: &Dataset,
    mut random: Random,
    memory: &mut [bf16],
    least: Duration,
) -> Result<()> {
    let Contender { store, times, .. } = contender;
    let sample = &mut memory[..data.elements()];
    times.sample.push(batched(least, || store.sample(random.below(data.samples()), black_box(&mut *sample)))?);
    times.gather.push(seconds_per_call(least, || store.gather(&request(&mut random, data), black_box(&mut *memory)))?);
    if store.view(0)?.is_some() {
        times.view.push(batched(least, || {
            let view = store.view(random.below(data.samples()))?;
            let Some(first) = view.and_then(<[bf16]>::first) else { bail!("no view") };
            black_box(*first);
            Ok(())
        })?);
    }
    Ok(())
}

/// As `seconds_per_call`, for calls that are much shorter than reading the clock: reads it after
/// every 32.
fn batched(least: Duration, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    const CALLS: u32 = 32;
    Ok(seconds_per_call(least, || (0..CALLS).try_for_each(|_| work()))? / f64::from(CALLS))
}

fn row(data: &Dataset, contender: Contender) -> Row {
    let Contender { peer, stored_bytes, times, .. } = contender;
    Row {
        name: peer.name(),
        about: peer.about(),
        family: peer.family(),
        stored_bytes,
        raw_bytes: data.raw_bytes(),
        encode: Stats::of(&times.encode),
        decode: Stats::of(&times.decode),
        sample: Stats::of(&times.sample),
        gather: Stats::of(&times.gather),
        view: (!times.view.is_empty()).then(|| Stats::of(&times.view)),
    }
}
