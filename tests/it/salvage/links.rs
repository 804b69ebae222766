//! Foreign chunks: chunks of a twin, a file of the same schema, options and layout, replace chunks
//! of the file at the same offsets. Only the chain of headers exposes them where index and
//! footers cannot.
//!
//! Every subset of the chunks is replaced, under every kind of damage to index and footers. No
//! foreign value is returned without a report, and the damage costs no more chunks than it must.

use super::salvage_file;
use crate::common::damage::{chunks, regions};
use std::ops::Range;
use tensilo::salvage::Salvaged;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{FileState, VerifyOptions, verify};
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

/// The chunks of a file, and the samples of each.
const CHUNKS: usize = 6;
const SAMPLES: u64 = 4;

/// Writes chunks whose values combine `salts[chunk]` and the number of the sample, with commits
/// after these numbers of chunks.
fn file_of(salts: &[u32], commits: &[usize]) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U32, Shape::fixed(&[8]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(32 * SAMPLES as usize);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).expect("a writer");
    for (chunk, salt) in (0..).zip(salts) {
        for sample in 0..SAMPLES {
            writer.push(&[Value::tensor(&[value(*salt, chunk * SAMPLES + sample); 8])]).expect("a sample");
        }
        if commits.contains(&(chunk as usize + 1)) {
            writer.commit().expect("memory");
        }
    }
    writer.into_bytes().expect("a file")
}

fn value(salt: u32, sample: u64) -> u32 {
    salt << 16 | sample as u32
}

/// The state of index and footers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    Intact,
    /// A bit of each page's body is flipped. The headers are intact, so the chain reaches the end.
    Flipped,
    PagesErased,
    AllErased,
    CutOff,
}

impl Index {
    const ALL: [Self; 5] = [Self::Intact, Self::Flipped, Self::PagesErased, Self::AllErased, Self::CutOff];

    fn damage(self, file: &mut Vec<u8>) {
        let pages = regions(file, &[b"TSLI"]);
        match self {
            Self::Intact => {}
            Self::Flipped => pages.iter().for_each(|page| file[page.start + 64] ^= 1),
            Self::PagesErased => pages.into_iter().for_each(|page| file[page].fill(0)),
            Self::AllErased => {
                regions(file, &[b"TSLI", b"TSLF", b"TSLE"]).into_iter().for_each(|region| file[region].fill(0));
            }
            Self::CutOff => file.truncate(pages[0].start),
        }
    }

    /// Returns whether the end of the file is linked to its last chunk.
    fn is_linked(self) -> bool {
        matches!(self, Self::Intact | Self::Flipped)
    }
}

/// Whether the samples of a chunk are lost, unconfirmed, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Confirmed,
    Unconfirmed,
    Lost,
}

/// Checks each remaining sample, and returns the fate of each chunk.
fn fates(salvaged: &Salvaged, salts: &[u32], context: &str) -> Vec<Fate> {
    let (lost, unconfirmed) = (salvaged.losses.of_all(), salvaged.unconfirmed.of_all());
    let mut cursor = salvaged.reader.column("x").expect("a column").cursor();
    let mut fate = |i: u64, salt: u32| match cursor.read(i) {
        Ok(sample) => {
            assert!(!lost.contains(i), "{context}, sample {i}");
            assert_eq!(sample.as_slice::<u32>().expect("numbers")[0], value(salt, i), "{context}, sample {i}");
            if unconfirmed.contains(i) { Fate::Unconfirmed } else { Fate::Confirmed }
        }
        Err(error) => {
            assert!(lost.contains(i) || i >= salvaged.reader.sample_count(), "{context}, sample {i}: {error}");
            Fate::Lost
        }
    };
    let chunk = |(chunk, salt): (u64, &u32)| {
        let of_samples: Vec<Fate> = (chunk * SAMPLES..(chunk + 1) * SAMPLES).map(|i| fate(i, *salt)).collect();
        assert!(of_samples.iter().all(|fate| *fate == of_samples[0]), "{context}: {of_samples:?}");
        of_samples[0]
    };
    (0..).zip(salts).map(chunk).collect()
}

/// Returns the maximal runs of chunks of one file, each with whether it belongs to the twin.
fn runs(is_foreign: &[bool]) -> Vec<(Range<usize>, bool)> {
    let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
    for (i, foreign) in is_foreign.iter().enumerate() {
        match runs.last_mut() {
            Some((run, of)) if of == foreign => run.end = i + 1,
            _ => runs.push((i..i + 1, *foreign)),
        }
    }
    runs
}

/// Replaces every set of chunks from `common` on with chunks of a twin. Both files are equal
/// before.
fn check_all_sets(common: usize) {
    let own = [1; CHUNKS];
    let twin: Vec<u32> = (0..CHUNKS).map(|chunk| if chunk < common { 1 } else { 2 }).collect();
    let (file, other) = (file_of(&own, &[]), file_of(&twin, &[]));
    assert_eq!(file.len(), other.len());
    let locations = chunks(&file);
    for set in 1..1_u32 << (CHUNKS - common) {
        let is_foreign: Vec<bool> = (0..CHUNKS).map(|i| i >= common && set >> (i - common) & 1 == 1).collect();
        let mut mixed = file.clone();
        for (location, _) in locations.iter().zip(&is_foreign).filter(|(_, foreign)| **foreign) {
            mixed[location.bytes.clone()].copy_from_slice(&other[location.bytes.clone()]);
        }
        let salts: Vec<u32> = is_foreign.iter().map(|foreign| if *foreign { 2 } else { 1 }).collect();
        for index in Index::ALL {
            let mut damaged = mixed.clone();
            index.damage(&mut damaged);
            check(&damaged, index, &is_foreign, &salts, common);
        }
    }
}

fn check(file: &[u8], index: Index, is_foreign: &[bool], salts: &[u32], common: usize) {
    let context = format!("{index:?}, {is_foreign:?}, {common} in common");
    let report = verify(&InMemory(file), VerifyOptions::new()).expect("memory can be read");
    assert_eq!(report.state(), FileState::Damaged, "{context}");
    let has_break = index.is_linked() || is_foreign[common..].contains(&false);
    let is_named = report.findings.iter().any(|damage| damage.error.rule() == Some("R-2.10"));
    assert!(is_named == has_break, "{context}: {:?}", report.findings);
    if let Ok(reader) = Reader::from_bytes(file.to_vec()) {
        let mut cursor = reader.column("x").expect("a column").cursor();
        for i in 0..reader.sample_count() {
            let found = cursor.read(i).map(|sample| sample.as_slice::<u32>().expect("numbers")[0]);
            assert!(found.is_err() || found.as_ref().is_ok_and(|found| *found == value(1, i)), "{context}, {i}");
        }
    }
    let fates = fates(&salvage_file(file), salts, &context);
    if index == Index::Intact {
        let expected = is_foreign.iter().map(|foreign| if *foreign { Fate::Lost } else { Fate::Confirmed });
        assert!(expected.eq(fates), "{context}");
        return;
    }
    assert!(!fates.contains(&Fate::Confirmed), "{context}: nothing confirms them");
    let runs = runs(is_foreign);
    // both files have the same header and common chunks
    let follows_break = |run: usize| run > 0 && !(runs[run].1 && runs[run].0.start == common);
    let precedes_break = |run: usize| match run + 1 == runs.len() {
        true => index.is_linked() && runs[run].1,
        false => follows_break(run + 1),
    };
    let is_contradicted = |run: usize| {
        let is_end = run + 1 == runs.len() && index.is_linked() && !runs[run].1;
        follows_break(run) && precedes_break(run) && !is_end
    };
    let lost = |at: usize| fates[at] == Fate::Lost;
    for (number, (run, foreign)) in runs.iter().enumerate() {
        let context = format!("{context}, {run:?}: {fates:?}");
        if is_contradicted(number) {
            assert!(run.clone().all(lost), "{context}");
            continue;
        }
        // a break at a run that is contradicted on both sides accuses no other run
        let before = follows_break(number) && !is_contradicted(number - 1);
        let after = precedes_break(number) && !runs.get(number + 1).is_some_and(|_| is_contradicted(number + 1));
        if *foreign {
            assert!(!before || lost(run.start), "{context}");
            assert!(!after || lost(run.end - 1), "{context}");
        } else {
            let is_linked = number + 1 == runs.len() && index.is_linked();
            let given_up = |at: usize| !is_linked && (at == run.start && before || at == run.end - 1 && after);
            assert!(run.clone().all(|at| lost(at) == given_up(at)), "{context}");
        }
    }
}

#[test]
fn no_chunk_of_a_twin_is_returned_without_a_report() {
    check_all_sets(0);
}

#[test]
fn no_chunk_of_a_twin_with_a_common_start_is_returned_without_a_report() {
    [1, 3, 5].into_iter().for_each(check_all_sets);
}

/// One chunk in the middle, about which header, index and end say nothing.
#[test]
fn only_the_chunk_that_both_neighbors_contradict_is_lost() {
    let (mut file, twin) = (file_of(&[1; CHUNKS], &[]), file_of(&[2; CHUNKS], &[]));
    let locations = chunks(&file);
    let location = locations[2].bytes.clone();
    file[location.clone()].copy_from_slice(&twin[location]);
    let end = regions(&file, &[b"TSLI"])[0].start;
    let without_header = [vec![0; locations[0].bytes.start], file[locations[0].bytes.start..].to_vec()].concat();
    for (damaged, has_index) in [(file[..end].to_vec(), false), (without_header, true)] {
        let salvaged = salvage_file(&damaged);
        let fates = fates(&salvaged, &[1, 1, 2, 1, 1, 1], "one chunk");
        let left = if has_index { Fate::Confirmed } else { Fate::Unconfirmed };
        assert_eq!(fates, [left, left, Fate::Lost, left, left, left]);
    }
}

/// A file was rewritten up to its second commit; the third commit is still from the old file.
#[test]
fn a_commit_of_an_older_file_after_the_end_is_not_an_append() {
    let old = file_of(&[2; CHUNKS], &[2, 4]);
    let new = file_of(&[1; CHUNKS], &[2, 4]);
    let end = regions(&new, &[b"TSLE"])[1].end;
    let mixed = [&new[..end], &old[end..]].concat();
    let salvaged = salvage_file(&mixed);
    let expected = [[Fate::Confirmed; 4].as_slice(), &[Fate::Lost; 2]].concat();
    assert_eq!(fates(&salvaged, &[1; CHUNKS], "an old commit"), expected);
    assert_eq!((salvaged.committed_samples, salvaged.end_is_known), (Some(4 * SAMPLES), false));
    assert_eq!(salvaged.reader.sample_count(), 4 * SAMPLES);
    // its trailer is lost, too: this looks like an uncommitted append, but does not follow the last
    // commit
    let torn = &mixed[..mixed.len() - 64];
    let report = verify(&InMemory(torn), VerifyOptions::new()).expect("memory can be read");
    assert_eq!((report.sample_count, report.state()), (Some(4 * SAMPLES), FileState::Damaged));
    let append = &new[..new.len() - 64];
    let report = verify(&InMemory(append), VerifyOptions::new()).expect("memory can be read");
    assert_eq!((report.sample_count, report.state()), (Some(4 * SAMPLES), FileState::Unfinished));
}

/// The footer before the trailer belongs to a twin: the trailer does not follow it.
#[test]
fn a_footer_of_a_twin_does_not_open() {
    let (mut file, twin) = (file_of(&[1; CHUNKS], &[4]), file_of(&[2; CHUNKS], &[4]));
    let footer = regions(&file, &[b"TSLF"])[1].clone();
    file[footer.clone()].copy_from_slice(&twin[footer]);
    let reader = Reader::from_bytes(file).expect("the first commit");
    assert_eq!((reader.sample_count(), reader.tail_bytes() > 0), (4 * SAMPLES, true));
}
