//! Where what can be parsed ends: structures at a limit, and one step beyond it. (The vectors show the rest.)

use super::chunk::{ChunkEntry, ChunkHead, PARTS};
use super::content::Content;
use super::footer::{ColumnFacts, Footer, TableEntry};
use super::index::{PAGE_BODY_BYTES, PageHead, Run, page, samples_per_chunk};
use super::region::{FileId, RegionHead, RegionKind};
use super::schema::Layout;
use super::{CastFacts, ColumnSchema, DType, Extent, Flags, Schema, Shape, schema_block};
use crate::{ErrorKind, Result, limits};

const FILE: FileId = FileId([7; 16]);

/// The rule that is broken, if one is.
fn rule<T>(result: Result<T>) -> Option<&'static str> {
    result.err().map(|error| error.rule().expect("the rule of a file"))
}

fn flags(incompat: u32, ro_compat: u32, compat: u32) -> Flags {
    Flags { incompat, ro_compat, compat }
}

#[test]
fn flags_are_united_bit_by_bit() {
    let united = flags(0b0011, 0b0101, 0b1001).union(flags(0b0110, 0b0011, 0b0001));
    assert_eq!(united, flags(0b0111, 0b0111, 0b1001));
    assert!(united.contains(flags(0b0100, 0b0100, 0b1000)));
    for missing in [flags(8, 0, 0), flags(0, 8, 0), flags(0, 0, 2), flags(1, 1, 3)] {
        assert!(!united.contains(missing), "{missing:?}");
    }
}

#[test]
fn a_flag_nobody_knows_yet_bars_reading_appending_or_nothing() {
    let refusals = |flags: Flags| [flags.check(), flags.check_writable()].map(|result| result.err().map(|e| e.kind()));
    assert_eq!(refusals(flags(1 << 31, 0, 0)), [Some(ErrorKind::TooNew), None]);
    assert_eq!(refusals(flags(0, 1 << 31, 0)), [None, Some(ErrorKind::TooNew)]);
    assert_eq!(refusals(flags(0, 0, u32::MAX)), [None, None]);
}

// ---- chunks

fn chunk(column: u32, sample_count: u32, raw_bytes: u32, flags: u16) -> Result<ChunkHead> {
    let entry =
        ChunkEntry { offset: 0, first_sample: 0, stored_bytes: 0, sample_count, body_crc: 0, encoding: 0, flags };
    let head = ChunkHead { column, raw_bytes, entry }.seal(FILE, 64, b"body")?;
    ChunkHead::parse(&RegionHead::parse(&head, 64)?, 3)
}

#[test]
fn chunks_at_their_limits_are_parsed_and_those_beyond_are_not() {
    use limits::{CHUNK_BYTES, CHUNK_SAMPLES, SHARED_CHUNK_BYTES};
    for (column, samples, bytes, flags) in [
        (0, 1, 0, 0),
        (2, 1, CHUNK_BYTES, PARTS),
        (2, 2, SHARED_CHUNK_BYTES, 0),
        (0, CHUNK_SAMPLES, SHARED_CHUNK_BYTES, PARTS),
        (0, 1, SHARED_CHUNK_BYTES + 1, 0),
    ] {
        let head = chunk(column, samples, bytes, flags).expect("at a limit");
        assert_eq!((head.column, head.entry.sample_count, head.raw_bytes), (column, samples, bytes));
        assert_eq!(head.entry.has_parts(), flags == PARTS);
    }
    for (column, samples, bytes, flags) in
        [(3, 1, 0, 0), (0, 0, 0, 0), (0, CHUNK_SAMPLES + 1, 0, 0), (0, 1, CHUNK_BYTES + 1, 0), (0, 1, 0, PARTS << 1)]
    {
        assert_eq!(rule(chunk(column, samples, bytes, flags)), Some("R-4.1"), "{column} {samples} {bytes} {flags}");
    }
    assert_eq!(rule(chunk(0, 2, SHARED_CHUNK_BYTES + 1, 0)), Some("R-4.10"));
}

fn layout(dtype: DType, shape: Shape) -> Layout {
    ColumnSchema::tensor("c", dtype, shape).nullable().layout().expect("a small sample")
}

#[test]
fn parts_have_the_lengths_that_their_samples_need_and_no_others() {
    let fixed = layout(DType::U16, Shape::fixed(&[3]));
    let ragged = layout(DType::U16, Shape::ragged());
    let two = layout(DType::U16, Shape::new([Extent::Varying, Extent::Varying]));
    let ends = [1, 0, 0, 0, 3, 0, 0, 0]; // two samples: 1 element, then 2
    let extents = [ends, [1, 0, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 2, 0, 0, 0]].concat();
    let cases: [(_, &[u8], &[u8]); 3] = [(fixed, &[], &[0; 12]), (ragged, &ends, &[0; 6]), (two, &extents, &[0; 6])];
    for (layout, shape, values) in cases {
        let content = Content { sample_count: 2, validity: Some(&[1]), shape, values };
        assert_eq!(rule(content.check_lengths(&layout)), None);
        assert_eq!(rule(Content { validity: None, ..content }.check_lengths(&layout)), None);
        let longer = [shape, &[0; 4]].concat();
        for wrong in [
            Content { validity: Some(&[]), ..content },
            Content { validity: Some(&[1, 0]), ..content },
            Content { values: &values[1..], ..content },
            Content { values: &[0; 13], ..content },
            Content { shape: &longer, ..content },
        ] {
            assert_eq!(rule(wrong.check_lengths(&layout)), Some("R-4.5"), "{wrong:?}");
        }
    }
}

/// Extents as a shape part holds them: the end, then one extent after the other.
fn one_sample(count: u32, extents: &[u32]) -> Vec<u8> {
    [count].iter().chain(extents).flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn the_extents_of_a_sample_give_its_count() {
    const MOST: u32 = limits::EXTENT;
    let check = |count, extents: &[u32]| {
        let layout = layout(DType::U8, Shape::new(vec![Extent::Varying; extents.len()]));
        let shape = one_sample(count, extents);
        rule(Content { sample_count: 1, validity: None, shape: &shape, values: &[] }.check_extents(&layout, 0))
    };
    // the product of all but the zero is over 2^64
    for (count, extents) in [(6, [2, 3, 1, 1]), (MOST, [1, MOST, 1, 1]), (0, [MOST, MOST, MOST, 0]), (0, [0; 4])] {
        assert_eq!(check(count, &extents), None, "{extents:?}");
    }
    for (count, extents) in [(6, [2, 3, 1, 2]), (0, [MOST + 1, 0, 1, 1]), (0, [MOST; 4]), (1, [0, 1, 1, 1])] {
        assert_eq!(check(count, &extents), Some("R-4.7"), "{extents:?}");
    }
}

#[test]
fn a_validity_has_nulls_and_no_bits_beyond_the_last_sample() {
    let check = |sample_count, validity: &[u8]| {
        let content = Content { sample_count, validity: Some(validity), shape: &[], values: &[] };
        (content.null_count(), rule(content.check_validity()))
    };
    for (samples, validity, nulls) in [(1, [0, 0], 1), (8, [0x7F, 0], 1), (9, [0xFF, 0], 1), (15, [0, 0x7F], 8)] {
        assert_eq!(check(samples, &validity[..samples.div_ceil(8)]), (nulls, None), "{samples}");
    }
    for (samples, validity) in [(9, [0xFF, 1]), (9, [0, 0x80]), (9, [0, 2]), (15, [0, 0x80]), (16, [0xFF, 0xFF])] {
        assert_eq!(check(samples, &validity).1, Some("R-4.6"), "{samples} {validity:?}");
    }
    let wide: Vec<u8> = (0..=255).collect(); // 128 bytes have as many ones as zeros
    assert_eq!(check(2048, &wide).0, 1024);
}

// ---- index

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
        let (head, body) = page(FILE, 4096, column, 9, &vec![entry; entries])?;
        assert_eq!(body.len(), 32 * entries);
        PageHead::parse(&RegionHead::parse(&head, 4096)?, 2)
    };
    for entries in [1, 126] {
        let head = parse(1, entries).expect("a page");
        assert_eq!((head.column, head.first_sample, head.first_chunk), (1, 5, 9));
        assert_eq!(head.entry_count as usize, entries);
    }
    assert_eq!(parse(0, 127).expect_err("too many entries").kind(), ErrorKind::OverLimit);
    assert_eq!(rule(parse(2, 1)), Some("R-6.1"));
    assert_eq!(rule(parse(0, 0)), Some("R-6.1"));
    let (head, _) = page(FILE, 0, 0, 0, &[entry; 2]).expect("a page");
    let head = RegionHead::parse(&head, 0).expect("a head");
    for body_bytes in [63, 65, PAGE_BODY_BYTES] {
        assert_eq!(rule(PageHead::parse(&RegionHead { body_bytes, ..head }, 2)), Some("R-6.1"));
    }
}

fn run(first_sample: u64, sample_count: u64, chunk_count: u64, samples_per_chunk: u32) -> Run {
    Run { offset: 4096, first_sample, sample_count, chunk_count, samples_per_chunk }
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

// ---- footer

const FOOTER_AT: u64 = 1 << 20;

fn footer(sample_count: u64, runs: &[Run]) -> Footer {
    let chunk_count = runs.iter().map(|run| run.chunk_count).sum();
    let column = ColumnFacts { chunk_count, runs: runs.to_vec(), ..ColumnFacts::default() };
    Footer { commit: 0, flags: Flags::default(), sample_count, tables: Vec::new(), columns: vec![column] }
}

fn parse_at(offset: u64, footer: &Footer, schema: &Schema) -> Result<Footer> {
    let block = schema_block::to_bytes(schema)?;
    let (head, body) = footer.to_bytes(FILE, offset, &block)?;
    Footer::parse(&RegionHead::parse(&head, offset)?, &body, schema, &block)
}

fn parse(footer: &Footer) -> Result<Footer> {
    parse_at(FOOTER_AT, footer, &Schema::new([ColumnSchema::tensor("c", DType::U8, Shape::scalar())]))
}

#[test]
fn runs_cover_all_samples_in_chunks_that_can_be() {
    const MOST: u64 = limits::CHUNK_SAMPLES as u64;
    let good: [(u64, &[Run]); 7] = [
        (0, &[]),
        (5, &[run(0, 5, 5, 0)]),
        (5, &[run(0, 5, 3, 2)]),
        (4, &[run(0, 4, 2, 2)]),
        (MOST, &[run(0, MOST, 1, limits::CHUNK_SAMPLES)]),
        (MOST + 1, &[run(0, MOST + 1, 2, 0)]),
        (9, &[run(0, 4, 2, 2), run(4, 5, 1, 0)]),
    ];
    for (samples, runs) in good {
        let footer = footer(samples, runs);
        assert_eq!(parse(&footer).expect("a footer"), footer);
    }
    let bad: [(u64, &[Run]); 11] = [
        (1, &[]),
        (5, &[run(1, 4, 1, 0)]),
        (4, &[run(1, 4, 1, 0)]),
        (0, &[run(0, 0, 0, 0)]),
        (4, &[run(0, 4, 5, 0)]),
        (5, &[run(0, 5, 2, 2)]),
        (5, &[run(0, 5, 4, 2)]),
        (MOST + 1, &[run(0, MOST + 1, 1, 0)]),
        (3, &[run(0, 3, 1, limits::CHUNK_SAMPLES + 1)]),
        (6, &[run(0, 5, 1, 0)]),
        (9, &[run(0, 4, 2, 2), run(5, 5, 1, 0)]),
    ];
    for (samples, runs) in bad {
        assert_eq!(rule(parse(&footer(samples, runs))), Some("R-7.3"), "{samples} {runs:?}");
    }
    let mut wrong = footer(5, &[run(0, 5, 5, 0)]);
    for chunk_count in [4, 6] {
        wrong.columns[0].chunk_count = chunk_count;
        assert_eq!(rule(parse(&wrong)), Some("R-7.3"));
    }
}

#[test]
fn the_pages_of_all_runs_lie_before_the_footer() {
    let schema = Schema::new([ColumnSchema::tensor("c", DType::U8, Shape::scalar())]);
    let at_end = Run { offset: FOOTER_AT - 96, ..run(0, 5, 1, 0) };
    let parse = |runs: &[Run]| parse_at(FOOTER_AT, &footer(5 * runs.len() as u64, runs), &schema);
    assert!(parse(&[at_end]).is_ok());
    assert_eq!(rule(parse(&[Run { offset: at_end.offset + 1, ..at_end }])), Some("R-7.3"));
    // Together they cannot be longer than the file: room for two is no room for three.
    let runs = [0, 5, 10].map(|first_sample| Run { offset: 0, ..run(first_sample, 5, 1, 0) });
    let parse = |runs: &[Run]| parse_at(2 * 96, &footer(5 * runs.len() as u64, runs), &schema);
    assert!(parse(&runs[..2]).is_ok());
    assert_eq!(rule(parse(&runs)), Some("R-7.3"));
}

#[test]
fn counts_in_a_footer_end_at_their_limits() {
    let empty = Footer { columns: Vec::new(), ..footer(0, &[]) };
    let parse = |footer: Footer| parse_at(FOOTER_AT, &footer, &Schema::default());
    let last = limits::RUNS as u32 - 1;
    assert!(parse(Footer { commit: last, sample_count: limits::SAMPLES, ..empty.clone() }).is_ok());
    assert_eq!(rule(parse(Footer { commit: last + 1, ..empty.clone() })), Some("R-7.5"));
    assert_eq!(rule(parse(Footer { sample_count: limits::SAMPLES + 1, ..empty })), Some("R-7.5"));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes")]
fn tables_ascend_and_are_no_more_than_the_format_allows() {
    let table = |column, table| TableEntry { column, table, offset: 64, body_bytes: 1, body_crc: 2 };
    let parse = |tables: Vec<TableEntry>| {
        let footer = Footer { columns: Vec::new(), tables, ..footer(0, &[]) };
        parse_at(FOOTER_AT, &footer, &Schema::default()).map(|found| assert_eq!(found, footer))
    };
    assert_eq!(rule(parse(vec![table(0, 0), table(0, 1), table(2, 0)])), None);
    for wrong in [[table(0, 1), table(0, 1)], [table(0, 1), table(0, 0)], [table(1, 0), table(0, 1)]] {
        assert_eq!(rule(parse(wrong.to_vec())), Some("R-7.4"));
    }
    let most = limits::TABLES as u32;
    assert_eq!(rule(parse((0..most).map(|i| table(0, i)).collect())), None);
    assert_eq!(rule(parse((0..=most).map(|i| table(0, i)).collect())), Some("R-7.2"));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes")]
fn runs_are_no_more_than_the_format_allows() {
    let parse = |count: u64| {
        let runs: Vec<Run> = (0..count).map(|i| Run { offset: 0, ..run(i, 1, 1, 0) }).collect();
        let schema = Schema::new([ColumnSchema::tensor("c", DType::U8, Shape::scalar())]);
        parse_at(96 * count, &footer(count, &runs), &schema).map(|found| assert_eq!(found.columns[0].runs, runs))
    };
    assert_eq!(rule(parse(limits::RUNS as u64)), None);
    assert_eq!(rule(parse(limits::RUNS as u64 + 1)), Some("R-7.2"));
}

#[test]
fn what_casts_and_encodings_did_is_kept_bit_by_bit() {
    let schema = Schema::new([ColumnSchema::tensor("c", DType::Bf16, Shape::scalar()).cast_from(DType::F32)]);
    let mut footer = footer(0, &[]);
    let cast = CastFacts { max_abs_error: 0.5, max_rel_error: f64::INFINITY, to_infinite: 3, to_subnormal: 4 };
    footer.columns[0].cast = Some(cast);
    for (id, chunks) in [(5, 2), (1, 7), (5, 3), (300, 1)] {
        footer.columns[0].count_encoding(id, chunks);
    }
    assert_eq!(footer.columns[0].encodings, [(1, 7), (5, 5), (300, 1)]);
    assert_eq!([1, 5, 7].map(|id| footer.columns[0].encoding(id)), [Some(7), Some(5), None]);
    assert_eq!(parse_at(FOOTER_AT, &footer, &schema).expect("a footer"), footer);
    for (max_abs_error, max_rel_error) in [(-0.0, 0.0), (0.0, -1.0), (f64::NAN, 0.0), (0.0, f64::NAN)] {
        footer.columns[0].cast = Some(CastFacts { max_abs_error, max_rel_error, ..cast });
        assert_eq!(rule(parse_at(FOOTER_AT, &footer, &schema)), Some("R-7.4"));
    }
    footer.columns[0].cast = Some(cast);
    for encodings in [[(5, 1), (1, 1)], [(5, 1), (5, 1)]] {
        footer.columns[0].encodings = encodings.to_vec();
        assert_eq!(rule(parse_at(FOOTER_AT, &footer, &schema)), Some("R-7.4"));
    }
}

// ---- regions

#[test]
fn bodies_end_at_the_limit_of_their_kind() {
    let head = RegionHead::new(RegionKind::Header, FILE, 0, b"body").expect("a head");
    let kinds = [
        (RegionKind::Header, limits::SCHEMA_BYTES),
        (RegionKind::Chunk, limits::CHUNK_BYTES),
        (RegionKind::Table, limits::TABLE_BYTES),
        (RegionKind::IndexPage, PAGE_BODY_BYTES),
        (RegionKind::Footer, limits::FOOTER_BYTES),
        (RegionKind::Trailer, 0),
    ];
    for (kind, body_bytes) in kinds {
        let parse = |body_bytes| RegionHead::parse(&RegionHead { kind, body_bytes, ..head }.to_bytes(), 0);
        assert_eq!(parse(body_bytes).expect("at the limit").kind, kind);
        assert_eq!(rule(parse(body_bytes + 1)), Some("R-2.5"));
    }
    let body = [0; PAGE_BODY_BYTES as usize + 1];
    assert!(RegionHead::new(RegionKind::IndexPage, FILE, 0, &body[1..]).is_ok());
    let error = RegionHead::new(RegionKind::IndexPage, FILE, 0, &body).expect_err("over the limit");
    assert_eq!(error.kind(), ErrorKind::OverLimit);
}

#[test]
fn regions_have_the_names_of_the_specification() {
    use RegionKind::{Chunk, Footer, Header, IndexPage, Table, Trailer};
    let names = [Header, Chunk, Table, IndexPage, Footer, Trailer].map(RegionKind::name);
    assert_eq!(names, ["header", "chunk", "table", "index page", "footer", "trailer"]);
    assert_eq!(IndexPage.to_string(), "index page");
}

#[test]
fn a_region_may_end_where_the_file_does() {
    let head = RegionHead::new(RegionKind::Table, FILE, 128, b"body").expect("a head");
    assert_eq!((head.body_offset(), head.end()), (192, 196));
    assert_eq!([195, 196, 197].map(|bytes| rule(head.check_inside(bytes))), [Some("R-2.5"), None, None]);
}

// ---- schema

#[test]
fn columns_are_counted_before_they_are_read() {
    let claim = |columns: usize| [(columns as u32).to_le_bytes(), [0; 4]].concat();
    assert_eq!(rule(schema_block::parse(&claim(limits::COLUMNS))), Some("R-3.3"), "they are missing");
    assert_eq!(rule(schema_block::parse(&claim(limits::COLUMNS + 1))), Some("R-3.6"));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes")]
fn a_schema_block_ends_at_its_limit() {
    let limit = limits::SCHEMA_BYTES as usize;
    let text = "v".repeat(limits::METADATA_VALUE_BYTES);
    let mut schema = Schema::default();
    schema.metadata = (0..16).map(|i| (format!("{i:x}"), if i < 15 { text.clone() } else { String::new() })).collect();
    let left = limit - schema_block::to_bytes(&schema).expect("15 MiB").len();
    let mut with = |bytes: usize| {
        schema.metadata.insert("f".to_owned(), text[..bytes].to_owned());
        schema_block::to_bytes(&schema)
    };
    assert_eq!(with(left).expect("at the limit").len(), limit);
    assert_eq!(with(left + 1).expect_err("over the limit").kind(), ErrorKind::OverLimit);
}
