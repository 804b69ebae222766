//! Files that are read by io_uring give the bytes that others give, whatever happens meanwhile.

use proptest::prelude::*;
use std::fs;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tensilo::source::Source;
use tensilo::stages::Fragment;
use tensilo_data::{PageCache, UringFile};
use tensilo_testing::{Folder, Random};

/// Opens a file; `None` if its file system has no direct reads.
fn open(path: &Path, page_cache: PageCache) -> Option<UringFile> {
    match UringFile::open(path, page_cache) {
        Err(error) if page_cache == PageCache::Passed => {
            println!("not tested: {error}");
            None
        }
        file => Some(file.expect("a file")),
    }
}

/// Reads ranges, and stops after some.
fn read(file: &UringFile, ranges: &[Range<u64>], most: usize) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    let mut arrived = |fragment: Fragment<'_>| {
        assert_eq!(fragment.offset, 0);
        found.push((fragment.range, fragment.bytes.to_vec()));
        if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    file.read_ranges(ranges, &mut Vec::new(), &mut arrived).expect("a file");
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn ranges_are_those_of_the_file(
        length in 1..300_000_usize,
        seed in any::<u64>(),
        count in 0..300_usize,
        most in prop::sample::select(vec![1, 7, 1000]),
        page_cache in prop::sample::select(vec![PageCache::Used, PageCache::Passed]),
    ) {
        let folder = Folder::new();
        let random = &mut Random(seed);
        let bytes = random.bytes(length);
        let path = folder.file("a", &bytes);
        let Some(file) = open(&path, page_cache) else { return Ok(()) };
        let ranges: Vec<Range<u64>> = (0..count).map(|_| {
            let start = random.below(length as u64);
            let longest = (length as u64 - start).min(if random.one_in(10) { u64::MAX } else { 9000 });
            start..start + 1 + random.below(longest)
        }).collect();
        let mut found = read(&file, &ranges, most);
        prop_assert_eq!(found.len(), count.min(most));
        found.sort_unstable();
        found.dedup_by_key(|(number, _)| *number);
        prop_assert_eq!(found.len(), count.min(most), "each once");
        for (number, found) in found {
            let range = &ranges[number];
            prop_assert!(found == bytes[range.start as usize..range.end as usize], "range {:?}", range);
        }
    }
}

#[test]
fn a_panic_while_reads_are_in_flight_leaves_nothing_behind() {
    let folder = Folder::new();
    let bytes = Random(7).bytes(1 << 20);
    let file = UringFile::open(folder.file("a", &bytes), PageCache::Used).unwrap();
    let ranges: Vec<Range<u64>> = (0..100).map(|i| i * 10_000..i * 10_000 + 10_000).collect();
    for _ in 0..20 {
        let mut panicking = |_: Fragment<'_>| panic!("the test panics");
        let read = || file.read_ranges(&ranges, &mut Vec::new(), &mut panicking);
        assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
        let found = self::read(&file, &ranges, usize::MAX);
        assert!(found.iter().all(|(number, found)| *found == bytes[number * 10_000..][..10_000]));
        assert_eq!(found.len(), 100);
    }
}

#[test]
fn a_file_that_became_shorter_is_an_error_with_its_range() {
    let folder = Folder::new();
    let path = folder.file("a", Random(7).bytes(100_000));
    for page_cache in [PageCache::Used, PageCache::Passed] {
        fs::write(&path, Random(7).bytes(100_000)).unwrap();
        let Some(file) = open(&path, page_cache) else { continue };
        fs::File::options().write(true).open(&path).unwrap().set_len(50_000).unwrap();
        let ranges = [10..20, 49_990..50_010];
        let mut arrived = 0;
        let mut count = |_: Fragment<'_>| {
            arrived += 1;
            ControlFlow::Continue(())
        };
        let error = file.read_ranges(&ranges, &mut Vec::new(), &mut count).expect_err("too short");
        assert_eq!((error.range, error.error.kind()), (1, std::io::ErrorKind::UnexpectedEof));
    }
}
