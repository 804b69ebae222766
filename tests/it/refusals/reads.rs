//! Tests of refused requests to a reader.

use super::{COLUMNS, good_file, refused};
use crate::support::build::{Build, Chunk, column};
use crate::support::on_disk::OnDisk;
use crate::support::positional::Positional;
use tensilo::ErrorKind::{BadArgument, TooNew, UnknownColumn, WrongType};
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBuffer, OpenOptions, Reader, Writer, WriterOptions};

/// How a release treats a file of a later one, whose encodings it cannot name. It refuses even the
/// samples of known chunks of the column, because whether those are read would depend on luck.
#[test]
fn a_column_of_an_unknown_encoding_is_refused_and_named() {
    const U8: u8 = 9;
    let chunk = |encoding| Chunk::of_values(2, (encoding, 2, b"ab"));
    for encoding in [32_767, 40_000, u16::MAX] {
        let mut build = Build::new(&[column("x", U8, false, &[])]);
        build.chunk(&chunk(0));
        build.chunk(&chunk(encoding));
        let file = build.finish(0, &[(0, 1), (encoding, 1)]);
        let reader = Reader::from_bytes(file.clone()).expect("the file opens");
        let column = reader.column("x").expect("the schema is known");
        let mut out = ColumnBuffer::new();
        let reads = [
            column.cursor().read(0).map(|_| ()),
            column.cursor().read(3).map(|_| ()),
            column.cursor().range_into(0..2, &mut out),
            column.cursor().gather_into(&[1], &mut out),
            column.view(0).map(|_| ()),
            column.chunk(0).map(|_| ()),
        ];
        assert!(reads.iter().all(|read| read.as_ref().is_err_and(|error| error.column() == Some("x"))), "{reads:?}");
        let verified = verify(&InMemory(&file), VerifyOptions::new()).map(|_| ());
        let salvaged = salvage(InMemory(file.clone()), SalvageOptions::new()).map(|_| ());
        let appended = {
            let file = OnDisk::new(&file);
            Writer::append(file.path(), &WriterOptions::new()).map(|_| ())
        };
        for result in reads.into_iter().chain([verified, salvaged, appended]) {
            let error = result.expect_err("it may be anything");
            assert_eq!((error.kind(), error.rule()), (TooNew, Some("R-7.6")), "{error}");
            let message = error.to_string();
            assert!(
                message.contains(&format!("encoding {encoding},")) && message.contains("newer tensilo"),
                "{message}"
            );
        }
    }
}

#[test]
fn reads_into_a_wrong_type_or_length_are_refused() {
    let reader = Reader::from_bytes(good_file(3)).expect("a valid file");
    let error = refused(reader.column("no such").map(|_| ()), UnknownColumn, None);
    assert!(error.to_string().contains("two vary"), "it does not name the columns: {error}");
    let mut cursor = reader.column("f32").expect("a column").cursor();
    refused(cursor.read_slice::<f64>(0, &mut [0.0; 2]), WrongType, Some("f32"));
    refused(cursor.read_slice::<f32>(0, &mut [0.0; 1]), BadArgument, Some("f32"));
    refused(cursor.gather_slice::<f32>(&[0, 1], &mut [0.0; 3]), BadArgument, Some("f32"));
    refused(cursor.gather_slice::<u32>(&[0, 1], &mut [0; 4]), WrongType, Some("f32"));
    refused(cursor.range_slice::<u32>(0..2, &mut [0; 4]), WrongType, Some("f32"));
    refused(cursor.range_slice::<f32>(0..2, &mut [0.0; 3]), BadArgument, Some("f32"));
}

#[test]
fn ranges_beyond_the_end_are_refused_before_memory_is_taken() {
    let reader = Reader::from_bytes(good_file(3)).expect("a valid file");
    for name in COLUMNS {
        let mut cursor = reader.column(name).expect("a column").cursor();
        let mut buffer = ColumnBuffer::new();
        for range in [0..4, 3..4, 0..u64::MAX, u64::MAX - 1..u64::MAX, 2..1 << 40] {
            refused(cursor.range_into(range, &mut buffer), BadArgument, Some(name));
        }
        for range in [0..0, 3..3] {
            cursor.range_into(range, &mut buffer).expect("no samples");
            assert_eq!(buffer.sample_count(), 0);
        }
    }
}

/// Returns stored bytes of zeros in eleven blocks, whose ends descend before the fourth. The
/// checksums of the block index and of the first block are correct.
fn descending_blocks() -> Vec<u8> {
    let mut ends = vec![(20_000_u32, 2512_u32), (25_000, 8000), (30_000, 16), (40_000, 32)];
    ends.extend((1..=7).map(|block| (40_000 + 80_000 * block, 8000 + 400 * block)));
    let index_bytes = (8 + 48 + 12 * ends.len() + 4).next_multiple_of(16);
    let mut stored = [index_bytes as u32, ends.len() as u32].map(u32::to_le_bytes).concat();
    stored.extend([0; 16]);
    stored.extend([1, 1, 1]); // the widths of tiers
    stored.extend([0; 29]);
    for &(end, stored_end) in &ends {
        let crc = if end == 20_000 { crc32fast::hash(&[0; 2512]) } else { 0 };
        stored.extend([end, stored_end, crc].into_iter().flat_map(u32::to_le_bytes));
    }
    stored.resize(index_bytes - 4, 0);
    stored.extend(crc32fast::hash(&stored).to_le_bytes());
    stored.resize(index_bytes + ends[10].1 as usize, 0);
    stored
}

/// The first and the last of the blocks that a sample needs may be valid.
#[test]
fn blocks_whose_ends_descend_within_a_sample_are_refused() {
    const U8: u8 = 9;
    const RAW_BYTES: u32 = 600_000;
    let mut build = Build::new(&[column("x", U8, false, &[20_000])]);
    build.chunk(&Chunk::of_values(30, (0, RAW_BYTES, &[7; RAW_BYTES as usize])));
    build.chunk(&Chunk::of_values(30, (4 | 256, RAW_BYTES, &descending_blocks())));
    let reader =
        OpenOptions::new().open_source(Positional(build.finish(0, &[(0, 1), (260, 1)]))).expect("the file opens");
    let column = reader.column("x").expect("a column");
    let mut out = ColumnBuffer::new();
    let rule = |read: tensilo::Result<()>| read.expect_err("blocks descend").rule();
    assert_eq!(rule(column.cursor().read(31).map(|_| ())), Some("R-5.14"));
    let mut cursor = column.cursor();
    cursor.gather_into(&[0, 1], &mut out).expect("another chunk");
    assert_eq!(rule(cursor.gather_into(&[31], &mut out)), Some("R-5.14"));
    // the same cursor continues: this sample is in the intact block
    assert!(cursor.read(30).expect("its block is intact").bytes().iter().all(|&byte| byte == 0));
}
