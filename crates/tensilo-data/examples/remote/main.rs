//! Epochs from a host 20 ms away, beside the same bytes fetched as whole files: rates, requests,
//! and the round trips until the first batch. Then epochs that a cache keeps.
//!
//! ```text
//! cargo run --release -p tensilo-data --features object --example remote
//! ```
//!
//! Needs nginx and curl. The host is on the loopback address, behind a proxy that delays requests.

mod host;

use half::bf16;
use host::Host;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};
use tensilo_data::{Dataset, DatasetOptions, LoaderOptions, Mode, Tail, View};
use tensilo_object::{Cache, ObjectOptions};
use tensilo_testing::{DelayProxy, Random};

type Failure = Box<dyn std::error::Error>;

const LATENCY: Duration = Duration::from_millis(20);
/// Bytes a second of the slower link: 1 Gbit/s.
const LINK: u64 = 125_000_000;
const ELEMENTS: usize = 512;
const BATCH: u32 = 256;
const MODES: [&str; 3] = ["sequential", "windowed", "shuffled"];

fn main() -> Result<(), Failure> {
    println!("a host {} ms away; samples of {ELEMENTS} BF16 values, batches of {BATCH}\n", LATENCY.as_millis());
    let folder = tempfile::tempdir()?;
    create(&folder.path().join("large"), 16, 16 << 10)?;
    create(&folder.path().join("many"), 1000, 256)?;
    let host = Host::start(folder.path())?;
    let large = folder.path().join("large");
    let stored = stored_bytes(&large);
    for mode in MODES {
        let (_, local) = epoch(&Dataset::open(&large)?, mode)?;
        row(&format!("{mode}, from local files"), stored, local, 0);
    }
    let links = [
        ("a link as fast as this machine", DelayProxy::start(host.address(), LATENCY)),
        ("a link of 125 MB/s", DelayProxy::start_limited(host.address(), LATENCY, LINK)),
    ];
    for (name, proxy) in &links {
        println!("\n{name}:");
        let url = format!("http://{}/large", proxy.address());
        let whole = fetch_whole(&large, &url)?;
        row("16 files as a whole, by curl", stored, whole, host.take_requests()?);
        for mode in MODES {
            let (_, time) = epoch(&Dataset::open(&url)?, mode)?;
            row(mode, stored, time, host.take_requests()?);
        }
    }
    let url = |name: &str| format!("http://{}/{name}", links[0].1.address());
    println!("\nwith a cache:");
    for mode in MODES {
        let cache = Cache::new(folder.path().join(mode), 1 << 30);
        for name in ["the first epoch", "the second epoch"] {
            let options = ObjectOptions::new().cache(Some(cache.clone()));
            let (_, time) = epoch(&DatasetOptions::new().object_options(options).open(url("large"))?, mode)?;
            row(&format!("{mode}, {name}"), stored, time, host.take_requests()?);
        }
    }
    println!("\nthe first batch of 1,000 files of 256 samples:");
    for mode in MODES {
        let begun = Instant::now();
        let dataset = Dataset::open(url("many"))?;
        let (first, _) = first_batch(&dataset, mode, begun)?;
        let trips = first.as_secs_f64() / LATENCY.as_secs_f64();
        println!(
            "{mode:>12}: {:6.0} ms, the time of {trips:.1} round trips, {} requests",
            first.as_secs_f64() * 1e3,
            host.take_requests()?
        );
    }
    Ok(())
}

fn row(name: &str, stored: u64, time: Duration, requests: usize) {
    let rate = stored as f64 / 1e6 / time.as_secs_f64();
    println!("{name:>30}: {rate:7.0} MB/s stored, {requests:5} requests");
}

/// Creates a dataset of files with so many samples each.
fn create(folder: &Path, files: usize, samples: usize) -> Result<(), Failure> {
    let mut random = Random(1);
    let schema = Schema::new([ColumnSchema::tensor("embedding", DType::Bf16, Shape::fixed(&[ELEMENTS as u32]))]);
    let mut changes = Dataset::create(folder)?;
    for _ in 0..files {
        let file = changes.next_file()?;
        let path = file.path().to_path_buf();
        let mut writer = Writer::new(file, schema.clone(), &WriterOptions::new().profile(Profile::Fast))?;
        let normal =
            |bits: u64| (0..4).map(|i| f32::from((bits >> (16 * i)) as u16) - 32_768.0).sum::<f32>() / 65_536.0;
        let values: Vec<bf16> = (0..samples * ELEMENTS).map(|_| bf16::from_f32(normal(random.bits()))).collect();
        writer.push_batch(&[ColumnBatch::fixed(samples, &values)])?;
        writer.finish()?;
        changes.append(&path)?;
    }
    changes.publish("create")?;
    Ok(())
}

fn files_of(folder: &Path) -> Vec<std::path::PathBuf> {
    let dataset = Dataset::open(folder).expect("a dataset");
    dataset.groups().flat_map(|group| group.expect("a manifest").files).map(|file| file.path).collect()
}

fn stored_bytes(folder: &Path) -> u64 {
    files_of(folder).iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum()
}

/// Fetches all files at the same time.
fn fetch_whole(folder: &Path, url: &str) -> Result<Duration, Failure> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--fail", "--parallel", "--parallel-max", "16"]);
    for path in files_of(folder) {
        let name = path.strip_prefix(folder)?.to_str().ok_or("a name")?.to_owned();
        command.args(["--output", "/dev/null"]).arg(format!("{url}/{name}"));
    }
    let begun = Instant::now();
    let status = command.status()?;
    if status.success() { Ok(begun.elapsed()) } else { Err("curl failed".into()) }
}

fn options(dataset: &Dataset, mode: &str) -> LoaderOptions {
    let mode = match mode {
        "sequential" => Mode::Sequential,
        "windowed" => Mode::Windowed(dataset.order()),
        _ => Mode::Shuffled,
    };
    LoaderOptions::new(BATCH).mode(mode).tail(Tail::Exact).seed(1)
}

/// Reads an epoch. Returns the number of samples, and the time.
fn epoch(dataset: &Dataset, mode: &str) -> Result<(u64, Duration), Failure> {
    let loader = options(dataset, mode).loader(&View::all(dataset))?;
    let (begun, mut count) = (Instant::now(), 0);
    for batch in loader.epoch(0) {
        count += batch?.samples().len() as u64;
    }
    Ok((count, begun.elapsed()))
}

/// Returns the time until the first batch.
fn first_batch(dataset: &Dataset, mode: &str, begun: Instant) -> Result<(Duration, usize), Failure> {
    let loader = options(dataset, mode).loader(&View::all(dataset))?;
    let batch = loader.epoch(0).next().ok_or("no batch")??;
    Ok((begun.elapsed(), batch.samples().len()))
}
