//! The reads of a real loader, and their time on distant storage, compared with the model.

use super::Failure;
use super::source::{Counts, Reading, counted};
use crate::table::{Table, difference, seconds};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tensilo_data::model::{self, ColumnModel, Job, Storage, Traffic};
use tensilo_data::{BatchIterator, LoaderOptions, Order, ReadAhead, View, WindowSizes};

/// Longer than any batch takes.
const BATCH_TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the modes, with the window sizes that the dataset records.
pub fn modes(sizes: WindowSizes) -> [(&'static str, Order); 3] {
    [("sequential", Order::Sequential), ("windowed", Order::Windowed(sizes)), ("shuffled", Order::Shuffled)]
}

/// A dataset in a folder, and its model.
pub struct Measured<'a> {
    pub folder: &'a Path,
    pub model: &'a ColumnModel,
    pub batch: u32,
    pub steps: u64,
}

impl Measured<'_> {
    fn job(&self) -> Job {
        Job { batch_size: self.batch, nodes: 1, node_ranks: 1, step: Duration::from_millis(200) }
    }

    /// Returns the reads that the model predicts.
    pub fn predicted(&self, order: Order, storage: &Storage) -> Result<Traffic, Failure> {
        Ok(model::simulate(self.model, order, &self.job(), storage, 0..self.steps)?)
    }

    /// Counts the reads of a loader with one thread.
    pub fn counted(&self, mode: Order, reading: Reading, read_ahead: ReadAhead) -> Result<Traffic, Failure> {
        let counts = Arc::new(Counts::default());
        let dataset = counted(reading, Duration::ZERO, &counts).open(self.folder)?;
        let options = LoaderOptions::new(self.batch).order(mode).seed(1).read_ahead(read_ahead);
        // several threads would open files in any order, so other files would be open for the next
        // batch
        let options = options.decode_threads(1).io_depth(1).prefetch(1);
        let mut batches = options.loader(&View::all(&dataset))?.epoch(0);
        take(&mut batches, self.steps - 1)?;
        batches.wait(BATCH_TIMEOUT); // the last batch is read, and no later one is started
        Ok(counts.traffic())
    }

    /// Measures the time of a step, if each read is answered after `latency`, after as many other
    /// steps. Returns the model's time, and the measured one.
    pub fn timed(&self, mode: Order, reading: Reading, io_depth: u64) -> Result<[TimedStep; 2], Failure> {
        let storage = Storage { io_depth: io_depth as u32, ..reading.storage() };
        let read = model::simulate(self.model, mode, &self.job(), &storage, self.steps..2 * self.steps)?;
        let of_step = |count: f64| count / self.steps as f64;
        let expected = TimedStep {
            seconds: of_step(read.waits as f64) * storage.latency.median_seconds / io_depth as f64,
            opened: of_step(read.opened_files as f64),
        };

        let latency = Duration::from_secs_f64(storage.latency.median_seconds);
        let counts = Arc::new(Counts::default());
        let dataset = counted(reading, latency, &counts).open(self.folder)?;
        let options = LoaderOptions::new(self.batch).order(mode).seed(1).read_ahead(ReadAhead::Never);
        let loader = options.decode_threads(1).io_depth(io_depth as usize).loader(&View::all(&dataset))?;
        let mut batches = loader.epoch(0);
        take(&mut batches, self.steps)?;
        let opened = || counts.opened.load(Ordering::Relaxed);
        let (begun, opened_before) = (Instant::now(), opened());
        take(&mut batches, self.steps)?;
        let found = TimedStep {
            seconds: of_step(begun.elapsed().as_secs_f64()),
            opened: of_step((opened() - opened_before) as f64),
        };
        Ok([expected, found])
    }
}

/// Takes some batches.
fn take(batches: &mut BatchIterator, count: u64) -> Result<(), Failure> {
    for _ in 0..count {
        batches.next().ok_or("the epoch has fewer steps")??;
    }
    Ok(())
}

/// The time of a step, and the files that were opened for it.
pub struct TimedStep {
    seconds: f64,
    opened: f64,
}

/// Returns the table of counted and predicted reads: model and measured in each cell.
pub fn table(measured: &Measured<'_>, readings: &[(&str, Reading)], modes: &[(&str, Order)]) -> Result<Table, Failure> {
    let header = ["mode", "read as", "files opened", "small reads", "ranges", "bytes", "largest difference"];
    let mut table = Table::new(&header);
    for (name, reading) in readings {
        for (mode_name, mode) in modes {
            let found = measured.counted(*mode, *reading, ReadAhead::Never)?;
            let expected = measured.predicted(*mode, &reading.storage())?;
            let cells = |traffic: &Traffic| {
                let bytes = traffic.small_bytes + traffic.range_bytes;
                [traffic.opened_files, traffic.small_reads, traffic.ranges, bytes]
            };
            let pairs = cells(&expected).into_iter().zip(cells(&found));
            let pairs: Vec<(u64, u64)> = pairs.collect();
            let share = |(expected, found): &(u64, u64)| *found as f64 / *expected as f64 - 1.0;
            let largest = pairs.iter().map(share).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or_default();
            let mut row = vec![(*mode_name).to_owned(), (*name).to_owned()];
            row.extend(pairs.iter().map(|(expected, found)| format!("{expected} / {found}")));
            row.push(format!("{:+.2} %", largest * 100.0));
            table.row(&row);
        }
    }
    Ok(table)
}

/// Returns the table of step times.
pub fn times(
    measured: &Measured<'_>,
    readings: &[(&str, Reading)],
    modes: &[(&str, Order)],
    io_depth: u64,
) -> Result<Table, Failure> {
    let header = ["mode", "read as", "opened", "opened, measured", "step", "measured", "difference"];
    let mut table = Table::new(&header);
    for (name, reading) in readings {
        for (mode_name, mode) in modes {
            let [expected, found] = measured.timed(*mode, *reading, io_depth)?;
            table.row(&[
                (*mode_name).to_owned(),
                (*name).to_owned(),
                format!("{:.1}", expected.opened),
                format!("{:.1}", found.opened),
                seconds(expected.seconds),
                seconds(found.seconds),
                difference(found.seconds, expected.seconds),
            ]);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::super::datasets;
    use super::*;
    use crate::scenario::{END_BYTES, START_BYTES};
    use tensilo_data::model::OpeningRead;
    use tensilo_testing::Folder;

    /// The loader sends the reads that the model predicts to its sources: the same number of each
    /// kind.
    #[test]
    fn the_loader_reads_what_the_model_predicts() {
        let folder = Folder::new();
        let dataset = datasets::write(folder.root(), 12, 10_000).unwrap();
        let file = dataset.groups().next().unwrap().unwrap().files[0].path.clone();
        let model = datasets::model(&dataset, &file).unwrap();
        assert_eq!((model.file_count, model.file_samples, model.sample_bytes), (12, 10_000, 16));
        assert_eq!(
            (&*model.opening, model.start_bytes, model.end_bytes),
            (&OpeningRead::ALL[..], START_BYTES, END_BYTES)
        );
        let measured = Measured { folder: folder.root(), model: &model, batch: 64, steps: 40 };
        let sizes = WindowSizes::new(500, 8).unwrap();
        let close = |found: u64, expected: u64| found.abs_diff(expected) * 50 <= expected;
        for reading in [
            Reading { gap: 4096, open_files: 5, line: None },
            Reading { gap: 1 << 20, open_files: 5, line: None },
            Reading { gap: 1 << 20, open_files: 100, line: Some(4096) },
        ] {
            for (name, mode) in modes(sizes) {
                let (found, expected) = (
                    measured.counted(mode, reading, ReadAhead::Never).unwrap(),
                    measured.predicted(mode, &reading.storage()).unwrap(),
                );
                let what = format!("{name}, {reading:?}: {found:?}, expected {expected:?}");
                assert_eq!((found.opened_files, found.calls), (expected.opened_files, expected.calls), "{what}");
                assert!(close(found.small_reads, expected.small_reads), "{what}");
                assert!(close(found.small_bytes, expected.small_bytes), "{what}");
                assert!(close(found.ranges, expected.ranges), "{what}");
                assert!(close(found.range_bytes, expected.range_bytes), "{what}");
            }
        }
    }

    /// In an epoch, each run is prefetched once, as ranges of whole chunks.
    #[test]
    fn the_loader_prefetches_what_the_model_predicts() {
        let folder = Folder::new();
        let dataset = datasets::write(folder.root(), 3, 4 * 4096).unwrap();
        let file = dataset.groups().next().unwrap().unwrap().files[0].path.clone();
        let model = datasets::model(&dataset, &file).unwrap();
        let measured = Measured { folder: folder.root(), model: &model, batch: 64, steps: 3 * 4 * 4096 / 64 };
        let mode = Order::Windowed(WindowSizes::new(4096, 5).unwrap());
        let reading = Reading { gap: 4096, open_files: 10, line: None };
        let prefetched = |read_ahead| measured.counted(mode, reading, read_ahead).unwrap();
        let (always, never) = (prefetched(ReadAhead::Always), prefetched(ReadAhead::Never));
        let storage = Storage { prefetches_runs: true, ..reading.storage() };
        let expected = measured.predicted(mode, &storage).unwrap();
        assert_eq!(expected.prefetches, 12);
        assert_eq!(always.prefetches - never.prefetches, expected.prefetches);
        let found = always.prefetched_bytes - never.prefetched_bytes;
        assert!(
            found.abs_diff(expected.prefetched_bytes) * 100 <= found,
            "{found}, expected {}",
            expected.prefetched_bytes
        );
    }
}
