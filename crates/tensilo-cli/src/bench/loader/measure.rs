//! A run of the loader with a number of decode threads.

use super::super::args::{BenchArgs, WARM_UP};
use super::super::histogram::Histogram;
use super::super::source::drop_from_cache;
use crate::failure::Outcome;
use crate::options::values::Names;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tensilo_data::{Dataset, Io, LoaderMetrics, LoaderOptions, Mode, View};

/// The results of a run.
pub(super) struct Run {
    pub decode_threads: u32,
    pub samples: u64,
    /// The bytes of the delivered values.
    pub value_bytes: u64,
    pub elapsed: Duration,
    /// The time from asking for one batch to having it.
    pub times: Histogram,
    pub metrics: LoaderMetrics,
}

impl Run {
    /// Returns an amount per second.
    pub(super) fn per_second(&self, amount: u64) -> f64 {
        // an approximation; a run takes time
        amount as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The loader that is measured.
pub(super) struct LoaderBench<'a> {
    pub args: &'a BenchArgs,
    pub mode: Mode,
    pub batch: u32,
}

impl LoaderBench<'_> {
    fn options(&self, decode_threads: u32) -> LoaderOptions {
        let options = LoaderOptions::new(self.batch).mode(self.mode).stored_elements(true);
        let of = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let io_depth = self.args.loader.io_depth.unwrap_or(0); // the default
        let options = options.decode_threads(of(decode_threads)).io_depth(of(io_depth));
        match Names::all(&self.args.loader.columns) {
            Some(names) => options.columns(names),
            None => options,
        }
    }

    /// Returns how the files are read that the loader reads, and why.
    pub(super) fn io(&self, dataset: &Dataset) -> Outcome<(Io, &'static str)> {
        Ok(self.options(1).loader(&View::all(dataset))?.io())
    }

    /// Reads batches for some time before the measurement, so that they are in the cache. Or drops
    /// the files from the page cache.
    pub(super) fn prepare(&self, dataset: &Dataset) -> Outcome {
        if self.args.cold {
            for group in dataset.groups() {
                group?.files.iter().try_for_each(|file| drop_from_cache(&file.path))?;
            }
            return Ok(());
        }
        let sequential = Self { mode: Mode::Sequential, ..*self };
        let loader = sequential.options(2).loader(&View::all(dataset))?;
        let begun = Instant::now();
        for batch in loader.epoch(0) {
            drop(batch?);
            if begun.elapsed() > self.args.seconds.saturating_mul(WARM_UP) {
                break;
            }
        }
        Ok(())
    }

    /// Takes batches as fast as they come.
    pub(super) fn run(&self, dataset: &Dataset, decode_threads: u32) -> Outcome<Run> {
        let loader = self.options(decode_threads).loader(&View::all(dataset))?;
        let (mut samples, mut value_bytes, mut times) = (0_u64, 0_u64, Histogram::new());
        let mut batches = loader.epochs(0..if self.args.cold { 1 } else { u64::MAX });
        let begun = Instant::now();
        let mut last = begun;
        while last.duration_since(begun) < self.args.seconds {
            let Some(batch) = batches.next() else { break };
            let batch = batch?;
            for column in batch.columns() {
                // exact: usize has at most 64 bits
                value_bytes = value_bytes.saturating_add(black_box(column.bytes()).len() as u64);
            }
            samples = samples.saturating_add(batch.samples().len() as u64); // exact, too
            drop(batch);
            let now = Instant::now();
            times.add(now.duration_since(last));
            last = now;
        }
        let elapsed = last.duration_since(begun);
        Ok(Run { decode_threads, samples, value_bytes, elapsed, times, metrics: batches.metrics() })
    }
}
