//! Every sample is delivered once, with the values of its file.

use super::model::{COLUMNS, SAMPLES, check, folder};
use proptest::prelude::*;
use std::path::Path;
use tensilo_data::{
    Component, Dataset, DatasetOptions, LastBatch, LoaderOptions, Mixture, Order, SampleList, Split, View, WindowSizes,
};

fn dataset() -> Dataset {
    Dataset::open(folder()).expect("a dataset")
}

fn modes() -> [Order; 3] {
    [Order::Sequential, Order::Shuffled, Order::Windowed(WindowSizes::new(5, 3).expect("sizes"))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn ranks_together_have_each_sample_once(
        mode in prop::sample::select(modes().to_vec()),
        batch in 1..70_u32,
        world_size in 1..4_u32,
        seed in any::<u64>(),
        epoch in 0..3_u64,
        decode_threads in 1..4_usize,
        io_depth in 0..6_usize,
        prefetch in 0..8_usize,
        open_files in 1..4_usize,
        io in 0..4_u8,
        columns in prop::sample::subsequence(COLUMNS.to_vec(), 1..=COLUMNS.len()),
    ) {
        let options = DatasetOptions::new().max_open_files(open_files);
        let options = match io {
            // SAFETY: nothing changes the files of this test.
            0 => unsafe { options.mmap() },
            // SAFETY: as above.
            3 => unsafe { options.mmap_if_cached() },
            #[cfg(all(target_os = "linux", feature = "io-uring"))]
            1 => options.io_uring(),
            _ => options,
        };
        let dataset = options.open(folder()).unwrap();
        let mut delivered: Vec<u64> = Vec::new();
        for rank in 0..world_size {
            let options = LoaderOptions::new(batch).order(mode).seed(seed).rank(rank, world_size).last_batch(LastBatch::Exact);
            let options = options.decode_threads(decode_threads).io_depth(io_depth).prefetch(prefetch);
            let options = options.columns(columns.clone());
            let loader = options.loader(&View::all(&dataset)).unwrap();
            let batches = loader.epoch(epoch);
            prop_assert_eq!(batches.batches_left(), loader.batches_per_epoch());
            for batch in batches {
                let batch = batch.unwrap();
                check(&batch, batch.indices());
                prop_assert_eq!(batch.indices(), loader.indices(epoch, batch.position()).unwrap());
                delivered.extend(batch.indices());
            }
        }
        delivered.sort_unstable();
        prop_assert_eq!(delivered, (0..SAMPLES).collect::<Vec<u64>>());
    }
}

#[test]
fn several_epochs_follow_each_other() {
    let loader = LoaderOptions::new(50).order(Order::Shuffled).seed(9).loader(&View::all(&dataset())).unwrap();
    let found: Vec<(u64, u64, Vec<u64>)> = loader
        .epochs(4..7)
        .map(|batch| batch.map(|batch| (batch.epoch(), batch.position(), batch.indices().to_vec())).unwrap())
        .collect();
    assert_eq!(found.len(), 9);
    for (number, (epoch, position, samples)) in found.iter().enumerate() {
        assert_eq!((*epoch, *position), (4 + number as u64 / 3, number as u64 % 3 * 50));
        assert_eq!(*samples, loader.indices(*epoch, *position).unwrap());
    }
    assert_eq!(loader.epochs(4..4).count(), 0);
}

#[test]
fn views_are_what_they_select() {
    let dataset = dataset();
    let split = Split::new(SAMPLES, 3, 0..Split::END / 2).unwrap();
    let list = SampleList::new([7, 7, 151, 0]);
    let views = [View::split(&dataset, &split).unwrap(), View::list(&dataset, &list).unwrap()];
    let component = |view: &View, weight| Component {
        dataset_id: dataset.id(),
        view_id: view.identity(),
        sample_count: view.sample_count(),
        weight,
    };
    let mixture = Mixture::new(&[component(&views[0], 3), component(&views[1], 1)], 1000, 5, 4).unwrap();
    let mixed = View::mixture(&mixture, &views).unwrap();
    assert!(View::mixture(&mixture, &views[..1]).is_err());
    for view in [&views[0], &views[1], &mixed] {
        let mut count = 0;
        for batch in LoaderOptions::new(33).last_batch(LastBatch::Exact).loader(view).unwrap().epoch(2) {
            let batch = batch.unwrap();
            let samples: Vec<u64> = batch.indices().iter().map(|&v| view.sample(v, 2).unwrap().1).collect();
            check(&batch, &samples);
            count += samples.len() as u64;
        }
        assert_eq!(count, view.sample_count());
    }
}

#[test]
fn an_epoch_without_a_step_is_refused() {
    let view = View::list(&dataset(), &SampleList::new([])).unwrap();
    for last_batch in [LastBatch::Drop, LastBatch::Pad, LastBatch::Exact] {
        assert!(LoaderOptions::new(4).last_batch(last_batch).loader(&view).is_err());
    }
    let view = View::all(&dataset());
    let error = LoaderOptions::new(80).rank(1, 2).loader(&view).unwrap_err().to_string();
    assert!(error.contains("152") && error.contains("160"), "{error}");
    assert!(LoaderOptions::new(80).rank(1, 2).last_batch(LastBatch::Pad).loader(&view).is_ok());
}

#[test]
fn what_does_not_fit_is_refused_with_what_there_is() {
    let view = View::all(&dataset());
    let refused = |options: LoaderOptions| options.loader(&view).expect_err("refused").to_string();
    assert!(refused(LoaderOptions::new(4).columns(["nothing"])).contains("id, vector"));
    assert!(refused(LoaderOptions::new(4).rank(2, 2)).contains("rank 2 of 2"));
    assert!(refused(LoaderOptions::new(0)).contains("0 samples"));
    assert!(refused(LoaderOptions::new(4).cast("id", tensilo::DType::F32)).contains("u64"));
    assert!(refused(LoaderOptions::new(4).columns(["id"]).cast("vector", tensilo::DType::F32)).contains("vector"));
    assert!(refused(LoaderOptions::new(4).pad("id", tensilo_data::Padding::new())).contains("fixed shape"));
    let padding = tensilo_data::Padding::new().value(0.5);
    assert!(refused(LoaderOptions::new(4).pad("tokens", padding)).contains("0.5"));
    assert!(View::list(&dataset(), &SampleList::new([SAMPLES])).is_err());
    assert!(View::split(&dataset(), &Split::new(SAMPLES - 1, 3, 0..5).unwrap()).is_err());
    assert!(Dataset::open(Path::new("/nowhere")).is_err());
}

#[test]
fn any_samples_are_read_by_the_calling_thread() {
    let loader = LoaderOptions::new(1).loader(&View::all(&dataset())).unwrap();
    let mut reader = loader.reader();
    for samples in [vec![5, 3, 5], vec![], vec![151, 0, 37, 38, 101], (0..SAMPLES).rev().collect()] {
        let batch = reader.take(&samples).unwrap();
        assert_eq!(batch.indices(), samples);
        check(&batch, &samples);
    }
    assert!(reader.take(&[0, SAMPLES]).unwrap_err().to_string().contains("152"));
}
