//! Tests that invalid calls on nested columns are refused, each with its reason.

use crate::common::vectors::bytes;
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, DType, ErrorKind, OpenOptions, Profile, Reader, Schema, Shape, Writer,
    WriterOptions,
};

#[test]
fn lists_of_a_plain_column_are_refused_by_views_and_reads_alike() {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::scalar())]);
    let options = WriterOptions::new().profile(Profile::Raw);
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    writer.push_batch(&[ColumnBatch::fixed(3, &[1_u8, 2, 3])]).unwrap();
    let reader = Reader::from_bytes(writer.into_bytes().unwrap()).unwrap();
    let column = reader.column("x").unwrap();
    let view = column.view_list(1).unwrap_err();
    assert_eq!(view.kind(), ErrorKind::BadArgument, "{view}");
    assert!(view.message().contains("are not lists"), "{view}");
    let read = column.cursor().read_list(1).unwrap_err();
    assert_eq!((read.kind(), read.message()), (ErrorKind::BadArgument, view.message()));
}

/// A null item of a column whose items are never null must not be read as present.
#[test]
fn a_null_item_that_may_not_be_null_is_refused_by_every_read() {
    let file = bytes("invalid/R-4.6-null-of-one-level.hex");
    let reader = OpenOptions::new().open_source(InMemory(file)).unwrap();
    let column = reader.column("x").unwrap();
    let rule = |error: Option<tensilo::Error>| error.and_then(|error| error.rule());
    let mut cursor = column.cursor();
    assert!(cursor.read_list(0).unwrap().is_null());
    assert_eq!(rule(cursor.read_list(1).unwrap().item(0).err()), Some("R-4.6"), "read");
    if let Some(list) = column.view_list(1).unwrap() {
        assert_eq!(rule(list.item(0).err()), Some("R-4.6"), "view");
    }
    let mut out = ColumnBuffer::new();
    assert_eq!(rule(cursor.gather_into(&[1], &mut out).err()), Some("R-4.6"), "gather");
    assert_eq!(rule(cursor.range_into(0..2, &mut out).err()), Some("R-4.6"), "range");
}

#[test]
fn a_text_that_is_not_utf8_is_named_by_the_number_of_its_item() {
    for (vector, part) in [("text-of-list", "item 1 of the chunk is not UTF-8"), ("boundary-of-items", "item 0")] {
        let file = bytes(&format!("invalid/R-4.9-{vector}.hex"));
        let report = verify(&InMemory(file), VerifyOptions::new().deep(true)).unwrap();
        let error = &report.findings[0].error;
        assert!(error.message().contains(part), "{vector}: {error}");
    }
}
