//! Tests of refused schemas and options.

use super::{create, refused};
use crate::common::plan::options;
use tensilo::ErrorKind::{BadArgument, OverLimit};
use tensilo::sink::Stream;
use tensilo::{ColumnSchema, DType, Extent, Metadata, Profile, Reader, Schema, Shape, Writer, limits};

fn scalar(name: &str) -> ColumnSchema {
    ColumnSchema::tensor(name, DType::U8, Shape::scalar())
}

/// Pairs of a schema at a limit and one just above it.
#[test]
fn schemas_over_a_limit_are_refused_and_those_at_it_are_not() {
    let long = "n".repeat(limits::NAME_BYTES);
    let too_long = format!("{long}n");
    let with = |key: &str, value: &str| {
        let metadata = Metadata::from([(key.to_owned(), value.to_owned())]);
        ColumnSchema { metadata, ..scalar("a") }
    };
    // the header has no room for the longest value
    let value = "v".repeat(limits::METADATA_VALUE_BYTES - (1 << 10));
    let too_long_value = "v".repeat(limits::METADATA_VALUE_BYTES + 1);
    let shaped = |extents: &[u32]| ColumnSchema::tensor("a", DType::U8, Shape::fixed(extents));
    let pairs = [
        (scalar(&long), scalar(&too_long)),
        (shaped(&[1; limits::DIMENSIONS]), shaped(&[1; limits::DIMENSIONS + 1])),
        (shaped(&[0, limits::EXTENT]), shaped(&[0, u32::MAX])),
        (shaped(&[limits::CHUNK_BYTES]), shaped(&[limits::CHUNK_BYTES + 1])),
        (shaped(&[u32::MAX - 1, u32::MAX - 1, u32::MAX - 1, 0]), shaped(&[1 << 31, 3])),
        (shaped(&[1 << 31, 1]), shaped(&[1 << 31, 1 << 31, 1 << 31])),
        (with(&long, ""), with(&too_long, "")),
        (with("k", &value), with("k", &too_long_value)),
    ];
    for (allowed, not) in pairs {
        let bytes = create(Schema::new([allowed.clone()])).and_then(Writer::finish).expect("at the limit").sink.0;
        assert_eq!(Reader::from_bytes(bytes).expect("a valid file").schema().columns, [allowed]);
        let name = not.name.clone();
        refused(create(Schema::new([not])), OverLimit, Some(&name));
    }
}

#[test]
fn more_columns_metadata_or_schema_than_the_format_allows_are_refused() {
    let columns = |count: usize| Schema::new((0..count).map(|i| scalar(&i.to_string())));
    let bytes = create(columns(limits::COLUMNS)).and_then(Writer::finish).expect("at the limit").sink.0;
    assert_eq!(Reader::from_bytes(bytes).expect("a valid file").schema().columns.len(), limits::COLUMNS);
    let error = refused(create(columns(limits::COLUMNS + 1)), OverLimit, None);
    assert!(error.to_string().contains("65537 columns"), "{error}");

    let entries = |count: usize| Schema {
        metadata: (0..count).map(|i| (i.to_string(), String::new())).collect(),
        ..Schema::default()
    };
    assert!(create(entries(limits::METADATA_ENTRIES)).is_ok());
    refused(create(entries(limits::METADATA_ENTRIES + 1)), OverLimit, None);

    let value = "v".repeat(1 << 20);
    let mebibytes = |count: usize| Schema {
        metadata: (0..count).map(|i| (i.to_string(), value.clone())).collect(),
        ..Schema::default()
    };
    assert!(create(mebibytes(15)).is_ok());
    refused(create(mebibytes(16)), OverLimit, None);
}

#[test]
fn schemas_that_make_no_sense_are_refused_by_name() {
    for name in ["", "a\0", "\u{1}", "tab\tbed", "line\nbreak", "\u{1F}", "\u{7F}"] {
        refused(create(Schema::new([scalar("fine"), scalar(name)])), BadArgument, Some(name));
    }
    for name in [" ", "\u{80}", "\u{FEFF}", "null", "a\u{301}", "\u{E1}"] {
        assert!(create(Schema::new([scalar("fine"), scalar(name)])).is_ok(), "{name:?}");
    }
    refused(create(Schema::new([scalar("twice"), scalar("once"), scalar("twice")])), BadArgument, Some("twice"));
    // equal to the eye, but not to a computer
    assert!(create(Schema::new([scalar("a\u{301}"), scalar("\u{E1}")])).is_ok());

    for shape in [Shape::scalar(), Shape::fixed(&[3]), Shape::new([Extent::Varying, Extent::Varying])] {
        for dtype in [DType::Utf8, DType::Bytes] {
            refused(create(Schema::new([ColumnSchema::tensor("s", dtype, shape.clone())])), BadArgument, Some("s"));
        }
    }
    let casts = DType::ALL.into_iter().flat_map(|source| DType::ALL.map(|target| (source, target)));
    for (source, target) in casts.filter(|(_, target)| !target.is_string()) {
        let possible = source.is_number() && target.is_float() && source != target;
        let column = ColumnSchema::tensor("c", target, Shape::scalar()).cast_from(source);
        let created = create(Schema::new([column]));
        match possible {
            true => assert!(created.is_ok(), "{source} to {target}"),
            false => drop(refused(created, BadArgument, Some("c"))),
        }
    }
    let empty_key = Metadata::from([(String::new(), "v".to_owned())]);
    refused(create(Schema { metadata: empty_key.clone(), ..Schema::default() }), BadArgument, None);
    assert!(create(Schema::new([ColumnSchema { metadata: empty_key, ..scalar("a") }])).is_err());
}

#[test]
fn options_outside_their_range_are_refused() {
    let allowed = [
        options().chunk_bytes(1),
        options().chunk_bytes(32 << 20).alignment(4096),
        options().block_bytes(1024),
        options().block_bytes(512 << 10),
        options().block_bytes(None),
        options().block_bytes(None).profile(Profile::Small),
        options().block_bytes(8192).profile(Profile::Small),
    ];
    for options in allowed {
        assert!(Writer::new(Stream(Vec::new()), Schema::default(), &options).is_ok(), "{options:?}");
    }
    let not = [
        options().chunk_bytes(0),
        options().chunk_bytes((32 << 20) + 1),
        options().chunk_bytes(usize::MAX),
        options().block_bytes(0),
        options().block_bytes(1023),
        options().block_bytes((512 << 10) + 1),
        options().block_bytes(usize::MAX),
        options().block_bytes(8192).profile(Profile::BitshuffleZstd),
        options().alignment(0),
        options().alignment(128),
        options().alignment(u32::MAX),
    ];
    for options in not {
        refused(Writer::new(Stream(Vec::new()), Schema::default(), &options), BadArgument, None);
    }
}
