//! Damaged blocks and chunks of arbitrary files.

use super::{check_reads, is_long, is_noticed, read_all};
use crate::common::damage::{Damage, chunks};
use crate::common::files::FilePlan;
use tensilo::Reader;
use tensilo::facts::FileId;
use tensilo_testing::Random;

/// Returns how many files are damaged in each way.
fn file_count() -> u64 {
    if is_long() { 3000 } else { 150 }
}

fn id(file: &[u8]) -> tensilo::Result<FileId> {
    Reader::from_bytes(file.to_vec()).map(|reader| reader.file_id())
}

#[test]
fn every_kind_of_damage_is_noticed() {
    println!("{:<16}{:>8}{:>9}{:>14}{:>12}{:>12}", "damage", "files", "noticed", "samples right", "refused", "wrong");
    for damage in Damage::ALL {
        let (mut changed, mut right, mut refused) = (0, 0, 0);
        for seed in 0..file_count() {
            let random = &mut Random(seed);
            let (_, intact) = FilePlan::arbitrary(random).write("");
            let (_, foreign) = FilePlan::arbitrary(random).write("foreign");
            let mut damaged = intact.clone();
            damage.apply(&mut damaged, &foreign, random);
            // the damage may replace zeros by zeros, or a small file by another one as a whole
            if damaged == intact || id(&damaged).is_ok_and(|found| found != id(&intact).unwrap()) {
                continue;
            }
            assert!(is_noticed(&damaged), "{damage:?} of file {seed} was not noticed");
            let reads = check_reads(&damaged, &read_all(&intact), &format!("{damage:?} of file {seed}"));
            changed += 1;
            right += reads.right;
            refused += reads.refused;
        }
        let name = format!("{damage:?}");
        println!("{name:<16}{changed:>8}{changed:>9}{right:>14}{refused:>12}{:>12}", 0);
        assert!(changed > file_count() / 4, "{damage:?} damages almost nothing");
    }
}

/// Two files have the same id if their schemas and options are equal and the caller gives no
/// origin. A chunk of the other file has a correct checksum, but not the one in the index.
#[test]
fn a_chunk_of_a_twin_is_noticed() {
    let mut replaced = 0;
    for seed in 0..file_count() {
        let plan = FilePlan::arbitrary(&mut Random(seed));
        let (_, intact) = plan.write("");
        let (_, twin) = plan.twin().write("");
        let samples = read_all(&intact);
        let of_twin = chunks(&twin);
        for location in chunks(&intact) {
            let fits = of_twin.iter().any(|other| (other.column, &other.bytes) == (location.column, &location.bytes));
            if fits && intact[location.bytes.clone()] != twin[location.bytes.clone()] {
                let mut damaged = intact.clone();
                damaged[location.bytes.clone()].copy_from_slice(&twin[location.bytes.clone()]);
                assert!(is_noticed(&damaged), "file {seed}: {location:?} of a twin was not noticed");
                check_reads(&damaged, &samples, &format!("file {seed}, {location:?} of a twin"));
                replaced += 1;
            }
        }
    }
    println!("{replaced} chunks replaced by chunks of a twin: all noticed");
    assert!(replaced > file_count());
}
