//! A file of several columns and chunks, and a check that a reader gives the right values.

use tensilo::sink::Stream;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Error, Profile, Reader, Schema, Shape, Writer, WriterOptions,
};

pub const SAMPLES: u64 = 600;

/// Returns the extent of sample `i` of the ragged column.
fn extent(i: u64) -> u32 {
    (i % 7) as u32
}

fn fixed(i: u64) -> [u32; 4] {
    [0, 1, 2, 3].map(|k| (i * 31 + k) as u32)
}

fn ragged(i: u64) -> Vec<u32> {
    (0..extent(i)).map(|k| (i as u32) << 8 | k).collect()
}

/// Writes a file with a few samples in each chunk; `salt` makes files differ.
pub fn file(profile: Profile, salt: u32) -> Vec<u8> {
    let schema = Schema::new([
        ColumnSchema::tensor("fixed", DType::U32, Shape::fixed(&[4])),
        ColumnSchema::tensor("ragged", DType::U32, Shape::ragged()),
    ]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(300);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values: Vec<u32> = (0..SAMPLES).flat_map(fixed).map(|value| value + salt).collect();
    let extents: Vec<u32> = (0..SAMPLES).map(extent).collect();
    let lists: Vec<u32> = (0..SAMPLES).flat_map(ragged).map(|value| value + salt).collect();
    let count = SAMPLES as usize;
    writer.push_batch(&[ColumnBatch::fixed(count, &values), ColumnBatch::ragged(count, &extents, &lists)]).unwrap();
    writer.into_bytes().unwrap()
}

/// Reads samples one by one and gathered, in an order that depends on `seed`. Returns the errors;
/// panics if a value is wrong.
pub fn read_all(reader: &Reader, seed: u64, salt: u32) -> Vec<Error> {
    let order: Vec<u64> = (0..SAMPLES).map(|i| (i * 7 + seed * 211) % SAMPLES).collect();
    let mut errors = Vec::new();
    let mut buffer = ColumnBuffer::new();
    for (column, expected) in [("fixed", (|i| fixed(i).to_vec()) as fn(u64) -> Vec<u32>), ("ragged", ragged)] {
        let column = reader.column(column).unwrap();
        let expected = |i| expected(i).into_iter().map(|value| value + salt).collect::<Vec<u32>>();
        let mut cursor = column.cursor();
        for &i in &order {
            match cursor.read(i) {
                Ok(sample) => assert_eq!(sample.as_slice::<u32>().unwrap(), expected(i), "sample {i}"),
                Err(error) => errors.push(error),
            }
        }
        for part in order.chunks(50) {
            match cursor.gather_into(part, &mut buffer) {
                Ok(()) => {
                    let expected: Vec<u32> = part.iter().flat_map(|&i| expected(i)).collect();
                    assert_eq!(buffer.values::<u32>().unwrap(), expected);
                }
                Err(error) => errors.push(error),
            }
        }
    }
    errors
}
