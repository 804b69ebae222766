//! Tests of the footer: its counts, runs and tables.

use super::index::run;
use super::{FILE, rule};
use crate::format::column_record::ColumnRecord;
use crate::format::footer::{ContentHasher, ContentId, Footer, TableEntry};
use crate::format::index::ChunkRun;
use crate::format::region::RegionHeader;
use crate::format::{CastFacts, Flags, schema_block};
use crate::{ColumnSchema, DType, Result, Schema, Shape, limits};

const FOOTER_AT: u64 = 1 << 20;

fn footer(sample_count: u64, runs: &[ChunkRun]) -> Footer {
    let chunk_count = runs.iter().map(|run| run.chunk_count).sum();
    let column = ColumnRecord { chunk_count, runs: runs.to_vec(), ..ColumnRecord::default() };
    Footer {
        content_id: ContentId::default(),
        commit: 0,
        flags: Flags::default(),
        sample_count,
        tables: Vec::new(),
        columns: vec![column],
    }
}

/// Returns a schema with one column of u8 scalars.
fn schema() -> Schema {
    Schema::new([ColumnSchema::tensor("c", DType::U8, Shape::scalar())])
}

/// Writes a footer and parses it again. Writing changes only the content id, which is restored.
fn parse_at(offset: u64, footer: &Footer, schema: &Schema) -> Result<Footer> {
    let block = schema_block::to_bytes(schema)?;
    let mut written = footer.clone();
    let (header, body) = written.seal(FILE, offset, &block, ContentHasher::after(footer.content_id))?;
    let parsed = Footer::parse(&RegionHeader::parse(&header.to_bytes(), offset)?, &body, schema, &block)?;
    assert_eq!(parsed.content_id, written.content_id);
    Ok(Footer { content_id: footer.content_id, ..parsed })
}

fn parse(footer: &Footer) -> Result<Footer> {
    parse_at(FOOTER_AT, footer, &schema())
}

#[test]
fn runs_cover_all_samples_in_chunks_that_can_be() {
    const MAX: u64 = limits::CHUNK_SAMPLES as u64;
    let good: [(u64, &[ChunkRun]); 7] = [
        (0, &[]),
        (5, &[run(0, 5, 5, 0)]),
        (5, &[run(0, 5, 3, 2)]),
        (4, &[run(0, 4, 2, 2)]),
        (MAX, &[run(0, MAX, 1, limits::CHUNK_SAMPLES)]),
        (MAX + 1, &[run(0, MAX + 1, 2, 0)]),
        (9, &[run(0, 4, 2, 2), ChunkRun { offset: 8192, ..run(4, 5, 1, 0) }]),
    ];
    for (samples, runs) in good {
        let footer = footer(samples, runs);
        assert_eq!(parse(&footer).expect("a footer"), footer);
    }
    let bad: [(u64, &[ChunkRun]); 11] = [
        (1, &[]),
        (5, &[run(1, 4, 1, 0)]),
        (4, &[run(1, 4, 1, 0)]),
        (0, &[run(0, 0, 0, 0)]),
        (4, &[run(0, 4, 5, 0)]),
        (5, &[run(0, 5, 2, 2)]),
        (5, &[run(0, 5, 4, 2)]),
        (MAX + 1, &[run(0, MAX + 1, 1, 0)]),
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
    let parse =
        |footer_at, runs: &[ChunkRun]| rule(parse_at(footer_at, &footer(5 * runs.len() as u64, runs), &schema()));
    let run_at = |offset, first_sample| ChunkRun { offset, ..run(first_sample, 5, 1, 0) };
    assert_eq!(parse(FOOTER_AT, &[run_at(FOOTER_AT - 96, 0)]), None);
    assert_eq!(parse(FOOTER_AT, &[run_at(FOOTER_AT - 95, 0)]), Some("R-7.3"));
}

#[test]
fn no_page_is_in_two_runs_of_a_file() {
    // a page with one entry takes 96 bytes
    let run_at = |offset, first_sample| ChunkRun { offset, ..run(first_sample, 5, 1, 0) };
    let of_one_column = |runs: &[ChunkRun]| rule(parse(&footer(5 * runs.len() as u64, runs)));
    assert_eq!(of_one_column(&[run_at(192, 0), run_at(0, 5), run_at(96, 10)]), None);
    for other in [96, 1, 95, 191] {
        assert_eq!(of_one_column(&[run_at(96, 0), run_at(other, 5)]), Some("R-7.3"), "{other}");
    }
    let schema = Schema::new(["a", "b"].map(|name| ColumnSchema::tensor(name, DType::U8, Shape::scalar())));
    let of_two_columns = |a, b| {
        let mut footer = footer(5, &[run_at(a, 0)]);
        footer.columns.extend(self::footer(5, &[run_at(b, 0)]).columns);
        rule(parse_at(FOOTER_AT, &footer, &schema))
    };
    assert_eq!(of_two_columns(96, 0), None);
    assert_eq!(of_two_columns(96, 96), Some("R-7.3"));
    assert_eq!(of_two_columns(96, 64), Some("R-7.3"));
}

#[test]
fn counts_in_a_footer_end_at_their_limits() {
    let empty = Footer { columns: Vec::new(), ..footer(0, &[]) };
    let parse = |footer: Footer| parse_at(FOOTER_AT, &footer, &Schema::default());
    let last = limits::CHUNK_RUNS as u32 - 1;
    assert!(parse(Footer { commit: last, sample_count: limits::SAMPLES, ..empty.clone() }).is_ok());
    assert_eq!(rule(parse(Footer { commit: last + 1, ..empty.clone() })), Some("R-7.5"));
    assert_eq!(rule(parse(Footer { sample_count: limits::SAMPLES + 1, ..empty })), Some("R-7.5"));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes")]
fn tables_ascend_and_are_no_more_than_the_format_allows() {
    let table = |column: u32, table: u32| {
        let offset = 128 * u64::from(3 * table + column);
        TableEntry { column, table, offset, body_bytes: 64, body_crc: 2 }
    };
    let parse = |tables: Vec<TableEntry>| {
        let footer = Footer { columns: Vec::new(), tables, ..footer(0, &[]) };
        parse_at(FOOTER_AT, &footer, &Schema::default()).map(|found| assert_eq!(found, footer))
    };
    assert_eq!(rule(parse(vec![table(0, 0), table(0, 1), table(2, 0)])), None);
    for wrong in [[table(0, 1), table(0, 1)], [table(0, 1), table(0, 0)], [table(1, 0), table(0, 1)]] {
        assert_eq!(rule(parse(wrong.to_vec())), Some("R-7.4"));
    }
    let long = TableEntry { body_bytes: 65, ..table(0, 0) };
    assert_eq!(rule(parse(vec![long, table(1, 0)])), Some("R-7.4"), "they overlap");
    let max = limits::TABLES as u32;
    assert_eq!(rule(parse((0..max).map(|i| table(0, i)).collect())), None);
    assert_eq!(rule(parse((0..=max).map(|i| table(0, i)).collect())), Some("R-7.2"));
}

#[test]
#[cfg_attr(miri, ignore = "megabytes")]
fn runs_are_no_more_than_the_format_allows() {
    let parse = |count: u64| {
        let runs: Vec<ChunkRun> = (0..count).map(|i| ChunkRun { offset: 128 * i, ..run(i, 1, 1, 0) }).collect();
        parse_at(128 * count, &footer(count, &runs), &schema()).map(|found| assert_eq!(found.columns[0].runs, runs))
    };
    assert_eq!(rule(parse(limits::CHUNK_RUNS as u64)), None);
    assert_eq!(rule(parse(limits::CHUNK_RUNS as u64 + 1)), Some("R-7.2"));
}

#[test]
fn facts_of_casts_and_encodings_round_trip_bit_by_bit() {
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
