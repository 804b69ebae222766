//! Encoded samples larger than a chunk of several samples.

use super::{MIB, large_file};
use crate::support::build::{ABSENT, Build, Chunk, column};
use crate::support::intact::assert_intact;
use crate::support::on_disk::OnDisk;
use tensilo::{ColumnBuffer, ColumnSchema, DType, Reader, Schema, Shape, Value, WriterOptions};
use tensilo_testing::exclusive_test;

#[test]
fn an_encoded_sample_larger_than_any_chunk_of_several_is_written_and_read() {
    let _exclusive_test = exclusive_test();
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
    assert_eq!(cursor.read_slice(0, &mut out).expect("a sample"), Some(elements as usize));
    assert!(out == large);
    assert_eq!(cursor.read_slice(1, &mut out).expect("a null"), None);
    assert!(out.iter().all(|element| *element == 0));
}

const ZSTD: u16 = 2;
const BLOCKS: u16 = 256;
/// The tables of frames that need no Zstandard dictionary.
const NO_DICTIONARY: [u8; 4] = [0xFF; 4];
/// No frame starts with these bytes.
const NO_FRAME: [u8; 9000] = [0x55; 9000];

fn file_of(extent: u32, chunk: &Chunk, encodings: &[(u16, u64)]) -> Vec<u8> {
    let mut build = Build::new(&[column("x", 9, false, &[extent])]);
    build.chunk(chunk);
    build.finish(0, encodings)
}

/// Returns 60 samples of 1 MiB in two blocks.
fn frames_in_blocks() -> Vec<u8> {
    let mut stored = [40_u32, 2].map(u32::to_le_bytes).concat();
    stored.extend(NO_DICTIONARY);
    for (end, stored_end) in [(59 << 20, 9000), (60 << 20, 18_000)] {
        stored.extend([end, stored_end, crc32fast::hash(&NO_FRAME)].into_iter().flat_map(u32::to_le_bytes));
    }
    stored.extend(crc32fast::hash(&stored).to_le_bytes());
    stored.extend(NO_FRAME);
    stored.extend(NO_FRAME);
    file_of(1 << 20, &Chunk::of_values(60, (ZSTD | BLOCKS, 60 << 20, &stored)), &[(ZSTD | BLOCKS, 1)])
}

/// Returns a sample of 1 GiB of a fixed or a varying length.
fn one_sample(is_ragged: bool) -> Vec<u8> {
    const BYTES: u32 = 1 << 30;
    let stored = [&NO_DICTIONARY[..], &NO_FRAME].concat();
    let values = (ZSTD, BYTES, &stored[..]);
    match is_ragged {
        true => {
            let parts = [ABSENT, (0, 4, &BYTES.to_le_bytes()), values];
            file_of(u32::MAX, &Chunk::of_parts(1, parts), &[(0, 0), (ZSTD, 1)])
        }
        false => file_of(BYTES, &Chunk::of_values(1, values), &[(ZSTD, 1)]),
    }
}

#[test]
fn no_memory_is_taken_for_samples_that_cannot_have_their_stated_length() {
    let exclusive_test = exclusive_test();
    for (name, file, gathers) in [
        ("blocks", frames_in_blocks(), true),
        ("a fixed sample", one_sample(false), false), // the column states its length
        ("a ragged sample", one_sample(true), true),
    ] {
        let reader = Reader::from_bytes(file).expect(name);
        let column = reader.column("x").expect(name);
        // samples in blocks have 1 MiB, the others 1 GiB
        let (error, peak) = exclusive_test.peak_bytes(|| column.cursor().read(0).map(|_| ()).expect_err(name));
        assert_eq!(error.rule(), Some("R-5.5"), "{name}: {error}");
        assert!(peak < 2 * MIB, "{name}: reading takes {peak} bytes");
        if gathers {
            let mut out = ColumnBuffer::new();
            let (error, peak) =
                exclusive_test.peak_bytes(|| column.cursor().gather_into(&[0], &mut out).expect_err(name));
            assert_eq!(error.rule(), Some("R-5.5"), "{name}: {error}");
            assert!(peak < 2 * MIB, "{name}: gathering takes {peak} bytes");
        }
    }
}
