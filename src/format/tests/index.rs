//! Tests of the pages and runs of the index.

use super::{FILE, rule};
use crate::ErrorKind;
use crate::format::chunk::ChunkEntry;
use crate::format::index::{ChunkRun, PageHeader, page, samples_per_chunk};
use crate::format::region::RegionHeader;
use crate::limits::INDEX_PAGE_BYTES;

#[test]
fn pages_have_1_to_126_entries_and_nothing_else() {
    let entry = ChunkEntry {
        offset: 64,
        first_sample: 5,
        stored_bytes: 1,
        sample_count: 1,
        body_crc: 0,
        encoding: 0,
        flags: 0,
    };
    let parse = |column, entries: usize| {
        let (header, body) = page(FILE, 4096, column, 9, &vec![entry; entries])?;
        assert_eq!(body.len(), 32 * entries);
        PageHeader::parse(&RegionHeader::parse(&header.to_bytes(), 4096)?, 2)
    };
    for entries in [1, 126] {
        let header = parse(1, entries).expect("a page");
        assert_eq!((header.column, header.first_sample, header.first_chunk), (1, 5, 9));
        assert_eq!(header.entry_count as usize, entries);
    }
    assert_eq!(parse(0, 127).expect_err("too many entries").kind(), ErrorKind::OverLimit);
    assert_eq!(rule(parse(2, 1)), Some("R-6.1"));
    assert_eq!(rule(parse(0, 0)), Some("R-6.1"));
    let (header, _) = page(FILE, 0, 0, 0, &[entry; 2]).expect("a page");
    let header = RegionHeader::parse(&header.to_bytes(), 0).expect("a header");
    for body_bytes in [63, 65, INDEX_PAGE_BYTES] {
        assert_eq!(rule(PageHeader::parse(&RegionHeader { body_bytes, ..header }, 2)), Some("R-6.1"));
    }
}

pub(super) fn run(first_sample: u64, sample_count: u64, chunk_count: u64, samples_per_chunk: u32) -> ChunkRun {
    ChunkRun { offset: 4096, first_sample, sample_count, chunk_count, samples_per_chunk }
}

#[test]
fn a_run_ends_where_its_last_entry_does() {
    let ends = [(1, 1, 64 + 32), (126, 1, 64 + 126 * 32), (127, 2, 4096 + 64 + 32), (252, 2, 2 * 4096)];
    for (chunks, pages, bytes) in ends {
        let run = run(10, 300, chunks, 0);
        assert_eq!((run.page_count(), run.end() - run.offset, run.end_sample()), (pages, bytes, 310), "{chunks}");
        let entries: u64 = (0..pages).map(|page| run.page_entries(page)).sum();
        assert_eq!((entries, run.page_entries(pages)), (chunks, 0));
        assert_eq!(run.page_offset(pages - 1), 4096 * pages);
    }
}

#[test]
fn all_chunks_but_a_smaller_last_one_have_the_size_that_a_run_states() {
    let cases: [(&[u32], u32); 8] = [
        (&[], 0),
        (&[7], 7),
        (&[7, 7], 7),
        (&[7, 3], 7),
        (&[7, 8], 0),
        (&[7, 3, 7], 0),
        (&[7, 7, 3], 7),
        (&[7, 8, 7], 0),
    ];
    for (counts, size) in cases {
        assert_eq!(samples_per_chunk(counts.iter().copied()), size, "{counts:?}");
    }
}
