//! Tests which blocks writers make for which options, and that [`Column::blocks`] and
//! [`Column::cold_read`] report them.
//!
//! A block has about the bytes that the options ask for, but never splits a sample of up to four
//! blocks and never has more than 65,535 elements.

use crate::common::config;
use proptest::prelude::*;
use std::ops::Range;
use tensilo::sink::Stream;
use tensilo::{
    Column, ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Profile, Reader, Schema, Shape, Value, Writer,
    WriterOptions,
};
use tensilo_testing::mix;

const PROFILES: [Profile; 3] = [Profile::Fast, Profile::Balanced, Profile::Raw];

fn profiles() -> impl Iterator<Item = Profile> {
    PROFILES.into_iter().filter(|profile| cfg!(feature = "zstd") || *profile != Profile::Balanced)
}

/// Writes random samples of `elements` elements, so that nothing is encoded.
fn fixed(samples: usize, elements: u32, options: &WriterOptions) -> Column {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::F32, Shape::fixed(&[elements]))]);
    let mut writer = Writer::new(Stream(Vec::new()), schema, options).unwrap();
    let values: Vec<f32> = (0..samples as u64 * u64::from(elements)).map(|i| mix(3, i) as f32).collect();
    writer.push_batch(&[ColumnBatch::fixed(samples, &values)]).unwrap();
    column(writer.into_bytes().unwrap())
}

/// Writes texts of these lengths.
fn texts(lengths: &[usize], options: &WriterOptions) -> Column {
    let long = "a word or two, ".repeat(1 + lengths.iter().max().unwrap_or(&0) / 15);
    let mut writer = Writer::new(Stream(Vec::new()), Schema::new([ColumnSchema::utf8("x")]), options).unwrap();
    lengths.iter().for_each(|&length| writer.push(&[Value::text(&long[..length])]).unwrap());
    column(writer.into_bytes().unwrap())
}

fn column(file: Vec<u8>) -> Column {
    Reader::from_bytes(file).unwrap().column("x").unwrap()
}

/// Returns the decoded bytes of each block of the first chunk.
fn sizes(column: &Column) -> Vec<u64> {
    let blocks = column.blocks(0).unwrap();
    blocks.map_or(Vec::new(), |blocks| blocks.blocks.iter().map(|block| block.raw_bytes).collect())
}

/// Returns the samples, the stored bytes and the encoding of each chunk.
fn chunks(column: &Column) -> Vec<(Range<u64>, u64, String)> {
    let infos = (0..).map_while(|chunk| column.chunk(chunk).unwrap());
    infos.map(|info| (info.samples, info.file_range.end - info.file_range.start, info.encoding)).collect()
}

#[test]
fn a_column_with_its_own_profile_has_the_chunks_of_a_file_of_that_profile() {
    let schema = || {
        Schema::new([
            ColumnSchema::tensor("numbers", DType::F32, Shape::fixed(&[64])),
            ColumnSchema::utf8("text"),
            ColumnSchema::tensor("id", DType::U64, Shape::scalar()),
        ])
    };
    let file = |options: &WriterOptions| {
        let mut writer = Writer::new(Stream(Vec::new()), schema(), options)?;
        for i in 0..6_000_u64 {
            let numbers: Vec<f32> = (0..64).map(|at| (mix(i, at) % 1000) as f32 / 8.0).collect();
            let text = format!("sample {} of {}, {}", mix(5, i) % 100, i / 7, "word ".repeat(i as usize % 90));
            writer.push(&[Value::tensor(&numbers), text.into(), i.into()])?;
        }
        Reader::from_bytes(writer.into_bytes()?)
    };
    let built: Vec<Profile> =
        Profile::ALL.into_iter().filter(|profile| cfg!(feature = "zstd") || profile.name() == "fast").collect();
    let whole: Vec<Reader> =
        built.iter().map(|&profile| file(&WriterOptions::new().profile(profile).threads(2)).unwrap()).collect();
    for (of_all, profile) in built.iter().enumerate() {
        for (own, own_profile) in built.iter().enumerate() {
            let options = WriterOptions::new().profile(*profile).column_profile("text", *own_profile);
            let mixed = file(&options.column_profile("numbers", *own_profile)).unwrap();
            for (name, expected) in [("numbers", own), ("text", own), ("id", of_all)] {
                let [found, expected] = [&mixed, &whole[expected]].map(|reader| chunks(&reader.column(name).unwrap()));
                assert!(found == expected, "{name}, {profile}, {own_profile}");
            }
        }
    }
    let error = file(&WriterOptions::new().column_profile("texts", Profile::Fast)).err().unwrap();
    assert_eq!(error.kind(), tensilo::ErrorKind::UnknownColumn);
    assert!(error.message().contains("the most similar is \"text\""), "{error}");
    let options = WriterOptions::new().column_profile("id", Profile::BitshuffleZstd).block_bytes(4096);
    let error = file(&options).err().unwrap();
    assert!(cfg!(not(feature = "zstd")) || error.column() == Some("id"), "{error}");
}

#[test]
fn blocks_have_as_many_bytes_as_the_options_say() {
    for profile in profiles() {
        let options = WriterOptions::new().profile(profile);
        for (block_bytes, expected) in [(1024, 1), (2048, 2), (3000, 2), (8192, 8), (8191, 7)] {
            let sizes = sizes(&fixed(64, 256, &options.clone().block_bytes(block_bytes)));
            let (last, others) = sizes.split_last().unwrap();
            assert!(others.iter().all(|&bytes| bytes == expected * 1024), "{profile:?}, {block_bytes}: {sizes:?}");
            assert!((1..=expected * 1024).contains(last) && sizes.iter().sum::<u64>() == 64 << 10, "{sizes:?}");
        }
        assert_eq!(profile.block_bytes(), Some(8192));
        assert_eq!(sizes(&fixed(64, 256, &options)), [8192; 8], "{profile:?}: the default");
        // bins have blocks, even if only one
        for (block_bytes, what) in [(None, "without blocks"), (Some(48 << 10), "one and a half blocks")] {
            let sizes = sizes(&fixed(64, 256, &options.clone().block_bytes(block_bytes)));
            assert!(sizes.is_empty() || sizes == [64 << 10], "{profile:?}, {what}: {sizes:?}");
        }
        assert_eq!(sizes(&fixed(64, 256, &options.block_bytes(40 << 10))), [40 << 10, 24 << 10]);
    }
}

#[test]
fn a_profile_without_blocks_writes_none() {
    let profile = Profile::BitshuffleZstd;
    assert_eq!(profile.block_bytes(), None);
    if cfg!(feature = "zstd") {
        assert!(sizes(&fixed(64, 256, &WriterOptions::new().profile(profile))).is_empty());
    }
}

#[test]
#[cfg(feature = "zstd")]
fn blocks_of_small_are_as_long_as_chunks_of_others() {
    let options = WriterOptions::new().profile(Profile::Small);
    assert_eq!(Profile::Small.block_bytes(), Some(Profile::Balanced.chunk_bytes()));
    assert!(sizes(&fixed(64, 256, &options)).len() <= 1, "a single block may be stored without blocks");
    assert_eq!(sizes(&fixed(256, 256, &options)), [64 << 10; 4]);
}

#[test]
fn a_sample_of_up_to_four_blocks_is_one_block_and_a_longer_one_is_split() {
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(1 << 20);
    assert_eq!(sizes(&fixed(4, 4 << 10, &options)), [16 << 10; 4]);
    assert_eq!(sizes(&fixed(2, 8 << 10, &options)), [32 << 10; 2]);
    assert_eq!(sizes(&texts(&[64 << 10], &options)), [32 << 10; 2]);
}

/// A block has at most 65,535 elements, whatever its size in bytes.
#[test]
fn blocks_of_narrow_types_stay_below_the_requested_size() {
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(1 << 20).block_bytes(512 << 10);
    let sizes = sizes(&texts(&[1000; 1000], &options));
    assert_eq!((sizes.first(), sizes.iter().sum::<u64>()), (Some(&65_000), 1_000_000), "{sizes:?}");
}

#[test]
fn smaller_blocks_read_less_and_store_more() {
    let values: Vec<i32> = (0..64 * 2000).map(|i| i + mix(5, i as u64) as i32 % 100).collect();
    let schema = Schema::new([ColumnSchema::tensor("x", DType::I32, Shape::fixed(&[64]))]);
    let mut last: Option<(u64, u64)> = None;
    for block_bytes in [1 << 10, 2 << 10, 8 << 10, 32 << 10] {
        let options = WriterOptions::new().profile(Profile::Fast).chunk_bytes(512 << 10).block_bytes(block_bytes);
        let mut writer = Writer::new(Stream(Vec::new()), schema.clone(), &options).unwrap();
        writer.push_batch(&[ColumnBatch::fixed(2000, &values)]).unwrap();
        let column = column(writer.into_bytes().unwrap());
        let (read, stored) = (column.cold_read(0).unwrap().unwrap().sample_bytes, column.facts().stored_bytes);
        if let Some((last_read, last_stored)) = last {
            assert!(read > last_read && stored < last_stored, "{block_bytes}: {read} read, {stored} stored");
        }
        last = Some((read, stored));
    }
}

/// A chunk of less than 8 KiB is read whole, whether it has blocks or not.
#[test]
fn a_sample_costs_its_blocks_or_its_chunk() {
    let options = WriterOptions::new().profile(Profile::Raw);
    let cost = |column: &Column| {
        let cold = column.cold_read(0).unwrap().unwrap();
        (cold.prefix_bytes, cold.sample_bytes)
    };
    assert_eq!(cost(&fixed(64, 256, &options)), (1024, 8192));
    assert_eq!(cost(&fixed(64, 256, &options.clone().block_bytes(None))), (0, 64 + (64 << 10)));
    assert_eq!(cost(&fixed(7, 256, &options.clone().block_bytes(1024))), (0, 64 + 128 + (7 << 10)));
    assert_eq!(cost(&fixed(8, 256, &options.clone().block_bytes(1024))), (1024, 1024));
    // block index: 12 bytes for each of 64 blocks of 256 KiB, and 12 bytes, in multiples of 64
    assert_eq!(cost(&fixed(1024, 64, &options.block_bytes(1024).chunk_bytes(1 << 20))), (64 + 3136, 1024));
    assert!(fixed(4, 4, &WriterOptions::new()).cold_read(1).unwrap().is_none(), "no such chunk");
}

/// Compares the decoded bytes of each sample with the samples that blocks are reported to have.
fn assert_blocks(column: &Column, samples: &[u64]) {
    let chunks = (0..).map_while(|chunk| Some((chunk, column.chunk(chunk).unwrap()?)));
    for (chunk, info) in chunks {
        let Some(blocks) = column.blocks(chunk).unwrap() else { continue };
        assert_eq!((blocks.block_index.start, info.samples.start), (info.file_range.start, info.samples.start));
        let start_of = |sample: u64| samples[info.samples.start as usize..sample as usize].iter().sum::<u64>();
        let mut bytes = 0..0;
        for block in &blocks.blocks {
            bytes = bytes.end..bytes.end + block.raw_bytes;
            let (first, last) = (block.samples.start, block.samples.end - 1);
            assert!(start_of(first) <= bytes.start && start_of(first + 1) > bytes.start, "{block:?}");
            assert!(start_of(last) < bytes.end && start_of(last + 1) >= bytes.end, "{block:?}");
        }
        assert_eq!(bytes.end, start_of(info.samples.end));
        assert_eq!(blocks.blocks.last().unwrap().file_range.end, info.file_range.end);
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn blocks_have_the_samples_that_are_reported(
        lengths in prop::collection::vec(prop_oneof![4 => 0..400_usize, 1 => 0..40_000_usize], 1..200),
        block_bytes in 1024..20_000_usize,
        chunk_bytes in 10_000..300_000_usize,
        profile in prop::sample::select(profiles().collect::<Vec<_>>()),
    ) {
        let options = WriterOptions::new().profile(profile).block_bytes(block_bytes).chunk_bytes(chunk_bytes);
        assert_blocks(&texts(&lengths, &options), &lengths.iter().map(|&length| length as u64).collect::<Vec<_>>());
    }
}

/// The block size of an append may differ from the file's.
#[test]
fn chunks_of_several_block_sizes_are_read_side_by_side() {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::new([Extent::Varying]))]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tsl");
    let sample = |i: u32| (i * 10_000..i * 10_000 + 900 + i % 7).collect::<Vec<u32>>();
    let options = |block_bytes: Option<usize>| WriterOptions::new().profile(Profile::Fast).block_bytes(block_bytes);
    let push = |writer: &mut dyn FnMut(&[Value<'_>]), samples: Range<u32>| {
        for sample in samples.map(sample) {
            writer(&[Value::ragged(&sample, &[sample.len() as u32])]);
        }
    };
    let mut writer = Writer::create(&path, schema, &options(Some(1024))).unwrap();
    push(&mut |row| writer.push(row).unwrap(), 0..100);
    writer.finish().unwrap();
    for (samples, block_bytes) in [(100..200, None), (200..300, Some(8192))] {
        let mut writer = Writer::append(&path, &options(block_bytes)).unwrap();
        push(&mut |row| writer.push(row).unwrap(), samples);
        writer.finish().unwrap();
    }
    let column = Reader::open(&path).unwrap().column("x").unwrap();
    let (mut cursor, mut out) = (column.cursor(), ColumnBuffer::new());
    let requested: Vec<u64> = (0..300).rev().step_by(7).collect();
    cursor.gather_into(&requested, &mut out).unwrap();
    let expected = requested.iter().flat_map(|&i| sample(i as u32));
    assert!(out.values::<u32>().unwrap().iter().copied().eq(expected));
}
