//! No samples, one sample, no columns.

use super::{ENCODED, finish, in_memory};
use crate::support::intact::assert_intact;
use tensilo::ErrorKind::BadArgument;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Schema, Shape, Value};
use tensilo_testing::exclusive_test;

const PROFILES: &[Profile] = if cfg!(feature = "zstd") { &Profile::ALL } else { &[Profile::Raw] };

#[test]
fn a_file_without_samples_is_a_file() {
    let _exclusive_test = exclusive_test();
    for &profile in PROFILES {
        let columns = DType::ALL.map(|dtype| {
            let shape = if dtype.is_string() { Shape::ragged() } else { Shape::fixed(&[2]) };
            ColumnSchema::tensor(dtype.name(), dtype, shape).nullable()
        });
        let reader = Reader::from_bytes(finish(in_memory(Schema::new(columns), profile))).expect("an intact file");
        assert_intact(reader.source());
        assert_eq!((reader.sample_count(), reader.commit_count(), reader.is_finished()), (0, 1, true));
        let mut buffer = ColumnBuffer::new();
        for column in reader.columns() {
            assert_eq!((column.facts().chunk_count, column.facts().encodings.len()), (0, 0));
            assert!(column.chunk(0).expect("no I/O").is_none());
            assert_eq!(column.cursor().read(0).map(|_| ()).expect_err("no sample").kind(), BadArgument);
            column.cursor().range_into(0..0, &mut buffer).expect("nothing is there");
            column.cursor().gather_into(&[], &mut buffer).expect("nothing is requested");
            assert_eq!(buffer.sample_count(), 0);
        }
    }
}

#[test]
fn a_file_of_one_sample_of_each_type_is_read_as_it_was_written() {
    let _exclusive_test = exclusive_test();
    for &profile in PROFILES {
        for dtype in DType::ALL {
            let shape =
                if dtype.is_string() { Shape::ragged() } else { Shape::fixed(&[8 / dtype.element_bytes() as u32]) };
            let bytes = *b"\0\x01\0\x01\x01\0\x01\0";
            let extents: &[u32] = if dtype.is_string() { &[8] } else { &[] };
            let mut writer = in_memory(Schema::new([ColumnSchema::tensor("x", dtype, shape)]), profile);
            writer.push_batch(&[ColumnBatch::from_bytes(dtype, 1, extents, &bytes)]).expect("a good sample");
            let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
            assert_intact(reader.source());
            let mut cursor = reader.column("x").expect("the column").cursor();
            assert_eq!(cursor.read(0).expect("the sample").bytes(), bytes, "{dtype}");
        }
    }
}

#[test]
fn a_file_without_columns_has_no_samples_whatever_is_pushed() {
    let _exclusive_test = exclusive_test();
    let mut writer = in_memory(Schema::default(), ENCODED);
    let one = ColumnBatch::fixed(1, &[1_u8]);
    assert_eq!(writer.push(&[Value::NULL]).expect_err("there is no column").kind(), BadArgument);
    assert_eq!(writer.push_batch(&[one]).expect_err("there is no column").kind(), BadArgument);
    writer.push_batch(&[]).expect("a batch for each of no columns");
    assert_eq!(writer.sample_count(), 0);
    let reader = Reader::from_bytes(finish(writer)).expect("an intact file");
    assert_intact(reader.source());
    assert_eq!((reader.sample_count(), reader.columns().count()), (0, 0));
    assert!(reader.column("x").is_err());
}
