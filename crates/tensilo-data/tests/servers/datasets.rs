//! Datasets that are written to a server and read back.

use crate::server::{azure, azure_options, host, s3, s3_options};
use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions};
use tensilo_data::{Changes, DataError, Dataset, DatasetOptions, LastBatch, LoaderOptions, Order, View};
use tensilo_object::ObjectOptions;
use tensilo_testing::Folder;

/// Appends a file of samples with 1,000 numbers each.
pub fn append(changes: &mut Changes, samples: u32) {
    let first = changes.sample_count() as u32;
    let file = changes.next_file().expect("a new data file");
    let path = file.path().to_path_buf();
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[1000]))]);
    let mut writer = Writer::new(file, schema, &WriterOptions::new()).expect("a schema");
    let values: Vec<u32> = (first..first + samples).flat_map(values).collect();
    writer.push_batch(&[ColumnBatch::fixed(samples as usize, &values)]).expect("samples");
    writer.finish().expect("a server");
    changes.add_file(&path).expect("a file of the dataset");
}

/// Returns the values of a sample.
pub fn values(sample: u32) -> impl Iterator<Item = u32> {
    (0..1000).map(move |i| if i == 0 { sample } else { (sample + i).wrapping_mul(0x9E37_79B9) })
}

/// Creates a dataset with three files.
pub fn create(options: DatasetOptions, folder: &str) -> Dataset {
    let mut changes = options.create(folder).expect("a new dataset");
    [30, 1, 200].into_iter().for_each(|samples| append(&mut changes, samples));
    changes.publish("create").expect("a server")
}

/// Reads an epoch, and checks its values. Returns the number of samples.
pub fn epoch(dataset: &Dataset, mode: Order) -> Result<usize, DataError> {
    let options = LoaderOptions::new(16).columns(["x"]).order(mode).last_batch(LastBatch::Exact);
    let mut count = 0;
    for batch in options.loader(&View::all(dataset))?.epoch(0) {
        let batch = batch?;
        let expected: Vec<u32> = batch.indices().iter().flat_map(|&sample| values(sample as u32)).collect();
        assert!(batch.column("x")?.values::<u32>()? == expected);
        count += batch.indices().len();
    }
    Ok(count)
}

/// Checks every operation on a dataset in a store.
fn check(options: ObjectOptions, folder: &str) {
    let options = || DatasetOptions::new().object_options(options.clone());
    let first = create(options(), folder);
    let opened = options().open(folder).unwrap();
    assert_eq!((opened.id(), opened.version(), opened.sample_count()), (first.id(), 1, 231));
    for mode in [Order::Sequential, Order::Shuffled, Order::Windowed(opened.window_sizes())] {
        assert_eq!(epoch(&opened, mode).unwrap(), 231);
    }

    // of two writers, one publishes
    let (mut one, mut other) = (opened.change().unwrap(), opened.change().unwrap());
    append(&mut one, 10);
    append(&mut other, 20);
    let published = one.publish("one").unwrap();
    assert!(matches!(other.publish("other"), Err(DataError::Conflict { version: 2, .. })));
    assert_eq!(epoch(&published, Order::Sequential).unwrap(), 241);
    assert_eq!(options().open(folder).unwrap().versions().unwrap(), [1, 2]);

    // only the files of the old version are removed
    let mut changes = published.change().unwrap();
    changes.repack(1 << 20, &WriterOptions::new(), &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
    let repacked = changes.publish("repack").unwrap();
    let garbage = options().garbage(folder, 1).unwrap();
    assert_eq!(garbage.versions, [1, 2]);
    assert!(garbage.bytes > 0);
    garbage.remove().unwrap();
    assert_eq!(repacked.versions().unwrap(), [3]);
    assert_eq!(epoch(&options().open(folder).unwrap(), Order::Shuffled).unwrap(), 241);
    assert!(options().garbage(folder, 1).unwrap().paths.is_empty());

    // an upload that is dropped leaves nothing
    let mut changes = repacked.change().unwrap();
    let mut file = changes.next_file().unwrap();
    std::io::Write::write_all(&mut file, &vec![1; 40 << 20]).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    drop(file);
    assert!(options().open(path).is_err());
    let error = options().create(folder).unwrap_err().to_string();
    assert!(error.contains("has a dataset, at version 3"), "{error}");
}

/// Writes each file of a version in its own job, and publishes the version twice.
fn check_job(options: ObjectOptions, folder: &str) {
    let job = |version| DatasetOptions::new().object_options(options.clone()).job(folder, version, 1 << 40).unwrap();
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[1000]))]);
    for version in [1, 2] {
        let first = (version as u32 - 1) * 30;
        let write = |number: u32| {
            job(version).write(number, None, |file| {
                let mut writer = Writer::new(file, schema.clone(), &WriterOptions::new())?;
                let values: Vec<u32> = (first + number * 10..first + number * 10 + 10).flat_map(values).collect();
                writer.push_batch(&[ColumnBatch::fixed(10, &values)])?;
                writer.finish()?;
                Ok(())
            })
        };
        let files: Vec<_> = (0..3).map(|number| write(number).unwrap()).collect();
        assert_eq!(write(1).unwrap(), files[1]);
        for _ in 0..2 {
            let published = job(version).publish(&schema, &files, "write", |_| {}).unwrap();
            assert_eq!((published.version(), published.sample_count()), (version, version * 30));
            assert_eq!(epoch(&published, Order::Shuffled).unwrap() as u64, version * 30);
        }
    }
}

#[test]
fn a_dataset_in_s3() {
    let Some(server) = s3() else { return };
    check_job(s3_options(server.address), "s3://bucket/job");
    check(s3_options(server.address), "s3://bucket/deep/train");
}

#[test]
fn a_dataset_in_azure() {
    let Some(server) = azure() else { return };
    check_job(azure_options(server.address), "az://container/job");
    check(azure_options(server.address), "az://container/deep/train");
}

#[test]
fn a_dataset_on_a_host() {
    let folder = Folder::new();
    create(DatasetOptions::new(), folder.path("deep/train").to_str().unwrap());
    let Some(server) = host(folder.root()) else { return };
    let opened = Dataset::open(format!("http://{}/deep/train/", server.address)).unwrap();
    assert_eq!(opened.sample_count(), 231);
    for mode in [Order::Sequential, Order::Shuffled, Order::Windowed(opened.window_sizes())] {
        assert_eq!(epoch(&opened, mode).unwrap(), 231);
    }
    assert!(opened.change().unwrap().next_file().is_err(), "a host takes no files");
}
