//! The tables of the model.

use crate::manifest::{ManifestModel, block_index_memory, file_memory};
use crate::measured::Failure;
use crate::measured::reads::modes;
use crate::scenario::{self, window_sizes};
use crate::table::{Table, seconds, si};
use tensilo_data::model::{self, ColumnModel, Job, Latency, Prediction, Storage};
use tensilo_data::{EpochOrder, Order, State};

/// Returns the table of sizes and memory.
pub fn sizes(dataset: &ColumnModel) -> Table {
    let manifest = ManifestModel::of(dataset);
    let mut table = Table::new(&["", "bytes"]);
    let mut row = |what: &str, bytes: u64| table.row(&[what, &si(bytes as f64, "B")]);
    row("stored samples of a file", dataset.file_chunks() * dataset.chunk_bytes);
    row("index of a file", dataset.file_index_pages() * 4096);
    row("manifest: file of the version, read to open", manifest.version_bytes);
    row("manifest: a page, read when a sample of its 256 files is first requested", manifest.page_bytes);
    row("manifest: all", manifest.bytes());
    row("memory: order of an epoch", size_of::<EpochOrder>() as u64);
    row("memory: state of a job", State::BYTES as u64);
    row("memory: manifest, opened", manifest.opened_memory);
    row("memory: manifest, all pages read", manifest.opened_memory + manifest.pages_memory);
    let (whole, blocks) = (file_memory(dataset, false), file_memory(dataset, true));
    row("memory: an open file, chunks read whole", whole);
    row("memory: an open file, blocks read individually", blocks);
    row("memory: the block indexes of its chunks, at most", block_index_memory(dataset));
    row("memory: 256 open files, blocks read individually, without block indexes", 256 * blocks);
    table
}

/// Returns the table of an epoch on each storage.
pub fn epochs(dataset: &ColumnModel, job: &Job) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        "storage",
        "order",
        "requests",
        "bytes",
        "amplification",
        "opens per batch",
        "round trips per batch",
        "windows",
        "step",
        "GPUs wait",
    ]);
    for storage in Storage::ALL {
        for (name, order) in modes(window_sizes(dataset, &storage)) {
            let found = model::predict(std::slice::from_ref(dataset), order, job, &storage)?;
            table.row(&[
                storage.name,
                name,
                &si(found.node_requests, ""),
                &si(found.node_bytes, "B"),
                &format!("{:.2}", found.amplification),
                &format!("{:.1}", found.opened_files),
                &format!("{:.0}", found.waits),
                &si(found.window_bytes, "B"),
                &seconds(found.step_seconds),
                &format!("{:.0} %", found.waiting_share * 100.0),
            ]);
        }
    }
    Ok(table)
}

/// Returns the table of an epoch in windowed order, if some responses take much longer than usual.
pub fn late_responses() -> Result<Table, Failure> {
    let dataset = scenario::dataset();
    let mut table = Table::new(&["order", "machines", "GPUs wait, all responses after 20 ms", "p50 20 ms, p99 400 ms"]);
    for (name, of) in
        [("sequential", Order::Sequential), ("windowed", scenario::windowed(&dataset, &Storage::CACHED_OBJECTS))]
    {
        for job in scenario::JOBS {
            let waits = |p99_seconds: f64| {
                let latency = Latency { median_seconds: 0.02, p99_seconds };
                let storage = Storage { latency, ..Storage::CACHED_OBJECTS };
                model::predict(std::slice::from_ref(&dataset), of, &job, &storage)
            };
            let percent = |found: Prediction| format!("{:.1} %", found.waiting_share * 100.0);
            table.row(&[name, &job.nodes.to_string(), &percent(waits(0.02)?), &percent(waits(0.4)?)]);
        }
    }
    Ok(table)
}

/// Returns the table of chunk sizes: what 64 machines read from an object store with a cache.
pub fn chunk_sizes() -> Result<Table, Failure> {
    let header = ["chunks", "index of a file", "memory of an open file", "windowed", "sequential", "shuffled"];
    let mut table = Table::new(&header);
    for kib in [64, 128, 256, 512, 1024] {
        let dataset = scenario::dataset_with_chunks_of(kib);
        let amplification = |order: Order| {
            let found =
                model::predict(std::slice::from_ref(&dataset), order, &scenario::MANY_NODES, &Storage::CACHED_OBJECTS)?;
            Ok::<_, Failure>(format!("{:.2}", found.amplification))
        };
        table.row(&[
            &format!("{kib} KiB"),
            &si((dataset.file_index_pages() * 4096) as f64, "B"),
            &si(file_memory(&dataset, true) as f64, "B"),
            &amplification(scenario::windowed(&dataset, &Storage::CACHED_OBJECTS))?,
            &amplification(Order::Sequential)?,
            &amplification(Order::Shuffled)?,
        ]);
    }
    Ok(table)
}

/// Returns the table of read lengths, and how many reads must be in flight.
pub fn lengths() -> Table {
    let header = ["bytes of a read", "share of a request's bandwidth", "reads in flight for the node's", "on NVMe"];
    let mut table = Table::new(&header);
    for kib in [4, 64, 256, 1024, 4096, 16 << 10] {
        let bytes = f64::from(kib) * 1024.0;
        let share = format!("{:.0} %", Storage::OBJECTS.share_of_bandwidth(bytes) * 100.0);
        let reads = |storage: &Storage| format!("{:.0}", storage.requests_to_fill(bytes).ceil());
        table.row(&[&format!("{kib} KiB"), &share, &reads(&Storage::OBJECTS), &reads(&Storage::NVME)]);
    }
    table
}
