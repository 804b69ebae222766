//! Small numbers, complex numbers, and types that this release does not know.

use crate::common::data::value_mask;
use crate::common::vectors::bytes;
use tensilo::ErrorKind::{BadArgument, TooNew, WrongType};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};

fn write(column: ColumnSchema, batch: ColumnBatch<'_>, profile: Profile) -> tensilo::Result<Vec<u8>> {
    let mut writer =
        Writer::new(Stream(Vec::new()), Schema::new([column]), &WriterOptions::new().profile(profile)).unwrap();
    writer.push_batch(&[batch])?;
    Ok(writer.into_bytes().unwrap())
}

#[test]
fn every_value_of_a_byte_is_preserved_or_refused() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_small()) {
        for byte in 0..=u8::MAX {
            let column = ColumnSchema::tensor("x", dtype, Shape::fixed(&[3]));
            let values = [0, byte, 1];
            // an odd number of elements needs nothing
            let written = write(column, ColumnBatch::fixed(1, &values), Profile::Raw);
            if u64::from(byte) <= value_mask(dtype) {
                let reader = Reader::from_bytes(written.unwrap()).unwrap();
                let mut cursor = reader.column("x").unwrap().cursor();
                assert_eq!(cursor.read(0).unwrap().as_slice::<u8>().unwrap(), values, "{dtype}");
            } else {
                let error = written.unwrap_err();
                assert_eq!((error.kind(), error.column()), (BadArgument, Some("x")), "{dtype}: {error}");
                assert!(error.to_string().contains("one byte for each element"), "{error}");
            }
        }
    }
}

#[test]
fn numbers_of_four_bits_take_half_a_byte_in_a_file() {
    let values: Vec<u8> = (0..65_536_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 28) as u8).collect();
    for dtype in [DType::F4E2M1, DType::I4, DType::U4] {
        let column = ColumnSchema::tensor("x", dtype, Shape::scalar());
        let file = write(column, ColumnBatch::fixed(values.len(), &values), Profile::Fast).unwrap();
        assert!(file.len() < values.len() / 2 + 4096, "{dtype}: {} bytes", file.len());
        let reader = Reader::from_bytes(file).unwrap();
        let mut out = ColumnBuffer::new();
        reader.column("x").unwrap().cursor().range_into(0..reader.sample_count(), &mut out).unwrap();
        assert_eq!(out.bytes(), values, "{dtype}");
    }
}

#[test]
fn complex_numbers_are_read_as_pairs_and_stored_as_two_floats() {
    let numbers: Vec<[f32; 2]> = (0..20_000).map(|i| [(i / 8) as f32, -((i % 11) as f32)]).collect();
    let halves: Vec<f32> = numbers.concat();
    for profile in [Profile::Raw, Profile::Fast, Profile::Balanced] {
        let complex = ColumnSchema::tensor("x", DType::Complex64, Shape::fixed(&[10]));
        let file = write(complex, ColumnBatch::fixed(2_000, &numbers), profile).unwrap();
        let pairs = ColumnSchema::tensor("x", DType::F32, Shape::fixed(&[10, 2]));
        let same = write(pairs, ColumnBatch::fixed(2_000, &halves), profile).unwrap();
        assert!(file.len().abs_diff(same.len()) <= 64, "{profile:?}: {} and {} bytes", file.len(), same.len());
        assert!(verify(&InMemory(&file), VerifyOptions::new().deep(true)).unwrap().findings.is_empty());
        let reader = Reader::from_bytes(file).unwrap();
        let mut cursor = reader.column("x").unwrap().cursor();
        let mut out = vec![[0.0; 2]; 10];
        for i in [0, 1_999, 7] {
            let expected = &numbers[i as usize * 10..][..10];
            assert_eq!(cursor.read(i).unwrap().as_slice::<[f32; 2]>().unwrap(), expected);
            cursor.read_slice(i, &mut out).unwrap();
            assert_eq!(out, expected);
        }
        assert_eq!(cursor.read(0).unwrap().as_slice::<f32>().unwrap_err().kind(), WrongType);
        let mut short = vec![[0.0_f32; 2]; 9];
        let error = cursor.read_slice(0, &mut short).unwrap_err();
        assert!(error.to_string().contains("10 elements, but the output has room for only 9"), "{error}");
    }
}

#[test]
fn ragged_complex_numbers_have_offsets_in_elements() {
    let numbers: Vec<[f32; 2]> = (0..10).map(|i| [i as f32, 0.5]).collect();
    let column = ColumnSchema::tensor("x", DType::Complex64, Shape::ragged()).nullable();
    let batch = ColumnBatch::ragged(4, &[3, 0, 0, 7], &numbers).with_validity(&[0b1011]);
    let reader = Reader::from_bytes(write(column, batch, Profile::Fast).unwrap()).unwrap();
    let mut out = ColumnBuffer::new();
    reader.column("x").unwrap().cursor().gather_into(&[3, 1, 2, 0], &mut out).unwrap();
    assert_eq!(out.offsets(), [0, 7, 7, 7, 10]);
    assert_eq!((out.varying_extents(), out.null_count()), (&[7, 0, 0, 3][..], 1));
    assert_eq!(out.values::<[f32; 2]>().unwrap(), [&numbers[3..], &numbers[..3]].concat());
}

#[test]
fn only_columns_of_unknown_types_are_refused() {
    let file = bytes("valid/unknown-dtypes.hex");
    let reader = Reader::from_bytes(file.clone()).unwrap();
    let report = reader.verify(VerifyOptions::new().deep(true)).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let column = reader.column("y").unwrap();
    assert_eq!(column.schema().dtype, DType::Unknown { code: 37, element_bytes: 4 });
    assert_eq!(column.schema().dtype.to_string(), "unknown dtype 37");
    assert_eq!(column.chunk(0).unwrap().unwrap().samples, 0..2);
    let error = column.cursor().read(1).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.column()), (TooNew, Some("y")));
    assert!(error.to_string().contains("dtype 37"), "{error}");
    let mut out = Vec::new();
    let error = reader.rows(&["known", "y"]).unwrap().gather_into(&[0], &mut out).unwrap_err();
    assert_eq!((error.kind(), error.column()), (TooNew, Some("y")));
    let mut known = ColumnBuffer::new();
    reader.column("known").unwrap().cursor().gather_into(&[1, 0], &mut known).unwrap();
    assert_eq!(known.bytes(), [6, 5]);
}

#[test]
fn columns_of_unknown_types_are_not_written() {
    let file = bytes("valid/unknown-dtypes.hex");
    let schema = Reader::from_bytes(file.clone()).unwrap().schema().clone();
    let created = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new()).map(|_| ()).unwrap_err();
    assert_eq!((created.kind(), created.column()), (TooNew, Some("x")));
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), &file).unwrap();
    let appended = Writer::append(path.path(), &WriterOptions::new()).map(|_| ()).unwrap_err();
    assert_eq!((appended.kind(), appended.column()), (TooNew, Some("x")));
    assert_eq!(std::fs::read(path.path()).unwrap(), file);
}
