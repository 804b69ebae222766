//! Conversions of Parquet files on a server.

use crate::datasets::epoch;
use crate::server::{azure, azure_options, host, s3, s3_options};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tensilo::export::{ExportFormat, ExportOptions, export_into};
use tensilo::import::{ConvertOptions, convert};
use tensilo::sink::{Sink, Stream};
use tensilo::{ColumnBatch, ColumnSchema, DType, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_data::{DatasetOptions, Order};
use tensilo_object::{Address, ObjectInputs, ObjectOptions, ObjectStorage};
use tensilo_testing::{FaultProxy, Folder, random_faults};

/// The samples of a Parquet file.
const ROWS: u32 = 200;

/// Writes samples, starting with `first`, as a Parquet file.
fn write_parquet<K: Sink + Send>(first: u32, sink: K) {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[1000]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    let values: Vec<u32> = (first..first + ROWS).flat_map(crate::datasets::values).collect();
    writer.push_batch(&[ColumnBatch::fixed(ROWS as usize, &values)]).unwrap();
    let reader = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
    export_into(&reader, sink, ExportFormat::Parquet, ExportOptions::new()).unwrap();
}

/// Uploads Parquet files below a prefix.
fn upload(options: &ObjectOptions, prefix: &str) {
    for i in 0..3 {
        let address = Address::parse(&format!("{prefix}/part={i}/x.parquet")).unwrap();
        let storage = ObjectStorage::new(&address, options.clone());
        write_parquet(i * ROWS, storage.upload(&address, false).unwrap());
    }
}

fn convert_options(options: ObjectOptions) -> ConvertOptions {
    ConvertOptions::new().columns(["x"]).store(Arc::new(ObjectInputs::new(options)))
}

/// Converts Parquet files of a store to a dataset in the same store, and reads it.
fn check(options: &ObjectOptions, root: &str) {
    upload(options, &format!("{root}/raw"));
    for (i, input) in ["raw", "raw/", "raw/part=*/*.parquet"].into_iter().enumerate() {
        let folder = format!("{root}/train-{i}");
        let dataset_options = || DatasetOptions::new().object_options(options.clone());
        let mut changes = dataset_options().create(&folder).unwrap();
        let inputs = [PathBuf::from(format!("{root}/{input}"))];
        changes
            .import(&inputs, 1 << 20, &convert_options(options.clone()), &mut |_| ControlFlow::Continue(()))
            .unwrap();
        changes.publish("convert").unwrap();
        let dataset = dataset_options().open(&folder).unwrap();
        assert!(dataset.sample_count() == 600 && dataset.groups().count() >= 3, "{dataset:?}");
        assert_eq!(epoch(&dataset, Order::Shuffled).unwrap(), 600);
    }
}

#[test]
fn parquet_files_in_s3() {
    let Some(server) = s3() else { return };
    check(&s3_options(server.address), "s3://bucket/deep");
}

#[test]
fn parquet_files_in_azure() {
    let Some(server) = azure() else { return };
    check(&azure_options(server.address), "az://container/deep");
}

/// Converts files of a host to a local file, and returns its bytes. If that fails, no file is left.
fn converted(input: String, options: ObjectOptions) -> tensilo::Result<Vec<u8>> {
    let folder = Folder::new();
    let path = folder.path("out.tsl");
    let converted = convert(&[input.into()], &path, &convert_options(options), &mut |_| ControlFlow::Continue(()));
    assert_eq!(folder.names().len(), usize::from(converted.is_ok()));
    assert_eq!(converted?, u64::from(ROWS) * 2);
    Ok(std::fs::read(path).unwrap())
}

#[test]
fn faults_change_nothing_in_a_conversion() {
    let folder = Folder::new();
    for i in 0..2 {
        write_parquet(i * ROWS, std::fs::File::create(folder.path(format!("{i}.parquet"))).map(Stream).unwrap());
    }
    let Some(server) = host(folder.root()) else { return };
    let expected = converted(folder.root().to_str().unwrap().to_owned(), ObjectOptions::new()).unwrap();
    let proxy = FaultProxy::start(server.address);
    let options =
        || ObjectOptions::new().retries(100, Duration::from_secs(60)).stall_timeout(Duration::from_millis(300));
    let (mut right, mut failed) = (0, 0);
    for seed in 0..50 {
        proxy.set_faults(random_faults(seed, 6));
        match converted(format!("http://{}/*.parquet", proxy.address()), options()) {
            Ok(found) => {
                assert!(found == expected, "different bytes with the faults of seed {seed}");
                right += 1;
            }
            // a fault that is not retried: status 404
            Err(error) if error.to_string().contains("does not exist") => failed += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    let requests = proxy.take_requests().len();
    println!("50 conversions of 2 files with faults: {requests} requests; {right} equal, {failed} ended with an error");
    assert!(right > 25, "most conversions are done");
}
