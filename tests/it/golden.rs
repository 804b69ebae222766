//! Tests that files of earlier releases open, verify and read as they were written, and that this
//! release writes the same bytes from the same data, as long as Zstandard takes no part.
//!
//! A release that writes other bytes adds files under its own name. Existing files never change.
//! `TENSILO_WRITE_GOLDEN=1 cargo test --test it golden` writes the missing files of this release.

use crate::common::bins::{
    PROFILES_OF_BINS, SAMPLES_OF_BINS, assert_has_all_bins, options_of_bins, schema_of_bins, write_bins,
};
use crate::common::sound::{SAMPLES_OF_SOUND, assert_has_filters, schema_of_sound, write_sound};
use half::bf16;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use tensilo::nested::ListBatch;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer,
    WriterOptions,
};
use tensilo_testing::mix;

const RELEASE: &str = "0.1";
const SAMPLES: u32 = 300;
const NESTED_SAMPLES: u32 = 60;
const SAMPLES_IN_BLOCKS: u32 = 168;
const TEXTS: u32 = 330;

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
    writer.into_bytes().unwrap()
}

/// Chats, lists of boxes in frames, and the nulls of a list of structs.
fn nested_schema() -> Schema {
    let path = |mut column: ColumnSchema, path: &str| {
        column.metadata.insert("tensilo.path".to_owned(), path.to_owned());
        column
    };
    let nulls = ColumnSchema::tensor("messages", DType::Bool, Shape::fixed(&[0])).nullable().list();
    let frames = ColumnSchema::tensor("frames", DType::I16, Shape::new([Extent::Varying, Extent::Fixed(4)]));
    Schema::new([
        path(ColumnSchema::utf8("role").nullable().list(), "messages[].role"),
        path(ColumnSchema::utf8("text").nullable().list(), "messages[].text"),
        path(nulls, "messages[]"),
        frames.nullable().list().nullable().list().nullable(),
    ])
}

/// The lists of a level: lengths and validity.
type Level = (Vec<u32>, Vec<u8>);

/// Returns lists of these lengths; every `nulls`-th is null.
fn level(lengths: impl Iterator<Item = u32>, nulls: usize) -> Level {
    let lengths = lengths.enumerate().map(|(i, length)| if i % nulls == nulls - 1 { 0 } else { length });
    let lengths: Vec<u32> = lengths.collect();
    let bits = bits(lengths.len(), nulls);
    (lengths, bits)
}

/// Returns the validity of `count` entries; every `nulls`-th is null.
fn bits(count: usize, nulls: usize) -> Vec<u8> {
    let present = |i: usize| u8::from(i < count && i % nulls != nulls - 1);
    (0..count.div_ceil(8)).map(|byte| (0..8).fold(0, |bits, bit| bits | present(8 * byte + bit) << bit)).collect()
}

fn write_nested(profile: Profile) -> Vec<u8> {
    let options = WriterOptions::new().profile(profile).chunk_bytes(500);
    let mut writer = Writer::new(Stream(Vec::new()), nested_schema(), &options).unwrap();
    for part in 0..2 {
        let (chats, _) = level((0..NESTED_SAMPLES / 2).map(|i| (i + part) % 5), 1000);
        let count = chats.iter().sum::<u32>() as usize;
        let texts = |word: &str, nulls: usize| {
            let text = |i: usize| if i % nulls == nulls - 1 { String::new() } else { format!("{word} {}", i % 7) };
            let texts: Vec<String> = (0..count).map(text).collect();
            (texts.iter().map(|text| text.len() as u32).collect::<Vec<u32>>(), texts.concat(), bits(count, nulls))
        };
        let (roles, words) = (texts("user", 11), texts("a text, \u{e9}\u{1F40B}, number", 5));
        let nulls = bits(count, 13);
        let (clips, clip_bits) = level((0..NESTED_SAMPLES / 2).map(|i| i % 4), 6);
        let (frames, frame_bits) = level((0..clips.iter().sum::<u32>()).map(|i| (i + part) % 3), 7);
        let boxes = frames.iter().sum::<u32>() as usize;
        let box_bits = bits(boxes, 9);
        let extents: Vec<u32> = (0..boxes).map(|i| if i % 9 == 8 { 0 } else { i as u32 % 3 }).collect();
        let values: Vec<i16> = (0..4 * extents.iter().sum::<u32>()).map(|i| i as i16 * 3 - 50).collect();
        let chats = [ListBatch::new(&chats)];
        let frames =
            [ListBatch::new(&clips).with_validity(&clip_bits), ListBatch::new(&frames).with_validity(&frame_bits)];
        let batches = [
            ColumnBatch::ragged(count, &roles.0, roles.1.as_bytes()).with_validity(&roles.2).in_lists(&chats),
            ColumnBatch::ragged(count, &words.0, words.1.as_bytes()).with_validity(&words.2).in_lists(&chats),
            ColumnBatch::fixed::<u8>(count, &[]).with_validity(&nulls).in_lists(&chats),
            ColumnBatch::ragged(boxes, &extents, &values).with_validity(&box_bits).in_lists(&frames),
        ];
        writer.push_batch(&batches).unwrap();
        if part == 0 {
            writer.commit().unwrap();
        }
    }
    writer.into_bytes().unwrap()
}

/// The columns of files in blocks: numbers that suit each encoding, and items of varying length in
/// lists, some null.
fn schema_of_blocks() -> Schema {
    let grids = ColumnSchema::tensor("grids", DType::I16, Shape::new([Extent::Varying, Extent::Fixed(3)]));
    Schema::new([
        ColumnSchema::tensor("weights", DType::Bf16, Shape::fixed(&[20])),
        ColumnSchema::tensor("ramp", DType::I32, Shape::fixed(&[10])).nullable(),
        ColumnSchema::tensor("repeated", DType::U16, Shape::fixed(&[30])),
        ColumnSchema::tensor("noise", DType::U64, Shape::fixed(&[6])).nullable(),
        grids.nullable().list(),
        ColumnSchema::utf8("text").nullable(),
    ])
}

/// Returns any number below `end`.
fn number(seed: u32, i: u32, end: u32) -> u32 {
    (mix(seed.into(), i.into()) % u64::from(end)) as u32
}

/// Writes chunks of about three blocks of 2 KiB.
fn write_blocks(profile: Profile) -> Vec<u8> {
    let options = WriterOptions::new().profile(profile).chunk_bytes(6000).block_bytes(2048);
    let mut writer = Writer::new(Stream(Vec::new()), schema_of_blocks(), &options).unwrap();
    for i in 0..SAMPLES_IN_BLOCKS {
        let weight = |k| 0x3F80 - number(1, k, 6).min(number(2, k, 6)) * 128 + number(3, k, 128);
        let weights: Vec<bf16> = (0..20).map(|k| bf16::from_bits(weight(i * 20 + k) as u16)).collect();
        let ramp: Vec<i32> = (0..10).map(|k| (i * 10 + k) as i32 * 900 - number(4, i * 10 + k, 50) as i32).collect();
        let repeated: Vec<u16> = (0..30).map(|k| number(5, (i * 30 + k) % 32, 50_000) as u16).collect();
        let noise: Vec<u64> = (0..6).map(|k| mix(7, u64::from(i) * 6 + k)).collect();
        let grid = |rows: u32| ([rows], (0..3 * rows as i16).map(|v| v * 11 - 70).collect::<Vec<i16>>());
        let grids: Vec<_> = (0..i % 4).map(|k| grid(2 * (i % 5 + k))).collect();
        let grids: Vec<Value<'_>> = grids.iter().map(|(rows, values)| Value::ragged(values, rows)).collect();
        let text = format!("sample number {i}, \u{e9}\u{1F40B}, {}", "and so on, ".repeat(i as usize % 6));
        let or_null = |is_null: bool, value| if is_null { Value::NULL } else { value };
        let sample = [
            Value::tensor(&weights),
            or_null(i % 11 == 3, Value::tensor(&ramp)),
            Value::tensor(&repeated),
            or_null(i > 83, Value::tensor(&noise)),
            Value::list(&grids),
            or_null(i % 13 == 5, Value::text(&text)),
        ];
        writer.push(&sample).unwrap();
        if i == 83 {
            writer.commit().unwrap();
        }
    }
    writer.into_bytes().unwrap()
}

fn schema_of_texts() -> Schema {
    Schema::new([ColumnSchema::utf8("text")])
}

/// Writes as many texts as a dictionary takes, with few bytes each.
fn write_texts(profile: Profile) -> Vec<u8> {
    let options = WriterOptions::new().profile(profile).chunk_bytes(256 << 10).block_bytes(64 << 10);
    let mut writer = Writer::new(Stream(Vec::new()), schema_of_texts(), &options).unwrap();
    let part = |of: u32| (0..60).map(|k| format!("{:016x}", mix(of.into(), k))).collect::<String>();
    for i in 0..TEXTS {
        let text = [number(6, i, 5), number(7, i, 5)].map(part).concat().repeat(4);
        writer.push(&[Value::text(&text)]).unwrap();
    }
    writer.into_bytes().unwrap()
}

fn encodings(file: &[u8]) -> BTreeSet<String> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    reader.columns().flat_map(|column| column.facts().encodings).map(|(encoding, _)| encoding).collect()
}

/// Values, extents and validity of a column, and offsets and validity of its lists.
type Content = (Vec<u8>, Vec<u32>, Option<Vec<u8>>, Vec<(Vec<u64>, Option<Vec<u8>>)>);

/// Reads all samples of all columns.
fn read(file: &[u8], schema: &Schema) -> Vec<Content> {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    assert_eq!(reader.schema(), schema);
    let mut buffer = ColumnBuffer::new();
    let columns = reader.columns().map(|column| {
        column.cursor().range_into(0..reader.sample_count(), &mut buffer).unwrap();
        let lists = buffer.lists().iter().map(|lists| (lists.offsets().to_vec(), lists.validity().map(<[u8]>::to_vec)));
        let validity = buffer.validity().map(<[u8]>::to_vec);
        (buffer.bytes().to_vec(), buffer.varying_extents().to_vec(), validity, lists.collect())
    });
    columns.collect()
}

fn path(name: &str, profile: Profile) -> PathBuf {
    let name = format!("golden-{RELEASE}-{name}{}.tsl", profile.name());
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Reads a golden file, or writes it from `written` if the environment says so.
fn golden(name: &str, profile: Profile, written: &[u8]) -> Vec<u8> {
    let path = path(name, profile);
    if std::env::var("TENSILO_WRITE_GOLDEN").is_ok() && !path.exists() {
        fs::write(&path, written).unwrap();
    }
    fs::read(&path).unwrap()
}

fn check(name: &str, profile: Profile, written: &[u8], schema: &Schema, samples: u32) {
    let golden = golden(name, profile, written);
    let report = verify(&InMemory(&golden), VerifyOptions::new().deep(true)).unwrap();
    assert!(report.findings.is_empty(), "{name}{}: {:?}", profile.name(), report.findings);
    assert!(read(&golden, schema) == read(written, schema), "{name}{}", profile.name());
    assert_eq!(Reader::from_bytes(golden).unwrap().sample_count(), u64::from(samples));
}

#[test]
fn files_of_earlier_releases_read_as_they_were_written() {
    for profile in Profile::ALL {
        check("", profile, &write(profile), &schema(), SAMPLES);
    }
    for profile in PROFILES_WITH_BLOCKS {
        check("blocks-", profile, &write_blocks(profile), &schema_of_blocks(), SAMPLES_IN_BLOCKS);
    }
    for profile in PROFILES_OF_BINS {
        let written = write_bins(&options_of_bins(profile), SAMPLES_OF_BINS);
        check("bins-", profile, &written, &schema_of_bins(), SAMPLES_OF_BINS as u32);
        check("filters-", profile, &write_sound(profile), &schema_of_sound(), SAMPLES_OF_SOUND as u32);
    }
    check("texts-", Profile::Balanced, &write_texts(Profile::Balanced), &schema_of_texts(), TEXTS);
    for profile in NESTED_PROFILES {
        check("nested-", profile, &write_nested(profile), &nested_schema(), NESTED_SAMPLES);
    }
}

/// To an encoding, lists look like any other part, so two profiles suffice.
const NESTED_PROFILES: [Profile; 2] = [Profile::Raw, Profile::Fast];

const PROFILES_WITH_BLOCKS: [Profile; 3] = [Profile::Raw, Profile::Fast, Profile::Balanced];

#[test]
fn golden_files_have_encodings_in_blocks() {
    let names = PROFILES_WITH_BLOCKS.map(|profile| ("blocks-", profile));
    let files = names.into_iter().chain([("texts-", Profile::Balanced)]);
    let found: BTreeSet<String> =
        files.flat_map(|(name, profile)| encodings(&fs::read(path(name, profile)).unwrap())).collect();
    // the vectors cover Zstandard, which writers choose only for longer chunks
    let expected = ["exponent-tiers", "raw"];
    assert!(expected.iter().all(|name| found.contains(&format!("{name} in blocks"))), "{found:?}");
}

/// Writers may choose other encodings later. These files keep the old ones readable.
#[test]
fn golden_files_have_bins_with_each_mapping_and_option() {
    for profile in PROFILES_OF_BINS {
        assert_has_all_bins(&fs::read(path("bins-", profile)).unwrap(), profile);
        assert_has_filters(&fs::read(path("filters-", profile)).unwrap(), profile);
    }
}

#[test]
fn files_without_zstandard_are_written_to_the_same_bytes() {
    for profile in [Profile::Raw, Profile::Fast] {
        assert!(write(profile) == fs::read(path("", profile)).unwrap(), "{}", profile.name());
        assert!(write_blocks(profile) == fs::read(path("blocks-", profile)).unwrap(), "blocks, {}", profile.name());
        assert!(write_nested(profile) == fs::read(path("nested-", profile)).unwrap(), "nested, {}", profile.name());
    }
}
