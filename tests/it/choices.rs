//! Tests that writers make the same choices for known data as before: the encoding, the length of
//! the file, and its bytes if Zstandard takes no part. A change is intended, or it is a mistake
//! that no other test would notice, because it only makes files larger.
//!
//! `TENSILO_WRITE_GOLDEN=1 cargo test --test it choices` rewrites `tests/data/choices.txt` (chunks
//! without blocks) and `choices_in_blocks.txt`. Review the difference.

use half::bf16;
use std::fmt::Write as _;
use std::path::PathBuf;
use tensilo::sink::Stream;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_testing::{Pattern, mix};

const SAMPLES: usize = 17;
const SAMPLE_ELEMENTS: u32 = 4 * 128;

/// Returns shapes for the same elements: matrices, scalars, and lists. Every third list is empty.
fn shapes() -> [(&'static str, Shape, usize); 3] {
    [
        ("matrices", Shape::fixed(&[4, SAMPLE_ELEMENTS / 4]), SAMPLES),
        ("scalars", Shape::scalar(), SAMPLES * SAMPLE_ELEMENTS as usize),
        ("lists", Shape::ragged(), 3 * SAMPLES),
    ]
}

fn file(dtype: DType, (_, shape, samples): &(&str, Shape, usize), values: &[u8], options: &WriterOptions) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", dtype, shape.clone())]);
    let extents: Vec<u32> = match shape.is_ragged() {
        // a third of the elements, none, and two thirds
        true => [SAMPLE_ELEMENTS, 0, 2 * SAMPLE_ELEMENTS].repeat(SAMPLES).into_iter().map(|e| e / 3).collect(),
        false => Vec::new(),
    };
    let elements = extents.iter().sum::<u32>() as usize;
    let values = if shape.is_ragged() { &values[..elements * dtype.element_bytes()] } else { values };
    let mut writer = Writer::new(Stream(Vec::new()), schema, options).unwrap();
    writer.push_batch(&[ColumnBatch::from_bytes(dtype, *samples, &extents, values)]).unwrap();
    writer.into_bytes().unwrap()
}

/// Describes a file: its encoding, its length, and its checksum if that does not depend on the
/// release of Zstandard.
fn choice(file: &[u8]) -> String {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let column = reader.column("x").unwrap();
    let encoding = column.chunk(0).unwrap().unwrap().encoding;
    let length = file.len();
    match encoding.as_str() {
        "planes-zstd" => format!("{encoding} {} ~{length}", column.explain(0).unwrap().unwrap().transform.unwrap()),
        "bitshuffle-zstd" | "bitshuffle-zstd in blocks" => format!("{encoding} ~{length}"),
        _ => format!("{encoding} {length} {:08x}", crc32fast::hash(file)),
    }
}

/// Asserts equality, but allows 2 % of length where releases of Zstandard may differ.
fn assert_same(chosen: &str, known: &str) {
    let parts =
        |line: &str| line.split_once('~').map(|(what, length)| (what.to_owned(), length.parse::<f64>().unwrap()));
    match (parts(chosen), parts(known)) {
        (Some((what, length)), Some((known_what, known_length))) => {
            assert_eq!(what, known_what);
            assert!((length / known_length - 1.0).abs() < 0.02, "{chosen}, known: {known}");
        }
        _ => assert_eq!(chosen, known),
    }
}

/// Sets the id that a file in blocks has, because a file without blocks would get another one.
fn with_same_id(options: WriterOptions, in_blocks: &[u8]) -> WriterOptions {
    let id = Reader::from_bytes(in_blocks.to_vec()).unwrap().file_id();
    options.block_bytes(None).file_id(id)
}

/// Later chunks reuse a choice. Filters need numbers of two bytes, but a dictionary of at most 256
/// values has one-byte numbers.
#[test]
fn filters_are_dropped_for_a_dictionary_of_fewer_values() {
    let value = |number: f64| bf16::from_bits(0x3F80 + 7 * number as u16 / 3 + number as u16 % 5 / 4);
    let (mut last, mut values) = ([0.0_f64; 2], Vec::new());
    for i in 0..40_000_u64 {
        let noise = (mix(7, i) % 1000) as f64 / 500.0 - 1.0;
        let x = 1.6 * last[0] - 0.9 * last[1] + noise;
        last = [x, last[0]];
        let loudness = if i < 32_768 { 20.0 } else { 2.0 };
        values.push(value((250.0 + loudness * x).clamp(0.0, 500.0)));
    }
    for profile in [Profile::Balanced, Profile::Small] {
        let options = WriterOptions::new().profile(profile).chunk_bytes(64 << 10);
        let schema = Schema::new([ColumnSchema::tensor("x", DType::Bf16, Shape::fixed(&[500]))]);
        let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
        writer.push_batch(&[ColumnBatch::fixed(80, &values)]).unwrap();
        let reader = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
        let column = reader.column("x").unwrap();
        let transforms: Vec<String> =
            (0..2).map(|chunk| column.explain(chunk).unwrap().unwrap().transform.unwrap()).collect();
        assert!(transforms[0].contains("filters") && transforms[0].contains("a dictionary"), "{transforms:?}");
        let mut buffer = ColumnBuffer::new();
        column.cursor().range_into(0..80, &mut buffer).unwrap();
        assert!(buffer.bytes() == bytemuck::cast_slice::<_, u8>(&values), "{}", profile.name());
    }
}

#[test]
fn writers_choose_the_same_encodings_as_before() {
    for (name, in_blocks) in [("choices.txt", false), ("choices_in_blocks.txt", true)] {
        assert_same_choices(name, in_blocks);
    }
}

fn assert_same_choices(name: &str, in_blocks: bool) {
    let mut chosen = String::new();
    for pattern in Pattern::ALL {
        for dtype in [DType::U8, DType::Bf16, DType::I32, DType::F64] {
            let values = pattern.elements(dtype.element_bytes(), SAMPLES * SAMPLE_ELEMENTS as usize, 7);
            for (i, shape) in shapes().iter().enumerate() {
                let profiles = [Profile::Fast, Profile::Balanced, Profile::Small];
                for profile in if i == 0 { &profiles[..] } else { &profiles[..1] } {
                    let options = WriterOptions::new().profile(*profile).chunk_bytes(256 << 10);
                    let mut bytes = file(dtype, shape, &values, &options);
                    if !in_blocks {
                        bytes = file(dtype, shape, &values, &with_same_id(options, &bytes));
                    }
                    let choice = choice(&bytes);
                    writeln!(chosen, "{pattern:?} {dtype} {} {}: {choice}", shape.0, profile.name()).unwrap();
                }
            }
        }
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    if std::env::var("TENSILO_WRITE_GOLDEN").is_ok() {
        std::fs::write(&path, &chosen).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    for (chosen, known) in chosen.lines().zip(known.lines()) {
        assert_same(chosen, known);
    }
    assert_eq!(chosen.lines().count(), known.lines().count());
}
