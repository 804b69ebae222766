//! Tests malformed Parquet files, each with one wrong value in a header. They cover the kinds that
//! the test collections of Parquet implementations have, but are made here. Each ends in an error
//! that names the file and leaves nothing behind, or is read correctly.

use super::common::*;
use super::thrift::{integers, set};
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion};
use std::sync::Arc;
use tensilo::import::arrow::array::*;
use tensilo::import::arrow::datatypes::Int64Type;
use tensilo::{ErrorKind, Reader};
use tensilo_testing::Folder;

/// A file of one row group, split into data and footer.
#[derive(Clone)]
struct Parquet {
    /// The bytes before the footer, including the magic number.
    data: Vec<u8>,
    footer: Vec<u8>,
}

impl Parquet {
    fn new(batch: &RecordBatch, dictionary: bool) -> Self {
        Self::written(batch, WriterProperties::builder().set_dictionary_enabled(dictionary))
    }

    fn written(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Self {
        let properties =
            properties.set_statistics_enabled(EnabledStatistics::None).set_offset_index_disabled(true).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let end = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
        Self { data: bytes[..end - length].to_vec(), footer: bytes[end - length..end].to_vec() }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let length = (self.footer.len() as u32).to_le_bytes();
        [&self.data, &self.footer, length.as_slice(), b"PAR1"].concat()
    }

    /// Returns the file with another value in its footer.
    fn footer(&self, path: &[i64], value: i64) -> Vec<u8> {
        let mut changed = self.clone();
        set(&mut changed.footer, 0, path, value);
        changed.to_bytes()
    }

    /// Returns the offset of the header of each page.
    fn pages(&self) -> Vec<usize> {
        let mut pages = vec![4];
        loop {
            let (found, end) = integers(&self.data, *pages.last().unwrap());
            let size = found.iter().find(|integer| integer.path == [3]).unwrap();
            let next = end + unzigzag(&self.data[size.bytes.clone()]);
            if next >= self.data.len() {
                return pages;
            }
            pages.push(next);
        }
    }

    /// Returns the file with another value in the header of a page. The footer still states the
    /// length of the chunk, so bytes taken from the page keep the header at its length.
    fn page(&self, page: usize, path: &[i64], value: i64) -> Vec<u8> {
        let mut changed = self.clone();
        let start = self.pages()[page];
        set(&mut changed.data, start, path, value);
        let grown = changed.data.len() as i64 - self.data.len() as i64;
        let (found, _) = integers(&changed.footer, 0);
        let old = found.iter().find(|integer| integer.path == TOTAL_COMPRESSED).unwrap();
        let old = unzigzag(&changed.footer[old.bytes.clone()]) as i64;
        set(&mut changed.footer, 0, &TOTAL_COMPRESSED, old + grown);
        changed.to_bytes()
    }

    /// Returns the file with another first byte in the body of a page.
    fn body(&self, page: usize, at: usize, value: u8) -> Vec<u8> {
        let mut changed = self.clone();
        let (_, body) = integers(&self.data, self.pages()[page]);
        changed.data[body + at] = value;
        changed.to_bytes()
    }
}

fn unzigzag(varint: &[u8]) -> usize {
    let value = varint.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7F));
    (value >> 1) as usize
}

/// Path in the footer: row groups, the first, columns, the first, its metadata.
const COLUMN: [i64; 5] = [4, 0, 1, 0, 3];
const TOTAL_COMPRESSED: [i64; 6] = [4, 0, 1, 0, 3, 7];

fn of_column(field: i64) -> Vec<i64> {
    [COLUMN.as_slice(), &[field]].concat()
}

/// Returns ten uncompressed numbers.
fn numbers() -> Parquet {
    Parquet::new(&one(Arc::new(Int64Array::from_iter_values(500..510))), false)
}

/// Returns ten texts, three of them different, in a dictionary.
fn texts() -> Parquet {
    Parquet::new(&one(Arc::new(StringArray::from_iter_values((0..10).map(|i| ["a", "bb", "ccc"][i % 3])))), true)
}

/// Returns four lists of numbers.
fn lists() -> Parquet {
    let lists = (0..4).map(|i| Some((0..i + 1).map(Some).collect::<Vec<_>>()));
    Parquet::new(&one(Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))), false)
}

#[test]
fn the_files_are_valid_before_they_are_changed() {
    let folder = Folder::new();
    for file in [numbers(), texts(), lists()] {
        assert!(convert_damaged(&folder, &file.to_bytes()).is_ok());
        let kind = if file.pages().len() > 1 { 2 } else { 0 };
        assert!(convert_damaged(&folder, &file.page(0, &[1], kind)).is_ok());
        assert!(convert_damaged(&folder, &file.footer(&[1], 1)).is_ok());
    }
}

/// Returns malformed files, each with a description of its fault.
fn collection() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut add = |name: String, bytes: Vec<u8>| files.push((name, bytes));
    let [numbers, texts, lists] = [numbers(), texts(), lists()];
    for value in [-1, i64::from(i32::MIN), 11, 1000, i64::from(i32::MAX)] {
        add(format!("a page says it has {value} values"), numbers.page(0, &[5, 1], value));
        add(format!("a page of lists says it has {value} values"), lists.page(0, &[5, 1], value));
    }
    for value in [-1, i64::from(i32::MIN), i64::from(i32::MAX)] {
        add(format!("a page says it takes {value} bytes"), numbers.page(0, &[3], value));
        add(format!("a dictionary says it takes {value} bytes"), texts.page(0, &[3], value));
        add(format!("a dictionary says it has {value} values"), texts.page(0, &[7, 1], value));
        add(format!("a page of indices says it has {value} values"), texts.page(1, &[5, 1], value));
    }
    add("a dictionary says it has more values than it has".into(), texts.page(0, &[7, 1], 40));
    add("a dictionary has fewer values than are used".into(), texts.page(0, &[7, 1], 1));
    add("a page of a kind that does not exist".into(), numbers.page(0, &[1], 60));
    add("an encoding that does not exist".into(), numbers.page(0, &[5, 2], 60));
    add("indices without a dictionary".into(), numbers.page(0, &[5, 2], 8));
    for width in [33, 64, 255] {
        add(format!("indices of {width} bits"), texts.body(1, 6, width));
    }
    add("the first repetition level is not 0".into(), lists.body(0, 4, 0xFF));
    for (field, name) in [(5, "values"), (7, "compressed bytes"), (9, "data page offset")] {
        for value in [-1, i64::MIN, i64::MAX] {
            add(format!("a column says: {name} {value}"), numbers.footer(&of_column(field), value));
        }
    }
    add("fewer bytes than the page takes".into(), numbers.footer(&TOTAL_COMPRESSED, 20));
    add("the pages of a column are the footer".into(), numbers.footer(&of_column(9), numbers.data.len() as i64));
    add("a codec that does not exist".into(), numbers.footer(&of_column(4), 60));
    for codec in [1, 2, 4, 6, 7] {
        add(format!("not compressed, but codec {codec}"), numbers.footer(&of_column(4), codec));
    }
    for value in [-1, 5, 11, i64::MAX, i64::MIN] {
        add(format!("a row group says it has {value} rows"), numbers.footer(&[4, 0, 3], value));
    }
    for (path, what) in [([2, 1, 1], "type"), ([2, 1, 3], "repetition")] {
        add(format!("a column of {what} 60"), numbers.footer(&path, 60));
    }
    for value in [-1, 0, 2, 1000, i64::from(i32::MAX)] {
        add(format!("a schema of {value} columns"), numbers.footer(&[2, 0, 5], value));
    }
    let bytes = numbers.to_bytes();
    for length in [0, 1, bytes.len() as u32, u32::MAX] {
        let mut changed = bytes.clone();
        let at = changed.len() - 8;
        changed[at..at + 4].copy_from_slice(&length.to_le_bytes());
        add(format!("a footer of {length} bytes"), changed);
    }
    add("two magic numbers".into(), b"PAR1PAR1".to_vec());
    add("a magic number and nothing".into(), b"PAR1".to_vec());
    files
}

/// Returns samples as text.
fn samples(file: &Reader) -> Vec<String> {
    let mut cursor = file.column("x").unwrap().cursor();
    (0..file.sample_count())
        .map(|i| cursor.read(i).map(|s| format!("{:?} {:?}", s.extents(), s.bytes())).unwrap())
        .collect()
}

/// A wrong value that no reader needs, such as more values in a page than in the column, may be
/// accepted. The file is then read correctly.
#[test]
fn every_malformed_file_is_refused_or_read_correctly() {
    let folder = Folder::new();
    let expected =
        [numbers(), texts(), lists()].map(|file| samples(&convert_damaged(&folder, &file.to_bytes()).unwrap()));
    let (mut refused, mut right) = (0, Vec::new());
    for (name, bytes) in collection() {
        match convert_damaged(&folder, &bytes) {
            Ok(file) => {
                assert!(expected.contains(&samples(&file)), "{name}: wrong values");
                right.push(name);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::BadInput, "{name}: {error}");
                refused += 1;
            }
        }
    }
    println!("{refused} malformed files are refused; read correctly anyway: {right:#?}");
    assert!(refused > 50 && right.len() < 12, "{right:#?}");
}

/// Without this check, the decoder would allocate as much as a page claims, and could end the
/// process.
#[test]
fn claims_of_a_page_are_compared_with_its_bytes() {
    let folder = Folder::new();
    let refused = |bytes: &[u8], why: &str| {
        let error = convert_damaged(&folder, bytes).map(|_| ()).unwrap_err();
        assert!(error.message().contains(why), "{error}");
        assert_eq!(error.column(), Some("x"));
    };
    refused(&numbers().page(0, &[2], i64::from(i32::MAX)), "cannot decompress to its declared size");
    refused(&numbers().page(0, &[3], i64::from(i32::MAX)), "truncated");
    refused(&texts().page(0, &[7, 1], 1 << 30), "more values than bytes");
    let texts = one(Arc::new(StringArray::from_iter_values((0..10).map(|i| ["a", "ab", "abc"][i % 3]))));
    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(encoding);
            let file = Parquet::written(&texts, properties.set_writer_version(version));
            assert_eq!(convert_damaged(&folder, &file.to_bytes()).unwrap().sample_count(), 10);
            // packed numbers start with 128, 4 and their count; so do the lengths after the
            // prefixes
            let packed = file.data.windows(4).enumerate().filter(|(_, bytes)| *bytes == [0x80, 1, 4, 10]);
            let packed: Vec<usize> = packed.map(|(at, _)| at).collect();
            assert_eq!(packed.len(), if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 });
            for at in packed {
                let mut changed = file.clone();
                changed.data[at + 3] = 11;
                refused(&changed.to_bytes(), "too many text lengths");
            }
        }
    }
}

/// If only names of folders become columns, no page is read: a wrong row count would be written
/// forever.
#[test]
fn rows_without_pages_are_not_counted() {
    let folder = Folder::new();
    let mut file = numbers();
    for path in [&[3][..], &[4, 0, 3], &of_column(5)] {
        set(&mut file.footer, 0, path, 1 << 62);
    }
    let error = convert_damaged(&folder, &file.to_bytes()).map(|_| ()).unwrap_err();
    assert!(error.message().contains("4611686018427387904 rows, but"), "{error}");
}

/// Sets every integer of every header to small, large and negative values: the result is an error
/// or a file, never a panic.
#[test]
fn no_integer_of_a_header_does_harm() {
    let folder = Folder::new();
    for file in [numbers(), texts(), lists()] {
        let values = [-1, 0, 1, 7, 63, 255, 65_536, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN];
        for value in values {
            for integer in integers(&file.footer, 0).0 {
                let _ = convert_damaged(&folder, &file.footer(&integer.path, value));
            }
            for (page, &start) in file.pages().iter().enumerate() {
                for integer in integers(&file.data, start).0 {
                    let _ = convert_damaged(&folder, &file.page(page, &integer.path, value));
                }
            }
        }
    }
}
