//! The kernels decode what the library decodes, and refuse what it refuses. They run on the CPU,
//! and are launched on GPU number `TENSILO_GPU` if that is set.

mod fetched;
mod hostile;
mod launches;
mod resident;
mod vectors;

use std::env;
use std::sync::Arc;
use tensilo::source::InMemory;
use tensilo::stages::{BlockSamples, BlockScratch, BlockVisitor, Decoder, FetchedBytes, ReadPlan, StoredBlock};
use tensilo::{Column, ColumnBatch, ColumnBuffer, ColumnSchema, DType, OpenOptions, Reader, Result, Shape};
use tensilo_cuda::{BlockList, Conversion, Destination, Emulator, Gpu, LaneOrder, SampleRows};

/// Orders of lanes: forwards, backwards and mixed.
const ORDERS: [LaneOrder; 3] =
    [LaneOrder { factor: 1, offset: 0 }, LaneOrder { factor: 31, offset: 31 }, LaneOrder { factor: 11, offset: 7 }];

/// Returns the GPU that the tests are to use, or an emulated one.
fn gpu() -> Gpu {
    match env::var("TENSILO_GPU") {
        Ok(number) => Gpu::open(number.parse().expect("the number of a GPU")).expect("a GPU"),
        Err(_) => Gpu::emulated(),
    }
}

/// Opens a file in memory.
fn open(file: Vec<u8>) -> Result<Reader> {
    OpenOptions::new().open_source(Arc::new(InMemory(file)))
}

/// Returns the columns that this release can read.
fn readable_columns(reader: &Reader) -> Vec<Column> {
    let is_readable = |column: &Column| {
        let planned = ReadPlan::new().select_range(std::slice::from_ref(column), 0..0);
        planned.is_ok_and(|()| !matches!(column.schema().dtype, DType::Unknown { .. }))
    };
    reader.columns().filter(is_readable).collect()
}

/// Samples of a column, decoded by the library, and a list of the blocks that contain them.
struct Fixture {
    decoded: ColumnBuffer,
    /// Without values.
    shapes: ColumnBuffer,
    list: BlockList,
}

fn fixture(column: &Column, samples: &[u64]) -> Result<Fixture> {
    fixture_in(BlockList::new(), column, samples)
}

/// Visits the blocks that contain samples of a column. Returns the shapes of the samples.
fn collect(column: &Column, samples: &[u64], visit: &mut BlockVisitor<'_>) -> Result<ColumnBuffer> {
    let mut plan = ReadPlan::new();
    plan.select(std::slice::from_ref(column), samples)?;
    let mut bytes = FetchedBytes::new();
    plan.fetch(&mut bytes)?;
    let mut shapes = ColumnBuffer::new();
    Decoder::new().visit_blocks(&plan, &bytes, 0, &mut shapes, visit)?;
    Ok(shapes)
}

/// Adds the blocks to a list.
fn fixture_in(mut list: BlockList, column: &Column, samples: &[u64]) -> Result<Fixture> {
    let mut decoded = ColumnBuffer::new();
    column.cursor().gather_into(samples, &mut decoded)?;
    let shapes = collect(column, samples, &mut |samples| list.push(0, &samples))?;
    Ok(Fixture { decoded, shapes, list })
}

/// Returns a destination at the start of the batch.
fn destination(column: &Column) -> Destination {
    Destination { dtype: column.schema().dtype, conversion: Conversion::None, offset: 0, row_bytes: None }
}

/// Returns the samples of a batch, in order.
fn in_order(shapes: &ColumnBuffer) -> SampleRows<'_> {
    SampleRows { shapes, rows: None }
}

/// Adds a block to a list, as the values of one sample of a type with the same element bytes.
fn push_whole(list: &mut BlockList, block: &StoredBlock<'_>) -> Result<()> {
    let dtype = match block.element_bytes() {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    };
    let sample = ColumnSchema::tensor("x", dtype, Shape::fixed(&[block.element_count() as u32]));
    let values = vec![0; block.element_count() * block.element_bytes()];
    let mut shapes = ColumnBuffer::new();
    shapes.fill(&sample, &ColumnBatch::from_bytes(dtype, 1, &[], &values))?;
    list.push(0, &BlockSamples { block: *block, elements: 0..block.element_count(), position: 0, offset: 0 })?;
    let destination = Destination { dtype, conversion: Conversion::None, offset: 0, row_bytes: None };
    list.place(&destination, &[in_order(&shapes)])
}

/// Decodes a block with the library, and with the kernels in each order of lanes. Fails if they
/// disagree. Returns whether the block is valid.
#[track_caller]
fn check_block(block: &StoredBlock<'_>) -> bool {
    let bytes = block.element_count() * block.element_bytes();
    let mut expected = vec![0; bytes];
    let valid = block.decode(&mut expected, &mut BlockScratch::default());
    let mut list = BlockList::new();
    let pushed = push_whole(&mut list, block);
    if let Err(error) = pushed {
        assert!(valid.is_err(), "only the list refuses {block:?}: {error}");
        return false;
    }
    for order in ORDERS {
        let mut found = vec![0x5A; bytes];
        let refusal = Emulator::new(order).decode(&mut list, &mut found).unwrap();
        match &valid {
            Ok(()) => {
                assert_eq!(refusal, None, "only the kernel refuses {block:?}, in {order:?}");
                assert!(found == expected, "{block:?} decodes to other elements, in {order:?}");
            }
            Err(error) => assert!(refusal.is_some(), "only the library refuses {block:?}: {error}"),
        }
    }
    valid.is_ok()
}
