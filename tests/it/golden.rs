//! Proves that files of earlier releases open, verify and read as they were written, and that this
//! release writes the same data without Zstandard as the same bytes.
//!
//! A release that writes other bytes adds files under its own name. Files once added never change.
//! `TENSILO_WRITE_GOLDEN=1 cargo test --test it golden` writes the missing files of this release.

use std::fs;
use std::path::PathBuf;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBuffer, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions,
};

const RELEASE: &str = "0.1";
const SAMPLES: u32 = 300;

/// A varied schema: every kind of shape, nulls, text, a cast.
fn schema() -> Schema {
    let mut schema = Schema::new([
        ColumnSchema::tensor("wave", DType::Bf16, Shape::fixed(&[5, 4])).cast_from(DType::F32).nullable(),
        ColumnSchema::tensor("grid", DType::I32, Shape::new([Extent::Varying, Extent::Fixed(2), Extent::Varying])),
        ColumnSchema::tensor("label", DType::U8, Shape::scalar()),
        ColumnSchema::tensor("flag", DType::Bool, Shape::scalar()).nullable(),
        ColumnSchema::utf8("text").nullable(),
        ColumnSchema::bytes("blob"),
    ]);
    schema.metadata.insert("about".to_owned(), "golden".to_owned());
    schema
}

fn wave(i: u32) -> Vec<f32> {
    (0..20).map(|k| (i * 31 + k * 7) as f32 / 64.0 - 40.0).collect()
}

fn grid(i: u32) -> ([u32; 2], Vec<i32>) {
    let extents = [i % 4, i % 3];
    let count = extents[0] * 2 * extents[1];
    (extents, (0..count).map(|k| i as i32 * 1000 - k as i32).collect())
}

fn write(profile: Profile) -> Vec<u8> {
    let options = WriterOptions::new().profile(profile).chunk_bytes(1000);
    let mut writer = Writer::new(Stream(Vec::new()), schema(), &options).unwrap();
    for i in 0..SAMPLES {
        let (wave, (extents, grid), label, flag) = (wave(i), grid(i), [(i % 5) as u8], [u8::from(i % 2 == 0)]);
        let (text, blob) = (format!("sample number {i}, \u{e9}\u{1F40B}"), i.to_le_bytes().repeat(i as usize % 3));
        let or_null = |is_null: bool, value| if is_null { Value::NULL } else { value };
        let sample = [
            or_null(i % 11 == 3, Value::tensor(&wave)),
            Value::ragged(&grid, &extents),
            Value::tensor(&label),
            or_null(i % 7 == 0, Value::tensor(&flag)),
            or_null(i % 13 == 5, Value::text(&text)),
            Value::bytes(&blob),
        ];
        writer.push(&sample).unwrap();
        if i == 200 {
            writer.commit().unwrap();
        }
    }
    writer.finish().unwrap().sink.0
}

/// Values, extents and validity of a column.
type Content = (Vec<u8>, Vec<u32>, Option<Vec<u8>>);

/// All samples of all columns.
fn read(file: &[u8]) -> Vec<Content> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    assert_eq!(reader.schema(), &schema());
    assert_eq!(reader.sample_count(), u64::from(SAMPLES));
    let mut buffer = ColumnBuffer::new();
    let columns = reader.columns().map(|column| {
        column.cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
        (buffer.bytes().to_vec(), buffer.extents().to_vec(), buffer.validity().map(<[u8]>::to_vec))
    });
    columns.collect()
}

fn path(profile: Profile) -> PathBuf {
    let name = format!("golden-{RELEASE}-{}.tsl", profile.name());
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn files_of_earlier_releases_read_as_they_were_written() {
    for profile in Profile::ALL {
        let (path, written) = (path(profile), write(profile));
        if std::env::var("TENSILO_WRITE_GOLDEN").is_ok() && !path.exists() {
            fs::write(&path, &written).unwrap();
        }
        let golden = fs::read(&path).unwrap();
        let report = verify(&InMemory(&golden), VerifyOptions::new().decode(true)).unwrap();
        assert!(report.damages.is_empty(), "{}: {:?}", path.display(), report.damages);
        assert!(read(&golden) == read(&written), "{}", path.display());
    }
}

#[test]
fn files_without_zstandard_are_written_to_the_same_bytes() {
    for profile in [Profile::Raw, Profile::Fast] {
        assert!(write(profile) == fs::read(path(profile)).unwrap(), "{}", profile.name());
    }
}
