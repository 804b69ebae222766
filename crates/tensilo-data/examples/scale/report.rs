//! The tables of the model.

use crate::dataset_model::{DatasetModel, PAGE_BYTES};
use crate::epoch::{Epoch, Job, Node, Steps, page_waits};
use crate::manifest::{ManifestModel, block_index_memory, file_memory};
use crate::measured::Failure;
use crate::measured::reads::modes;
use crate::storage::{NVME, OBJECTS, Storage};
use crate::table::{Table, seconds, si};
use tensilo_data::{Division, EpochOrder, LastBatch, Order, State};

/// Returns the table of sizes and memory.
pub fn sizes(dataset: &DatasetModel) -> Table {
    let manifest = ManifestModel::of(dataset);
    let mut table = Table::new(&["", "bytes"]);
    let mut row = |what: &str, bytes: u64| table.row(&[what, &si(bytes as f64, "B")]);
    row("stored samples of a file", dataset.file_chunks() * dataset.chunk_bytes);
    row("index of a file", dataset.file_index_pages() * PAGE_BYTES);
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

/// The steps that are simulated. Reads are counted only in the last ones.
#[derive(Clone, Copy, Debug)]
pub struct SampledSteps {
    pub warm_up: u64,
    pub counted: u64,
}

/// Returns the table of an epoch on each storage.
pub fn epochs(dataset: &DatasetModel, job: &Job, all: &[Storage], sampled: SampledSteps) -> Result<Table, Failure> {
    let mut table = Table::new(&[
        "storage",
        "mode",
        "requests",
        "bytes",
        "amplification",
        "opens per batch",
        "round trips per batch",
        "step",
        "GPUs wait",
    ]);
    for storage in all {
        for (name, mode) in modes(dataset.window_sizes(storage)) {
            let mut node = Node::new(dataset, job, mode, storage)?;
            node.steps(0..sampled.warm_up);
            let steps = node.steps(sampled.warm_up..sampled.warm_up + sampled.counted);
            let epoch = Epoch::of(&steps, dataset, job, storage);
            table.row(&[
                storage.name,
                name,
                &si(epoch.requests, ""),
                &si(epoch.bytes, "B"),
                &format!("{:.2}", epoch.amplification),
                &format!("{:.1}", epoch.opened),
                &format!("{:.0}", epoch.waits),
                &seconds(epoch.step_seconds),
                &format!("{:.0} %", (1.0 - job.step_seconds / epoch.step_seconds).max(0.0) * 100.0),
            ]);
        }
    }
    Ok(table)
}

/// Returns the table of the first batch of a rank.
pub fn first_batch(dataset: &DatasetModel, job: &Job, all: &[Storage]) -> Result<Table, Failure> {
    let mut table = Table::new(&["storage", "sequential", "windowed", "shuffled"]);
    for storage in all {
        let mut cells = vec![storage.name.to_owned()];
        for (_, mode) in modes(dataset.window_sizes(storage)) {
            let single_rank = Job { node_ranks: 1, ..*job };
            let Steps { traffic, .. } =
                Node::new(dataset, &single_rank, mode, &Storage { prefetches: false, ..*storage })?.steps(0..1);
            let waits = MANIFEST_WAITS + page_waits(pages_of_first_batch(dataset, job, mode)?) + traffic.waits;
            cells.push(format!("{waits} ({})", seconds(storage.seconds(waits as f64, traffic.bytes() as f64))));
        }
        table.row(&cells);
    }
    Ok(table)
}

/// One wait for the list of versions, and one for the file of the newest.
const MANIFEST_WAITS: u64 = 2;

/// Returns the number of manifest pages that the first batch needs.
fn pages_of_first_batch(dataset: &DatasetModel, job: &Job, mode: Order) -> Result<u64, Failure> {
    let order = EpochOrder::new(mode, dataset.samples(), 1, 0);
    let mut pages = Vec::new();
    Division::new(job.batch, job.world_size, LastBatch::Drop)?.positions(&order, 0, 0, &mut pages)?;
    order.replace_with_samples(&mut pages)?;
    pages.iter_mut().for_each(|sample| *sample = *sample / dataset.file_samples / 256);
    pages.sort_unstable();
    pages.dedup();
    Ok(pages.len() as u64)
}

/// Returns the table of read lengths, and how many reads must be in flight.
pub fn lengths() -> Table {
    let header = ["bytes of a read", "share of a stream's bandwidth", "reads in flight for the node's", "on NVMe"];
    let mut table = Table::new(&header);
    for kib in [4, 64, 256, 1024, 4096, 16 << 10] {
        let bytes = f64::from(kib) * 1024.0;
        let share = format!("{:.0} %", OBJECTS.share_of_stream(bytes) * 100.0);
        let reads = |storage: &Storage| format!("{:.0}", storage.requests_to_fill(bytes).ceil());
        table.row(&[&format!("{kib} KiB"), &share, &reads(&OBJECTS), &reads(&NVME)]);
    }
    table
}
