//! Measures the batches of a loader, taken as fast as the decode threads deliver them.
//!
//! The question is how many decode threads a training job needs. The options determine how much the
//! job consumes per second: the number of GPUs times the size of a batch, divided by the time of a
//! step. The loader is measured with more and more decode threads until it delivers that much. The
//! verdict names the number of threads that is enough, or else the share of time that the GPUs
//! would wait.

use super::args::{BenchArgs, IoName, OrderName, Times, WARM_UP_FACTOR, drop_from_cache, name};
use crate::commands::dataset::DatasetSize;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::options::Names;
use crate::output::{Output, print_json};
use crate::sys;
use crate::text::{self, Table, or_dash, write_facts};
use serde_json::{Value, json};
use std::hint::black_box;
use std::io::{self, Write};
use std::iter;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use tensilo_cuda::Gpu;
use tensilo_data::{DataError, Dataset, DatasetOptions, Io, LoaderMetrics, LoaderOptions, Order, View};

/// Measures how fast a loader delivers batches.
pub(super) fn run(args: &BenchArgs) -> Outcome {
    let dataset = open(args)?;
    let report = measure(args, &dataset)?;
    if args.json {
        return print_json(&report.document());
    }
    let mut output = Output::stdout();
    report.write_text(&mut output)?;
    output.finish()
}

/// Opens the dataset with the requested I/O method; by default, with a method that suits its files.
fn open(args: &BenchArgs) -> Outcome<Dataset> {
    let options = DatasetOptions::new();
    let options = match args.io {
        IoName::Auto => options,
        IoName::Mmap => sys::mmap(options),
        IoName::Pread => options.pread(),
        IoName::IoUring => uring(options, false)?,
        IoName::Direct => uring(options, true)?,
    };
    match open::dataset_with(options.clone(), &args.file)? {
        Some(dataset) => Ok(dataset),
        None => Ok(options.open(&args.file)?), // opens a single file as a dataset
    }
}

/// Selects reads by io_uring. Fails if the system does not provide it.
#[cfg(target_os = "linux")]
fn uring(options: DatasetOptions, is_direct: bool) -> Outcome<DatasetOptions> {
    use tensilo_data::UringFile;
    match UringFile::unavailable() {
        None => Ok(if is_direct { options.direct() } else { options.io_uring() }),
        Some(error) => Err(Failure::Usage(format!(
            "--io: io_uring is missing or forbidden on this system ({error}); use --io pread"
        ))),
    }
}

/// Fails, because this system has no io_uring.
#[cfg(not(target_os = "linux"))]
fn uring(_: DatasetOptions, _: bool) -> Outcome<DatasetOptions> {
    Err(Failure::Usage("--io: io_uring and direct need Linux".to_owned()))
}

fn measure<'a>(args: &'a BenchArgs, dataset: &Dataset) -> Outcome<Report<'a>> {
    /// The default number of samples in a batch.
    const DEFAULT_BATCH: u32 = 256;
    let order = args.loader.order;
    let sample_count = dataset.sample_count();
    let all = u32::try_from(sample_count).unwrap_or(u32::MAX);
    let batch = args.batch.unwrap_or(DEFAULT_BATCH.min(all.max(1)));
    let gpu = args.loader.device.map(Gpu::open).transpose().map_err(DataError::from)?;
    let bench = LoaderBench { args, gpu: gpu.as_ref(), mode: mode(args, order, dataset)?, batch };
    if sample_count < u64::from(batch) {
        let message = format!("--batch {batch}: the dataset has only {sample_count} samples");
        return Err(Failure::Usage(message));
    }
    let size = DatasetSize::of(dataset)?;
    let io = bench.io(dataset)?;
    let gpu = gpu.as_ref().map(|gpu| gpu.name().to_owned());
    let mut report = Report { args, io, gpu, order, batch, sample_count, size, runs: Vec::new() };
    if !args.cold {
        bench.prepare(dataset)?;
    }
    for threads in args.loader.decode_threads.map_or_else(thread_counts, |number| vec![number]) {
        let run = match args.cold {
            true => {
                bench.prepare(dataset)?;
                bench.run(&open(args)?, threads)?
            }
            false => bench.run(dataset, threads)?,
        };
        report.runs.push(run);
        if report.is_enough() {
            break;
        }
    }
    Ok(report)
}

fn mode(args: &BenchArgs, order: OrderName, dataset: &Dataset) -> Outcome<Order> {
    let windows = &args.loader.windows;
    match order {
        OrderName::Windowed => Ok(Order::Windowed(windows.sizes(dataset.window_sizes())?)),
        _ if windows.is_set() => {
            Err(Failure::Usage("--run-samples, --window-runs and --streams need --order windowed".to_owned()))
        }
        OrderName::Sequential => Ok(Order::Sequential),
        OrderName::Shuffled => Ok(Order::Shuffled),
    }
}

/// Returns the numbers of decode threads to try by default: powers of two below the number of
/// CPUs, and that number itself.
fn thread_counts() -> Vec<u32> {
    let cpus = available_parallelism().map_or(1, |number| u32::try_from(number.get()).unwrap_or(1));
    let doubled = iter::successors(Some(1_u32), |number| number.checked_mul(2));
    doubled.take_while(|number| *number < cpus).chain([cpus]).collect()
}

/// The results for one number of decode threads.
struct Run {
    decode_threads: u32,
    elapsed: Duration,
    /// The 50th and 99th percentile of the time from requesting a batch to receiving it, in
    /// nanoseconds.
    percentiles: [Option<f64>; 2],
    metrics: LoaderMetrics,
}

impl Run {
    fn samples_per_s(&self) -> f64 {
        self.per_second(self.metrics.samples)
    }

    /// Returns how many bytes of values are delivered per second.
    fn bytes_per_s(&self) -> f64 {
        self.per_second(self.metrics.value_bytes)
    }

    fn per_second(&self, amount: u64) -> f64 {
        // an approximation; the minimum duration prevents a division by 0
        amount as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The measured loader.
struct LoaderBench<'a> {
    args: &'a BenchArgs,
    /// The GPU that decodes the batches, if any.
    gpu: Option<&'a Gpu>,
    mode: Order,
    batch: u32,
}

impl LoaderBench<'_> {
    fn options(&self, decode_threads: u32) -> LoaderOptions {
        let options = LoaderOptions::new(self.batch).order(self.mode).stored_elements(true);
        let of = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let io_depth = self.args.loader.io_depth.unwrap_or(0); // the default
        let options = options.decode_threads(of(decode_threads)).io_depth(of(io_depth));
        let options = if let Some(gpu) = self.gpu { options.decode_on(gpu) } else { options };
        match Names::all(&self.args.loader.columns) {
            Some(names) => options.columns(names),
            None => options,
        }
    }

    /// Returns the I/O method of the loader, and the reason for it.
    fn io(&self, dataset: &Dataset) -> Outcome<(Io, &'static str)> {
        Ok(self.options(1).loader(&View::all(dataset))?.io())
    }

    /// Prepares a measurement. For cold reads, drops the files from the page cache; otherwise,
    /// reads batches for some time to fill the cache.
    fn prepare(&self, dataset: &Dataset) -> Outcome {
        if self.args.cold {
            for group in dataset.groups() {
                group?.files.iter().try_for_each(|file| drop_from_cache(&file.path))?;
            }
            return Ok(());
        }
        let sequential = Self { mode: Order::Sequential, ..*self };
        let loader = sequential.options(2).loader(&View::all(dataset))?;
        let started = Instant::now();
        for batch in loader.epoch(0) {
            drop(batch?);
            if started.elapsed() > self.args.seconds.saturating_mul(WARM_UP_FACTOR) {
                break;
            }
        }
        Ok(())
    }

    /// Takes batches as fast as the loader delivers them.
    fn run(&self, dataset: &Dataset, decode_threads: u32) -> Outcome<Run> {
        let loader = self.options(decode_threads).loader(&View::all(dataset))?;
        let batches = loader.epochs(0..if self.args.cold { 1 } else { u64::MAX });
        let mut times = Times::default();
        let started = Instant::now();
        let (elapsed, metrics) = match self.gpu {
            Some(gpu) => {
                let mut batches = batches.on_device(gpu.clone());
                let elapsed = self.take_all(&mut batches, started, &mut times)?;
                (elapsed, batches.metrics())
            }
            None => {
                let mut batches = batches;
                let elapsed = self.take_all(&mut batches, started, &mut times)?;
                (elapsed, batches.metrics())
            }
        };
        let percentiles = [times.percentile(50), times.percentile(99)];
        Ok(Run { decode_threads, elapsed, percentiles, metrics })
    }

    /// Takes batches for the duration of a measurement. Returns the time from `started` to the last
    /// batch.
    fn take_all<B>(
        &self,
        batches: &mut impl Iterator<Item = Result<B, DataError>>,
        started: Instant,
        times: &mut Times,
    ) -> Outcome<Duration> {
        let mut last = started;
        while last.duration_since(started) < self.args.seconds {
            let Some(batch) = batches.next() else { break };
            drop(black_box(batch?));
            let now = Instant::now();
            times.add(now.duration_since(last));
            last = now;
        }
        Ok(last.duration_since(started))
    }
}

/// The results of all measurements.
struct Report<'a> {
    args: &'a BenchArgs,
    /// The I/O method, and the reason for it.
    io: (Io, &'static str),
    /// The name of the GPU that decodes the batches, if any.
    gpu: Option<String>,
    order: OrderName,
    batch: u32,
    sample_count: u64,
    size: DatasetSize,
    /// The results for each number of decode threads, in ascending order. Not empty.
    runs: Vec<Run>,
}

impl Report<'_> {
    fn sample_bytes(&self) -> f64 {
        let (bytes, samples) = self.runs.first().map_or((0, 0), |run| (run.metrics.value_bytes, run.metrics.samples));
        bytes as f64 / samples.max(1) as f64 // an approximation
    }

    /// Returns how many bytes the GPUs consume per second.
    fn required(&self) -> f64 {
        let step = self.args.loader.step_ms.as_secs_f64(); // above 0
        f64::from(self.args.loader.gpus) * f64::from(self.batch) * self.sample_bytes() / step
    }

    /// Returns the share of time that the GPUs would wait.
    fn waiting(&self, run: &Run) -> f64 {
        let required = self.required();
        if required > 0.0 { (1.0 - run.bytes_per_s() / required).max(0.0) } else { 0.0 }
    }

    /// Returns whether the last measurement delivered as much as the GPUs consume.
    fn is_enough(&self) -> bool {
        self.runs.last().is_some_and(|run| self.waiting(run) == 0.0)
    }

    fn verdict(&self) -> String {
        let gpus = self.args.loader.gpus;
        let enough = self.runs.iter().find(|run| self.waiting(run) == 0.0);
        if let Some(run) = enough {
            let times = run.bytes_per_s() / self.required().max(1.0);
            let threads = text::count(run.decode_threads, "decode thread");
            let are = if run.decode_threads == 1 { "is" } else { "are" };
            return format!("{threads} {are} enough: the loader delivers {times:.1} times what {gpus} GPUs consume");
        }
        let best = self.runs.iter().min_by(|a, b| self.waiting(a).total_cmp(&self.waiting(b)));
        best.map_or_else(String::new, |run| {
            let waiting = self.waiting(run) * 100.0;
            let threads = text::count(run.decode_threads, "decode thread");
            format!(
                "not enough: with {threads}, {gpus} GPUs would wait {waiting:.0} % of the time; {}",
                run.metrics.verdict()
            )
        })
    }

    /// Returns the JSON document of schema `tensilo.bench-loader/1`.
    fn document(&self) -> Value {
        let args = self.args;
        let runs = self.runs.iter().map(|run| {
            let metrics = &run.metrics;
            json!({
                "decode_threads": run.decode_threads,
                "io_depth": metrics.io_depth,
                "read_samples": metrics.samples,
                "seconds": run.elapsed.as_secs_f64(),
                "samples_per_s": run.samples_per_s(),
                "delivered_gb_per_s": run.bytes_per_s() / 1e9,
                "ns_per_batch_p50": run.percentiles[0],
                "ns_per_batch_p99": run.percentiles[1],
                "waiting_share": self.waiting(run),
                "first_batch_s": metrics.first_batch.as_secs_f64(),
                "read_bytes": metrics.read_bytes,
                "planning_s": metrics.planning.as_secs_f64(),
                "fetching_s": metrics.fetching.as_secs_f64(),
                "decoding_s": metrics.decoding.as_secs_f64(),
                "copied_bytes": metrics.copied_bytes,
                "copying_s": metrics.copying.as_secs_f64(),
                "device_decoding_s": metrics.device_decoding.as_secs_f64(),
                "device_waited_s": metrics.device_waited.as_secs_f64(),
            })
        });
        json!({
            "schema": "tensilo.bench-loader/1",
            "file": args.file.to_string_lossy(),
            "sample_count": self.sample_count,
            "file_count": self.size.files,
            "file_bytes": self.size.bytes,
            "order": name(self.order),
            "batch": self.batch,
            "io": self.io.0.name(),
            "device": self.gpu,
            "cold": args.cold,
            "gpus": args.loader.gpus,
            "step_s": args.loader.step_ms.as_secs_f64(),
            "sample_bytes": self.sample_bytes(),
            "required_gb_per_s": self.required() / 1e9,
            "runs": runs.collect::<Vec<Value>>(),
            "verdict": self.verdict(),
        })
    }

    /// Writes the results as text.
    fn write_text(&self, output: &mut impl Write) -> io::Result<()> {
        let args = &self.args.loader;
        let (stored, files) = (text::bytes(self.size.bytes), text::count(self.size.files, "file"));
        let cache = if self.args.cold { "cold" } else { "warm" };
        let (order, step) = (name(self.order), text::nanoseconds(args.step_ms.as_secs_f64() * 1e9));
        let required = self.required() / 1e9;
        let mut facts = vec![
            ("dataset", text::excerpt(&self.args.file.to_string_lossy())),
            ("samples", format!("{} in {files}, {stored} in total", self.sample_count)),
            ("batches", format!("{} samples of {:.0} B, {order}", self.batch, self.sample_bytes())),
            ("io", format!("{}: {}; {cache}", self.io.0.name(), self.io.1)),
            ("required", format!("{required:.3} GB/s: a batch for each of {} GPUs every {step}", args.gpus)),
        ];
        if let (Some(gpu), Some(run)) = (&self.gpu, self.runs.last()) {
            let LoaderMetrics { copied_bytes, copying, device_decoding, value_bytes, .. } = run.metrics;
            let rate = |bytes: u64, time: Duration| bytes as f64 / time.as_secs_f64().max(1e-9) / 1e9;
            let (copied, decoded) = (rate(copied_bytes, copying), rate(value_bytes, device_decoding));
            let ratio = value_bytes as f64 / copied_bytes.max(1) as f64;
            let fact = format!("{gpu}: copies {copied:.1} GB/s, decodes {decoded:.1} GB/s, ratio {ratio:.2}");
            facts.push(("device", fact));
        }
        write_facts(output, &facts)?;
        writeln!(output)?;
        let headings = [">decode threads", ">samples/s", ">GB/s", ">p50", ">p99", ">first batch", ">GPUs wait"];
        let mut table = Table::new(&headings);
        for run in &self.runs {
            let [p50, p99] = run.percentiles.map(|time| or_dash(time, text::nanoseconds));
            table.row(vec![
                run.decode_threads.to_string(),
                format!("{:.0}", run.samples_per_s()),
                format!("{:.3}", run.bytes_per_s() / 1e9),
                p50,
                p99,
                text::nanoseconds(run.metrics.first_batch.as_secs_f64() * 1e9),
                format!("{:.0} %", self.waiting(run) * 100.0),
            ]);
        }
        table.write(output)?;
        writeln!(output, "\n{}", self.verdict())
    }
}
