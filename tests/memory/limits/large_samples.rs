//! Samples larger than a chunk of several samples, and larger than the format allows.

use super::{ENCODED, MIB, finish, in_memory, large_file, noise, u8_column};
use crate::support::on_disk::OnDisk;
use crate::support::positional::Positional;
use tensilo::ErrorKind::OverLimit;
use tensilo::sink::Stream;
use tensilo::verify::{FileState, VerifyOptions, verify};
use tensilo::{Extent, Profile, Reader, Shape, Value, Writer, WriterOptions, limits};
use tensilo_testing::exclusive_test;

#[test]
#[cfg(target_pointer_width = "64")]
fn a_sample_larger_than_a_gibibyte_is_written_and_read() {
    let exclusive_test = exclusive_test();
    let size = (1 << 30) + 12_345;
    let disk = OnDisk::absent();
    let options = WriterOptions::new().profile(Profile::Raw);
    let large: Vec<u8> = (0..size).map(noise).collect();
    let ((), peak) = exclusive_test.peak_bytes(|| {
        let mut writer = large_file(&disk, u8_column(Shape::ragged()), &options);
        writer.push(&[Value::tensor(&[1_u8, 2])]).expect("a small sample");
        writer.push(&[Value::tensor(&large)]).expect("a large sample");
        writer.push(&[Value::tensor(&[3_u8])]).expect("a small sample");
        assert_eq!(writer.finish().expect("disk space").sample_count, 3);
    });
    assert!(peak < 3 * size, "{} MiB to write a sample of {} MiB", peak / MIB, size / MIB);
    let reader = Reader::open(disk.path()).expect("an intact file");
    let column = reader.column("x").expect("the column");
    let chunk = column.chunk_of(1).expect("the chunk");
    assert_eq!(chunk.samples, 1..2, "a sample larger than a chunk has its own");
    let mut cursor = column.cursor();
    assert_eq!(cursor.read(0).expect("a sample").bytes(), [1, 2]);
    assert_eq!(cursor.read(2).expect("a sample").bytes(), [3]);
    let found = cursor.read(1).expect("a sample");
    assert_eq!(found.extents(), [size as u32]);
    assert!(found.bytes() == large, "the large sample differs");
}

#[test]
fn a_chunk_that_is_verified_is_in_memory_once() {
    let exclusive_test = exclusive_test();
    let size = 64 * MIB;
    let mut writer = in_memory(u8_column(Shape::ragged()), Profile::Raw);
    writer.push(&[Value::tensor(&(0..size).map(noise).collect::<Vec<u8>>())]).expect("a large sample");
    let file = Positional(finish(writer));
    for decode in [false, true] {
        let (report, peak) = exclusive_test.peak_bytes(|| verify(&file, VerifyOptions::new().deep(decode)));
        let findings = report.expect("a readable file").findings;
        assert!(findings.is_empty(), "{findings:?}");
        let limit = 7 * MIB + if decode { size } else { 0 };
        assert!(peak < limit, "{} MiB to verify a chunk of {} MiB", peak / MIB, size / MIB);
    }
}

#[test]
fn a_chunk_that_is_not_committed_is_verified_in_little_memory() {
    let exclusive_test = exclusive_test();
    let size = 64 * MIB;
    let mut writer = in_memory(u8_column(Shape::ragged()), Profile::Raw);
    writer.push(&[Value::tensor(&[1_u8])]).expect("a small sample");
    writer.commit().expect("memory");
    writer.push(&[Value::tensor(&vec![1_u8; size])]).expect("a large sample");
    let mut file = finish(writer);
    file.truncate(file.len() - 64); // the trailer
    let file = Positional(file);
    let (report, peak) = exclusive_test.peak_bytes(|| verify(&file, VerifyOptions::new()));
    assert_eq!(report.expect("a readable file").state(), FileState::Unfinished);
    assert!(peak < 7 * MIB, "{} MiB to verify a chunk of {} MiB", peak / MIB, size / MIB);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_sample_over_the_limit_of_the_format_is_refused_before_it_is_copied() {
    let exclusive_test = exclusive_test();
    // zeroed pages that are never touched take no physical memory
    let too_large = vec![0_u8; limits::CHUNK_BYTES as usize + 1];
    let mut writer = in_memory(u8_column(Shape::ragged()), Profile::Raw);
    let (error, peak) =
        exclusive_test.peak_bytes(|| writer.push(&[Value::tensor(&too_large)]).expect_err("over the limit"));
    assert_eq!((error.kind(), error.column()), (OverLimit, Some("x")));
    assert!(error.to_string().contains("4294901760"), "it does not name the limit: {error}");
    assert!(peak < MIB, "{peak} bytes were allocated");
    let shapes = [Shape::fixed(&[1 << 31, 3]), Shape::new([Extent::Varying, Extent::Fixed(1 << 31), Extent::Fixed(3)])];
    for shape in shapes {
        let create =
            || Writer::new(Stream(Vec::new()), u8_column(shape), &WriterOptions::new().profile(ENCODED)).map(|_| ());
        let (error, peak) = exclusive_test.peak_bytes(|| create().expect_err("over the limit"));
        assert_eq!(error.kind(), OverLimit, "{error}");
        assert!(error.to_string().contains("4294901760"), "it does not name the limit: {error}");
        assert!(peak < MIB, "{peak} bytes were allocated");
    }
}
