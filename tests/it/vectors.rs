//! Tests that each valid vector of the specification reads as its dump says, and that each invalid
//! vector breaks the rule in its name.

use crate::common::vectors::{bytes, file_of, json, vectors};
use crate::support::positional::Positional;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;
use tensilo::nested::FieldNode;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBuffer, DType, Error, ErrorKind, OpenOptions, Reader, Verification};

/// Returns the first damage that a thorough verification finds.
fn first_error(bytes: &[u8]) -> Option<Error> {
    match verify(&InMemory(bytes), VerifyOptions::new().deep(true)) {
        Ok(report) => report.findings.into_iter().next().map(|damage| damage.error),
        Err(error) => Some(error),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

#[test]
fn valid_vectors_are_intact() {
    for vector in vectors(true) {
        let error = first_error(&bytes(file_of(&vector)));
        assert!(error.is_none(), "{}: {}", file_of(&vector), error.unwrap());
    }
}

#[test]
fn invalid_vectors_break_their_rule() {
    let mut wrong = Vec::new();
    for vector in vectors(false) {
        let also = vector["also"].as_array().cloned().unwrap_or_default();
        let rule = first_error(&bytes(file_of(&vector))).and_then(|error| error.rule());
        let expected = rule.is_some_and(|rule| vector["rule"] == rule || also.iter().any(|other| other == rule));
        if !expected {
            wrong.push(format!("{}: found {rule:?}", file_of(&vector)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bytes of a sample, or the rule that it breaks.
type Read = Result<Vec<u8>, Option<&'static str>>;

/// Reads the first samples of each column, each with a fresh cursor.
fn read_individually(reader: &Reader) -> Vec<Read> {
    let samples = reader.sample_count().min(100);
    let read = |column: &tensilo::Column, i| {
        let sample = column.cursor().read(i).map(|sample| sample.bytes().to_vec());
        sample.map_err(|error| error.rule())
    };
    reader.columns().flat_map(|column| (0..samples).map(move |i| read(&column, i))).collect()
}

/// A chunk with a correct checksum may still differ from its index entry.
#[test]
fn a_refused_read_is_refused_again() {
    for vector in vectors(false) {
        let (file, name) = (bytes(file_of(&vector)), file_of(&vector));
        for policy in [Verification::FirstTouch, Verification::Always] {
            let options = OpenOptions::new().verification(policy);
            let Ok(in_memory) = options.open_source(InMemory(file.clone())) else { continue };
            let by_position = options.open_source(Positional(file.clone())).unwrap();
            let expected = (read_individually(&in_memory), read_individually(&by_position));
            for time in 0..2 {
                let again = (read_individually(&in_memory), read_individually(&by_position));
                assert_eq!(again, expected, "{name}, {policy:?}, time {time}");
            }
            let differ = |(a, b): (&Read, &Read)| a.is_ok() && b.is_ok() && a != b;
            assert!(!expected.0.iter().zip(&expected.1).any(differ), "{name}, {policy:?}: {expected:?}");
        }
    }
}

/// Readers ignore the bytes between parts (chapter 10), so their values make no difference.
#[test]
fn padding_between_parts_is_checked_only_by_verify() {
    let file = bytes("invalid/R-4.4-padding.hex");
    assert_eq!(first_error(&file).and_then(|error| error.rule()), Some("R-4.4"));
    let expected = [Ok(b"ab".to_vec()), Ok(Vec::new()), Ok(b"c".to_vec())];
    assert_eq!(read_individually(&Reader::from_bytes(file.clone()).unwrap()), expected);
    assert_eq!(read_individually(&OpenOptions::new().open_source(Positional(file.clone())).unwrap()), expected);
}

/// Offsets are multiples of 64, so the words of a body are aligned.
#[test]
fn readers_refuse_offsets_that_are_not_multiples_of_64() {
    for (name, is_open) in [("chunk", true), ("page", true), ("footer", false)] {
        let file = bytes(&format!("invalid/R-2.4-unaligned-{name}.hex"));
        let opened = Reader::from_bytes(file.clone());
        assert_eq!(opened.is_ok(), is_open, "{name}");
        let rules = match opened {
            Ok(reader) => read_individually(&reader),
            Err(error) => vec![Err(error.rule())],
        };
        assert!(rules.iter().all(|rule| *rule == Err(Some("R-2.4"))), "{name}: {rules:?}");
    }
}

#[test]
fn files_of_other_releases_are_refused_but_not_as_damaged() {
    let mut kinds = Vec::new();
    for vector in vectors(false) {
        let file = bytes(file_of(&vector));
        let Err(error) = verify(&InMemory(&file), VerifyOptions::new()) else { continue };
        let is_old = file_of(&vector).contains("before-edition-1");
        let expected = if is_old { ErrorKind::TooOld } else { ErrorKind::TooNew };
        assert_eq!(error.kind(), expected, "{}: {error}", file_of(&vector));
        for decode in [false, true] {
            let salvaged = salvage(InMemory(file.clone()), SalvageOptions::new().deep(decode));
            assert_eq!(salvaged.err().map(|error| error.kind()), Some(expected), "{}", file_of(&vector));
        }
        kinds.push(error.rule());
    }
    kinds.dedup();
    assert!(kinds.len() > 1, "{kinds:?}");
}

/// A reader that lacks an encoding refuses the columns that use it, and reads the others.
#[test]
fn other_columns_of_a_refused_one_are_read() {
    let vectors: Vec<_> = vectors(false).into_iter().filter(|vector| vector["reads"].is_array()).collect();
    assert!(!vectors.is_empty());
    for vector in vectors {
        let file = file_of(&vector);
        let dump = json(&file.replace(".hex", ".json"));
        let reader = Reader::from_bytes(bytes(file)).unwrap();
        let reads = vector["reads"].as_array().unwrap();
        for (column, dump) in reader.columns().zip(dump["columns"].as_array().unwrap()) {
            if reads.contains(&dump["name"]) {
                assert_column(&column, dump, file);
                continue;
            }
            let error = column.cursor().read(0).unwrap_err();
            assert_eq!(error.rule(), vector["rule"].as_str(), "{file}: {error}");
            assert_eq!(error.column(), dump["name"].as_str(), "{file}: {error}");
        }
    }
}

#[test]
fn valid_vectors_read_as_their_dump_says() {
    for vector in vectors(true) {
        let file = file_of(&vector);
        let dump = json(&file.replace(".hex", ".json"));
        let reader = Reader::from_bytes(bytes(file)).unwrap();
        assert_eq!(dump["sample_count"], reader.sample_count(), "{file}");
        assert_eq!(dump["file_id"], reader.file_id().to_string().as_str(), "{file}");
        assert_eq!(dump["content_id"], reader.content_id().to_string().as_str(), "{file}");
        assert_eq!(dump["alignment"], reader.alignment(), "{file}");
        assert_eq!(dump["finished"], reader.is_finished(), "{file}");
        assert_eq!(dump["commits"], reader.commit_count(), "{file}");
        assert_eq!(dump["tail_bytes"], reader.tail_bytes(), "{file}");
        let columns = dump["columns"].as_array().unwrap();
        assert_eq!(columns.len(), reader.schema().columns.len(), "{file}");
        for (column, dump) in reader.columns().zip(columns) {
            assert_column(&column, dump, file);
        }
    }
}

fn assert_column(column: &tensilo::Column, dump: &Json, file: &str) {
    let schema = column.schema();
    let context = format!("{file}, column {}", schema.name);
    assert_eq!(dump["name"], schema.name.as_str(), "{context}");
    let dtype = match schema.dtype {
        DType::Unknown { code, .. } => format!("unknown {code}"),
        dtype => dtype.name().to_owned(),
    };
    assert_eq!(dump["dtype"], dtype, "{context}");
    assert_eq!(dump["nullable"], schema.nullable, "{context}");
    let shape = schema.shape.extents().iter().map(|extent| match extent {
        tensilo::Extent::Fixed(extent) => Json::from(*extent),
        tensilo::Extent::Varying => Json::Null,
    });
    assert_eq!(dump["shape"], Json::Array(shape.collect()), "{context}");
    assert_eq!(dump["metadata"], serde_json::to_value(&schema.metadata).unwrap(), "{context}");
    let facts = column.facts();
    let encodings: serde_json::Map<String, Json> =
        facts.encodings.iter().map(|(name, chunks)| (name.clone(), (*chunks).into())).collect();
    assert_eq!(dump["encodings"], Json::Object(encodings), "{context}");
    for (key, found) in [
        ("raw_bytes", facts.raw_bytes),
        ("stored_bytes", facts.stored_bytes),
        ("null_count", facts.null_count),
        ("chunk_count", facts.chunk_count),
    ] {
        assert_eq!(dump[key], found, "{context}: {key}");
    }
    let Some(samples) = dump["samples"].as_array() else {
        let error = column.cursor().read(0).map(|_| ()).expect_err(&context);
        assert_eq!((error.kind(), error.column()), (ErrorKind::TooNew, Some(schema.name.as_str())), "{context}");
        return;
    };
    if !schema.levels.is_empty() {
        let levels: Vec<Json> = schema.levels.iter().map(|level| level.nullable.into()).collect();
        assert_eq!(dump["nullable_levels"], Json::Array(levels), "{context}");
        assert_eq!(dump["samples"], Json::Array(nested_samples(column)), "{context}");
        return;
    }
    let mut cursor = column.cursor();
    for (i, dump) in (0..).zip(samples) {
        let sample = cursor.read(i).unwrap();
        assert_eq!(dump.is_null(), sample.is_null(), "{context}, sample {i}");
        if !sample.is_null() {
            assert_eq!(dump["hex"], hex(sample.bytes()).as_str(), "{context}, sample {i}");
            let varying = sample.extents().iter().zip(schema.shape.extents());
            let varying = varying.filter(|(_, extent)| **extent == tensilo::Extent::Varying);
            let extents: Vec<Json> = varying.map(|(extent, _)| (*extent).into()).collect();
            assert_eq!(dump["extents"], Json::Array(extents), "{context}, sample {i}");
        }
    }
}

/// Returns all samples of a nested column as the dumps show them, gathered in reverse order.
fn nested_samples(column: &tensilo::Column) -> Vec<Json> {
    let mut out = ColumnBuffer::new();
    let reversed: Vec<u64> = (0..column.sample_count()).rev().collect();
    column.cursor().gather_into(&reversed, &mut out).unwrap();
    let schema = column.schema();
    let (width, varying) = (schema.dtype.element_bytes(), schema.shape.varying_count());
    let fixed = schema.shape.inner_elements().unwrap() as usize * width;
    let mut entries: Vec<Json> = (0..out.item_count())
        .map(|i| {
            let bytes = match varying {
                0 => &out.bytes()[i * fixed..(i + 1) * fixed],
                _ => out.ragged_bytes(i).unwrap(),
            };
            let extents = &out.varying_extents()[i * varying..(i + 1) * varying];
            if out.is_null(i) { Json::Null } else { serde_json::json!({ "extents": extents, "hex": hex(bytes) }) }
        })
        .collect();
    for lists in out.lists().iter().rev() {
        let list = |i: usize| match lists.is_null(i) {
            true => Json::Null,
            false => entries[lists.offsets()[i] as usize..lists.offsets()[i + 1] as usize].to_vec().into(),
        };
        entries = (0..lists.list_count()).map(list).collect();
    }
    entries.reverse();
    entries
}

/// Describes the fields that columns form: names of structs with their fields, and names of
/// columns.
fn fields(nodes: &[FieldNode]) -> String {
    let one = |node: &FieldNode| match node {
        FieldNode::Struct { name, nulls, children, .. } => {
            let nulls = if nulls.is_some() { "?" } else { "" };
            format!("{name}{nulls}({})", fields(children))
        }
        column => column.name().to_owned(),
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// The key decides, whether or not the flag is set. Paths that are not followed make no structs.
#[test]
fn paths_of_vectors_make_the_structs_of_the_specification() {
    for (vector, expected) in [
        ("paths", "messages?(role content) a.b(c)"),
        ("paths-without-flag", "a(x y)"),
        ("paths-not-followed", "cut escape levels deep twice again d struct e(x)"),
    ] {
        let reader = Reader::from_bytes(bytes(&format!("valid/{vector}.hex"))).unwrap();
        assert_eq!(fields(&FieldNode::of_columns(reader.schema().columns.iter())), expected, "{vector}");
    }
}

/// Checks that reading these samples is refused by the checksum of a block.
fn assert_block_is_named(file: &[u8], column: &str, samples: &Range<u64>, what: &str) {
    for policy in [Verification::FirstTouch, Verification::Always] {
        let options = OpenOptions::new().verification(policy);
        let readers = [options.open_source(InMemory(file.to_vec())), options.open_source(Positional(file.to_vec()))];
        for reader in readers.map(tensilo::Result::unwrap) {
            let mut cursor = reader.column(column).unwrap().cursor();
            let error = cursor.range_into(samples.clone(), &mut ColumnBuffer::new()).expect_err(what);
            assert_eq!(error.rule(), Some("R-5.16"), "{what}, {policy:?}: {error}");
        }
    }
}

/// Nothing in a block is trusted before its checksum matches: for instance a length, before memory
/// is allocated for all samples of a chunk.
#[test]
fn a_damaged_block_is_named_by_its_checksum_if_its_chunk_is_read_whole() {
    let mut encodings = BTreeSet::new();
    for vector in vectors(true) {
        let name = file_of(&vector);
        let mut file = bytes(name);
        for column in Reader::from_bytes(file.clone()).unwrap().columns() {
            for chunk in 0..column.facts().chunk_count {
                let Ok(Some(blocks)) = column.blocks(chunk) else { continue };
                let facts = column.chunk(chunk).unwrap().unwrap();
                for block in blocks.blocks {
                    let at = block.file_range.start as usize;
                    file[at] ^= 1;
                    assert_block_is_named(&file, &column.schema().name, &facts.samples, &format!("{name}, byte {at}"));
                    file[at] ^= 1;
                }
                encodings.insert(facts.encoding);
            }
        }
    }
    let expected = if cfg!(feature = "zstd") { 5 } else { 4 };
    assert!(encodings.len() >= expected, "{encodings:?}");
}
