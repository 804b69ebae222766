//! Samples larger than a chunk of several, encoded.

use super::large_file;
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use tensilo::{ColumnSchema, DType, Reader, Schema, Shape, Value, WriterOptions};
use tensilo_testing::alone;

#[test]
fn an_encoded_sample_larger_than_any_chunk_of_several_is_written_and_read() {
    let _alone = alone();
    let elements = 17 << 20; // of 4 bytes: 68 MiB
    let shape = Shape::fixed(&[elements]);
    let disk = OnDisk::absent();
    let large: Vec<u32> = (0..elements).map(|i| i / 1_000).collect();
    let mut writer = large_file(
        &disk,
        Schema::new([ColumnSchema::tensor("x", DType::U32, shape).nullable()]),
        &WriterOptions::new(),
    );
    writer.push(&[Value::tensor(&large)]).expect("a large sample");
    writer.push(&[Value::NULL]).expect("a null as large");
    writer.finish().expect("disk space");
    let reader = Reader::open(disk.path()).expect("an intact file");
    assert!(reader.file_bytes() < u64::from(elements), "it was not encoded");
    assert_intact(reader.source());
    let mut out = vec![1; elements as usize];
    let mut cursor = reader.column("x").expect("the column").cursor();
    assert_eq!(cursor.read_into(0, &mut out).expect("a sample"), Some(elements as usize));
    assert!(out == large);
    assert_eq!(cursor.read_into(1, &mut out).expect("a null"), None);
    assert!(out.iter().all(|element| *element == 0));
}
