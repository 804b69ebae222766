//! Batches that a GPU decodes are those that the processor decodes. The GPU is emulated.

use super::model::{COLUMNS, folder};
use proptest::prelude::*;
use std::fs;
use tensilo::DType;
use tensilo_cuda::{BatchMemory, Gpu};
use tensilo_data::{
    Batch, BatchColumn, DataError, Dataset, DeviceBatch, LoaderOptions, Mode, Padding, RunsAndWindows, Tail, View,
};
use tensilo_testing::{Folder, vector, vector_files};

/// A batch in flight. The launch is dropped before the memory.
struct InFlight {
    launched: DeviceBatch,
    memory: Vec<u64>,
}

fn launch(batch: Batch) -> InFlight {
    let bytes = batch.device_bytes().expect("a loader that decodes on a GPU");
    let mut memory = vec![0xEEEE_EEEE_EEEE_EEEE; bytes.div_ceil(8)];
    let address = memory.as_mut_ptr().expose_provenance() as u64;
    // SAFETY: the memory of the emulated GPU is that of this process, and lives longer than the
    // launch.
    let launched = unsafe { batch.launch(BatchMemory { address, bytes, stream: 0 }) }.unwrap();
    InFlight { launched, memory }
}

impl InFlight {
    fn finish(self) -> Result<(Batch, Vec<u64>), DataError> {
        let Self { launched, memory } = self;
        Ok((launched.finish()?, memory))
    }
}

/// Checks a column whose values are in `memory`, if they are on the GPU.
fn check_column(found: &BatchColumn, memory: &[u64], due: &BatchColumn) {
    let name = &due.schema().unwrap().name;
    let is_text = due.schema().unwrap().dtype.is_string();
    assert_eq!(found.device_range().is_none(), is_text, "{name}");
    let values = match found.device_range() {
        Some(range) => &bytemuck::cast_slice(memory)[range],
        None => found.bytes(),
    };
    assert!(values == due.bytes(), "{name}: {values:02x?} instead of {:02x?}", due.bytes());
    let of = |column: &BatchColumn| {
        (column.tensor().map(<[u64]>::to_vec), column.sample_count(), column.null_count(), column.schema().cloned())
    };
    assert_eq!(of(found), of(due), "{name}");
    assert_eq!((found.offsets(), found.extents()), (due.offsets(), due.extents()), "{name}");
    assert_eq!(
        (0..due.sample_count()).map(|i| found.is_null(i)).collect::<Vec<bool>>(),
        (0..due.sample_count()).map(|i| due.is_null(i)).collect::<Vec<bool>>(),
        "{name}"
    );
    for (found, due) in found.lists().iter().zip(due.lists()) {
        assert_eq!((found.offsets(), found.validity()), (due.offsets(), due.validity()), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_gpu_delivers_what_the_processor_delivers(
        mode in prop::sample::select(vec![
            Mode::Sequential,
            Mode::Shuffled,
            Mode::Windowed(RunsAndWindows::new(5, 3).unwrap()),
        ]),
        batch in 1..70_u32,
        seed in any::<u64>(),
        in_flight in 1..4_usize,
        columns in prop::sample::subsequence(COLUMNS.to_vec(), 1..=COLUMNS.len()),
        padded in prop::collection::vec(prop::option::of((1..4_u32, -100..100_i8)), 2),
        casts in prop::collection::vec(any::<bool>(), 3),
    ) {
        let dataset = Dataset::open(folder()).unwrap();
        let has = |name: &str| columns.contains(&name);
        let options = || {
            let mut options = LoaderOptions::new(batch).mode(mode).seed(seed).tail(Tail::Exact).columns(columns.clone());
            for (name, padding) in ["tokens", "frames"].into_iter().zip(&padded).filter(|(name, _)| has(name)) {
                if let Some((multiple, value)) = padding {
                    options = options.pad(name, Padding::new().multiple(*multiple).value((*value).into()));
                }
            }
            let to = [("vector", DType::F32), ("maybe", DType::I64), ("frames", DType::F16)];
            for ((name, to), _) in to.into_iter().zip(&casts).filter(|((name, _), is_cast)| **is_cast && has(name)) {
                options = options.cast(name, to);
            }
            options
        };
        let view = View::all(&dataset);
        let due = options().loader(&view).unwrap();
        let loader = options().decode_on(&Gpu::emulated()).loader(&view).unwrap();
        let mut batches = loader.epoch(0);
        let mut launched = std::collections::VecDeque::new();
        for due in due.epoch(0) {
            let due = due.unwrap();
            while launched.len() < in_flight {
                let Some(batch) = batches.next() else { break };
                launched.push_back(launch(batch.unwrap()));
            }
            let (found, memory) = launched.pop_front().unwrap().finish().unwrap();
            prop_assert_eq!(found.samples(), due.samples());
            for (found, due) in found.columns().iter().zip(due.columns()) {
                check_column(found, &memory, due);
            }
        }
        prop_assert!(batches.next().is_none() && launched.is_empty());
    }
}

/// Vectors whose checksums are right and whose blocks are not: both decode them to the same, or
/// refuse them with the same error.
#[test]
fn a_wrong_block_gives_the_error_of_the_processor() {
    let (gpu, mut refused) = (Gpu::emulated(), 0);
    for name in vector_files().keys().filter(|name| name.starts_with("invalid/") && name.ends_with(".hex")) {
        let folder = Folder::new();
        fs::create_dir(folder.path("data")).unwrap();
        fs::write(folder.path("data/file.tsl"), vector(name)).unwrap();
        let Ok(dataset) = Dataset::open(folder.path("data")) else { continue };
        let (view, count) = (View::all(&dataset), View::all(&dataset).n());
        let options = || LoaderOptions::new(count as u32).mode(Mode::Sequential);
        let Ok(loader) = options().loader(&view) else { continue };
        let due = loader.epoch(0).next().unwrap();
        let found = options().decode_on(&gpu).loader(&view).unwrap().epoch(0).next().unwrap();
        let found = found.and_then(|batch| launch(batch).finish());
        match (found, due) {
            (Ok((found, memory)), Ok(due)) => {
                for (found, due) in found.columns().iter().zip(due.columns()) {
                    check_column(found, &memory, due);
                }
            }
            (Err(found), Err(due)) => {
                assert_eq!(found.to_string(), due.to_string(), "{name}");
                refused += 1;
            }
            (found, due) => panic!("{name}: {:?}, the processor {:?}", found.map(|_| ()), due.map(|_| ())),
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn functions_of_batches_need_values_on_the_host() {
    let dataset = Dataset::open(folder()).unwrap();
    let options = LoaderOptions::new(4).decode_on(&Gpu::emulated()).map(|_: &mut Batch| Ok(()));
    let refused = options.loader(&View::all(&dataset)).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("GPU"), "{refused}");
    // a batch of the host has no blocks
    let batch = LoaderOptions::new(4).loader(&View::all(&dataset)).unwrap().epoch(0).next().unwrap().unwrap();
    assert_eq!(batch.device_bytes(), None);
}
