//! A run of the loader with a number of decode threads.

use super::super::args::{BenchArgs, WARM_UP};
use super::super::histogram::Histogram;
use super::super::source::drop_from_cache;
use crate::failure::Outcome;
use crate::options::values::Names;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tensilo_cuda::Gpu;
use tensilo_data::{DataError, Dataset, Io, LoaderMetrics, LoaderOptions, Mode, View};

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
    /// The GPU that decodes, if one does.
    pub gpu: Option<&'a Gpu>,
    pub mode: Mode,
    pub batch: u32,
}

impl LoaderBench<'_> {
    fn options(&self, decode_threads: u32) -> LoaderOptions {
        let options = LoaderOptions::new(self.batch).mode(self.mode).stored_elements(true);
        let of = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let io_depth = self.args.loader.io_depth.unwrap_or(0); // the default
        let options = options.decode_threads(of(decode_threads)).io_depth(of(io_depth));
        let options = match self.gpu {
            Some(gpu) => options.decode_on(gpu),
            None => options,
        };
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
        let batches = loader.epochs(0..if self.args.cold { 1 } else { u64::MAX });
        let mut times = Histogram::new();
        let begun = Instant::now();
        let (elapsed, metrics) = match self.gpu {
            Some(gpu) => {
                let mut batches = batches.on_device(gpu.clone());
                let elapsed = self.take_all(&mut batches, begun, &mut times)?;
                (elapsed, batches.metrics())
            }
            None => {
                let mut batches = batches;
                let elapsed = self.take_all(&mut batches, begun, &mut times)?;
                (elapsed, batches.metrics())
            }
        };
        let LoaderMetrics { samples, value_bytes, .. } = metrics;
        Ok(Run { decode_threads, samples, value_bytes, elapsed, times, metrics })
    }

    /// Takes batches for the time of a run. Returns the time from `begun` to the last one.
    fn take_all<B>(
        &self,
        batches: &mut impl Iterator<Item = Result<B, DataError>>,
        begun: Instant,
        times: &mut Histogram,
    ) -> Outcome<Duration> {
        let mut last = begun;
        while last.duration_since(begun) < self.args.seconds {
            let Some(batch) = batches.next() else { break };
            drop(black_box(batch?));
            let now = Instant::now();
            times.add(now.duration_since(last));
            last = now;
        }
        Ok(last.duration_since(begun))
    }
}
