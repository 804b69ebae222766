//! Files read with io_uring have the same bytes as other files, whatever happens meanwhile.

use proptest::prelude::*;
use std::fs;
use std::ops::Range;
use std::path::Path;
use tensilo::source::{RangeError, ReadMemory, Source};
use tensilo_data::UringFile;
use tensilo_testing::{Folder, Random};

/// Opens a file for direct I/O. Returns `None` if the file system does not support it.
fn open(path: &Path, is_direct: bool) -> Option<UringFile> {
    if !is_direct {
        return Some(UringFile::open(path).expect("a file"));
    }
    UringFile::open_direct(path).inspect_err(|error| println!("not tested: {error}")).ok()
}

/// Reads ranges, and returns their bytes, one after the other.
fn read(file: &UringFile, ranges: &[Range<u64>]) -> Result<Vec<u8>, RangeError> {
    let mut out = vec![0; ranges.iter().map(|range| (range.end - range.start) as usize).sum()];
    file.read_ranges(ranges, &mut out).map(|()| out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn ranges_are_those_of_the_file(
        length in 1..300_000_usize,
        seed in any::<u64>(),
        count in 0..300_usize,
        is_direct in any::<bool>(),
    ) {
        let folder = Folder::new();
        let random = &mut Random(seed);
        let bytes = random.bytes(length);
        let path = folder.file("a", &bytes);
        let Some(file) = open(&path, is_direct) else { return Ok(()) };
        let ranges: Vec<Range<u64>> = (0..count).map(|_| {
            let start = random.below(length as u64);
            let longest = (length as u64 - start).min(if random.one_in(10) { u64::MAX } else { 9000 });
            start..start + 1 + random.below(longest)
        }).collect();
        let expected: Vec<u8> =
            ranges.iter().flat_map(|range| &bytes[range.start as usize..range.end as usize]).copied().collect();
        prop_assert!(read(&file, &ranges).unwrap() == expected);
    }
}

/// Memory that starts at a multiple of a page, or one byte after it.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
    is_aligned: bool,
}

impl ReadMemory for Memory {
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    fn reserve(&mut self, _used: usize, bytes: usize) -> tensilo::Result<()> {
        self.bytes = vec![0xEE; bytes + 2 * 4096];
        self.start = self.bytes.as_ptr().align_offset(4096) + usize::from(!self.is_aligned);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_of_the_caller_gets_the_bytes_of_the_file(
        length in 1..300_000_usize,
        seed in any::<u64>(),
        count in 0..200_usize,
        is_direct in any::<bool>(),
        is_aligned in any::<bool>(),
        has_room in any::<bool>(),
    ) {
        let folder = Folder::new();
        let random = &mut Random(seed);
        let bytes = random.bytes(length);
        let path = folder.file("a", &bytes);
        let Some(file) = open(&path, is_direct) else { return Ok(()) };
        let alignment = file.alignment().unwrap();
        prop_assert_eq!(alignment, if is_direct { 4096 } else { 16 });
        let ranges: Vec<Range<u64>> = (0..count).map(|_| {
            let start = random.below(length as u64) / alignment * alignment;
            start..(start + alignment * (1 + random.below(4))).min(length as u64)
        }).collect();
        let expected: Vec<u8> =
            ranges.iter().flat_map(|range| &bytes[range.start as usize..range.end as usize]).copied().collect();
        let mut memory = Box::new(Memory { bytes: Vec::new(), start: 0, is_aligned });
        memory.reserve(0, expected.len()).unwrap();
        if !has_room {
            // not beyond the end of the file
            let end = memory.start + expected.len();
            memory.bytes.truncate(end);
        }
        let (memory, read) = file.read_to_memory(&ranges, memory);
        prop_assert!(read.is_ok());
        prop_assert!(memory.unwrap().bytes()[..expected.len()] == expected);
    }
}

#[test]
fn a_file_that_became_shorter_is_an_error_with_its_range() {
    let folder = Folder::new();
    let path = folder.file("a", Random(7).bytes(100_000));
    for is_direct in [false, true] {
        fs::write(&path, Random(7).bytes(100_000)).unwrap();
        let Some(file) = open(&path, is_direct) else { continue };
        fs::File::options().write(true).open(&path).unwrap().set_len(50_000).unwrap();
        for _ in 0..20 {
            let mut memory = Box::new(Memory { bytes: Vec::new(), start: 0, is_aligned: true });
            memory.reserve(0, 12_288).unwrap();
            let (memory, read_to) = file.read_to_memory(&[0..4096, 49_152..53_248, 61_440..65_536], memory);
            assert_eq!((memory.is_some(), read_to.unwrap_err().range), (true, 1));
            let error = read(&file, &[10..20, 49_990..50_010, 60_000..60_010]).expect_err("too short");
            assert_eq!((error.range, error.error.kind()), (1, std::io::ErrorKind::UnexpectedEof));
            assert_eq!(read(&file, std::slice::from_ref(&(10..20))).unwrap(), Random(7).bytes(100_000)[10..20]);
        }
    }
}
