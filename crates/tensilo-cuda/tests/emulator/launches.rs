//! Launches by a driver that delays all operations until somebody waits for them.

use super::{Wanted, destination, open, placed, readable_columns, want_in};
use tensilo::Column;
use tensilo_cuda::{BatchMemory, BlockList, CudaError, Gpu, Launched};
use tensilo_testing::vector;

/// Columns of several encodings, and the samples of each.
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

/// A batch in flight: the launch is dropped first.
struct InFlight {
    launched: Launched,
    batch: Vec<u8>,
    due: Vec<u8>,
}

/// Launches a column, with a list that is used again.
fn launch(gpu: &Gpu, mut list: BlockList, (column, samples): &(Column, Vec<u64>)) -> InFlight {
    list.clear();
    let Wanted { decoded, shapes, mut list } = want_in(list, column, samples).unwrap();
    list.place(&destination(column), &[placed(&shapes)]).unwrap();
    let mut batch = vec![0xEE; decoded.bytes().len()];
    let (address, bytes) = (batch.as_mut_ptr().expose_provenance() as u64, batch.len());
    // SAFETY: the memory of the emulated device is that of this process. The batch lives until the
    // launch was finished or dropped.
    let launched = unsafe { gpu.launch(list, BatchMemory { address, bytes, stream: 0 }) }.unwrap();
    InFlight { launched, batch, due: decoded.bytes().to_vec() }
}

#[test]
fn batches_in_flight_are_decoded_when_they_are_finished() {
    let (gpu, columns) = (Gpu::emulated(), columns());
    let mut lists = vec![BlockList::new(), gpu.new_list()];
    for round in 0..3 {
        let new = |lists: &mut Vec<BlockList>| lists.pop().unwrap_or_else(|| gpu.new_list());
        let mut in_flight: Vec<InFlight> = columns.iter().map(|column| launch(&gpu, new(&mut lists), column)).collect();
        // in another order than they were launched
        let middle = in_flight.len() / 2;
        in_flight.rotate_left(middle);
        for InFlight { launched, batch, due } in in_flight {
            let (list, refusal) = launched.finish().unwrap();
            assert_eq!(refusal, None, "round {round}");
            assert!(batch == due, "round {round}");
            lists.push(list);
        }
    }
}

#[test]
fn a_launch_that_is_dropped_leaves_the_gpu_usable() {
    let (gpu, columns) = (Gpu::emulated(), columns());
    for column in &columns {
        drop(launch(&gpu, gpu.new_list(), column));
    }
    let InFlight { launched, batch, due } = launch(&gpu, gpu.new_list(), &columns[0]);
    drop(gpu); // the launch has it
    assert_eq!(launched.finish().unwrap().1, None);
    assert!(batch == due);
}

#[test]
fn memory_that_is_too_short_is_refused() {
    let (gpu, columns) = (Gpu::emulated(), columns());
    let (column, samples) = &columns[0];
    let Wanted { decoded, shapes, mut list } = want_in(gpu.new_list(), column, samples).unwrap();
    list.place(&destination(column), &[placed(&shapes)]).unwrap();
    let mut batch = vec![0; decoded.bytes().len() - 1];
    let address = batch.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: it is refused.
    let refused = unsafe { gpu.launch(list, BatchMemory { address, bytes: batch.len(), stream: 0 }) };
    assert!(matches!(refused, Err(CudaError::Read(_))), "{refused:?}");
}

#[test]
fn a_gpu_that_is_missing_is_named() {
    match Gpu::open(1000) {
        Err(CudaError::NoDriver) => {}
        Err(CudaError::NoDevice { ordinal: 1000, .. }) => {}
        other => panic!("{other:?}"),
    }
}
