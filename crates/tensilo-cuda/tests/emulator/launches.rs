//! Launches with a driver that delays all operations until a caller waits for them.

use super::hostile::each_block;
use super::{Fixture, destination, fixture_in, gpu, in_order, open, push_whole, readable_columns};
use tensilo::Column;
use tensilo::stages::BlockScratch;
use tensilo_cuda::{BlockList, CudaError, DeviceBuffer, Gpu, LaunchReport, PendingLaunch};
use tensilo_testing::{vector, vector_files};

/// Columns of several encodings, with all of their samples.
fn columns() -> Vec<(Column, Vec<u64>)> {
    let names =
        ["bins-options", "residual-tiers-in-blocks", "exponent-tiers-in-blocks", "planes-zstd", "nested-tensors"];
    let readers = names.map(|name| open(vector(&format!("valid/{name}.hex"))).unwrap());
    let columns = readers.iter().flat_map(|reader| {
        let samples: Vec<u64> = (0..reader.sample_count()).collect();
        readable_columns(reader).into_iter().map(move |column| (column, samples.clone()))
    });
    columns.collect()
}

/// A batch in flight. The launch is dropped before the memory.
struct InFlight {
    launched: PendingLaunch,
    batch: DeviceBuffer,
    expected: Vec<u8>,
}

impl InFlight {
    /// Waits, and checks the values. Returns the list.
    fn check(self) -> BlockList {
        let Self { launched, batch, expected } = self;
        let LaunchReport { list, refusal, decoding, .. } = launched.finish().unwrap();
        assert_eq!(refusal, None);
        assert!(!decoding.is_zero());
        let mut found = vec![0; expected.len()];
        batch.read(&mut found).unwrap();
        assert!(found == expected);
        list
    }
}

/// Launches a column, reusing a list.
fn launch(gpu: &Gpu, mut list: BlockList, (column, samples): &(Column, Vec<u64>)) -> InFlight {
    list.clear();
    let Fixture { decoded, shapes, mut list } = fixture_in(list, column, samples).unwrap();
    list.place(&destination(column), &[in_order(&shapes)]).unwrap();
    let batch = gpu.buffer_from(&vec![0xEE; decoded.bytes().len()]).unwrap();
    // SAFETY: the batch lives until the launch was finished or dropped.
    let launched = unsafe { gpu.launch(list, batch.as_batch()) }.unwrap();
    InFlight { launched, batch, expected: decoded.bytes().to_vec() }
}

#[test]
fn batches_in_flight_are_decoded_when_they_are_finished() {
    let (gpu, columns) = (gpu(), columns());
    let mut lists = vec![BlockList::new(), gpu.new_list()];
    for _ in 0..3 {
        let new = |lists: &mut Vec<BlockList>| lists.pop().unwrap_or_else(|| gpu.new_list());
        let mut in_flight: Vec<InFlight> = columns.iter().map(|column| launch(&gpu, new(&mut lists), column)).collect();
        // not in the order in which they were launched
        let middle = in_flight.len() / 2;
        in_flight.rotate_left(middle);
        lists.extend(in_flight.into_iter().map(InFlight::check));
    }
}

#[test]
fn all_vectors_are_decoded() {
    let gpu = gpu();
    let mut list = gpu.new_list();
    for name in vector_files().keys().filter(|name| name.starts_with("valid/") && name.ends_with(".hex")) {
        let Ok(reader) = open(vector(name)) else { continue };
        let samples: Vec<u64> = (0..reader.sample_count().min(1 << 12)).rev().collect();
        for column in readable_columns(&reader) {
            list = launch(&gpu, list, &(column, samples.clone())).check();
        }
    }
}

#[test]
fn damaged_blocks_are_refused() {
    let (gpu, mut refused) = (gpu(), 0);
    each_block(|samples| {
        let mut damaged = samples.block.bytes().to_vec();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        let block = samples.block.with_bytes(&damaged);
        let bytes = block.element_count() * block.element_bytes();
        let mut expected = vec![0; bytes];
        let is_valid = block.decode(&mut expected, &mut BlockScratch::default()).is_ok();
        let mut list = gpu.new_list();
        push_whole(&mut list, &block).unwrap();
        let batch = gpu.buffer_from(&vec![0xEE; bytes]).unwrap();
        // SAFETY: as above.
        let launched = unsafe { gpu.launch(list, batch.as_batch()) }.unwrap();
        let refusal = launched.finish().unwrap().refusal;
        assert_eq!(refusal.is_none(), is_valid, "{block:?}");
        refused += usize::from(!is_valid);
        let mut found = vec![0; bytes];
        batch.read(&mut found).unwrap();
        assert!(!is_valid || found == expected, "{block:?}");
    });
    assert!(refused > 100, "{refused} refused");
}

#[test]
fn a_launch_that_is_dropped_leaves_the_gpu_usable() {
    let (gpu, columns) = (gpu(), columns());
    for column in &columns {
        drop(launch(&gpu, gpu.new_list(), column));
    }
    let in_flight = launch(&gpu, gpu.new_list(), &columns[0]);
    drop(gpu); // the launch keeps the GPU alive
    in_flight.check();
}

#[test]
fn memory_that_is_too_short_is_refused() {
    let (gpu, columns) = (gpu(), columns());
    let (column, samples) = &columns[0];
    let Fixture { decoded, shapes, mut list } = fixture_in(gpu.new_list(), column, samples).unwrap();
    list.place(&destination(column), &[in_order(&shapes)]).unwrap();
    let batch = gpu.buffer_from(&vec![0; decoded.bytes().len() - 1]).unwrap();
    // SAFETY: it is refused.
    let refused = unsafe { gpu.launch(list, batch.as_batch()) };
    assert!(matches!(refused, Err(CudaError::Read(_))), "{refused:?}");
    assert!(batch.read(&mut vec![0; decoded.bytes().len()]).is_err());
}

#[test]
fn a_gpu_that_is_missing_is_named() {
    match Gpu::open(1000) {
        Err(CudaError::NoDriver) => {}
        Err(CudaError::NoDevice { ordinal: 1000, .. }) => {}
        other => panic!("{other:?}"),
    }
}
