//! Runs of windowed orders are prefetched once in each epoch that needs it.

use super::model::{check, create};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tensilo::OpenOptions;
use tensilo::source::{PositionedFile, Source};
use tensilo_data::{DatasetOptions, LastBatch, LoaderOptions, Order, ReadAhead, View, WindowSizes};
use tensilo_testing::Folder;

/// A file that counts prefetched ranges.
struct CountingSource(PositionedFile, Arc<AtomicUsize>);

impl Source for CountingSource {
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, out)
    }

    fn prefetch(&self, ranges: &[Range<u64>]) {
        self.1.fetch_add(ranges.len(), Ordering::Relaxed);
    }
}

#[test]
fn each_run_is_prefetched_once() {
    let folder = Folder::new();
    create(&folder.path("data"));
    let prefetched = |read_ahead: ReadAhead, world_size: u32, epochs: u64| {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = count.clone();
        let open = move |path: &std::path::Path, options: OpenOptions| {
            options.open_source(CountingSource(PositionedFile::open(path)?, counter.clone()))
        };
        let dataset = DatasetOptions::new().open_with(open).open(folder.path("data")).unwrap();
        let mode = Order::Windowed(WindowSizes::new(5, 3).unwrap());
        let options =
            LoaderOptions::new(10).order(mode).last_batch(LastBatch::Exact).columns(["id"]).rank(0, world_size);
        let loader = options.decode_threads(1).read_ahead(read_ahead).loader(&View::all(&dataset)).unwrap();
        for batch in loader.epochs(0..epochs) {
            let batch = batch.unwrap();
            check(&batch, batch.indices());
        }
        count.load(Ordering::Relaxed)
    };
    // 31 runs; some are in several files, or in chunks that are not adjacent
    let runs = |epochs: usize| 31 * epochs..40 * epochs;
    let never = prefetched(ReadAhead::Never, 1, 3);
    let always = prefetched(ReadAhead::Always, 1, 3) - never;
    assert!(runs(3).contains(&always), "{always}");
    let auto = prefetched(ReadAhead::Auto, 1, 3) - never;
    assert!(runs(1).contains(&auto), "{auto}: the files fit in memory");
    assert_eq!(prefetched(ReadAhead::Auto, 9, 1), prefetched(ReadAhead::Never, 9, 1), "ranks of several machines");
}
