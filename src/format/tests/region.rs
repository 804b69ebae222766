//! Tests of region headers.

use super::{FILE, rule};
use crate::format::region::{RegionHeader, RegionKind};
use crate::{ErrorKind, limits};

#[test]
fn bodies_end_at_the_limit_of_their_kind() {
    let header = RegionHeader::new(RegionKind::FileHeader, FILE, 0, b"body").expect("a header");
    let kinds = [
        (RegionKind::FileHeader, limits::SCHEMA_BYTES),
        (RegionKind::Chunk, limits::CHUNK_BYTES),
        (RegionKind::Table, limits::TABLE_BYTES),
        (RegionKind::IndexPage, limits::INDEX_PAGE_BYTES),
        (RegionKind::Footer, limits::FOOTER_BYTES),
        (RegionKind::Trailer, 0),
    ];
    for (kind, body_bytes) in kinds {
        let parse = |body_bytes| RegionHeader::parse(&RegionHeader { kind, body_bytes, ..header }.to_bytes(), 0);
        assert_eq!(parse(body_bytes).expect("at the limit").kind, kind);
        assert_eq!(rule(parse(body_bytes + 1)), Some("R-2.5"));
    }
    let body = [0; limits::INDEX_PAGE_BYTES as usize + 1];
    assert!(RegionHeader::new(RegionKind::IndexPage, FILE, 0, &body[1..]).is_ok());
    let error = RegionHeader::new(RegionKind::IndexPage, FILE, 0, &body).expect_err("over the limit");
    assert_eq!(error.kind(), ErrorKind::OverLimit);
}

#[test]
fn regions_have_the_names_of_the_specification() {
    use RegionKind::{Chunk, FileHeader, Footer, IndexPage, Table, Trailer};
    let names = [FileHeader, Chunk, Table, IndexPage, Footer, Trailer].map(RegionKind::name);
    assert_eq!(names, ["file header", "chunk", "table", "index page", "footer", "trailer"]);
    assert_eq!(IndexPage.to_string(), "index page");
}

#[test]
fn a_region_may_end_where_the_file_does() {
    let header = RegionHeader::new(RegionKind::Table, FILE, 128, b"body").expect("a header");
    assert_eq!((header.body_offset(), header.end()), (192, 196));
    assert_eq!([195, 196, 197].map(|bytes| rule(header.check_inside(bytes))), [Some("R-2.5"), None, None]);
}
