//! A resumed job takes the same samples as one that never stopped, with any number of ranks.

use super::model::{SAMPLES, create};
use proptest::prelude::*;
use tensilo_data::{
    BatchIterator, DataError, DatasetOptions, LastBatch, LoaderOptions, Order, Receipt, State, View, WindowSizes,
};
use tensilo_testing::Folder;

fn options(rank: u32, world_size: u32, batch: u32) -> LoaderOptions {
    LoaderOptions::new(batch).columns(["id"]).rank(rank, world_size).decode_threads(1)
}

/// Takes some batches, and returns their samples.
fn take(batches: &mut BatchIterator, count: usize) -> Vec<Vec<u64>> {
    batches.take(count).map(|batch| batch.expect("an intact file").indices().to_vec()).collect()
}

#[test]
fn with_the_same_ranks_batches_are_the_same() {
    let folder = Folder::new();
    let view = View::all(&create(&folder.path("data")));
    for mode in [Order::Sequential, Order::Shuffled, Order::Windowed(WindowSizes::new(4, 8).unwrap())] {
        for last_batch in [LastBatch::Drop, LastBatch::Pad, LastBatch::Exact] {
            let loader = options(1, 2, 10).order(mode).last_batch(last_batch).seed(5).loader(&view).unwrap();
            let all = take(&mut loader.epochs(3..5), usize::MAX);
            for stop in 0..all.len() {
                let mut batches = loader.epochs(3..5);
                assert_eq!(take(&mut batches, stop), all[..stop]);
                let state = State::from_bytes(&batches.state().to_bytes()).unwrap();
                drop(batches);
                // the order comes from the state
                let mut resumed = options(1, 2, 10).loader(&view).unwrap().resume_until(&state, 5).unwrap();
                assert_eq!(take(&mut resumed, usize::MAX), all[stop..], "{mode:?}, {last_batch:?}, after {stop}");
                assert_eq!(resumed.state().epoch, 5);
                assert_eq!(resumed.next().map(|batch| batch.is_ok()), None);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// 4 ranks, then 3, then 7, and others: each sample once, and the receipt of the epoch.
    #[test]
    fn with_other_ranks_the_epoch_goes_on(
        worlds in prop::collection::vec((1..8_u32, 1..9_u32, 0..4_u64), 1..4),
        mode in prop::sample::select(vec![Order::Sequential, Order::Shuffled]),
        seed in any::<u64>(),
    ) {
        let folder = Folder::new();
        let view = View::all(&create(&folder.path("data")));
        let first = options(0, 1, 1).order(mode).seed(seed).last_batch(LastBatch::Exact).loader(&view).unwrap().epoch(1).state();
        let (mut state, mut delivered) = (first, Vec::new());
        let last = (2, 5, u64::MAX);
        for (world_size, batch, steps) in worlds.into_iter().chain([last]) {
            let mut next = None;
            let mut receipt = state.receipt;
            for rank in 0..world_size {
                let mut batches = options(rank, world_size, batch).loader(&view).unwrap().resume(&state).unwrap();
                let count = usize::try_from(steps.min(batches.batches_left())).unwrap();
                delivered.extend(take(&mut batches, count).into_iter().flatten());
                receipt = receipt.plus(batches.receipt());
                let ended = State { receipt: Receipt(0), ..batches.state() };
                prop_assert_eq!(*next.get_or_insert(ended), ended, "ranks agree");
            }
            state = State { receipt, ..next.unwrap() };
            if state.epoch == 2 {
                break;
            }
        }
        let mut expected = Receipt::default();
        (0..SAMPLES).for_each(|sample| expected.add(sample, 1));
        prop_assert_eq!(state.receipt, expected);
        delivered.sort_unstable();
        prop_assert_eq!(delivered, (0..SAMPLES).collect::<Vec<u64>>());
    }
}

#[test]
fn a_state_of_something_else_is_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    let dataset = create(&folder.path("data"));
    let view = View::all(&dataset);
    let loader = options(0, 1, 4).order(Order::Shuffled).seed(1).loader(&view).unwrap();
    let state = loader.epoch(0).state();
    assert_eq!(loader.state(0), state);
    assert_eq!(loader.state(3), State { epoch: 3, ..state });
    loader.check(&loader.state(3)).unwrap();
    let left = loader.resume(&State { position: 40, ..state }).unwrap().batches_left();
    assert_eq!((loader.batches_from(40), loader.batches_from(0)), (left, loader.batches_per_epoch()));
    let refused = |options: LoaderOptions, state: State| {
        let loader = options.loader(&view).unwrap();
        let error = loader.resume(&state).expect_err("refused");
        assert_eq!(loader.check(&state).expect_err("refused").to_string(), error.to_string());
        assert!(matches!(error, DataError::BadState(_)));
        error.to_string()
    };
    let windowed = Order::Windowed(WindowSizes::new(3, 5).unwrap());
    let name = "windowed (windows of 5 runs of 3 samples, in 1 stream)";
    for (mode, expected) in [(Order::Sequential, "sequential"), (windowed, name)] {
        let message = refused(options(0, 1, 4).order(mode), state);
        assert!(message.contains("the order of the state is shuffled") && message.ends_with(expected), "{message}");
    }
    assert!(refused(options(0, 1, 4).seed(2), state).contains("seed"));
    assert!(refused(options(0, 1, 4).last_batch(LastBatch::Pad), state).ends_with("pad"));
    assert!(refused(options(0, 1, 4), State { view_id: 7, ..state }).contains("view"));
    assert!(refused(options(0, 1, 4), State { sample_count: SAMPLES + 1, ..state }).contains("samples"));
    let dataset = super::super::common::create(&other.path("data"), &[100, 52]);
    let view = View::all(&dataset);
    let error = LoaderOptions::new(4).loader(&view).unwrap().resume(&state).expect_err("another dataset");
    assert!(matches!(error, DataError::BadState(_)) && error.to_string().contains(" id "), "{error}");
    // the dataset has grown: its older version is the one to open
    let state = LoaderOptions::new(4).loader(&view).unwrap().epoch(0).state();
    let mut changes = dataset.change().unwrap();
    let path = changes.next_path().unwrap();
    super::super::common::write(&path, &[super::super::common::numbers("x")], 152, 9);
    changes.add_file(&path).unwrap();
    let grown = changes.publish("grow").unwrap();
    let error = LoaderOptions::new(4).loader(&View::all(&grown)).unwrap().resume(&state).expect_err("other samples");
    assert!(error.to_string().contains("open version 1 to resume"), "{error}");
    let older = DatasetOptions::new().version(state.dataset_version).open(other.path("data")).unwrap();
    LoaderOptions::new(4).loader(&View::all(&older)).unwrap().resume(&state).unwrap();
}
