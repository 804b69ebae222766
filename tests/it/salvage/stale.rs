//! Mixtures of two files of the same schema and options, which have the same file id: the result of
//! a lost write, an interrupted copy or a partial restore.
//!
//! Every region of such a file has a correct checksum, so checksums prove nothing here. Only index
//! and footers can vouch for a chunk, and without them nothing is confirmed. No value may be wrong
//! silently: all confirmed samples are of one file, and the others are reported as lost or
//! unconfirmed.

use super::nested::{Lists, several_columns};
use super::salvage_file;
use crate::common::damage::{chunks, regions};
use crate::common::files::FilePlan;
use crate::common::plan::{WritePlan, profiles, write_to};
use crate::common::{Table, config};
use crate::nested::model::{Entry, entry_of};
use crate::support::build::seal;
use crate::support::intact::assert_intact;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use tensilo::salvage::{LostSamples, RewriteOptions, SalvageOptions, Salvaged, UNCONFIRMED, salvage};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnBatch, ColumnSchema, DType, Profile, Reader, Result, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_testing::Random;

/// The samples of each column as text; `None` where reading fails.
type Samples = Vec<Vec<Option<String>>>;

fn samples_of(reader: &Reader) -> Samples {
    let columns = reader.columns().map(|column| {
        let is_nested = !column.schema().levels.is_empty();
        let mut cursor = column.cursor();
        let mut read = |i| -> Result<String> {
            Ok(match is_nested {
                true => format!("{:?}", entry_of(cursor.read_list(i)?)),
                false => {
                    let sample = cursor.read(i)?;
                    format!("{} {:?} {:?}", sample.is_null(), sample.extents(), sample.bytes())
                }
            })
        };
        (0..column.sample_count()).map(|i| read(i).ok()).collect()
    });
    columns.collect()
}

/// A file, and an older one of the same schema and options.
struct Twins {
    new: Vec<u8>,
    old: Vec<u8>,
    new_samples: Samples,
    old_samples: Samples,
}

impl fmt::Debug for Twins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reader = Reader::from_bytes(self.new.clone()).expect("an intact file");
        write!(f, "{} bytes, {} bytes, {:?}", self.new.len(), self.old.len(), reader.schema())
    }
}

impl Twins {
    fn new(new: Vec<u8>, old: Vec<u8>) -> Self {
        let [new_reader, old_reader] = [&new, &old].map(|file| Reader::from_bytes(file.clone()).expect("a file"));
        assert_eq!(new_reader.file_id(), old_reader.file_id());
        let (new_samples, old_samples) = (samples_of(&new_reader), samples_of(&old_reader));
        Self { new, old, new_samples, old_samples }
    }

    /// Returns the new file with old regions of these kinds, wherever an old region has the same
    /// offset, fits, and `is_old` says so.
    fn with_old_regions(&self, magics: &[&[u8; 4]], mut is_old: impl FnMut() -> bool) -> Vec<u8> {
        let mut mixed = self.new.clone();
        let starts: Vec<usize> = regions(&self.new, &ALL).iter().map(|region| region.start).collect();
        let old_regions: HashMap<usize, Range<usize>> =
            regions(&self.old, magics).into_iter().map(|region| (region.start, region)).collect();
        for start in regions(&self.new, magics).into_iter().map(|region| region.start) {
            let end = starts.iter().copied().find(|&next| next > start).unwrap_or(mixed.len());
            if let Some(old) = old_regions.get(&start).filter(|old| old.end <= end)
                && is_old()
            {
                mixed[old.clone()].copy_from_slice(&self.old[old.clone()]);
            }
        }
        mixed
    }

    /// Returns the new file up to an offset, and the old one from there on.
    fn interrupted(&self, copied: usize) -> Vec<u8> {
        let mut mixed = self.new[..copied.min(self.new.len())].to_vec();
        mixed.extend(self.old.iter().skip(mixed.len()));
        mixed
    }

    /// Returns a mixture of sectors of the new file and the old one.
    fn sectors(&self, bytes: usize, mut is_old: impl FnMut() -> bool) -> Vec<u8> {
        let mut mixed = self.new.clone();
        mixed.resize(self.new.len().max(self.old.len()), 0);
        for start in (0..mixed.len()).step_by(bytes) {
            if is_old() {
                let end = (start + bytes).min(mixed.len());
                let old = self.old.get(start..).unwrap_or(&[]);
                let old = &old[..old.len().min(end - start)];
                mixed[start..start + old.len()].copy_from_slice(old);
                mixed[start + old.len()..end].fill(0);
            }
        }
        mixed
    }

    /// Checks that all confirmed samples of a mixture are of one file, and that a new file of the
    /// remaining samples says which are not confirmed.
    fn check(&self, mixed: &[u8], decode: bool) {
        let Ok(salvaged) = salvage(InMemory(mixed.to_vec()), SalvageOptions::new().deep(decode)) else { return };
        let found = checked_samples(&salvaged);
        let differs = |expected: &Samples| {
            let columns = found.iter().zip(expected).zip(&salvaged.unconfirmed.columns);
            columns.into_iter().any(|((found, expected), (_, unconfirmed))| {
                (0..).zip(found).any(|(i, found): (usize, _)| {
                    let is_confirmed = !unconfirmed.contains(i as u64);
                    is_confirmed && found.is_some() && found.as_ref() != expected.get(i).and_then(Option::as_ref)
                })
            })
        };
        let is_of_one = !differs(&self.new_samples) || !differs(&self.old_samples);
        assert!(is_of_one, "confirmed samples are of two files: {:?}", salvaged.unconfirmed);
        check_rewritten(&salvaged, &found);
    }
}

const ALL: [&[u8; 4]; 6] = [b"\x89TSL", b"TSLC", b"TSLT", b"TSLI", b"TSLF", b"TSLE"];

/// Returns the remaining samples. Checks that exactly the lost ones cannot be read.
fn checked_samples(salvaged: &Salvaged) -> Samples {
    let samples = samples_of(&salvaged.reader);
    let facts = salvaged.losses.columns.iter().zip(&salvaged.unconfirmed.columns);
    for (samples, ((name, lost), (same_name, unconfirmed))) in samples.iter().zip(facts) {
        assert_eq!(name, same_name);
        for (i, sample) in (0..).zip(samples) {
            assert_eq!(sample.is_none(), lost.contains(i), "sample {i} of {name:?}");
            assert!(!(lost.contains(i) && unconfirmed.contains(i)), "sample {i} of {name:?}");
        }
    }
    samples
}

/// Writes the remaining samples, and checks that the metadata names those that are not confirmed.
fn check_rewritten(salvaged: &Salvaged, found: &Samples) {
    for drop_lost in [false, true] {
        let options = RewriteOptions::new().drop_lost(drop_lost);
        let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), options).expect("memory").sink.0;
        assert_intact(&InMemory(&written));
        let reader = Reader::from_bytes(written).expect("a whole file");
        let lost = if drop_lost { salvaged.losses.of_all() } else { LostSamples::default() };
        let left: Vec<u64> = (0..salvaged.reader.sample_count()).filter(|i| !lost.contains(*i)).collect();
        assert_eq!(reader.sample_count(), left.len() as u64);
        let columns = samples_of(&reader).into_iter().zip(found).zip(&salvaged.unconfirmed.columns);
        for (((samples, found), (_, unconfirmed)), column) in columns.zip(&reader.schema().columns) {
            let text = column.metadata.get(UNCONFIRMED).map_or("", String::as_str);
            let ranges: Vec<Range<u64>> = text
                .split(", ")
                .filter_map(|range| range.split_once(".."))
                .map(|(start, end)| start.parse().expect("a number")..end.parse().expect("a number"))
                .collect();
            for ((number, sample), &i) in (0..).zip(samples).zip(&left) {
                assert_eq!(ranges.iter().any(|range| range.contains(&number)), unconfirmed.contains(i), "{text}");
                if let Some(found) = &found[i as usize] {
                    assert_eq!(sample.as_ref(), Some(found));
                }
            }
        }
    }
}

/// Returns the same samples in another order; each null and each shape stays in position.
fn reordered(table: &Table) -> Table {
    let mut other = table.clone();
    for samples in &mut other.columns {
        let mut of_shape: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        for (i, sample) in samples.iter().enumerate() {
            if let Some(value) = sample {
                of_shape.entry(value.extents.clone()).or_default().push(i);
            }
        }
        let before = samples.clone();
        for positions in of_shape.into_values() {
            positions.iter().zip(positions.iter().rev()).for_each(|(&to, &from)| samples[to] = before[from].clone());
        }
    }
    other
}

fn flat_twins(seed: u64) -> Twins {
    let random = &mut Random(seed);
    let plan = FilePlan::arbitrary(random);
    let (table, new) = plan.write("");
    let old = match random.below(3) {
        0 => plan.twin().write("").1,
        1 => {
            let longer = FilePlan { samples: 1 + random.below(400) as usize, ..plan.twin() };
            longer.write("").1
        }
        _ => file_of(&reordered(&table), &plan.write),
    };
    Twins::new(new, old)
}

fn file_of(table: &Table, plan: &WritePlan) -> Vec<u8> {
    write_to(Stream(Vec::new()), table, plan, &plan.options()).expect("a valid table").sink.0
}

/// Returns lists of other values and of the same lengths.
fn with_other_values(lists: &Lists) -> Lists {
    fn change(entry: &Entry) -> Entry {
        match entry {
            Entry::Null => Entry::Null,
            Entry::List(entries) => Entry::List(entries.iter().map(change).collect()),
            Entry::Item { extents, bytes } => {
                Entry::Item { extents: extents.clone(), bytes: bytes.iter().map(|byte| byte ^ 1 | 0x60).collect() }
            }
        }
    }
    let samples = lists.samples.iter().map(|samples| samples.iter().map(change).collect());
    Lists { plans: lists.plans.clone(), samples: samples.collect() }
}

fn twins() -> impl Strategy<Value = Twins> {
    let nested = (several_columns(), prop::sample::select(profiles()), 20..400_usize).prop_map(
        |(lists, profile, chunk_bytes)| {
            let options = WriterOptions::new().profile(profile).chunk_bytes(chunk_bytes);
            Twins::new(lists.write(&options), with_other_values(&lists).write(&options))
        },
    );
    prop_oneof![3 => any::<u64>().prop_map(flat_twins), 1 => nested]
}

proptest! {
    #![proptest_config(config(40))]

    /// Index and footers are intact: each sample is correct or lost, and none is unconfirmed. A
    /// chunk that is still present is not lost.
    #[test]
    fn no_chunk_of_a_twin_is_taken_for_one_of_the_file(
        twins in twins(), seed in any::<u64>(), decode in any::<bool>()
    ) {
        let random = &mut Random(seed);
        let rarely = random.below(2) + 1;
        let mixed = twins.with_old_regions(&[b"TSLC", b"TSLT"], || random.below(1 + rarely) == 0);
        let salvaged = salvage(InMemory(mixed.clone()), SalvageOptions::new().deep(decode)).expect("a schema");
        let found = checked_samples(&salvaged);
        prop_assert!(salvaged.unconfirmed.is_empty() && salvaged.end_is_known);
        for (found, expected) in found.iter().zip(&twins.new_samples) {
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                prop_assert!(found.is_none() || found == expected);
            }
        }
        if !mixed.windows(4).any(|bytes| bytes == b"TSLT") {
            for location in chunks(&twins.new) {
                if mixed[location.bytes.clone()] == twins.new[location.bytes.clone()] {
                    prop_assert!(!salvaged.losses.columns[location.column].1.touches(&location.samples));
                }
            }
        }
        check_rewritten(&salvaged, &found);
    }

    /// Index and footers are erased: each sample that can be read is unconfirmed.
    #[test]
    fn without_index_and_footers_nothing_is_confirmed(
        twins in twins(), seed in any::<u64>(), keeps_pages in any::<bool>()
    ) {
        let random = &mut Random(seed);
        let mut mixed = twins.with_old_regions(&[b"TSLC", b"TSLT"], || random.below(2) == 0);
        let pages: &[&[u8; 4]] = if keeps_pages { &[] } else { &[b"TSLI"] };
        regions(&mixed, pages).into_iter().for_each(|region| mixed[region].fill(0));
        regions(&mixed, &[b"TSLF"]).into_iter().for_each(|region| mixed[region].fill(0));
        let salvaged = salvage_file(&mixed);
        let found = checked_samples(&salvaged);
        for (samples, (_, unconfirmed)) in found.iter().zip(&salvaged.unconfirmed.columns) {
            for (i, sample) in (0..).zip(samples) {
                prop_assert_eq!(sample.is_some(), unconfirmed.contains(i));
            }
        }
        check_rewritten(&salvaged, &found);
    }

    /// Everything may be stale, including index, footers, trailers and header.
    #[test]
    fn confirmed_samples_of_a_mixture_are_of_one_file(
        twins in twins(), seed in any::<u64>(), copied in any::<prop::sample::Index>(), decode in any::<bool>()
    ) {
        let random = &mut Random(seed);
        twins.check(&twins.with_old_regions(&ALL, || random.below(2) == 0), decode);
        twins.check(&twins.interrupted(copied.index(twins.new.len())), decode);
        for bytes in [64, 512, 4096] {
            let often = 2 + random.below(4);
            twins.check(&twins.sectors(bytes, || random.below(often) == 0), decode);
        }
    }
}

/// Returns a file of 256 samples `i * k`, in chunks of 64.
fn multiples(k: f32) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::F32, Shape::fixed(&[256]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
    (0..256).for_each(|i| writer.push(&[Value::tensor(&[i as f32 * k; 256])]).expect("a sample"));
    writer.into_bytes().expect("a file")
}

/// Returns the new file with the second chunk of the old one.
fn with_stale_chunk() -> Vec<u8> {
    let (old, mut new) = (multiples(1.0), multiples(2.0));
    let location = chunks(&new)[1].bytes.clone();
    new[location.clone()].copy_from_slice(&old[location]);
    new
}

fn lost(salvaged: &Salvaged) -> Vec<(u64, u64)> {
    ranges(&salvaged.losses.of_all())
}

fn unconfirmed(salvaged: &Salvaged) -> Vec<(u64, u64)> {
    ranges(&salvaged.unconfirmed.of_all())
}

fn ranges(samples: &LostSamples) -> Vec<(u64, u64)> {
    samples.ranges().iter().map(|range| (range.start, range.end)).collect()
}

#[test]
fn a_stale_chunk_of_an_older_file_is_lost() {
    let file = with_stale_chunk();
    let salvaged = salvage_file(&file);
    assert_eq!((lost(&salvaged), unconfirmed(&salvaged)), (vec![(64, 128)], vec![]));
    let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), RewriteOptions::new());
    let reader = Reader::from_bytes(written.expect("memory").sink.0).expect("a file");
    let mut cursor = reader.column("x").expect("a column").cursor();
    assert!((64..128).all(|i| cursor.read(i).expect("a sample").is_null()));
    assert_eq!(cursor.read(63).expect("a sample").as_slice::<f32>().expect("numbers")[0], 126.0);
}

/// The footer confirms the index that follows from the headers of the chunks, unless one of them is
/// stale.
#[test]
fn a_damaged_index_is_restored_from_the_chunks() {
    let erased = |mut file: Vec<u8>| {
        regions(&file, &[b"TSLI"]).into_iter().for_each(|region| file[region].fill(0));
        salvage_file(&file)
    };
    let salvaged = erased(multiples(2.0));
    assert_eq!((lost(&salvaged), unconfirmed(&salvaged)), (vec![], vec![]));
    let salvaged = erased(with_stale_chunk()); // its neighbors contradict it
    assert_eq!((lost(&salvaged), unconfirmed(&salvaged)), (vec![(64, 128)], vec![(0, 64), (128, 256)]));
    // a page of the old file
    let (old, mut new) = (multiples(1.0), multiples(2.0));
    let page = regions(&new, &[b"TSLI"])[0].clone();
    new[page.clone()].copy_from_slice(&old[page]);
    let salvaged = salvage_file(&new);
    assert_eq!((lost(&salvaged), unconfirmed(&salvaged)), (vec![], vec![]));
}

/// No commit confirms chunks after the last one. The commit confirms those before it.
#[test]
fn chunks_after_the_last_commit_are_unconfirmed() {
    let file = super::numbers(10, 5, 1);
    let trailers = regions(&file, &[b"TSLE"]);
    let last_page = regions(&file, &[b"TSLI"])[1].start;
    assert!(trailers[0].end < last_page);
    let salvaged = salvage_file(&file[..last_page]);
    assert_eq!((lost(&salvaged), unconfirmed(&salvaged)), (vec![], vec![(5, 10)]));
    assert_eq!((salvaged.committed_samples, salvaged.end_is_known), (Some(5), false));
    let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), RewriteOptions::new());
    let once = written.expect("memory").sink.0;
    let metadata = |file: &[u8]| {
        let reader = Reader::from_bytes(file.to_vec()).expect("a file");
        reader.schema().columns[0].metadata.get(UNCONFIRMED).cloned()
    };
    assert_eq!(metadata(&once).as_deref(), Some("5..10"));
    // the new file confirms them, and its metadata stays
    let salvaged = salvage_file(&once);
    assert!(salvaged.unconfirmed.is_empty());
    let written = salvaged.write_to(Stream(Vec::new()), &WriterOptions::new(), RewriteOptions::new());
    assert_eq!(metadata(&written.expect("memory").sink.0).as_deref(), Some("5..10"));
}

/// A short file over a longer one that was not cut off, whose footer is still at the end.
#[test]
fn the_facts_of_a_salvaged_file_are_those_of_its_confirmed_footer() {
    let file = |count: u32, step: f32| {
        let schema = Schema::new([ColumnSchema::tensor("x", DType::Bf16, Shape::scalar()).cast_from(DType::F32)]);
        let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(20);
        let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
        (0..count).for_each(|i| writer.push(&[Value::tensor(&[i as f32 * step])]).expect("a sample"));
        writer.into_bytes().expect("a file")
    };
    let (new, old) = (file(100, 0.1), file(150, 0.7));
    let salvaged = salvage_file(&[&new[..], &old[new.len()..]].concat());
    let expected = Reader::from_bytes(new).expect("a file");
    let cast = |reader: &Reader| reader.column("x").expect("a column").facts().cast.expect("a cast");
    assert_ne!(cast(&expected), cast(&Reader::from_bytes(old).expect("a file")));
    assert_eq!(cast(&salvaged.reader), cast(&expected));
    assert_eq!(salvaged.reader.content_id(), expected.content_id());
    assert_eq!(salvaged.committed_samples, Some(150), "the stale footer is found");
}

/// A commit adds one run to a column. Two are not confirmed, even if the content id is correct.
#[test]
fn two_runs_of_a_column_in_one_commit_are_not_confirmed() {
    let file = super::numbers(200, u64::MAX, 1);
    let [pages @ .., footer, trailer] = &regions(&file, &[b"TSLI", b"TSLF", b"TSLE"])[..] else { panic!("no end") };
    assert_eq!(pages.len(), 2);
    let [first, second] = [126, 74_u64].map(u64::to_le_bytes);
    let (page, one) = ((pages[1].start as u64).to_le_bytes(), 1_u64.to_le_bytes());
    // the run is last, after facts and one encoding
    let (before, run) = file[footer.start + 80..footer.end].split_at(footer.len() - 80 - 40);
    let mut before = before.to_vec();
    let run_count = before.len() - 16 - 8;
    assert_eq!(before[run_count..run_count + 6], [1, 0, 0, 0, 1, 0]);
    before[run_count] = 2;
    let runs = [&run[..8], &[0; 8], &first, &first, &one, &page, &first, &second, &second, &one].concat();
    let rest = [before, runs].concat();
    let of_pages: Vec<u8> = pages.iter().flat_map(|page| file[page.start + 64..page.end].to_vec()).collect();
    let content_id = Sha256::digest([&[0; 16][..], &of_pages, &rest].concat());
    let mut split = [&file[..footer.start + 64], &content_id[..16], &rest].concat();
    split[footer.start + 44..footer.start + 48].copy_from_slice(&(16 + rest.len() as u32).to_le_bytes());
    seal(&mut split, footer.start);
    split.resize(split.len().next_multiple_of(64), 0);
    let at = split.len();
    split.extend(&file[trailer.clone()]);
    split[at + 24..at + 32].copy_from_slice(&(at as u64).to_le_bytes());
    seal(&mut split, at);
    assert_eq!(Reader::from_bytes(split.clone()).expect("a file").sample_count(), 200);
    assert_eq!(unconfirmed(&salvage_file(&file)), []);
    assert_eq!(unconfirmed(&salvage_file(&split)), [(0, 200)]);
}

/// A content id known from elsewhere decides which of two files it is, or that it is neither.
#[test]
fn a_known_content_id_decides_what_is_confirmed() {
    let (old, new) = (multiples(1.0), multiples(2.0));
    let of = |file: &[u8]| Reader::from_bytes(file.to_vec()).expect("a file").content_id();
    let salvaged =
        |file: &[u8], id| salvage(InMemory(file.to_vec()), SalvageOptions::new().content_id(id)).expect("a schema");
    let stale = with_stale_chunk();
    assert_eq!(lost(&salvaged(&stale, of(&new))), [(64, 128)]);
    assert_eq!(unconfirmed(&salvaged(&stale, of(&new))), []);
    assert_eq!(unconfirmed(&salvaged(&stale, of(&old))), [(0, 64), (128, 256)]);
}

/// The header is new; the block index and some blocks are old. The checksums of the blocks are
/// correct.
#[test]
fn a_block_index_of_another_chunk_proves_nothing() {
    let file = |salt: u64| {
        let values: Vec<u32> = (0..64 * 256).map(|i| tensilo_testing::mix(salt, i) as u32).collect();
        let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[256]))]);
        let options = WriterOptions::new().profile(Profile::Raw);
        let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
        writer.push_batch(&[ColumnBatch::fixed(64, &values)]).expect("samples");
        writer.into_bytes().expect("a file")
    };
    let (old, mut new) = (file(1), file(2));
    let location = chunks(&new)[0].bytes.clone();
    let stale = location.start + 64..location.start + 30_000;
    new[stale.clone()].copy_from_slice(&old[stale]);
    for decode in [false, true] {
        let salvaged = salvage(InMemory(new.clone()), SalvageOptions::new().deep(decode)).expect("a schema");
        assert_eq!(lost(&salvaged), [(0, 64)]);
        let report = verify(&InMemory(&new), VerifyOptions::new().deep(decode)).expect("memory can be read");
        let found: Vec<_> =
            report.findings.iter().map(|damage| (damage.samples.clone(), damage.error.rule())).collect();
        assert_eq!(found, [(Some(0..64), Some("R-2.6"))]);
    }
}

/// A stale table has a correct checksum, but not the one in the footer.
#[cfg(feature = "zstd")]
#[test]
fn chunks_of_a_stale_table_are_lost() {
    use tensilo::Verification;

    let text =
        |i: u32| format!("{{\"id\": {i}, \"kind\": \"sample\", \"split\": \"train\", \"score\": {}}}", i * 7 % 1000);
    let options = WriterOptions::new().profile(Profile::Small);
    let mut writer =
        Writer::new(Stream(Vec::new()), Schema::new([ColumnSchema::utf8("x")]), &options).expect("a writer");
    (0..40_000).for_each(|i| writer.push(&[Value::text(&text(i))]).expect("a sample"));
    let mut file = writer.into_bytes().expect("a file");
    let table = regions(&file, &[b"TSLT"]).first().expect("a table").clone();
    let end = table.end - 64..table.end;
    file[end].reverse();
    seal(&mut file, table.start);
    for verification in [Verification::FirstTouch, Verification::Never] {
        let salvaged = salvage(InMemory(file.clone()), SalvageOptions::new().verification(verification)).expect("one");
        let found = checked_samples(&salvaged);
        assert!(salvaged.losses.of_all().count() > 0 && salvaged.unconfirmed.is_empty());
        for (i, sample) in (0..).zip(&found[0]) {
            let expected = text(i);
            assert!(
                sample
                    .as_ref()
                    .is_none_or(|found| *found == format!("false {:?} {:?}", [expected.len()], expected.as_bytes()))
            );
        }
    }
}
