//! Tests that `verify` names the column and the samples of each damaged chunk, and reports the same
//! on any number of threads and from any source.
//!
//! Each region of a file is damaged in each of six ways. The report must name exactly the samples
//! of the damaged chunks, even if index, footers or neighbors are damaged as well: the chunks
//! before and after a gap tell which samples are missing.

use crate::common::vectors::{bytes, file_of, vectors};
use crate::support::positional::Positional;
use crate::support::regions::{Region, regions};
use std::ops::ControlFlow;
use tensilo::facts::RegionKind;
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::verify::{Finding, VerifyOptions, VerifyReport, verify};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Schema, Shape, Writer, WriterOptions};
use tensilo_testing::Random;

/// Writes three columns in many chunks, with samples that differ in size, in several commits.
fn written(profile: Profile, commits: u32, alignment: u32, samples: u32) -> Vec<u8> {
    let schema = Schema::new([
        ColumnSchema::tensor("a", DType::Bf16, Shape::fixed(&[20])),
        ColumnSchema::tensor("b", DType::I32, Shape::ragged()).nullable(),
        ColumnSchema::utf8("c"),
    ]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(300).alignment(alignment);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    for commit in 0..commits {
        let a: Vec<u8> = (0..40 * samples).map(|i| (i * (commit + 3) % 251) as u8).collect();
        let lengths: Vec<u32> = (0..samples).map(|i| if i % 9 == 4 { 0 } else { i % 7 }).collect();
        let b: Vec<i32> = (0..lengths.iter().sum()).map(|i| (i as i32) * 77).collect();
        let validity: Vec<u8> = (0..samples.div_ceil(8))
            .map(|byte| (0..8).fold(0, |bits, bit| bits | u8::from((8 * byte + bit) % 9 != 4) << bit))
            .collect();
        let text: String = (0..lengths.iter().sum()).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
        let batches = [
            ColumnBatch::from_bytes(DType::Bf16, samples as usize, &[], &a),
            ColumnBatch::ragged(samples as usize, &lengths, &b).with_validity(&validity),
            ColumnBatch::from_bytes(DType::Utf8, samples as usize, &lengths, text.as_bytes()),
        ];
        writer.push_batch(&batches).unwrap();
        if commit + 1 < commits {
            writer.commit().unwrap();
        }
    }
    writer.into_bytes().unwrap()
}

fn report(source: &impl Source, decode: bool, threads: usize) -> Result<VerifyReport, tensilo::Error> {
    verify(source, VerifyOptions::new().deep(decode).threads(threads))
}

fn assert_same_on_any_threads(file: &[u8], what: &str) {
    for decode in [false, true] {
        let expected = format!("{:?}", report(&InMemory(file), decode, 1));
        for threads in [1, 2, 5] {
            let in_memory = format!("{:?}", report(&InMemory(file), decode, threads));
            let by_position = format!("{:?}", report(&Positional(file), decode, threads));
            assert!(in_memory == expected, "{what}, {threads} threads: {in_memory}, not {expected}");
            assert!(by_position == expected, "{what}, by position, {threads} threads: {by_position}, not {expected}");
        }
    }
}

/// Damages a file: bits are flipped, ranges zeroed, overwritten or copied, the end cut off.
fn damaged(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut damaged = file.to_vec();
    for _ in 0..=random.index(4) {
        let at = random.index(damaged.len());
        let length = (1 << random.index(12)).min(damaged.len() - at);
        match random.index(6) {
            0 => damaged.truncate((damaged.len() - random.index(damaged.len()) / 8).max(1)),
            1 => damaged[at..at + length].fill(0),
            2 => damaged[at..at + length].iter_mut().for_each(|byte| *byte = random.below(256) as u8),
            3 => {
                let to = random.index(damaged.len() - length + 1);
                damaged.copy_within(at..at + length, to);
            }
            _ => damaged[at] ^= 1 << random.index(8),
        }
    }
    damaged
}

#[test]
fn the_report_is_the_same_on_any_number_of_threads() {
    let all = vectors(true).into_iter().chain(vectors(false));
    let mut files: Vec<(String, Vec<u8>)> =
        all.map(|vector| (file_of(&vector).to_owned(), bytes(file_of(&vector)))).collect();
    assert!(files.len() > 100, "the vectors are missing");
    for profile in Profile::ALL {
        for (commits, alignment) in [(1, 64), (3, 64), (2, 4096)] {
            files.push((format!("{profile:?}, {commits} commits"), written(profile, commits, alignment, 300)));
        }
    }
    let mut random = Random(7);
    for (name, file) in files.iter().filter(|(_, file)| !file.is_empty()) {
        assert_same_on_any_threads(file, name);
        for trial in 0..if file.len() > 1 << 20 { 1 } else { 12 } {
            assert_same_on_any_threads(&damaged(file, &mut random), &format!("{name}, damage {trial}"));
        }
    }
}

#[test]
fn the_report_of_an_intact_file_counts_what_is_in_it() {
    let file = written(Profile::Balanced, 2, 64, 100);
    let chunk_count = regions(&file).iter().filter(|region| region.kind == RegionKind::Chunk).count() as u64;
    let report = report(&InMemory(&file), true, 1).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(
        (report.file_bytes, report.chunk_count, report.sample_count),
        (file.len() as u64, chunk_count, Some(200))
    );
}

#[test]
fn intact_files_are_intact_whether_they_are_decoded_or_not() {
    let of_vectors = vectors(true).into_iter().map(|vector| bytes(file_of(&vector)));
    let of_profiles = Profile::ALL.into_iter().map(|profile| written(profile, 2, 64, 300));
    for file in of_vectors.chain(of_profiles) {
        for decode in [false, true] {
            let findings = report(&InMemory(&file), decode, 1).unwrap().findings;
            assert!(findings.is_empty(), "decode {decode}: {findings:?}");
        }
    }
}

#[test]
fn progress_reaches_the_end_of_the_file() {
    for (samples, min_calls) in [(100, 1), (80_000, 3)] {
        let file = written(Profile::Raw, 1, 64, samples);
        let mut calls = Vec::new();
        let mut progress = |bytes| {
            calls.push(bytes);
            ControlFlow::Continue(())
        };
        verify(&InMemory(&file), VerifyOptions::new().progress(&mut progress)).unwrap();
        assert!(calls.len() >= min_calls && calls.is_sorted(), "{calls:?}");
        assert_eq!(calls.last(), Some(&(file.len() as u64)));
    }
}

#[test]
fn a_reader_verifies_its_file() {
    let mut file = written(Profile::Balanced, 2, 64, 100);
    let chunk = regions(&file).into_iter().find(|region| region.kind == RegionKind::Chunk).unwrap();
    file[chunk.header + 64] ^= 1;
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    let by_reader = reader.verify(VerifyOptions::new()).unwrap();
    assert_eq!(by_reader.findings.len(), 1);
    assert_eq!(format!("{by_reader:?}"), format!("{:?}", report(&InMemory(&file), false, 1).unwrap()));
}

#[test]
fn more_regions_than_a_batch_has_are_reported_the_same() {
    let mut file = written(Profile::Raw, 1, 64, 80_000);
    let all = regions(&file);
    assert!(all.len() > 3 * 4096, "{} regions", all.len());
    assert_same_on_any_threads(&file, "intact");
    for region in all.iter().filter(|region| region.kind == RegionKind::Chunk).step_by(97) {
        file[region.header + 70] ^= 1;
    }
    assert_same_on_any_threads(&file, "damaged");
}

/// The ways to damage a region.
const DAMAGES: [&str; 6] = ["bit of header", "bit of body", "header zeroed", "all zeroed", "garbage", "magic gone"];

fn damage(file: &mut [u8], region: &Region, kind: &str) {
    let body = region.header + 64;
    match kind {
        "bit of header" => file[region.header + 37] ^= 4,
        "bit of body" => file[if region.end > body { body + (region.end - body) / 2 } else { region.header + 50 }] ^= 1,
        "header zeroed" => file[region.header..body].fill(0),
        "all zeroed" => file[region.header..region.end].fill(0),
        "garbage" => {
            file[region.header..region.end].iter_mut().zip(17_u32..).for_each(|(byte, i)| *byte = (i * i / 7) as u8)
        }
        _ => file[region.header..region.header + 4].fill(0x55),
    }
}

/// Returns the samples of a column that are reported as lost in chunks, as disjoint ranges.
fn lost(findings: &[Finding], column: &str) -> Vec<(u64, u64)> {
    let of_chunks =
        |damage: &&Finding| damage.region == Some(RegionKind::Chunk) && damage.column.as_deref() == Some(column);
    let ranges = findings.iter().filter(of_chunks).map(|damage| damage.samples.clone().expect("samples of a chunk"));
    merged(ranges.map(|range| (range.start, range.end)).collect())
}

fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if last.1 >= start => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

const COLUMNS: [&str; 3] = ["a", "b", "c"];

/// Checks that exactly the samples in `hit`, by column, are reported in damaged chunks, and that no
/// chunk is reported before them or after the next footer.
fn assert_names(file: &[u8], intact: &[u8], hit: &[&Region], what: &str) {
    let report = report(&Positional(file), false, 1).unwrap();
    for (number, name) in COLUMNS.iter().enumerate() {
        let of_column = hit.iter().filter(|region| region.kind == RegionKind::Chunk && region.column == number);
        let expected = merged(of_column.map(|region| (region.samples.start, region.samples.end)).collect());
        assert_eq!(lost(&report.findings, name), expected, "{what}, column {name}: {:#?}", report.findings);
    }
    let all = regions(intact);
    let chunks = || hit.iter().filter(|region| region.kind == RegionKind::Chunk).map(|region| region.header);
    let is_intact = |region: &&Region| file[region.header..region.end] == intact[region.header..region.end];
    let before = all.iter().take_while(|region| chunks().all(|header| region.header < header)).filter(is_intact).last();
    let mut footers = all.iter().filter(|region| region.kind == RegionKind::Footer).filter(is_intact);
    let after = footers.find(|region| chunks().all(|header| header < region.header));
    let around = before.map_or(0, |region| region.end as u64)..after.map_or(file.len(), |region| region.header) as u64;
    for damage in &report.findings {
        let (range, region) = (&damage.file_range, damage.region);
        let is_around = around.start <= range.start && range.end <= around.end;
        assert!(region != Some(RegionKind::Chunk) || is_around, "{what}: {damage:?}, not in {around:?}");
        let is_page = |page: &&Region| page.kind == RegionKind::IndexPage && range.contains(&(page.header as u64));
        if region == Some(RegionKind::IndexPage)
            && let Some(samples) = &damage.samples
        {
            let is_listed = all.iter().filter(is_page).any(|page| page.samples == *samples);
            assert!(is_listed, "{what}: no page there lists these samples: {damage:?}");
        }
    }
    for region in hit.iter().filter(|region| region.kind == RegionKind::IndexPage) {
        let named = report.findings.iter().find(|damage| {
            damage.region == Some(RegionKind::IndexPage)
                && damage.file_range.contains(&(region.header as u64))
                && damage.column.as_deref() == Some(COLUMNS[region.column])
        });
        let named = named.unwrap_or_else(|| panic!("{what}: the page is not named: {:#?}", report.findings));
        assert_eq!(named.samples, Some(region.samples.clone()), "{what}: samples of the page");
    }
    assert!(report.findings.is_sorted_by_key(|damage| damage.file_range.start), "{what}: not in file order");
}

#[test]
fn every_damaged_region_is_named() {
    // the last of these files has several pages in each run
    for (commits, alignment, samples, step) in
        [(1, 64, 300, 1), (3, 64, 100, 1), (2, 4096, 100, 1), (1, 64, 10_000, 37)]
    {
        let intact = written(Profile::Balanced, commits, alignment, samples);
        let all = regions(&intact);
        let is_chunk = |region: &&Region| region.kind == RegionKind::Chunk;
        assert!(all.iter().filter(is_chunk).count() > 40);
        let pages = all.iter().filter(|region| region.kind == RegionKind::IndexPage);
        for region in all[1..].iter().filter(is_chunk).step_by(step).chain(pages) {
            for kind in DAMAGES {
                let mut file = intact.clone();
                damage(&mut file, region, kind);
                let what = format!("{commits} commits, alignment {alignment}, {kind}, {region:?}");
                assert_names(&file, &intact, &[region], &what);
            }
        }
    }
}

/// Two changes of the same value, which a sum would cancel out. Nothing else is damaged or lost.
#[test]
fn padding_that_is_not_zero_is_found_to_the_byte() {
    let intact = written(Profile::Raw, 2, 4096, 40);
    let mut checked = 0;
    for pair in regions(&intact).windows(2) {
        let padding = pair[0].end..pair[1].header;
        if padding.len() < 2 {
            continue;
        }
        checked += 1;
        let (first, last) = (padding.start + padding.len() / 3, padding.end - 1);
        let mut file = intact.clone();
        file[first] = 0x10;
        file[last] = 0x10;
        let findings = verify(&InMemory(&file), VerifyOptions::new()).unwrap().findings;
        let [damage] = &findings[..] else { panic!("{padding:?}: {findings:?}") };
        assert_eq!((&damage.file_range, damage.region), (&(padding.start as u64..padding.end as u64), None));
        assert_eq!((damage.error.rule(), damage.error.offset()), (Some("R-2.8"), Some(first as u64)));
        assert!(damage.column.is_none() && damage.samples.is_none(), "{damage:?}");
    }
    assert!(checked > 10, "{checked}");
}

/// Without an index entry, the chunks before and after tell the samples.
#[test]
fn damaged_chunks_are_named_if_all_index_pages_are_damaged_too() {
    for (commits, alignment) in [(1, 64), (3, 64), (2, 4096)] {
        let intact = written(Profile::Balanced, commits, alignment, 120);
        let (all, mut file) = (regions(&intact), intact.clone());
        let pages: Vec<&Region> = all.iter().filter(|region| region.kind == RegionKind::IndexPage).collect();
        for (i, page) in pages.iter().enumerate() {
            damage(&mut file, page, DAMAGES[i % DAMAGES.len()]);
        }
        for region in all.iter().filter(|region| region.kind == RegionKind::Chunk) {
            for kind in DAMAGES {
                let mut file = file.clone();
                damage(&mut file, region, kind);
                // the samples of a page are unknown if its chunks are damaged, too
                assert_names(&file, &intact, &[region], &format!("{commits} commits, {kind}, {region:?}"));
            }
        }
    }
}

/// A chunk between others is missed even if no index, footer or trailer is left.
#[test]
fn damaged_chunks_are_named_if_only_chunks_are_left() {
    let intact = written(Profile::Balanced, 1, 64, 120);
    let (all, mut file) = (regions(&intact), intact.clone());
    let (chunks, others): (Vec<&Region>, Vec<&Region>) =
        all[1..].iter().partition(|region| region.kind == RegionKind::Chunk);
    others.into_iter().for_each(|region| damage(&mut file, region, "header zeroed"));
    let is_last = |region: &Region| !chunks.iter().any(|c| c.column == region.column && c.header > region.header);
    for region in chunks.iter().filter(|region| !is_last(region)) {
        for kind in DAMAGES {
            let mut file = file.clone();
            damage(&mut file, region, kind);
            assert_names(&file, &intact, &[region], &format!("{kind}, {region:?}"));
        }
    }
}

/// If all chunks have the same number of samples, the footer tells the samples of a page.
#[test]
fn samples_of_a_damaged_page_are_named_though_a_chunk_is_damaged_too() {
    let intact = written(Profile::Balanced, 1, 64, 10_000);
    let all = regions(&intact);
    let of_a = |kind| all.iter().filter(move |region| region.kind == kind && region.column == 0);
    let chunk = of_a(RegionKind::Chunk).nth(100).unwrap();
    assert!(of_a(RegionKind::IndexPage).count() > 2);
    for page in of_a(RegionKind::IndexPage) {
        let mut file = intact.clone();
        damage(&mut file, chunk, "header zeroed");
        damage(&mut file, page, "header zeroed");
        assert_names(&file, &intact, &[chunk, page], &format!("{page:?}"));
    }
}

/// A missing region breaks the rule that requires it, unless the bytes at its offset break another.
fn assert_rules(file: &[u8], with_index: bool) {
    for Finding { region, error, .. } in report(&Positional(file), false, 1).unwrap().findings {
        let missed = match region {
            Some(RegionKind::Chunk) if with_index => "R-6.2",
            Some(RegionKind::Chunk) => "R-4.2",
            _ => "R-7.3",
        };
        let rule = error.rule().unwrap();
        assert!(rule.starts_with("R-2.") || rule == missed, "{region:?}, index {with_index}: {error}");
    }
}

/// Zeroes blocks that cover many regions.
#[test]
fn all_samples_of_a_zeroed_block_are_named() {
    let file = written(Profile::Fast, 2, 64, 200);
    let all = regions(&file);
    for with_index in [true, false] {
        let mut intact = file.clone();
        if !with_index {
            let pages = all.iter().filter(|region| region.kind == RegionKind::IndexPage);
            pages.for_each(|page| damage(&mut intact, page, "magic gone"));
        }
        for start in (64..file.len()).step_by(512) {
            let block = start.max(all[0].end)..(start + 4096).min(file.len());
            let mut zeroed = intact.clone();
            zeroed[block.clone()].fill(0);
            let is_hit = |region: &&Region| zeroed[region.header..region.end] != file[region.header..region.end];
            // samples after the last remaining footer cannot be counted
            let footers = all.iter().filter(|region| region.kind == RegionKind::Footer);
            let last_footer = footers.filter(|region| !is_hit(region)).map(|region| region.header).max().unwrap_or(0);
            let hit: Vec<&Region> =
                all.iter().filter(|region| region.kind == RegionKind::Chunk).filter(is_hit).collect();
            if hit.iter().all(|region| region.header < last_footer) {
                assert_names(&zeroed, &file, &hit, &format!("{block:?} zeroed, index {with_index}"));
                let mut pages = all.iter().filter(|region| region.kind == RegionKind::IndexPage);
                if !with_index || !pages.any(|page| is_hit(&page)) {
                    assert_rules(&zeroed, with_index);
                }
            }
        }
    }
}
