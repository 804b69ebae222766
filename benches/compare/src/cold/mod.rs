//! Cold samples: tensilo's loader compared with plain reads and maps of the same values.
//!
//! The file is dropped from the page cache before each measurement. Caches below the operating
//! system, such as the page cache of the host of a virtual machine, are not: limit the rate of the
//! device to make conditions equal.

mod files;
mod plain;

use crate::measure::Stats;
use anyhow::{Context, Result};
use files::Files;
use plain::{Advice, Plain};
use rustix::fs::{Advice as CacheAdvice, fadvise};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tensilo_data::{DatasetOptions, LoaderOptions, Order, View};

/// Measures cold samples: tensilo's loader, plain reads by position, and maps with the default
/// advice and with advice for random access.
///
/// Linux only. Writes files to DIR, which should be on the device to measure, and drops them from
/// the page cache before each measurement.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder on the device to measure; the files are removed afterwards
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Size of the values in GiB
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    gib: u32,
    /// Threads for plain reads and maps, which is the number of concurrent reads
    #[arg(long, default_value = "32", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
    /// Number of rounds; prints medians
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Duration of a measurement in milliseconds
    #[arg(long, default_value = "3000")]
    ms: u64,
}

/// The sample sizes that are measured.
const SAMPLE_BYTES: [usize; 2] = [4 << 10, 64 << 10];
/// The number of samples in a batch.
const BATCH: u32 = 256;

/// A way to read samples, and the file that it reads.
struct Contender<'a> {
    name: String,
    file: &'a Path,
    /// Returns samples per second.
    measure: Box<dyn Fn() -> Result<f64> + 'a>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    println!("Cold samples; {}, {} concurrent reads\n", crate::report::cpu_model(), arguments.threads);
    for sample_bytes in SAMPLE_BYTES {
        let folder = tempfile::Builder::new().prefix("tensilo-cold").tempdir_in(&arguments.folder)?;
        let files = Files::write(folder.path(), (arguments.gib as usize) << 30, sample_bytes)?;
        let ratio = files.samples as f64 * sample_bytes as f64 / std::fs::metadata(&files.encoded)?.len() as f64;
        println!("## {} samples of {} KiB, `fast`, ratio {ratio:.3}\n", files.samples, sample_bytes >> 10);
        let random = random(arguments, &files)?;
        report(arguments, &random, sample_bytes, "random samples")?;
        let in_order = in_order(arguments, &files);
        report(arguments, &in_order, sample_bytes, "long runs")?;
    }
    Ok(())
}

fn random<'a>(arguments: &Arguments, files: &'a Files) -> Result<Vec<Contender<'a>>> {
    let (threads, time) = (arguments.threads as usize, Duration::from_millis(arguments.ms));
    let plain = |name: &str, advice: Option<Advice>| {
        let plain = Plain { files, threads, time };
        let measure: Box<dyn Fn() -> Result<f64>> = match advice {
            None => Box::new(move || plain.reads()),
            Some(advice) => Box::new(move || plain.map(advice)),
        };
        Contender { name: name.to_owned(), file: &files.raw, measure }
    };
    let shuffled = |name: &str, options: fn() -> DatasetOptions, io_depth: usize| Contender {
        name: format!("tensilo, shuffled, {name}, I/O depth {io_depth}"),
        file: &files.encoded,
        measure: Box::new(move || loader(files, options(), io_depth, Order::Shuffled, time)),
    };
    Ok(vec![
        plain("plain reads", None),
        plain("map, default advice", Some(Advice::Normal)),
        plain("map, advice for random access", Some(Advice::Random)),
        shuffled("io_uring", || DatasetOptions::new().io_uring(), 2),
        shuffled("direct", || DatasetOptions::new().direct(), 2),
        shuffled("pread", || DatasetOptions::new().pread(), threads),
    ])
}

fn in_order<'a>(arguments: &Arguments, files: &'a Files) -> Vec<Contender<'a>> {
    let time = Duration::from_millis(arguments.ms);
    let ordered = |name: &str, mode: fn(&Files) -> Order| Contender {
        name: format!("tensilo, {name}, I/O depth 2"),
        file: &files.encoded,
        measure: Box::new(move || loader(files, DatasetOptions::new(), 2, mode(files), time)),
    };
    let plain = Plain { files, threads: 1, time };
    vec![
        Contender {
            name: "plain reads of 1 MiB, one thread".to_owned(),
            file: &files.raw,
            measure: Box::new(move || plain.sequential()),
        },
        ordered("sequential", |_| Order::Sequential),
        ordered("windowed", |files| Order::Windowed(files.order)),
    ]
}

/// Measures all contenders in turn, and prints a table.
fn report(arguments: &Arguments, contenders: &[Contender<'_>], sample_bytes: usize, what: &str) -> Result<()> {
    let mut rates = vec![Vec::new(); contenders.len()];
    for round in 0..arguments.rounds as usize {
        for turn in 0..contenders.len() {
            let number = (turn + round) % contenders.len();
            drop_from_cache(contenders[number].file)?;
            rates[number].push((contenders[number].measure)().with_context(|| contenders[number].name.clone())?);
        }
    }
    println!("| {what} | samples/s | MB/s of values | x first row |\n|---|--:|--:|--:|");
    let medians: Vec<f64> = rates.iter().map(|rates| Stats::of(rates).median).collect();
    for (Contender { name, .. }, rate) in contenders.iter().zip(&medians) {
        println!("| {name} | {rate:.0} | {:.0} | {:.2} |", rate * sample_bytes as f64 / 1e6, rate / medians[0]);
    }
    println!();
    Ok(())
}

fn drop_from_cache(file: &Path) -> Result<()> {
    let file = File::open(file)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, CacheAdvice::DontNeed)?)
}

/// Returns the samples per second of tensilo's loader, whose batches are dropped at once. Reads no
/// sample twice.
fn loader(files: &Files, options: DatasetOptions, io_depth: usize, mode: Order, time: Duration) -> Result<f64> {
    let dataset = options.open(&files.encoded)?;
    let options = LoaderOptions::new(BATCH).order(mode).seed(1).decode_threads(2).io_depth(io_depth);
    let loader = options.loader(&View::all(&dataset))?;
    let (mut samples, begun) = (0, Instant::now());
    for batch in loader.epoch(0) {
        samples += batch?.indices().len();
        if begun.elapsed() >= time {
            break;
        }
    }
    Ok(samples as f64 / begun.elapsed().as_secs_f64())
}
