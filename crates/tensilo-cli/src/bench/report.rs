//! The report of `tensilo bench`, as a JSON document and as text.

use super::args::BenchArgs;
use super::measure::Counts;
use super::source::FileReads;
use crate::terminal::output_width;
use crate::text::human;
use crate::text::{Cells, Table};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::Duration;
use tensilo::ColumnSchema;

/// The results of a run.
pub(super) struct BenchReport<'a> {
    pub(super) args: &'a BenchArgs,
    pub(super) column: &'a ColumnSchema,
    /// The number of samples in the column.
    pub(super) sample_count: u64,
    pub(super) threads: u32,
    /// Whether all chunks were read before.
    pub(super) warmed_up: bool,
    pub(super) counts: Counts,
    pub(super) memcpy_bytes_per_s: Option<f64>,
}

impl BenchReport<'_> {
    /// Returns `amount` per second of reading; `None` if nothing was measured.
    fn per_second(&self, amount: u64) -> Option<f64> {
        quotient(amount, Some(self.counts.busy).filter(|busy| *busy > Duration::ZERO)?.as_secs_f64())
    }

    fn per_sample(&self, amount: u64) -> Option<f64> {
        quotient(amount, self.counts.samples as f64) // an approximation
    }

    /// Returns how the file is read.
    fn io(&self) -> &'static str {
        if self.args.is_mapped() { "mmap" } else { "pread" }
    }

    /// Returns what was read from the file; `None` if it was mapped.
    fn file_reads(&self) -> Option<FileReads> {
        (!self.args.is_mapped()).then_some(self.counts.file_reads)
    }

    fn read_amplification(&self) -> Option<f64> {
        quotient(self.file_reads()?.bytes, self.counts.decoded_bytes as f64) // an approximation
    }

    /// Returns a percentile of the time of a read, divided by its samples.
    fn percentile(&self, percent: u64) -> Option<f64> {
        Some(self.counts.times.percentile(percent)? / f64::from(self.args.batch()))
    }

    /// Returns the JSON document of schema `tensilo.bench/1`.
    pub(super) fn document(&self) -> Value {
        let (args, counts) = (self.args, &self.counts);
        json!({
            "schema": "tensilo.bench/1",
            "file": args.file.to_string_lossy(),
            "column": self.column.name,
            "dtype": self.column.dtype.name(),
            "sample_count": self.sample_count,
            "pattern": args.pattern.name(),
            "batch": args.batch(),
            "threads": self.threads,
            "io": self.io(),
            "cold": args.cold,
            "warmed_up": self.warmed_up,
            "verification": args.verification.name(),
            "samples": counts.samples,
            "seconds": counts.busy.as_secs_f64(),
            "samples_per_s": self.per_second(counts.samples),
            "decoded_gb_per_s": self.per_second(counts.decoded_bytes).map(billions),
            "memcpy_gb_per_s": self.memcpy_bytes_per_s.map(billions),
            "ns_per_sample_p50": self.percentile(50),
            "ns_per_sample_p99": self.percentile(99),
            "decoded_bytes_per_sample": self.per_sample(counts.decoded_bytes),
            "stored_bytes_per_sample": self.file_reads().and_then(|reads| self.per_sample(reads.bytes)),
            "requests_per_sample": self.file_reads().and_then(|reads| self.per_sample(reads.requests)),
            "read_amplification": self.read_amplification(),
        })
    }

    /// Writes a table for people.
    pub(super) fn write_text(&self, output: &mut impl Write) -> io::Result<()> {
        let file = human::excerpt(&self.args.file.to_string_lossy());
        let mut table = Table::new(&[("file", Cells::Text), (&file, Cells::Prose)]);
        let mut row = |what: &str, is: String| table.row(vec![what.to_owned(), is]);
        row("column", self.column_text());
        row("io", self.io().to_owned());
        row("reads", self.reads_text());
        row("measured", format!("{} samples in {:.2} s", self.counts.samples, self.counts.busy.as_secs_f64()));
        row("samples/s", text(self.per_second(self.counts.samples), |rate| format!("{rate:.0}")));
        row("decoded", text(self.per_second(self.counts.decoded_bytes), gb_per_s));
        row("memcpy", text(self.memcpy_bytes_per_s, gb_per_s));
        row("p50", text(self.percentile(50), human::nanoseconds));
        row("p99", text(self.percentile(99), human::nanoseconds));
        row("from the file", self.file_text());
        table.write(output, output_width())
    }

    fn column_text(&self) -> String {
        let (name, dtype) = (human::excerpt(&self.column.name), self.column.dtype);
        format!("{name}, {dtype} {}, {} samples", self.column.shape, self.sample_count)
    }

    fn reads_text(&self) -> String {
        let (args, threads) = (self.args, self.threads);
        let cache = match (args.cold, self.warmed_up) {
            (true, _) => "cold",
            (false, true) => "warm",
            (false, false) => "partly warm",
        };
        let (pattern, check) = (args.pattern.name(), args.verification.name());
        format!("{pattern}, batch {}, threads {threads}, {cache}, verification {check}", args.batch())
    }

    fn file_text(&self) -> String {
        if self.args.is_mapped() {
            return "cannot be told of a map".to_owned();
        }
        let reads = self.counts.file_reads;
        let sample = text(self.per_sample(reads.bytes), |bytes| format!("{bytes:.1} B"));
        let requests = text(self.per_sample(reads.requests), |requests| format!("{requests:.2}"));
        let amplification = text(self.read_amplification(), |ratio| format!("{ratio:.2}"));
        format!("{sample} in {requests} requests for each sample, read amplification {amplification}")
    }
}

fn quotient(amount: u64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| amount as f64 / divisor) // an approximation
}

fn billions(value: f64) -> f64 {
    value / 1e9
}

fn gb_per_s(bytes_per_s: f64) -> String {
    format!("{:.3} GB/s", billions(bytes_per_s))
}

fn text(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), format)
}
