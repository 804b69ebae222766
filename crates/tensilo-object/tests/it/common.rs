//! Servers, files and storages for tests.

use std::time::Duration;
use tensilo::{ColumnBatch, ColumnSchema, DType, Schema, Shape, Writer, WriterOptions, sink::Stream};
use tensilo_object::{Address, ObjectOptions, ObjectStorage};
use tensilo_testing::{HttpServer, Random};

/// A server with an object.
pub struct Hosted {
    pub server: HttpServer,
    pub address: Address,
    pub storage: ObjectStorage,
    pub bytes: Vec<u8>,
}

impl Hosted {
    /// Hosts these bytes, with options that give up soon.
    pub fn new(bytes: Vec<u8>, options: ObjectOptions) -> Self {
        let server = HttpServer::start();
        server.put("/data/x.tsl", &bytes);
        let address = Address::parse(&server.url("/data/x.tsl")).unwrap();
        let storage = ObjectStorage::new(&address, options);
        Self { server, address, storage, bytes }
    }

    /// Returns the ranges that were requested since the last call, in ascending order.
    pub fn take_ranges(&self) -> Vec<String> {
        let mut ranges: Vec<_> = self.server.take_requests().into_iter().filter_map(|request| request.range).collect();
        ranges.sort_by_key(|range| range.split('-').next().and_then(|start| start.parse::<u64>().ok()));
        ranges
    }
}

/// Returns options for a nearby server whose responses may be wrong.
pub fn quick() -> ObjectOptions {
    ObjectOptions::new().retries(3, Duration::from_secs(20)).stall_timeout(Duration::from_millis(250))
}

/// Returns the bytes of an object.
pub fn random_bytes(count: usize) -> Vec<u8> {
    Random(7).bytes(count)
}

/// Returns a tensilo file of samples of 64 numbers. The first is the number of the sample.
pub fn file(samples: u32) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::fixed(&[64]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).unwrap();
    let values: Vec<i32> = (0..samples).flat_map(sample).collect();
    writer.push_batch(&[ColumnBatch::fixed(samples as usize, &values)]).unwrap();
    writer.into_bytes().unwrap()
}

/// Returns the values of a sample of [`file`].
pub fn sample(number: u32) -> Vec<i32> {
    let mut random = Random(number.into());
    (0..64).map(|i| if i == 0 { number as i32 } else { (random.bits() >> 40) as i32 }).collect()
}
