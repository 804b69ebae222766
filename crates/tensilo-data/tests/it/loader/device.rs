//! Batches decoded by a GPU equal batches decoded by the CPU. The GPU is emulated.

use super::model::{COLUMNS, folder};
use proptest::prelude::*;
use std::error::Error;
use std::fs;
use std::ops::ControlFlow;
use std::time::Duration;
use tensilo::DType;
use tensilo::source::PositionedFile;
use tensilo_cuda::{BatchMemory, DeviceBuffer, Gpu};
use tensilo_data::{
    Batch, BatchColumn, Dataset, DatasetOptions, DeviceAllocator, LastBatch, LoaderMetrics, LoaderOptions, Order,
    Padding, SampleList, View, WindowSizes,
};
use tensilo_testing::{Folder, vector, vector_files};

/// Returns the memory of a batch, which is host memory.
fn read(memory: &DeviceBuffer) -> Vec<u64> {
    let mut words = vec![0; memory.byte_count().div_ceil(8)];
    memory.read(&mut bytemuck::cast_slice_mut(&mut words)[..memory.byte_count()]).unwrap();
    words
}

/// Opens the dataset. Its files are read in one of four ways.
fn opened_by(io: usize) -> Dataset {
    let options = DatasetOptions::new();
    let options = match io {
        1 => options.open_with(|path, options| options.open_source(PositionedFile::open(path)?)),
        #[cfg(target_os = "linux")]
        2 => options.open_with(|path, options| options.open_source(tensilo_data::UringFile::open(path)?)),
        #[cfg(target_os = "linux")]
        3 => options.open_with(|path, options| match tensilo_data::UringFile::open_direct(path) {
            Ok(file) => options.open_source(file),
            Err(_) => options.open_source(PositionedFile::open(path)?), // a file system without direct I/O
        }),
        _ => options,
    };
    options.open(folder()).unwrap()
}

/// Checks a column. Its values are in `memory` if they are on the GPU.
fn check_column(found: &BatchColumn, memory: &[u64], expected: &BatchColumn) {
    let name = &expected.schema().unwrap().name;
    let is_list = expected.schema().unwrap().dtype.is_string() || !expected.schema().unwrap().levels.is_empty();
    assert_eq!(found.device_range().is_none(), is_list && expected.tensor_extents().is_none(), "{name}");
    let values = match found.device_range() {
        Some(range) => &bytemuck::cast_slice(memory)[range],
        None => found.bytes(),
    };
    assert!(values == expected.bytes(), "{name}: {values:02x?}, expected {:02x?}", expected.bytes());
    let of = |column: &BatchColumn| {
        (
            column.tensor_extents().map(<[u64]>::to_vec),
            column.sample_count(),
            column.null_count(),
            column.schema().cloned(),
        )
    };
    assert_eq!(of(found), of(expected), "{name}");
    assert_eq!((found.offsets(), found.varying_extents()), (expected.offsets(), expected.varying_extents()), "{name}");
    assert_eq!(
        (0..expected.sample_count()).map(|i| found.is_null(i)).collect::<Vec<bool>>(),
        (0..expected.sample_count()).map(|i| expected.is_null(i)).collect::<Vec<bool>>(),
        "{name}"
    );
    for (found, expected) in found.lists().iter().zip(expected.lists()) {
        assert_eq!((found.offsets(), found.validity()), (expected.offsets(), expected.validity()), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_gpu_delivers_what_the_processor_delivers(
        mode in prop::sample::select(vec![
            Order::Sequential,
            Order::Shuffled,
            Order::Windowed(WindowSizes::new(5, 3).unwrap()),
        ]),
        batch in 1..70_u32,
        seed in any::<u64>(),
        io in 0..4_usize,
        min_device_bytes in prop::sample::select(vec![0, 2_000, usize::MAX]),
        columns in prop::sample::subsequence(COLUMNS.to_vec(), 1..=COLUMNS.len()),
        padded in prop::collection::vec(prop::option::of((1..4_u32, -100..100_i8)), 2),
        casts in prop::collection::vec(any::<bool>(), 3),
    ) {
        let dataset = opened_by(io);
        let has = |name: &str| columns.contains(&name);
        let options = || {
            let mut options = LoaderOptions::new(batch).order(mode).seed(seed).last_batch(LastBatch::Exact).columns(columns.clone());
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
        let expected = options().loader(&view).unwrap();
        let gpu = Gpu::emulated();
        let loader = options().decode_on(&gpu).min_device_bytes(min_device_bytes).loader(&view).unwrap();
        let mut batches = loader.epoch(0).on_device(gpu);
        let mut on_host = expected.epoch(0);
        while let Some(expected) = on_host.next() {
            let ((found, memory), expected) = (batches.next().unwrap().unwrap(), expected.unwrap());
            prop_assert_eq!(found.indices(), expected.indices());
            let memory = read(&memory);
            for (found, expected) in found.columns().iter().zip(expected.columns()) {
                check_column(found, &memory, expected);
            }
            // batches in flight are not counted
            prop_assert_eq!(batches.state(), on_host.state());
            let count = |metrics: LoaderMetrics| (metrics.batches, metrics.samples, metrics.value_bytes);
            prop_assert_eq!(count(batches.metrics()), count(on_host.metrics()));
        }
        prop_assert!(batches.next().is_none());
        prop_assert_eq!(batches.state(), on_host.state());
    }
}

/// Vectors with correct checksums and invalid blocks: CPU and GPU decode them to the same values,
/// or refuse them with the same error.
#[test]
fn a_wrong_block_gives_the_error_of_the_processor() {
    let (gpu, mut refused) = (Gpu::emulated(), 0);
    for name in vector_files().keys().filter(|name| name.starts_with("invalid/") && name.ends_with(".hex")) {
        let folder = Folder::new();
        fs::create_dir(folder.path("data")).unwrap();
        fs::write(folder.path("data/file.tsl"), vector(name)).unwrap();
        let Ok(dataset) = Dataset::open(folder.path("data")) else { continue };
        let (view, count) = (View::all(&dataset), View::all(&dataset).sample_count());
        let options = || LoaderOptions::new(count as u32).order(Order::Sequential);
        let Ok(loader) = options().loader(&view) else { continue };
        let expected = loader.epoch(0).next().unwrap();
        let loader = options().decode_on(&gpu).min_device_bytes(0).loader(&view).unwrap();
        let found = loader.epoch(0).on_device(gpu.clone()).next().unwrap();
        match (found, expected) {
            (Ok((found, memory)), Ok(expected)) => {
                let memory = read(&memory);
                for (found, expected) in found.columns().iter().zip(expected.columns()) {
                    check_column(found, &memory, expected);
                }
            }
            (Err(found), Err(expected)) => {
                assert_eq!(found.to_string(), expected.to_string(), "{name}");
                refused += 1;
            }
            (found, expected) => panic!("{name}: {:?}, the CPU {:?}", found.map(|_| ()), expected.map(|_| ())),
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn functions_of_batches_need_values_on_the_host() {
    let dataset = Dataset::open(folder()).unwrap();
    let options = LoaderOptions::new(4).decode_on(&Gpu::emulated()).transform(|_: &mut Batch| Ok(()));
    let refused = options.loader(&View::all(&dataset)).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("GPU"), "{refused}");
    // a batch of the host has no blocks
    let mut batches = LoaderOptions::new(4).loader(&View::all(&dataset)).unwrap().epoch(0);
    assert_eq!(batches.next().unwrap().unwrap().device_bytes(), None);
    let refused = batches.on_device(Gpu::emulated()).next().unwrap().map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("decode_on"), "{refused}");
}

/// Fails every second time, like a GPU whose memory is full.
struct OftenFull(Gpu, u64);

// SAFETY: same as `Gpu`, which allocates.
unsafe impl DeviceAllocator for OftenFull {
    type Memory = DeviceBuffer;

    fn allocate(&mut self, bytes: usize) -> Result<DeviceBuffer, Box<dyn Error + Send + Sync>> {
        self.1 += 1;
        match self.1.is_multiple_of(2) {
            true => Err("the memory is full".into()),
            false => self.0.allocate(bytes),
        }
    }

    fn location(memory: &DeviceBuffer) -> BatchMemory {
        memory.as_batch()
    }
}

#[test]
fn a_batch_that_has_no_memory_is_not_lost() {
    let (dataset, gpu) = (Dataset::open(folder()).unwrap(), Gpu::emulated());
    let options = || LoaderOptions::new(7).columns(["vector"]).min_device_bytes(0);
    let view = View::all(&dataset);
    let mut batches = options().decode_on(&gpu).loader(&view).unwrap().epoch(0).on_device(OftenFull(gpu, 0));
    let mut on_host = options().loader(&view).unwrap().epoch(0);
    let mut failures = 0;
    loop {
        let before = batches.state();
        let Some(found) = batches.next() else { break };
        match found {
            Ok((found, _)) => {
                assert_eq!(found.indices(), on_host.next().unwrap().unwrap().indices());
                assert_eq!(batches.state(), on_host.state());
            }
            Err(error) => {
                assert!(error.to_string().contains("full"), "{error}");
                assert_eq!(batches.state(), before);
                failures += 1;
            }
        }
    }
    assert!(on_host.next().is_none() && failures > 5, "{failures}");
    let metrics = batches.metrics();
    assert_eq!(metrics.batches, on_host.metrics().batches);
    assert!(metrics.copied_bytes > 0 && metrics.copying > Duration::ZERO && metrics.device_decoding > Duration::ZERO);
}

/// Samples that stay on the GPU equal the samples that a reader delivers, in any order of a view.
#[test]
fn resident_samples_are_those_of_the_view() {
    let (dataset, gpu) = (Dataset::open(folder()).unwrap(), Gpu::emulated());
    let all = View::all(&dataset);
    let n = all.sample_count();
    let backwards: Vec<u64> = (0..n).rev().filter(|sample| sample % 3 > 0).collect();
    for view in [all.clone(), View::list(&dataset, &SampleList::new(backwards)).unwrap()] {
        let options = || {
            let columns = ["vector", "id", "tokens"];
            let options = LoaderOptions::new(4).columns(columns).cast("vector", DType::F32);
            options.pad("tokens", Padding::new().multiple(3).value(7.0))
        };
        let mut reports = Vec::new();
        let resident = options().decode_on(&gpu).resident(&view, 0..view.sample_count(), usize::MAX, |done, total| {
            reports.push((done, total));
            ControlFlow::Continue(())
        });
        let resident = resident.unwrap();
        assert_eq!(resident.sample_count(), view.sample_count());
        // in several batches
        assert!(
            reports.len() > 1 && reports[..2] == [(0, view.sample_count()), (64, view.sample_count())],
            "{reports:?}"
        );
        let order: Vec<u64> = (0..view.sample_count()).map(|i| i * 7 % view.sample_count()).collect();
        let expected = options().reader(&view).unwrap().take(&order).unwrap();
        let numbers: Vec<i64> = order.iter().map(|&sample| sample as i64).collect();
        let indices = gpu.buffer_from(bytemuck::cast_slice(&numbers)).unwrap();
        for (column, expected) in resident.columns().iter().zip(expected.columns()) {
            let row_bytes = column.extents().iter().product::<u64>() as usize * column.filler().len();
            assert!(row_bytes >= column.samples().row_bytes() && row_bytes * order.len() == expected.bytes().len());
            let rows =
                gpu.buffer_from(&column.filler().repeat(expected.bytes().len() / column.filler().len())).unwrap();
            // SAFETY: rows and indices live until the samples are gathered.
            let gathered =
                unsafe { column.samples().gather(indices.address(), order.len(), rows.as_batch(), row_bytes) };
            assert_eq!(gathered.unwrap().finish().unwrap().0, None);
            let mut found = vec![0; expected.bytes().len()];
            rows.read(&mut found).unwrap();
            assert!(found == expected.bytes(), "{column:?}");
            let nulls = order.iter().enumerate().filter(|(i, _)| expected.is_null(*i));
            let mut nulls: Vec<u64> = nulls.map(|(_, &sample)| sample).collect();
            nulls.sort_unstable();
            assert_eq!(column.nulls(), nulls);
        }
        // a range of the view
        let half = view.sample_count() / 2..view.sample_count();
        let part = LoaderOptions::new(1).columns(["id"]).decode_on(&gpu);
        let part = part.resident(&view, half.clone(), usize::MAX, |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(part.sample_count(), half.end - half.start);
        // an empty range
        let none =
            options().decode_on(&gpu).resident(&view, 3..3, usize::MAX, |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!((none.sample_count(), none.columns()[0].extents()), (0, &[5][..]));
        // samples that do not fit are not resident
        let first =
            options().decode_on(&gpu).resident(&view, 0..64, usize::MAX, |_, _| ControlFlow::Continue(())).unwrap();
        let none = options()
            .decode_on(&gpu)
            .resident(&view, 0..view.sample_count(), first.byte_count() / 2, |_, _| ControlFlow::Continue(()));
        assert_eq!(none.unwrap().sample_count(), 0);
        let room = (first.byte_count() + resident.byte_count()) / 2;
        let some =
            options().decode_on(&gpu).resident(&view, 0..view.sample_count(), room, |_, _| ControlFlow::Continue(()));
        let some = some.unwrap();
        assert!((64..view.sample_count()).contains(&some.sample_count()) && some.byte_count() <= room, "{some:?}");
        let cancelled = options()
            .decode_on(&gpu)
            .resident(&view, 0..view.sample_count(), usize::MAX, |_, _| ControlFlow::Break(()));
        assert!(cancelled.unwrap_err().to_string().contains("cancelled"));
    }
}

#[test]
fn columns_that_cannot_stay_on_a_gpu_are_named() {
    let (dataset, gpu) = (Dataset::open(folder()).unwrap(), Gpu::emulated());
    let resident = |options: LoaderOptions| {
        let refused = options.resident(&View::all(&dataset), 0..1, usize::MAX, |_, _| ControlFlow::Continue(()));
        refused.map(|_| ()).unwrap_err().to_string()
    };
    let with = |name: &str| LoaderOptions::new(1).columns([name]).decode_on(&gpu);
    assert!(resident(LoaderOptions::new(1)).contains("decode_on"));
    assert!(resident(with("tokens")).contains("padded"), "{}", resident(with("tokens")));
    assert!(resident(with("maybe").cast("maybe", DType::I64)).contains("can cast only"));
    assert!(resident(with("words")).contains("text, bytes"));
    let all = View::all(&dataset);
    let whole = with("maybe").resident(&all, 0..all.sample_count(), usize::MAX, |_, _| ControlFlow::Continue(()));
    assert!(whole.unwrap_err().to_string().contains("some files do not have it"));
    let beyond = with("id").resident(&all, 0..all.sample_count() + 1, usize::MAX, |_, _| ControlFlow::Continue(()));
    assert!(beyond.unwrap_err().to_string().contains("are not in the view, which has"));
}
