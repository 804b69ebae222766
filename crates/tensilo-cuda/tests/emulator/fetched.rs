//! Blocks that are sent from the memory to which they were fetched.

use super::{ORDERS, destination, gpu, in_order, readable_columns};
use tensilo::source::PositionedFile;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, OpenOptions, Verification};
use tensilo_cuda::{BlockList, Emulator, Gpu};
use tensilo_testing::{Folder, vector, vector_files};

/// Calls a function with each column of the vectors, in files that are read by position.
fn each_column(mut check: impl FnMut(&str, &Column)) {
    let folder = Folder::new();
    for name in vector_files().keys().filter(|name| name.starts_with("valid/") && name.ends_with(".hex")) {
        let path = folder.file("vector.tsl", vector(name));
        for verification in [Verification::FirstTouch, Verification::Never] {
            let options = OpenOptions::new().verification(verification);
            let Ok(reader) = options.open_source(PositionedFile::open(&path).unwrap()) else { continue };
            readable_columns(&reader).iter().for_each(|column| check(name, column));
        }
    }
}

/// Collects samples of a column in a list, from pinned memory. Returns the samples, and the number
/// of blocks in that memory at a multiple of 16.
fn collect(gpu: &Gpu, column: &Column, list: &mut BlockList, bytes: &mut FetchedBytes) -> (ColumnBuffer, usize) {
    let (mut plan, mut shapes, mut aligned) = (ReadPlan::new(), ColumnBuffer::new(), 0);
    // with repetitions and gaps
    let samples = (0..column.sample_count().min(1 << 12)).flat_map(|i| [i, i]).filter(|i| i % 5 > 0);
    let samples: Vec<u64> = samples.collect();
    plan.select(std::slice::from_ref(column), &samples).unwrap();
    drop(bytes.set_memory(Some(list.take_unused().unwrap_or_else(|| gpu.new_memory()))));
    plan.fetch(bytes).unwrap();
    list.add_segment(bytes);
    let memory = bytes.memory().map(<[u8]>::as_ptr_range);
    let visit = &mut |samples: tensilo::stages::BlockSamples<'_>| {
        let start = samples.block.bytes().as_ptr();
        let is_in_memory = memory.as_ref().is_some_and(|memory| memory.contains(&start));
        aligned += usize::from(is_in_memory && start.addr().is_multiple_of(16));
        list.push(0, &samples)
    };
    Decoder::new().visit_blocks(&plan, bytes, 0, &mut shapes, visit).unwrap();
    list.place(&destination(column), &[in_order(&shapes)]).unwrap();
    // the samples, decoded from the same bytes
    let mut decoded = ColumnBuffer::new();
    Decoder::new().decode_column(&plan, bytes, 0, &mut decoded).unwrap();
    (decoded, aligned)
}

#[test]
fn blocks_are_sent_from_the_memory_that_they_were_fetched_to() {
    let (gpu, mut list, mut bytes, mut aligned) = (gpu(), BlockList::new(), FetchedBytes::new(), 0);
    each_column(|name, column| {
        list.clear();
        let (expected, blocks) = collect(&gpu, column, &mut list, &mut bytes);
        aligned += blocks;
        if blocks > 0 {
            // without `adopt`, the segment has no memory
            assert!(Emulator::default().decode(&mut list, &mut vec![0; expected.bytes().len()]).is_err(), "{name}");
        }
        list.adopt(&mut bytes);
        for order in ORDERS {
            let mut found = vec![0xEE; expected.bytes().len()];
            assert_eq!(Emulator::new(order).decode(&mut list, &mut found).unwrap(), None, "{name}");
            assert!(found == expected.bytes(), "{name}");
        }
        let batch = gpu.buffer_from(&vec![0xEE; expected.bytes().len()]).unwrap();
        // SAFETY: the batch lives until the launch was finished.
        let launched = unsafe { gpu.launch(std::mem::take(&mut list), batch.as_batch()) }.unwrap();
        let finished = launched.finish().unwrap();
        assert_eq!(finished.refusal, None, "{name}");
        list = finished.list;
        let mut found = vec![0; expected.bytes().len()];
        batch.read(&mut found).unwrap();
        assert!(found == expected.bytes(), "{name}");
    });
    assert!(aligned > 200, "{aligned} blocks");
}
