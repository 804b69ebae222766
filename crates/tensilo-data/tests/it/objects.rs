//! Datasets on a host of objects.

use crate::common::{check_all, create, files_below, numbers, read, write};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tensilo::salvage::SalvageOptions;
use tensilo_data::{DataError, Dataset, DatasetOptions, Io, LastBatch, LoaderOptions, Order, View};
use tensilo_object::{Cache, ObjectOptions};
use tensilo_testing::{Folder, HttpFault, HttpServer, env_or, random_faults};

/// Hosts the files of a folder below `/train`.
fn hosted(folder: &Path) -> HttpServer {
    let server = HttpServer::start();
    for path in files_below(folder) {
        let name = path.strip_prefix(folder).expect("a file of the folder").to_str().expect("a name");
        server.put(&format!("/train/{name}"), &fs::read(&path).expect("a file"));
    }
    server
}

/// Returns the samples of an epoch, and their values of `x`.
fn epoch(dataset: &Dataset, mode: Order) -> Vec<(u64, u32)> {
    let options = LoaderOptions::new(32).columns(["x"]).order(mode).seed(5);
    let loader = options.loader(&View::all(dataset)).expect("a loader");
    let mut found = Vec::new();
    for batch in loader.epoch(0) {
        let batch = batch.expect("a batch");
        let values = batch.column("x").expect("a column").values::<u32>().expect("u32").to_vec();
        found.extend(batch.indices().iter().copied().zip(values));
    }
    found
}

#[test]
fn a_dataset_on_a_host_is_read_as_one_in_a_folder() {
    let folder = Folder::new();
    let local = create(&folder.path("train"), &[100, 1, 300]);
    let server = hosted(&folder.path("train"));
    let url = server.url("/train");
    for url in [&url, &format!("{url}/")] {
        let remote = Dataset::open(url).unwrap();
        assert_eq!((remote.id(), remote.version(), remote.sample_count()), (local.id(), 1, 401));
        assert_eq!(remote.versions().unwrap(), [1]);
        assert_eq!(remote.io(), Io::Object);
        check_all(&remote).unwrap();
        for sample in [0, 99, 100, 101, 400] {
            assert_eq!(read(&remote, "x", sample).unwrap(), Some(sample as u32));
        }
        for mode in [Order::Sequential, Order::Shuffled, Order::Windowed(remote.window_sizes())] {
            assert_eq!(epoch(&remote, mode), epoch(&local, mode));
        }
    }
    let error = DatasetOptions::new().version(7).open(&url).unwrap_err();
    assert!(error.to_string().contains("version 7 does not exist; the dataset has versions up to 1"), "{error}");
}

/// Returns the number of requests for files in an epoch.
fn requests_of(server: &HttpServer, dataset: &Dataset, mode: Order) -> usize {
    server.take_requests();
    assert_eq!(epoch(dataset, mode).len() as u64, dataset.sample_count());
    let requests = server.take_requests();
    requests.iter().filter(|request| request.path.contains("/data/")).count()
}

#[test]
fn a_prefetched_run_is_one_request() {
    let folder = Folder::new();
    let local = create(&folder.path("train"), &[600_000, 500_000]);
    let server = hosted(&folder.path("train"));
    let run = u64::from(local.window_sizes().run_samples());
    for mode in [Order::Sequential, Order::Windowed(local.window_sizes())] {
        let remote = Dataset::open(server.url("/train")).unwrap();
        let runs = remote.sample_count().div_ceil(run) as usize;
        let found = requests_of(&server, &remote, mode);
        // a run is in two files, and each is opened by two requests
        assert!(found <= 2 * 2 + runs + 1, "{mode:?}: {found} requests of {runs} runs");
    }
}

#[test]
fn a_small_file_is_one_request() {
    let folder = Folder::new();
    create(&folder.path("train"), &[500; 40]);
    let server = hosted(&folder.path("train"));
    for shuffled in [false, true] {
        let remote = Dataset::open(server.url("/train")).unwrap();
        let mode = if shuffled { Order::Shuffled } else { Order::Windowed(remote.window_sizes()) };
        assert_eq!(requests_of(&server, &remote, mode), 40, "{mode:?}");
    }
}

#[test]
fn a_first_batch_opens_the_files_that_it_needs() {
    let folder = Folder::new();
    create(&folder.path("train"), &[20; 300]);
    let server = hosted(&folder.path("train"));
    let remote = Dataset::open(server.url("/train")).unwrap();
    let options =
        LoaderOptions::new(32).order(Order::Windowed(remote.window_sizes())).decode_threads(1).io_depth(2).prefetch(2);
    let batches = options.loader(&View::all(&remote)).unwrap().epoch(0);
    assert!(batches.wait(Duration::from_secs(20)));
    let files = |server: &HttpServer| server.take_requests().iter().filter(|r| r.path.contains("/data/")).count();
    let found = files(&server);
    assert!(found <= 64 + 128, "{found} files for 64 samples; 128 are opened at the same time");
    assert_eq!(batches.map(|batch| batch.unwrap().indices().len()).sum::<usize>(), 6000 - 6000 % 32);
    assert_eq!(found + files(&server), 300);
}

#[test]
fn an_epoch_from_the_cache_is_the_same() {
    let folder = Folder::new();
    let local = create(&folder.path("train"), &[20_000, 1, 30_000]);
    let server = hosted(&folder.path("train"));
    for mode in [Order::Sequential, Order::Shuffled, Order::Windowed(local.window_sizes())] {
        let cache = Cache::new(folder.path(format!("{mode:?}")), 1 << 30);
        for round in 0..3 {
            let options = ObjectOptions::new().cache(Some(cache.clone()));
            let remote = DatasetOptions::new().object_options(options).open(server.url("/train")).unwrap();
            server.take_requests();
            assert_eq!(epoch(&remote, mode), epoch(&local, mode), "{mode:?}, round {round}");
            let is_requested = server.take_requests().iter().any(|request| request.range.is_some());
            assert_eq!(is_requested, round == 0, "{mode:?}, round {round}");
        }
    }
}

#[test]
fn a_salvage_has_the_options_of_the_dataset() {
    let folder = Folder::new();
    create(&folder.path("train"), &[100]);
    let server = hosted(&folder.path("train"));
    let cache = Cache::new(folder.path("cache"), 1 << 30);
    let options = ObjectOptions::new().cache(Some(cache.clone()));
    let remote = DatasetOptions::new().object_options(options).open(server.url("/train")).unwrap();
    let group = remote.groups().next().unwrap().unwrap();
    assert_eq!(cache.stats().unwrap().entries, 0);
    assert!(remote.salvage_file(&group, 0, SalvageOptions::new()).unwrap().lost.is_none());
    assert!(cache.stats().unwrap().entries > 0);
}

#[test]
fn files_without_a_manifest_are_read_from_a_host() {
    let folder = Folder::new();
    fs::create_dir(folder.path("train")).unwrap();
    for (name, first) in [("b.tsl", 10), ("a.tsl", 0), (".hidden.tsl", 100)] {
        write(&folder.path("train").join(name), &[numbers("x")], first, 10);
    }
    let server = hosted(&folder.path("train"));
    let remote = Dataset::open(server.url("/train")).unwrap();
    assert_eq!(remote.sample_count(), 20);
    assert_eq!(read(&remote, "x", 15).unwrap(), Some(15));
    let one = Dataset::open(server.url("/train/b.tsl")).unwrap();
    assert_eq!(read(&one, "x", 5).unwrap(), Some(15));
    let listed = DatasetOptions::new().open_files([server.url("/train/b.tsl"), server.url("/train/a.tsl")]).unwrap();
    assert_eq!(read(&listed, "x", 5).unwrap(), Some(15));
    assert_eq!(read(&listed, "x", 15).unwrap(), Some(5));
}

#[test]
fn a_file_that_was_replaced_is_named() {
    let folder = Folder::new();
    create(&folder.path("train"), &[100, 100]);
    let server = hosted(&folder.path("train"));
    let path = &files_below(&folder.path("train/data"))[0];
    fs::remove_file(path).unwrap();
    write(path, &[numbers("x")], 7, 100);
    let name = path.strip_prefix(folder.path("train")).unwrap().to_str().unwrap();
    server.put(&format!("/train/{name}"), &fs::read(path).unwrap());
    let remote = Dataset::open(server.url("/train")).unwrap();
    let error = read(&remote, "x", 0).unwrap_err().to_string();
    assert!(error.contains(name), "{error}");
    assert_eq!(read(&remote, "x", 100).unwrap(), Some(100));
}

#[test]
fn mistakes_are_reported() {
    let server = HttpServer::start();
    let error = |path: &str| DatasetOptions::new().open(path).unwrap_err().to_string();
    let none = error(&server.url("/none"));
    assert!(none.contains("neither a manifest nor tensilo files"), "{none}");
    assert!(error("s3:///x").contains("no bucket"));
    let io = DatasetOptions::new().pread().open(server.url("/none")).unwrap_err().to_string();
    assert!(io.contains("pread works only for files, not for objects in a store"), "{io}");
}

#[test]
fn a_host_that_does_not_answer_is_an_error_with_the_address() {
    let folder = Folder::new();
    create(&folder.path("train"), &[100]);
    let server = hosted(&folder.path("train"));
    let options = ObjectOptions::new().retries(1, Duration::from_secs(5)).stall_timeout(Duration::from_millis(200));
    let remote = DatasetOptions::new().object_options(options).open(server.url("/train")).unwrap();
    server.set_faults(|_| Some(HttpFault::Status(503)));
    let error = read(&remote, "x", 0).unwrap_err();
    assert!(matches!(error, DataError::File(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("/train/data/0000000001/00000.tsl: opening the object") && text.contains("503"), "{text}");
}

/// Reads an epoch until an error. Returns the number of correct batches, and whether an error ended
/// the epoch.
fn faulty_epoch(url: &str, seed: u64) -> (usize, bool) {
    let options = ObjectOptions::new().retries(2, Duration::from_secs(5)).stall_timeout(Duration::from_millis(100));
    let Ok(dataset) = DatasetOptions::new().object_options(options).open(url) else { return (0, true) };
    let mode = [Order::Sequential, Order::Shuffled, Order::Windowed(dataset.window_sizes())][seed as usize % 3];
    let loader = LoaderOptions::new(32).columns(["x"]).order(mode).seed(seed).last_batch(LastBatch::Exact);
    // no file is opened: the schema is in the manifest
    let Ok(loader) = loader.loader(&View::all(&dataset)) else { return (0, true) };
    let mut right = 0;
    for batch in loader.epoch(0) {
        let Ok(batch) = batch else { return (right, true) };
        let values = batch.column("x").expect("a column").values::<u32>().expect("u32").to_vec();
        let samples: Vec<u32> = batch.indices().iter().map(|&sample| sample as u32).collect();
        assert_eq!(values, samples, "seed {seed}");
        right += 1;
    }
    (right, false)
}

/// Each epoch is correct until an error, ends, and leaves no connection open.
#[test]
fn epochs_with_faults_are_right_as_far_as_they_go() {
    let folder = Folder::new();
    create(&folder.path("train"), &[100, 1, 300]);
    let server = hosted(&folder.path("train"));
    let epochs = env_or("TENSILO_FAULTY_EPOCHS", 30);
    let (mut right, mut failed) = (0, 0);
    for seed in 0..epochs {
        server.set_faults(random_faults(seed, 6));
        let (batches, has_failed) = faulty_epoch(&server.url("/train"), seed);
        right += batches;
        failed += usize::from(has_failed);
    }
    println!("{epochs} epochs with faults: {right} correct batches; {failed} epochs ended with an error");
    assert!(right > 2 * epochs as usize, "most epochs are read");
    let end = Instant::now() + Duration::from_secs(10);
    while server.connections() > 0 {
        assert!(Instant::now() < end, "{} connections remain", server.connections());
        std::thread::sleep(Duration::from_millis(10));
    }
}
