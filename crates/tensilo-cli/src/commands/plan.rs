//! `tensilo plan`: predicts what a training job will read, wait for and keep in memory.
//!
//! Nothing is measured: [`tensilo_data::model`] simulates the loader on the manifest and on the
//! structure of the first file. So the plan takes seconds, and needs neither the machines of the
//! job nor its storage.

use crate::commands::bench::args::{OrderName, name, step};
use crate::commands::dataset::DatasetSize;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::options::{Names, WindowArgs};
use crate::output::{Output, print_json};
use crate::text::{self, Table, write_facts};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tensilo_data::model::{ColumnModel, Job, Latency, Prediction, Storage, predict};
use tensilo_data::{DatasetOptions, Io, Order, WindowSizes};

const PLAN: &str = "\
Examples:
  tensilo plan train/ --nodes 64 --ranks 8 --step-ms 200 --storage s3
  tensilo plan s3://bucket/train --nodes 64 --columns embedding,label
  tensilo plan train/ --streams 512 --window-runs 4   try other window sizes
  tensilo plan train/ --storage s3 --latency-ms 20 --p99-latency-ms 400
  tensilo plan train/ --nodes 64 --json | jq '.orders[] | .waiting_share'

The plan is computed from the manifest and the first file, as if all files were
like it. It simulates one machine in the first epoch:

requests      requests of a machine in an epoch
read          bytes that a machine reads in an epoch
amplification what all machines read, divided by the stored size of what they
              need; 1 is the minimum
windows       memory or cache of a machine for the runs that are prefetched in
              windowed order: two or more windows of each stream of its ranks
step          the time in which the storage delivers a step
GPUs wait     the share of the time that GPUs would wait for data. Decoding is
              not included: measure it with \"tensilo bench --loader\"

All ranks wait for the slowest one, so a few late responses can stop a large
job. --p99-latency-ms says how late they are. Without it, all are equally fast.

In windowed order, each machine reads its own share if there are at least as
many streams as machines. \"tensilo dataset set-window-sizes\" records other
sizes.

JSON, schema tensilo.plan/1 (these members are stable, and more may be added):
  schema, file, sample_count, file_count, file_bytes, columns
  nodes, ranks, batch, step_s, step_samples, steps
  storage      name, latency_s, p99_latency_s, request_bytes_per_s,
               node_bytes_per_s, node_requests_per_s, total_requests_per_s
  window_sizes run_samples, window_runs, streams
  orders       one entry for each order: order, node_requests, node_bytes,
               amplification, opened_files, round_trips, window_bytes,
               step_s, waiting_share";

#[derive(Args, Debug)]
#[command(after_help = PLAN)]
pub(crate) struct PlanArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    file: PathBuf,
    /// The number of machines
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    nodes: u32,
    /// The number of ranks of a machine, usually the number of its GPUs
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: u32,
    /// The number of samples in a batch of one rank
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: u32,
    /// The duration of a training step, in milliseconds
    #[arg(long, value_name = "MS", default_value = "200", value_parser = step)]
    step_ms: Duration,
    /// The columns of a batch [default: all]
    #[arg(long, value_name = "a,b")]
    columns: Vec<Names>,
    /// The storage [default: s3 for a dataset in an object store, otherwise nvme]
    #[arg(long, value_enum)]
    storage: Option<StorageName>,
    /// The time from a request to its first byte, in milliseconds [default: as the storage]
    #[arg(long, value_name = "MS", value_parser = step)]
    latency_ms: Option<Duration>,
    /// The same for the slowest of 100 requests [default: as --latency-ms]
    #[arg(long, value_name = "MS", value_parser = step)]
    p99_latency_ms: Option<Duration>,
    /// The bandwidth between a machine and the storage [default: as the storage]
    #[arg(long, value_name = "N", value_parser = gbit)]
    gbit_per_s: Option<f64>,
    #[command(flatten)]
    windows: WindowArgs,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// The values of `--storage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StorageName {
    /// An object store in the same region
    S3,
    /// The same, with a local cache of 16 GiB on each machine
    S3Cache,
    /// A local NVMe disk
    Nvme,
    /// A parallel or network file system
    Nfs,
}

impl StorageName {
    fn storage(self) -> Storage {
        match self {
            Self::S3 => Storage::OBJECTS,
            Self::S3Cache => Storage::CACHED_OBJECTS,
            Self::Nvme => Storage::NVME,
            Self::Nfs => Storage::PARALLEL,
        }
    }
}

/// Parses Gbit/s: from 0.001 to 100000.
fn gbit(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.001..=1e5).contains(number));
    number.ok_or_else(|| "expected Gbit/s, from 0.001 to 100000".to_owned())
}

pub(super) fn run(args: &PlanArgs) -> Outcome {
    let plan = Plan::of(args)?;
    if args.json {
        return print_json(&plan.document());
    }
    let mut output = Output::stdout();
    plan.write_text(&mut output)?;
    output.finish()
}

/// What the job will read in each order.
struct Plan<'a> {
    args: &'a PlanArgs,
    job: Job,
    storage: Storage,
    sample_count: u64,
    size: DatasetSize,
    columns: Vec<String>,
    sizes: WindowSizes,
    orders: Vec<(OrderName, Prediction)>,
}

impl<'a> Plan<'a> {
    fn of(args: &'a PlanArgs) -> Outcome<Self> {
        let dataset = match open::dataset(&args.file)? {
            Some(dataset) => dataset,
            None => DatasetOptions::new().open(&args.file)?, // opens a single file as a dataset
        };
        let all = || dataset.schema().columns.iter().map(|column| column.name.clone()).collect();
        let columns: Vec<String> = Names::all(&args.columns).unwrap_or_else(all);
        let models = ColumnModel::of(&dataset, &columns)?;
        let job = Job { batch_size: args.batch, nodes: args.nodes, node_ranks: args.ranks, step: args.step_ms };
        let is_object = dataset.io() == Io::Object;
        let name = args.storage.unwrap_or(if is_object { StorageName::S3 } else { StorageName::Nvme });
        let mut storage = name.storage();
        let median_seconds = args.latency_ms.map_or(storage.latency.median_seconds, |latency| latency.as_secs_f64());
        let p99_seconds = args.p99_latency_ms.map_or(median_seconds, |latency| latency.as_secs_f64());
        storage.latency = Latency { median_seconds, p99_seconds };
        storage.node_bandwidth = args.gbit_per_s.map_or(storage.node_bandwidth, |gbit| gbit * 1e9 / 8.0);
        let sizes = args.windows.sizes(dataset.window_sizes())?;
        let predicted = |(name, order)| Ok::<_, Failure>((name, predict(&models, order, &job, &storage)?));
        let orders = [
            (OrderName::Sequential, Order::Sequential),
            (OrderName::Windowed, Order::Windowed(sizes)),
            (OrderName::Shuffled, Order::Shuffled),
        ];
        let orders = orders.into_iter().map(predicted).collect::<Outcome<_>>()?;
        let (sample_count, size) = (dataset.sample_count(), DatasetSize::of(&dataset)?);
        Ok(Self { args, job, storage, sample_count, size, columns, sizes, orders })
    }

    fn step_samples(&self) -> u64 {
        u64::from(self.job.batch_size).saturating_mul(self.job.nodes.into()).saturating_mul(self.job.node_ranks.into())
    }

    fn steps(&self) -> u64 {
        self.orders.first().map_or(0, |(_, found)| found.steps)
    }

    /// Returns the JSON document of schema `tensilo.plan/1`.
    fn document(&self) -> Value {
        let orders = self.orders.iter().map(|(order, found)| {
            json!({
                "order": name(*order),
                "node_requests": found.node_requests,
                "node_bytes": found.node_bytes,
                "amplification": found.amplification,
                "opened_files": found.opened_files,
                "round_trips": found.waits,
                "window_bytes": found.window_bytes,
                "step_s": found.step_seconds,
                "waiting_share": found.waiting_share,
            })
        });
        let (sizes, storage) = (self.sizes, &self.storage);
        json!({
            "schema": "tensilo.plan/1",
            "file": self.args.file.to_string_lossy(),
            "sample_count": self.sample_count,
            "file_count": self.size.files,
            "file_bytes": self.size.bytes,
            "columns": self.columns,
            "nodes": self.job.nodes,
            "ranks": self.job.node_ranks,
            "batch": self.job.batch_size,
            "step_s": self.job.step.as_secs_f64(),
            "step_samples": self.step_samples(),
            "steps": self.steps(),
            "storage": {
                "name": storage.name,
                "latency_s": storage.latency.median_seconds,
                "p99_latency_s": storage.latency.p99_seconds,
                "request_bytes_per_s": storage.request_bandwidth,
                "node_bytes_per_s": storage.node_bandwidth,
                "node_requests_per_s": storage.node_requests,
                // not a number in JSON if it is infinite
                "total_requests_per_s": storage.total_requests.is_finite().then_some(storage.total_requests),
            },
            "window_sizes": {
                "run_samples": sizes.run_samples(),
                "window_runs": sizes.window_runs(),
                "streams": sizes.streams(),
            },
            "orders": orders.collect::<Vec<Value>>(),
        })
    }

    fn write_text(&self, output: &mut impl Write) -> io::Result<()> {
        let (stored, files) = (text::bytes(self.size.bytes), text::count(self.size.files, "file"));
        let (job, storage) = (&self.job, &self.storage);
        let (nodes, ranks) = (text::count(job.nodes, "machine"), text::count(job.node_ranks, "rank"));
        let time = |seconds: f64| text::nanoseconds(seconds * 1e9);
        let rate = |rate: f64| text::bytes(rate as u64); // saturates
        let (latency, request) = (time(storage.latency.median_seconds), rate(storage.request_bandwidth));
        let facts = [
            ("dataset", text::excerpt(&self.args.file.to_string_lossy())),
            ("samples", format!("{} in {files}, {stored} in total", self.sample_count)),
            ("columns", text::excerpt(&self.columns.join(", "))),
            (
                "job",
                format!(
                    "{nodes} with {ranks}, batches of {}, steps of {}",
                    job.batch_size,
                    time(job.step.as_secs_f64())
                ),
            ),
            ("epoch", format!("{} of {} samples", text::count(self.steps(), "step"), self.step_samples())),
            (
                "storage",
                format!(
                    "{}: {latency}, {request}/s per request, {}/s per machine",
                    storage.name,
                    rate(storage.node_bandwidth)
                ),
            ),
            ("windowed", self.sizes.to_string()),
        ];
        write_facts(output, &facts)?;
        writeln!(output)?;
        let headings = ["order", ">requests", ">read", ">amplification", ">windows", ">step", ">GPUs wait"];
        let mut table = Table::new(&headings);
        for (order, found) in &self.orders {
            let is_windowed = *order == OrderName::Windowed;
            table.row(vec![
                name(*order),
                format!("{:.0}", found.node_requests),
                text::bytes(found.node_bytes as u64), // saturates
                format!("{:.2}", found.amplification),
                if is_windowed { text::bytes(found.window_bytes as u64) } else { "-".to_owned() },
                time(found.step_seconds),
                format!("{:.0} %", found.waiting_share * 100.0),
            ]);
        }
        table.write(output)?;
        if self.sizes.streams() < job.nodes {
            writeln!(
                output,
                "\n{} for {nodes}: machines share streams, and each reads all runs of the streams that it shares",
                text::count(self.sizes.streams(), "stream"),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_have_bounds() {
        assert_eq!(gbit("25"), Ok(25.0));
        assert!(["", "0", "-1", "NaN", "inf", "100001", "1G"].iter().all(|text| gbit(text).is_err()));
    }
}
