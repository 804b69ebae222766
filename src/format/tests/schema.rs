//! Tests of the schema block.

use super::rule;
use crate::format::schema_block;
use crate::{ErrorKind, Schema, limits};

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
    let text = "v".repeat(1 << 20);
    let metadata = (0..16).map(|i| (format!("{i:x}"), if i < 15 { text.clone() } else { String::new() })).collect();
    let mut schema = Schema { metadata, ..Schema::default() };
    let left = limit - schema_block::to_bytes(&schema).expect("15 MiB").len();
    let mut with = |bytes: usize| {
        schema.metadata.insert("f".to_owned(), text[..bytes].to_owned());
        schema_block::to_bytes(&schema)
    };
    assert_eq!(with(left).expect("at the limit").len(), limit);
    assert_eq!(with(left + 1).expect_err("over the limit").kind(), ErrorKind::OverLimit);
}
