//! The report of `tensilo bench --loader`, as a JSON document and as text.

use super::super::args::BenchArgs;
use super::args::OrderName;
use super::io::describe;
use super::measure::Run;
use super::plot;
use super::shuffle::Quality;
use crate::dataset::DatasetSize;
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use crate::text::{Cells, Table};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;
use tensilo_data::{Io, LoaderMetrics};

/// The results of all runs.
pub(super) struct LoaderReport<'a> {
    pub args: &'a BenchArgs,
    /// How files are read, and why.
    pub io: (Io, &'static str),
    /// The name of the GPU that decodes, if one does.
    pub gpu: Option<String>,
    pub order: OrderName,
    pub batch: u32,
    pub sample_count: u64,
    pub size: DatasetSize,
    /// At least one, by ascending decode threads.
    pub runs: Vec<Run>,
    /// The quality of the order and of a true shuffle, if it was asked for.
    pub quality: Option<[Quality; 2]>,
}

impl LoaderReport<'_> {
    fn sample_bytes(&self) -> f64 {
        let (bytes, samples) = self.runs.first().map_or((0, 0), |run| (run.value_bytes, run.samples));
        bytes as f64 / samples.max(1) as f64 // an approximation
    }

    /// Returns the bytes per second that the consumers take.
    pub(super) fn required(&self) -> f64 {
        let step = self.args.loader.step_ms.as_secs_f64(); // above 0
        f64::from(self.args.loader.gpus) * f64::from(self.batch) * self.sample_bytes() / step
    }

    /// Returns the share of time that the consumers would have waited.
    fn waiting(&self, run: &Run) -> f64 {
        let required = self.required();
        if required > 0.0 { (1.0 - run.per_second(run.value_bytes) / required).max(0.0) } else { 0.0 }
    }

    /// Returns whether the last run delivers what the consumers take.
    pub(super) fn is_enough(&self) -> bool {
        self.runs.last().is_some_and(|run| self.waiting(run) == 0.0)
    }

    /// Returns the bytes per second for each number of decode threads.
    pub(super) fn rates(&self) -> Vec<(u32, f64)> {
        self.runs.iter().map(|run| (run.decode_threads, run.per_second(run.value_bytes))).collect()
    }

    fn verdict(&self) -> String {
        let gpus = self.args.loader.gpus;
        let enough = self.runs.iter().find(|run| self.waiting(run) == 0.0);
        if let Some(run) = enough {
            let times = run.per_second(run.value_bytes) / self.required().max(1.0);
            let threads = human::count(run.decode_threads, "decode thread");
            let are = if run.decode_threads == 1 { "is" } else { "are" };
            return format!("{threads} {are} enough: the loader delivers {times:.1} times what {gpus} GPUs take");
        }
        let best = self.runs.iter().min_by(|a, b| self.waiting(a).total_cmp(&self.waiting(b)));
        best.map_or_else(String::new, |run| {
            let waiting = self.waiting(run) * 100.0;
            let threads = human::count(run.decode_threads, "decode thread");
            format!(
                "not enough: with {threads}, {gpus} GPUs would wait {waiting:.0} % of the time; {}",
                run.metrics.verdict()
            )
        })
    }

    /// Returns the JSON document of schema `tensilo.bench-loader/1`.
    pub(super) fn document(&self) -> Value {
        let args = self.args;
        let run = |run: &Run| {
            let metrics = &run.metrics;
            json!({
                "decode_threads": run.decode_threads,
                "io_depth": metrics.io_depth,
                "samples": run.samples,
                "seconds": run.elapsed.as_secs_f64(),
                "samples_per_s": run.per_second(run.samples),
                "delivered_gb_per_s": run.per_second(run.value_bytes) / 1e9,
                "ns_per_batch_p50": run.times.percentile(50),
                "ns_per_batch_p99": run.times.percentile(99),
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
        };
        let quality = |quality: &Quality| {
            json!({
                "neighbours": quality.neighbours,
                "distance": quality.distance,
                "run_distance": quality.run_distance,
                "labels_per_batch": quality.labels,
            })
        };
        json!({
            "schema": "tensilo.bench-loader/1",
            "file": args.file.to_string_lossy(),
            "sample_count": self.sample_count,
            "files": self.size.files,
            "stored_bytes": self.size.bytes,
            "order": self.order.name(),
            "batch": self.batch,
            "io": self.io.0.name(),
            "device": self.gpu,
            "cold": args.cold,
            "gpus": args.loader.gpus,
            "step_s": args.loader.step_ms.as_secs_f64(),
            "sample_bytes": self.sample_bytes(),
            "required_gb_per_s": self.required() / 1e9,
            "runs": self.runs.iter().map(run).collect::<Vec<Value>>(),
            "verdict": self.verdict(),
            "quality": self.quality.as_ref().map(|[order, shuffle]| {
                json!({ "order": quality(order), "true_shuffle": quality(shuffle) })
            }),
        })
    }

    /// Writes tables for people.
    pub(super) fn write_text(&self, output: &mut impl Write) -> io::Result<()> {
        let width = output_width();
        let file = human::excerpt(&self.args.file.to_string_lossy());
        let mut table = Table::new(&[("dataset", Cells::Text), (&file, Cells::Prose)]);
        let mut row = |what: &str, is: String| table.row(vec![what.to_owned(), is]);
        let stored = human::bytes(self.size.bytes);
        let files = human::count(self.size.files, "file");
        row("samples", format!("{} in {files} of {stored} together", self.sample_count));
        row("batches", format!("{} samples of {:.0} B, {}", self.batch, self.sample_bytes(), self.order.name()));
        let cache = if self.args.cold { "cold" } else { "warm" };
        row("io", format!("{}; {cache}", describe(self.io)));
        if let (Some(gpu), Some(run)) = (&self.gpu, self.runs.last()) {
            let LoaderMetrics { copied_bytes, copying, device_decoding, value_bytes, .. } = run.metrics;
            let rate = |bytes: u64, time: Duration| bytes as f64 / time.as_secs_f64().max(1e-9) / 1e9;
            let (copied, decoded) = (rate(copied_bytes, copying), rate(value_bytes, device_decoding));
            let ratio = value_bytes as f64 / copied_bytes.max(1) as f64;
            row("device", format!("{gpu}: copies {copied:.1} GB/s, decodes {decoded:.1} GB/s, ratio {ratio:.2}"));
        }
        let (gpus, step) = (self.args.loader.gpus, human::nanoseconds(self.args.loader.step_ms.as_secs_f64() * 1e9));
        row("required", format!("{:.3} GB/s: a batch for each of {gpus} GPUs every {step}", self.required() / 1e9));
        table.write(output, width)?;
        writeln!(output)?;
        self.write_runs(output, width)?;
        writeln!(output)?;
        plot::write_text(output, &self.rates(), self.required(), width)?;
        writeln!(output)?;
        if let Some([order, shuffle]) = &self.quality {
            write_quality(output, self.order, order, shuffle, width)?;
            writeln!(output)?;
        }
        write_wrapped(output, &self.verdict(), width)
    }

    fn write_runs(&self, output: &mut impl Write, width: usize) -> io::Result<()> {
        let headings = ["decode threads", "samples/s", "GB/s", "p50", "p99", "first batch", "GPUs wait"];
        let mut table = Table::new(&headings.map(|heading| (heading, Cells::Number)));
        for run in &self.runs {
            let time = |percent| run.times.percentile(percent).map_or_else(|| "-".to_owned(), human::nanoseconds);
            table.row(vec![
                run.decode_threads.to_string(),
                format!("{:.0}", run.per_second(run.samples)),
                format!("{:.3}", run.per_second(run.value_bytes) / 1e9),
                time(50),
                time(99),
                human::nanoseconds(run.metrics.first_batch.as_secs_f64() * 1e9),
                format!("{:.0} %", self.waiting(run) * 100.0),
            ]);
        }
        table.write(output, width)
    }
}

fn write_quality(
    output: &mut impl Write,
    name: OrderName,
    order: &Quality,
    shuffle: &Quality,
    width: usize,
) -> io::Result<()> {
    let columns = [("quality", Cells::Prose), (name.name(), Cells::Number), ("true shuffle", Cells::Number)];
    let mut table = Table::new(&[columns[1], columns[2], columns[0]]);
    let mut row = |of: fn(&Quality) -> f64, what: &str| {
        table.row(vec![format!("{:.4}", of(order)), format!("{:.4}", of(shuffle)), what.to_owned()]);
    };
    row(|quality| quality.neighbours, "share of samples that are followed by the one that is stored next");
    row(|quality| quality.distance, "distance of samples that follow each other, in epochs");
    row(
        |quality| quality.run_distance,
        "distance of positions of samples that are stored next to each other, in epochs",
    );
    row(|quality| quality.labels, "labels in a batch, if the dataset is sorted by 100 labels");
    table.write(output, width)
}
