//! Tests that every call names exactly the samples that a damage costs, and leaves an empty buffer.

use crate::support::positional::Positional;
use std::ops::Range;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::verify::VerifyOptions;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, Error, ErrorKind, OpenOptions, Profile, Reader, Schema, Shape,
    Value, Writer, WriterOptions,
};

const SAMPLES: u64 = 500;

/// A file of f32 vectors, of one shape or ragged.
fn file(profile: Profile, block_bytes: Option<usize>, is_ragged: bool) -> Vec<u8> {
    let shape = if is_ragged { Shape::ragged() } else { Shape::fixed(&[250]) };
    let schema = Schema::new([ColumnSchema::tensor("x", DType::F32, shape)]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(64 << 10).block_bytes(block_bytes);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    for i in 0..SAMPLES {
        let length = if is_ragged { 200 + (i * 7 % 100) as u32 } else { 250 };
        let values: Vec<f32> = (0..length).map(|k| (i as f32 * 0.37 + k as f32 * 0.01).sin()).collect();
        let extents = [length];
        writer.push(&[if is_ragged { Value::ragged(&values, &extents) } else { Value::tensor(&values) }]).unwrap();
    }
    writer.into_bytes().unwrap()
}

/// Opens a file in memory and by position.
fn readers(file: &[u8]) -> [Reader; 2] {
    [OpenOptions::new().open_source(InMemory(file.to_vec())), OpenOptions::new().open_source(Positional(file.to_vec()))]
        .map(tensilo::Result::unwrap)
}

/// Returns the error of a call, which must have emptied the buffer.
fn error(result: tensilo::Result<()>, out: &ColumnBuffer) -> Error {
    let error = result.unwrap_err();
    assert_eq!((out.sample_count(), out.item_count(), out.bytes().len()), (0, 0, 0), "{error}");
    assert!(out.offsets().is_empty() && out.varying_extents().is_empty() && out.validity().is_none(), "{error}");
    error
}

/// Returns the error of every call that reads a lost sample.
fn errors(reader: &Reader, i: u64, is_fixed: bool) -> Vec<(&'static str, Error)> {
    let column = reader.column("x").unwrap();
    let all: Vec<u64> = (0..SAMPLES).collect();
    let mut out = ColumnBuffer::new();
    column.cursor().gather_into(&[0], &mut out).unwrap(); // fills the buffer
    let mut errors = vec![
        ("read", column.cursor().read(i).map(|_| ()).unwrap_err()),
        ("read_slice", column.cursor().read_slice(i, &mut [0_f32; 400]).unwrap_err()),
        ("gather_into, one sample", error(column.cursor().gather_into(&[i], &mut out), &out)),
        ("gather_into, all samples", error(column.cursor().gather_into(&all, &mut out), &out)),
        ("gather_into, two samples", error(column.cursor().gather_into(&[i, 0], &mut out), &out)),
        ("range_into, one sample", error(column.cursor().range_into(i..i + 1, &mut out), &out)),
        ("range_into, all samples", error(column.cursor().range_into(0..SAMPLES, &mut out), &out)),
    ];
    match column.view(i) {
        Err(error) => errors.push(("view", error)),
        Ok(view) => assert!(view.is_none(), "a view of a lost sample"),
    }
    if is_fixed {
        errors.push(("gather_slice", column.cursor().gather_slice(&[i], &mut [0_f32; 250]).unwrap_err()));
    }
    let mut rows = reader.rows(&["x", "x"]).unwrap();
    let mut buffers = Vec::new();
    let gathered = rows.gather_into(&[0, i], &mut buffers);
    errors.push(("rows", error(gathered, &buffers[0])));
    assert_eq!(buffers[1].sample_count(), 0);
    #[cfg(feature = "rayon")]
    errors.push(("parallel", error(column.parallel_cursor().gather_into(&all, &mut out), &out)));
    let (mut plan, mut bytes) = (ReadPlan::new(), FetchedBytes::new());
    plan.select(&[column], &[i]).and_then(|()| plan.fetch(&mut bytes)).unwrap();
    let mut buffers = [out];
    let decoded = Decoder::new().decode(&plan, &bytes, &mut buffers);
    errors.push(("decode", error(decoded, &buffers[0])));
    let decoded = plan.decode_segments(2, &mut buffers, |parts| {
        parts.into_iter().try_for_each(|part| part.decode(&mut Decoder::new(), &bytes))
    });
    errors.push(("decode_segments", error(decoded, &buffers[0])));
    errors
}

fn check(file: &[u8], at: u64, lost: &Range<u64>, is_fixed: bool, what: &str) {
    let mut damaged = file.to_vec();
    damaged[at as usize] ^= 8;
    for (number, reader) in readers(&damaged).iter().enumerate() {
        let report = reader.verify(VerifyOptions::new()).unwrap();
        let [damage] = &report.findings[..] else { panic!("{what}: {:?}", report.findings) };
        assert_eq!(damage.samples.as_ref(), Some(lost), "{what}: verify");
        for (call, error) in errors(reader, lost.start, is_fixed) {
            assert_eq!(error.samples().as_ref(), Some(lost), "{what}, reader {number}: {call}: {error}");
        }
    }
}

#[test]
fn every_call_names_the_samples_of_a_damaged_block() {
    let mut profiles = vec![Profile::Raw];
    profiles.extend(cfg!(feature = "zstd").then_some(Profile::Fast));
    for profile in profiles {
        for is_ragged in [false, true] {
            let file = file(profile, Some(8 << 10), is_ragged);
            let column = Reader::from_bytes(file.clone()).unwrap().column("x").unwrap();
            let chunk = (0..column.facts().chunk_count).find_map(|chunk| column.blocks(chunk).unwrap()).unwrap();
            let block = &chunk.blocks[chunk.blocks.len() / 2];
            let middle = (block.file_range.start + block.file_range.end) / 2;
            check(&file, middle, &block.samples, !is_ragged, &format!("{profile:?}, ragged {is_ragged}"));
        }
    }
}

#[test]
fn every_call_names_the_samples_of_a_damaged_chunk() {
    for is_ragged in [false, true] {
        let file = file(Profile::Raw, None, is_ragged);
        let chunk = Reader::from_bytes(file.clone()).unwrap().column("x").unwrap().chunk(2).unwrap().unwrap();
        let middle = (chunk.file_range.start + chunk.file_range.end) / 2;
        check(&file, middle, &chunk.samples, !is_ragged, &format!("ragged {is_ragged}"));
    }
}

#[test]
fn a_call_that_is_refused_leaves_an_empty_buffer() {
    for reader in readers(&file(Profile::Raw, None, false)) {
        let column = reader.column("x").unwrap();
        let (mut cursor, mut out) = (column.cursor(), ColumnBuffer::new());
        let mut refused = |kind, call: &mut dyn FnMut(&mut ColumnBuffer) -> tensilo::Result<()>| {
            column.cursor().gather_into(&[1, 2], &mut out).unwrap();
            assert_eq!(out.sample_count(), 2);
            let result = call(&mut out);
            assert_eq!(error(result, &out).kind(), kind);
        };
        refused(ErrorKind::BadArgument, &mut |out| cursor.gather_into(&[0, SAMPLES], out));
        refused(ErrorKind::BadArgument, &mut |out| cursor.range_into(0..SAMPLES + 1, out));
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 5..3;
        refused(ErrorKind::BadArgument, &mut |out| cursor.range_into(reversed.clone(), out));
        let values = [1_u8; 500];
        refused(ErrorKind::WrongType, &mut |out| out.fill(column.schema(), &ColumnBatch::fixed(2, &values)));
        let mut plan = ReadPlan::new();
        assert_eq!(plan.select_range(&[], reversed.clone()).unwrap_err().kind(), ErrorKind::BadArgument);
    }
}
