//! A cluster in miniature: processes that train on 1,000 objects of a real S3 server, beside the
//! model's prediction.
//!
//! ```text
//! cargo run --release -p tensilo-data --features object --example cluster
//! ```
//!
//! The model of training at scale is arithmetic, and 64 machines are rarely there to check it. But
//! it has no constant of its own: latency, bandwidth and sizes are parameters. So it must also be
//! right for machines that are much slower. Each node is a process with one rank, behind its own
//! proxy, which delays requests, limits the bandwidth of the node and of each connection, and
//! answers some requests with 503. Its limits are so low that the server and the processors of this
//! machine do not matter. As with an all-reduce, no node begins a step before all of them have
//! their batches.
//!
//! The example fails if requests or bytes differ from the model by more than 3 %. It needs
//! `moto_server` (`pip install 'moto[s3,server]'`), in the path or in the virtual environment
//! `$TENSILO_SERVERS/venv`. `README.md` has its table.

mod node;
mod server;

use node::Nodes;
use server::{Server, options};
use std::ops::Range;
use std::time::{Duration, Instant};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Schema, Shape, Writer, WriterOptions};
use tensilo_data::model::{self, CacheSize, ColumnModel, Job, Latency, Storage, Traffic};
use tensilo_data::{Dataset, DatasetOptions, Order, WindowSizes};
use tensilo_testing::Random;

type Failure = Box<dyn std::error::Error>;

/// The folder of the dataset.
const DATASET: &str = "s3://bucket/train";
const FILES: u32 = 1000;
/// The number of samples of a file, and of elements of a sample.
const FILE_SAMPLES: usize = 1800;
const ELEMENTS: usize = 512;
/// The number of samples of a batch.
const BATCH: u32 = 64;
/// The time of a step with data in memory.
const STEP: Duration = Duration::from_millis(10);
const LATENCY: Duration = Duration::from_millis(20);
/// The bandwidths of a connection and of a node, in bytes per second.
const CONNECTION_RATE: u64 = 8_000_000;
const NODE_RATE: u64 = 2_000_000;
/// One in this number of requests is answered with 503.
const FAULT_RATE: u64 = 50;
/// The maximum difference of requests and bytes, and of waits.
const MAX_DIFFERENCE: f64 = 0.03;
const MAX_WAIT_DIFFERENCE: f64 = 0.3;

fn main() -> Result<(), Failure> {
    if let Some(node) = node::Node::from_environment()? {
        return node.run();
    }
    let server = Server::start()?;
    let dataset = create(&server)?;
    let columns = ColumnModel::of(&dataset, &["embedding".to_owned()])?;
    let sizes = WindowSizes::new(1 << 10, 2)?.with_streams(16)?; // runs of 0.7 MB
    let orders = [(Order::Windowed(sizes), true), (Order::Windowed(sizes), false), (Order::Shuffled, false)];
    println!("| nodes | order | cache | requests | model | | bytes | model | | wait | model | |");
    println!("|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut is_right = true;
    for nodes in [8, 16] {
        for (order, has_cache) in orders {
            let job = Job { batch_size: BATCH, nodes, node_ranks: 1, step: STEP };
            let epoch_steps = job.division()?.steps(dataset.sample_count(), 0);
            // each shuffled batch has samples of many files, so fewer steps are enough
            let steps = if order == Order::Shuffled { epoch_steps.min(8) } else { epoch_steps };
            let measured = measure(&server, &job, order, has_cache, steps)?;
            let predicted = predict(&columns, &job, order, has_cache, 0..steps)?;
            is_right &= write_row(&job, order, has_cache, &measured, &predicted);
        }
    }
    match is_right {
        true => Ok(()),
        false => Err(format!("requests or bytes differ by more than {} %", MAX_DIFFERENCE * 100.0).into()),
    }
}

/// What a node read, and how long the job waited for a step.
struct Reads {
    requests: f64,
    bytes: f64,
    wait: Duration,
}

/// Writes a row of the table. Returns whether requests and bytes are as predicted.
fn write_row(job: &Job, order: Order, has_cache: bool, measured: &Reads, predicted: &Reads) -> bool {
    let difference = |found: f64, expected: f64| found / expected - 1.0;
    let percent = |difference: f64| format!("{:+.1} %", difference * 100.0);
    let name = if order == Order::Shuffled { "shuffled" } else { "windowed" };
    let cache = if has_cache { "yes" } else { "no" };
    let requests = difference(measured.requests, predicted.requests);
    let bytes = difference(measured.bytes, predicted.bytes);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let wait = difference(milliseconds(measured.wait), milliseconds(predicted.wait));
    println!(
        "| {} | {name} | {cache} | {:.0} | {:.0} | {} | {:.1} MB | {:.1} MB | {} | {:.1} ms | {:.1} ms | {}{} |",
        job.nodes,
        measured.requests,
        predicted.requests,
        percent(requests),
        measured.bytes / 1e6,
        predicted.bytes / 1e6,
        percent(bytes),
        milliseconds(measured.wait),
        milliseconds(predicted.wait),
        percent(wait),
        if wait.abs() > MAX_WAIT_DIFFERENCE { " (!)" } else { "" },
    );
    requests.abs() <= MAX_DIFFERENCE && bytes.abs() <= MAX_DIFFERENCE
}

/// Creates the dataset: embeddings of 512 BF16 values.
fn create(server: &Server) -> Result<Dataset, Failure> {
    let begun = Instant::now();
    let mut random = Random(1);
    let schema = Schema::new([ColumnSchema::tensor("embedding", DType::Bf16, Shape::fixed(&[ELEMENTS as u32]))]);
    let mut changes = DatasetOptions::new().object_options(options(server.address())).create(DATASET)?;
    let mut normal = || {
        let bits = random.bits();
        (0..4).map(|i| f32::from((bits >> (16 * i)) as u16) - 32_768.0).sum::<f32>() / 65_536.0
    };
    let values: Vec<half::bf16> = (0..FILE_SAMPLES * ELEMENTS).map(|_| half::bf16::from_f32(normal())).collect();
    for _ in 0..FILES {
        let file = changes.next_file()?;
        let path = file.path().to_path_buf();
        let mut writer = Writer::new(file, schema.clone(), &WriterOptions::new().profile(Profile::Fast))?;
        writer.push_batch(&[ColumnBatch::fixed(FILE_SAMPLES, &values)])?;
        writer.finish()?;
        changes.add_file(&path)?;
    }
    let dataset = changes.publish("create")?;
    eprintln!("{FILES} objects written in {:.0?}", begun.elapsed());
    Ok(dataset)
}

/// Runs a job, and returns the average reads of a node.
fn measure(server: &Server, job: &Job, order: Order, has_cache: bool, steps: u64) -> Result<Reads, Failure> {
    let mut nodes = Nodes::start(server, job, order, has_cache)?;
    let mut waited = Duration::ZERO;
    for _ in 0..steps {
        waited += nodes.wait_for_batches()?;
        std::thread::sleep(job.step);
    }
    let (requests, bytes) = nodes.finish()?;
    let of_node = |total: usize| total as f64 / f64::from(job.nodes);
    Ok(Reads { requests: of_node(requests), bytes: of_node(bytes), wait: waited.div_f64(steps as f64) })
}

/// Returns the prediction for a node.
fn predict(
    columns: &[ColumnModel],
    job: &Job,
    order: Order,
    has_cache: bool,
    steps: Range<u64>,
) -> Result<Reads, Failure> {
    let kind = if has_cache { Storage::CACHED_OBJECTS } else { Storage::OBJECTS };
    let storage = Storage {
        latency: Latency::constant(LATENCY.as_secs_f64()),
        request_bandwidth: CONNECTION_RATE as f64,
        node_bandwidth: NODE_RATE as f64,
        node_requests: f64::INFINITY,
        total_requests: f64::INFINITY,
        cache: kind.cache.map(|cache| CacheSize { bytes: node::CACHE_BYTES, ..cache }),
        ..kind
    };
    let column = columns.first().ok_or("the dataset has no columns")?;
    let traffic: Traffic = model::simulate(column, order, job, &storage, steps)?;
    let seconds = model::predict(columns, order, job, &storage)?.step_seconds;
    let wait = Duration::from_secs_f64(seconds).saturating_sub(job.step);
    Ok(Reads { requests: traffic.requests() as f64, bytes: traffic.bytes() as f64, wait })
}
