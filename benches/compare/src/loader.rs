//! Compares tensilo's loader with threads that gather the same batches from other stores.
//!
//! The threads take batches of the epoch's order in turn, into their own memory, and deliver them
//! to no one. This favors the other stores: the cost of a loader is only included for tensilo. The
//! rows `gathers` show tensilo without its loader.

use crate::data::{self, Dataset};
use crate::measure::Stats;
use crate::peers::arrow_ipc::ArrowIpc;
use crate::peers::{Peer, Store, lmdb_blosc, raw, tensilo as files};
use anyhow::{Context, Result, ensure};
use half::bf16;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tensilo::Profile;
use tensilo_data::{DatasetOptions, EpochOrder, LoaderOptions, Order, View};

/// Measures batches in shuffled order: tensilo's loader, and threads that gather the same batches
/// from other stores.
///
/// Every store is warm. The threads for other stores take batches in turn, into their own memory,
/// and deliver them to no one: the cost of a loader is only included for tensilo.
#[derive(clap::Args)]
pub struct Arguments {
    /// As in the comparison
    #[arg(long, value_name = "DIR", env = "TENSILO_DATA")]
    data: Option<PathBuf>,
    /// Number of threads for each competitor
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Number of rounds; prints medians
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Only this data set
    #[arg(long, value_name = "NAME", value_parser = NAMES)]
    only: Option<String>,
    /// Duration of a measurement in milliseconds
    #[arg(long, default_value = "500")]
    ms: u64,
}

const NAMES: [&str; 4] = ["embeddings", "weights", "mel", "posterior"];
/// The maximum number of samples in a batch. A smaller data set is one batch.
const BATCH: usize = 256;

/// A way to read batches, which returns samples per second.
type Measure<'a> = Box<dyn Fn() -> Result<f64> + 'a>;

pub fn run(arguments: &Arguments) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("tensilo-loader").tempdir().context("a temporary folder")?;
    let threads = arguments.threads;
    println!("Samples per second, batches of {BATCH}, shuffled, {threads} threads; {}\n", crate::report::cpu_model());
    for name in NAMES.into_iter().filter(|name| arguments.only.as_deref().is_none_or(|only| only == *name)) {
        let data = data::load(name, arguments.data.as_deref())?;
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder)?;
        compare(arguments, &data, &folder)?;
    }
    Ok(())
}

fn compare(arguments: &Arguments, data: &Dataset, folder: &Path) -> Result<()> {
    let contenders = contenders(arguments, data, folder)?;
    let mut rates = vec![Vec::new(); contenders.len()];
    for round in 0..arguments.rounds as usize {
        for turn in 0..contenders.len() {
            let number = (turn + round) % contenders.len();
            rates[number].push((contenders[number].1)()?);
        }
    }
    println!("## {}, {} samples of {} B\n", data.name, data.samples(), data.sample_bytes());
    println!("| | samples/s | GB/s | x LMDB + Blosc |\n|---|--:|--:|--:|");
    let medians: Vec<f64> = rates.iter().map(|rates| Stats::of(rates).median).collect();
    let recipe = contenders.iter().position(|(name, _)| name == RECIPE).map_or(f64::NAN, |number| medians[number]);
    for ((name, _), rate) in contenders.iter().zip(&medians) {
        let gb = rate * data.sample_bytes() as f64 / 1e9;
        println!("| {name} | {rate:.0} | {gb:.2} | {:.1} |", rate / recipe);
    }
    println!();
    Ok(())
}

const RECIPE: &str = "LMDB + Blosc";

fn contenders<'a>(arguments: &Arguments, data: &'a Dataset, folder: &Path) -> Result<Vec<(String, Measure<'a>)>> {
    let (threads, time) = (arguments.threads as usize, Duration::from_millis(arguments.ms));
    let mut found: Vec<(String, Measure<'a>)> = Vec::new();
    for profile in [Profile::Fast, Profile::Balanced] {
        let file = write(&files::Tensilo(profile), data, &folder.join(format!("{}.tsl", profile.name())))?;
        for decode_threads in [1, threads] {
            let path = file.clone();
            let name = format!("{}, loader with {decode_threads}", files::name(profile));
            found.push((name, Box::new(move || loader(data, &path, decode_threads, time))));
        }
        let open = move || files::Tensilo(profile).open(data, &file);
        found.push((format!("{}, gathers", files::name(profile)), gathers(data, threads, time, open)));
    }
    let file = write(&lmdb_blosc::LmdbBlosc, data, &folder.join("lmdb"))?;
    let env = lmdb_blosc::open(data, &file)?;
    found.push((RECIPE.to_owned(), gathers(data, threads, time, move || lmdb_blosc::store(&env, data))));
    for peer in [Box::new(ArrowIpc) as Box<dyn Peer + Sync>, Box::new(raw::Mapped)] {
        let (file, name) = (write(&*peer, data, &folder.join(peer.name()))?, peer.name());
        found.push((name, gathers(data, threads, time, move || peer.open(data, &file))));
    }
    Ok(found)
}

fn write(peer: &dyn Peer, data: &Dataset, file: &Path) -> Result<PathBuf> {
    peer.encode(data, file)?;
    Ok(file.to_path_buf())
}

fn batch(data: &Dataset) -> usize {
    BATCH.min(data.samples())
}

/// Returns the measurement of threads that gather batches in turn.
fn gathers<'a>(
    data: &'a Dataset,
    threads: usize,
    time: Duration,
    open: impl Fn() -> Result<Box<dyn Store>> + Sync + 'a,
) -> Measure<'a> {
    Box::new(move || {
        let (batch, next) = (batch(data), AtomicU64::new(0));
        let work = || -> Result<()> {
            let (mut store, mut out) = (open()?, vec![bf16::ZERO; batch * data.elements()]);
            let samples = data.samples() as u64;
            let steps = samples / batch as u64;
            let (mut positions, mut request) = (Vec::new(), Vec::new());
            let begun = Instant::now();
            let mut taken = 0;
            while begun.elapsed() < time {
                let step = next.fetch_add(1, Ordering::Relaxed);
                let order = EpochOrder::new(Order::Shuffled, samples, 1, step / steps);
                let first = step % steps * batch as u64;
                positions.clear();
                positions.extend(first..first + batch as u64);
                order.replace_with_samples(&mut positions)?;
                request.clear();
                request.extend(positions.iter().map(|&sample| sample as usize));
                store.gather(&request, black_box(&mut out))?;
                taken += 1;
            }
            ensure!(taken > 0, "no batch finished in time; increase --ms");
            Ok(())
        };
        let begun = Instant::now();
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        let batches = next.load(Ordering::Relaxed);
        Ok((batches * batch as u64) as f64 / begun.elapsed().as_secs_f64())
    })
}

/// Measures tensilo's loader, whose batches are dropped at once. Returns samples per second.
fn loader(data: &Dataset, file: &Path, threads: usize, time: Duration) -> Result<f64> {
    // SAFETY: the file is in a temporary folder of this process, which does not change it once it
    // is written.
    let dataset = unsafe { DatasetOptions::new().mmap() }.open(file)?;
    let options = LoaderOptions::new(batch(data) as u32).order(Order::Shuffled).seed(1);
    let loader = options.decode_threads(threads).io_depth(threads).loader(&View::all(&dataset))?;
    let (mut samples, begun) = (0, Instant::now());
    for batch in loader.epochs(0..u64::MAX) {
        samples += black_box(batch?).indices().len();
        if begun.elapsed() >= time {
            break;
        }
    }
    Ok(samples as f64 / begun.elapsed().as_secs_f64())
}
