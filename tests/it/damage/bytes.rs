//! Every single-bit flip, and every truncation.

use super::files::{encodings, for_each_file};
use super::{check_reads, is_long, is_noticed, read_all};
use std::sync::atomic::{AtomicU64, Ordering};
use tensilo::Reader;

/// Returns whether all samples are read after this bit was flipped. A long run reads for every bit,
/// a short run for one bit of each byte, a different one in the next byte. `verify` sees every flip
/// in any run.
fn is_read(bit: usize) -> bool {
    is_long() || bit % 8 == bit / 8 % 8
}

fn has_lists(file: &[u8]) -> bool {
    let reader = Reader::from_bytes(file.to_vec()).unwrap();
    reader.schema().columns.iter().any(|column| !column.levels.is_empty())
}

#[test]
fn every_bit_flip_is_noticed() {
    let counts = [(); 6].map(|()| AtomicU64::new(0));
    for_each_file(|name, file| {
        let intact = read_all(file);
        let mut damaged = file.to_vec();
        for bit in 0..file.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(is_noticed(&damaged), "{name}: flipped bit {bit} was not noticed");
            if is_read(bit) {
                let reads = check_reads(&damaged, &intact, &format!("{name}, bit {bit}"));
                counts[2].fetch_add(reads.right, Ordering::Relaxed);
                counts[3].fetch_add(reads.refused, Ordering::Relaxed);
            }
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        counts[0].fetch_add(1, Ordering::Relaxed);
        let flips = file.len() as u64 * 8;
        counts[1].fetch_add(flips, Ordering::Relaxed);
        counts[4].fetch_add(if has_lists(file) { flips } else { 0 }, Ordering::Relaxed);
        let has_bins = encodings(file).iter().any(|encoding| encoding == "bins in blocks");
        counts[5].fetch_add(if has_bins { flips } else { 0 }, Ordering::Relaxed);
    });
    let [files, flips, right, refused, in_nested, in_bins] = counts.map(AtomicU64::into_inner);
    println!(
        "{flips} single-bit flips over {files} files ({in_nested} of files with nested columns, {in_bins} with \
         bins): all noticed; \
         samples read: {right} right, {refused} refused, 0 wrong"
    );
    assert!(in_bins > 1_000_000);
}

/// A file that is cut off where an earlier writer finished equals the file that this writer
/// finished, so no format can tell them apart (chapter 7.3).
fn is_an_earlier_finish(cut: &[u8]) -> bool {
    Reader::from_bytes(cut.to_vec()).is_ok_and(|reader| reader.is_finished() && reader.tail_bytes() == 0)
}

#[test]
fn every_truncation_is_noticed() {
    let count = AtomicU64::new(0);
    for_each_file(|name, file| {
        let intact = read_all(file);
        let mut earlier = 0;
        for length in 0..file.len() {
            let cut = &file[..length];
            if is_an_earlier_finish(cut) {
                earlier += 1;
            } else {
                assert!(is_noticed(cut), "{name}: cut to {length} bytes was not noticed");
            }
            check_reads(cut, &intact, &format!("{name}, cut to {length}"));
        }
        let appended = usize::from(name.contains("append-after-finish"));
        assert_eq!(earlier, appended, "{name}: only an append after a finish has an earlier finish");
        count.fetch_add(file.len() as u64, Ordering::Relaxed);
    });
    println!("{} truncations: all noticed", count.into_inner());
}
