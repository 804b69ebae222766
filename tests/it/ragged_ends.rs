//! Tests that a wrong end of a ragged sample is refused even if no checksum is compared:
//! nothing else protects memory then.

use crate::support::positional::Positional;
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::{
    ColumnBuffer, ColumnSchema, DType, Error, Extent, OpenOptions, Profile, Reader, Schema, Shape, Value, Verification,
    Writer, WriterOptions,
};

const SAMPLE_BYTES: usize = 40_000;

/// Returns four samples in one chunk. The end of sample 1 is far beyond the values; the others are
/// correct.
fn with_wrong_end(profile: Profile, inner: Option<u32>) -> Vec<u8> {
    let extents = [Extent::Varying].into_iter().chain(inner.map(Extent::Fixed));
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::new(extents.collect::<Vec<_>>()))]);
    let options = WriterOptions::new().profile(profile).chunk_bytes(1 << 20);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    let values: Vec<u8> = (0..SAMPLE_BYTES).map(|i| (i * i % 7 * (i % 3)) as u8).collect();
    for _ in 0..4 {
        let values = if inner == Some(0) { &[][..] } else { &values };
        writer.push(&[Value::ragged(values, &[SAMPLE_BYTES as u32])]).unwrap();
    }
    let mut file = writer.into_bytes().unwrap();
    let chunk = (0..file.len()).step_by(64).find(|&at| file[at..].starts_with(b"TSLC")).unwrap();
    assert_eq!(file[chunk + 88..chunk + 90], [0, 0], "the shape is raw");
    let end = chunk + 128 + 4; // after header and part table
    assert_eq!(file[end..end + 4], (2 * SAMPLE_BYTES as u32).to_le_bytes());
    file[end..end + 4].copy_from_slice(&(100 * SAMPLE_BYTES as u32).to_le_bytes());
    file
}

fn rule<T>(result: Result<T, Error>) -> Option<&'static str> {
    result.err().map(|error| error.rule().unwrap_or("no rule"))
}

/// Returns the rule that reading this sample breaks, for every way of reading it.
fn rules(reader: &Reader, i: u64) -> Vec<Option<&'static str>> {
    let column = reader.columns().next().unwrap();
    let (mut cursor, mut buffer) = (column.cursor(), ColumnBuffer::new());
    let mut rules = vec![
        rule(column.cursor().read(i)),
        rule(cursor.gather_into(&[i], &mut buffer)),
        rule(column.cursor().gather_into(&[3, i, 0], &mut buffer)),
        rule(column.cursor().range_into(i..i + 1, &mut buffer)),
    ];
    let view = column.view(i);
    if !matches!(view, Ok(None)) {
        rules.push(rule(view));
    }
    #[cfg(feature = "rayon")]
    rules.push(rule(column.parallel_cursor().gather_into(&[3, i], &mut buffer)));
    rules
}

fn check(source: impl Source + 'static, what: &str) {
    let reader = OpenOptions::new().verification(Verification::Never).open_source(source).unwrap();
    for (i, expected) in [(0, None), (1, Some("R-4.7")), (2, Some("R-4.7")), (3, None)] {
        let rules = rules(&reader, i);
        assert!(rules.iter().all(|rule| *rule == expected), "{what}, sample {i}: {rules:?}");
    }
    let column = reader.columns().next().unwrap();
    assert_eq!(rule(column.cursor().range_into(0..4, &mut ColumnBuffer::new())), Some("R-4.7"), "{what}");
}

#[test]
fn no_read_returns_a_sample_that_ends_beyond_the_values() {
    for profile in [Profile::Raw, Profile::Fast, Profile::Balanced, Profile::Small] {
        for inner in [None, Some(0)] {
            let file = with_wrong_end(profile, inner);
            let what = format!("{profile:?}, {inner:?}");
            check(InMemory(file.clone()), &what);
            check(Positional(file.clone()), &what);
        }
    }
}
