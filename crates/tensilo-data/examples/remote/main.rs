//! Epochs from a server 20 ms away, compared with fetching the same bytes as whole files: rates,
//! requests, and round trips until the first batch. Then the same epochs with a cache.
//!
//! ```text
//! cargo run --release -p tensilo-data --features object --example remote
//! ```
//!
//! Needs nginx and curl. The server is on the loopback address, behind a proxy that delays
//! requests.

mod host;

use half::bf16;
use host::Host;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};
use tensilo_data::{Dataset, DatasetOptions, LastBatch, LoaderOptions, Order, View};
use tensilo_object::{Cache, ObjectOptions};
use tensilo_testing::{DelayProxy, Random};

type Failure = Box<dyn std::error::Error>;

const LATENCY: Duration = Duration::from_millis(20);
/// Bytes per second of the slower link: 1 Gbit/s.
const LINK: u64 = 125_000_000;
const ELEMENTS: usize = 512;
const BATCH: u32 = 256;
const MODES: [&str; 3] = ["sequential", "windowed", "shuffled"];

fn main() -> Result<(), Failure> {
    println!("a server {} ms away; samples of {ELEMENTS} BF16 values, batches of {BATCH}\n", LATENCY.as_millis());
    let folder = tempfile::tempdir()?;
    create(&folder.path().join("large"), 16, 16 << 10)?;
    create(&folder.path().join("many"), 1000, 256)?;
    let host = Host::start(folder.path())?;
    let large = folder.path().join("large");
    for mode in MODES {
        let local = epoch(&Dataset::open(&large)?, mode)?;
        row(&format!("{mode}, from local files"), stored_bytes(&large), local, 0);
    }
    let fast = DelayProxy::start(host.address(), LATENCY);
    let slow = DelayProxy::start_limited(host.address(), LATENCY, LINK, u64::MAX);
    for (name, proxy) in [("a link as fast as this machine", &fast), ("a link of 125 MB/s", &slow)] {
        println!("\n{name}:");
        epochs(&host, &large, &format!("http://{}/large", proxy.address()))?;
    }
    println!("\nwith a cache:");
    cached_epochs(&host, &large, &format!("http://{}/large", fast.address()))?;
    for latency in [LATENCY, 5 * LATENCY] {
        println!("\nthe first batch of 1,000 files of 256 samples, {} ms away:", latency.as_millis());
        first_batches(&host, latency)?;
    }
    Ok(())
}

/// Reads epochs from a server, and the same files as a whole.
fn epochs(host: &Host, files: &Path, url: &str) -> Result<(), Failure> {
    let stored = stored_bytes(files);
    let whole = fetch_whole(files, url)?;
    row("16 files as a whole, by curl", stored, whole, host.take_requests()?);
    for mode in MODES {
        let time = epoch(&Dataset::open(url)?, mode)?;
        row(mode, stored, time, host.take_requests()?);
    }
    Ok(())
}

/// Reads two epochs with a cache that is empty at first. The second epoch opens the dataset again.
fn cached_epochs(host: &Host, files: &Path, url: &str) -> Result<(), Failure> {
    for mode in MODES {
        let folder = tempfile::tempdir()?;
        for name in ["the first epoch", "the second epoch"] {
            let options = ObjectOptions::new().cache(Some(Cache::new(folder.path(), 1 << 30)));
            let time = epoch(&DatasetOptions::new().object_options(options).open(url)?, mode)?;
            row(&format!("{mode}, {name}"), stored_bytes(files), time, host.take_requests()?);
        }
    }
    Ok(())
}

fn first_batches(host: &Host, latency: Duration) -> Result<(), Failure> {
    let proxy = DelayProxy::start(host.address(), latency);
    for mode in MODES {
        let first = first_batch(&format!("http://{}/many", proxy.address()), mode)?;
        let trips = first.as_secs_f64() / latency.as_secs_f64();
        let (milliseconds, requests) = (first.as_secs_f64() * 1e3, host.take_requests()?);
        println!("{mode:>12}: {milliseconds:6.0} ms, the time of {trips:.1} round trips, {requests} requests");
    }
    Ok(())
}

fn row(name: &str, stored: u64, time: Duration, requests: usize) {
    let rate = stored as f64 / 1e6 / time.as_secs_f64();
    println!("{name:>30}: {rate:7.0} MB/s stored, {requests:5} requests");
}

/// Creates a dataset of `files` files with `samples` samples each.
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
        changes.add_file(&path)?;
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
        "sequential" => Order::Sequential,
        "windowed" => Order::Windowed(dataset.window_sizes()),
        _ => Order::Shuffled,
    };
    LoaderOptions::new(BATCH).order(mode).last_batch(LastBatch::Exact).seed(1)
}

/// Reads an epoch. Returns the time it took.
fn epoch(dataset: &Dataset, mode: &str) -> Result<Duration, Failure> {
    let loader = options(dataset, mode).loader(&View::all(dataset))?;
    let begun = Instant::now();
    loader.epoch(0).try_for_each(|batch| batch.map(drop))?;
    Ok(begun.elapsed())
}

/// Opens a dataset, and returns the time until its first batch.
fn first_batch(url: &str, mode: &str) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let dataset = Dataset::open(url)?;
    let loader = options(&dataset, mode).loader(&View::all(&dataset))?;
    let mut batches = loader.epoch(0);
    batches.next().ok_or("no batch")??;
    Ok(begun.elapsed())
}
