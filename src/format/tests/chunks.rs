//! Tests of chunk headers, and of the lengths and contents of parts.

use super::{FILE, rule};
use crate::format::chunk::{ChunkEntry, ChunkHeader, PARTS};
use crate::format::content::Content;
use crate::format::region::RegionHeader;
use crate::format::schema::Layout;
use crate::{ColumnSchema, DType, Extent, Result, Shape, limits};

fn chunk(column: u32, sample_count: u32, raw_bytes: u32, flags: u16) -> Result<ChunkHeader> {
    let entry =
        ChunkEntry { offset: 0, first_sample: 0, stored_bytes: 0, sample_count, body_crc: 0, encoding: 0, flags };
    let header = ChunkHeader { column, raw_bytes, entry }.seal(FILE, 64, b"body")?;
    ChunkHeader::parse(&RegionHeader::parse(&header.to_bytes(), 64)?, 3)
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
        let header = chunk(column, samples, bytes, flags).expect("at a limit");
        assert_eq!((header.column, header.entry.sample_count, header.raw_bytes), (column, samples, bytes));
        assert_eq!(header.entry.has_parts(), flags == PARTS);
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

/// Returns the shape part of one sample: its end, then its extents.
fn one_sample(count: u32, extents: &[u32]) -> Vec<u8> {
    [count].iter().chain(extents).flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn the_extents_of_a_sample_give_its_count() {
    const MAX: u32 = limits::EXTENT;
    let check = |count, extents: &[u32]| {
        let layout = layout(DType::U8, Shape::new(vec![Extent::Varying; extents.len()]));
        let shape = one_sample(count, extents);
        rule(Content { sample_count: 1, validity: None, shape: &shape, values: &[] }.check_extents(&layout, 0))
    };
    // in the third case, the product of the extents other than 0 exceeds 2^64
    for (count, extents) in [(6, [2, 3, 1, 1]), (MAX, [1, MAX, 1, 1]), (0, [MAX, MAX, MAX, 0]), (0, [0; 4])] {
        assert_eq!(check(count, &extents), None, "{extents:?}");
    }
    for (count, extents) in [(6, [2, 3, 1, 2]), (0, [MAX + 1, 0, 1, 1]), (0, [MAX; 4]), (1, [0, 1, 1, 1])] {
        assert_eq!(check(count, &extents), Some("R-4.7"), "{extents:?}");
    }
}

#[test]
fn a_validity_has_nulls_and_no_bits_beyond_the_last_sample() {
    let layout = Layout { nullable: true, ..layout(DType::U8, Shape::scalar()) };
    let check = |sample_count, validity: &[u8]| {
        let content = Content { sample_count, validity: Some(validity), shape: &[], values: &[] };
        (content.null_count(), rule(content.check_lists(&layout)))
    };
    for (samples, validity, nulls) in [(1, [0, 0], 1), (8, [0x7F, 0], 1), (9, [0xFF, 0], 1), (15, [0, 0x7F], 8)] {
        assert_eq!(check(samples, &validity[..samples.div_ceil(8)]), (nulls, None), "{samples}");
    }
    for (samples, validity) in [(9, [0xFF, 1]), (9, [0, 0x80]), (9, [0, 2]), (15, [0, 0x80]), (16, [0xFF, 0xFF])] {
        assert_eq!(check(samples, &validity).1, Some("R-4.6"), "{samples} {validity:?}");
    }
    assert_eq!(check(9, &[0xFF, 0x80]).0, 1, "a bit beyond the last sample is ignored");
    let wide: Vec<u8> = (0..=255).collect(); // half of the bits are zeros
    assert_eq!(check(2048, &wide).0, 1024);
}

#[test]
fn an_element_that_all_equal_is_checked_as_each_of_them_would_be() {
    let check = |dtype: DType, validity: Option<&[u8]>, element: &[u8]| {
        let shape = if dtype.is_string() { Shape::ragged() } else { Shape::scalar() };
        let content = Content { sample_count: 8, validity, shape: &[], values: &[] };
        content.check_constant(&layout(dtype, shape), element).err().map(|error| error.to_string())
    };
    let nulls: Option<&[u8]> = Some(&[0b1110_1111]);
    for (dtype, validity, element) in [
        (DType::Bool, None, &[1][..]),
        (DType::Utf8, None, &[0x7F]),
        (DType::Bytes, None, &[0xFF]),
        (DType::Bytes, nulls, &[0xFF]),
        (DType::U16, None, &[0, 1]),
        (DType::U16, nulls, &[0, 0]),
    ] {
        assert_eq!(check(dtype, validity, element), None, "{dtype} {element:?}");
    }
    for (dtype, validity, element, message) in [
        (DType::Bool, None, &[2][..], "a bool is 2, expected 0 or 1"),
        (DType::Utf8, None, &[0x80], "sample 0 of the chunk is not UTF-8"),
        (DType::U16, nulls, &[0, 1], "sample 4 of the chunk is null, but has values"),
    ] {
        let error = check(dtype, validity, element).expect("an error");
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn an_error_names_the_sample_that_is_not_utf8() {
    let check = |values: &[u8]| {
        let ends: Vec<u8> = [2_u32, 2, 4].iter().flat_map(|end| end.to_le_bytes()).collect();
        let content = Content { sample_count: 3, validity: None, shape: &ends, values };
        content.check_values(&layout(DType::Utf8, Shape::ragged())).err().map(|error| error.to_string())
    };
    for text in ["abcd", "\u{e9}\u{e9}"] {
        assert_eq!(check(text.as_bytes()), None);
    }
    // in the second case, the values of all samples together are valid UTF-8, but sample 0 ends
    // within a character
    for (values, sample) in [(&[b'a', b'b', 0xFF, b'd'], 2), (&[b'a', 0xC3, 0xA9, b'd'], 0)] {
        let error = check(values).expect("an error");
        assert!(error.contains(&format!("sample {sample} of the chunk is not UTF-8")), "{error}");
    }
}
