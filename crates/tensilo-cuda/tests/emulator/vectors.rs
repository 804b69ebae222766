//! All valid vectors of the specification.

use super::hostile::each_block;
use super::{Fixture, ORDERS, collect, destination, fixture, in_order, open, readable_columns};
use std::collections::BTreeSet;
use tensilo::{Column, DType};
use tensilo_cuda::{BlockList, Conversion, Destination, Emulator, SampleRows};
use tensilo_testing::{vector, vector_files};

/// Calls `check` with each readable column and the number of its samples.
fn each_column(mut check: impl FnMut(&str, &Column, u64)) {
    let mut count = 0;
    for name in vector_files().keys().filter(|name| name.starts_with("valid/") && name.ends_with(".hex")) {
        let Ok(reader) = open(vector(name)) else { continue };
        for column in readable_columns(&reader) {
            check(name, &column, reader.sample_count());
            count += 1;
        }
    }
    assert!(count > 100, "{count} columns");
}

#[test]
fn all_samples_are_those_of_the_library() {
    let mut blocks = 0;
    each_column(|name, column, count| {
        let samples: Vec<u64> = (0..count.min(1 << 16)).collect();
        let Ok(Fixture { decoded, shapes, mut list }) = fixture(column, &samples) else { return };
        list.place(&destination(column), &[in_order(&shapes)]).unwrap();
        blocks += list.block_count();
        assert_eq!(
            (shapes.offsets(), shapes.varying_extents()),
            (decoded.offsets(), decoded.varying_extents()),
            "{name}"
        );
        assert_eq!((shapes.validity(), shapes.item_count()), (decoded.validity(), decoded.item_count()), "{name}");
        for (found, expected) in shapes.lists().iter().zip(decoded.lists()) {
            assert_eq!((found.offsets(), found.validity()), (expected.offsets(), expected.validity()), "{name}");
        }
        for order in ORDERS {
            let mut found = vec![0; decoded.bytes().len()];
            let refusal = Emulator::new(order).decode(&mut list, &mut found).unwrap();
            assert_eq!(refusal, None, "{name}, {}, {order:?}", column.schema().name);
            assert!(found == decoded.bytes(), "{name}, {}, {order:?}", column.schema().name);
        }
    });
    assert!(blocks > 900, "{blocks} blocks");
}

/// The vectors contain each encoding that kernels decode in each width, and each transform, mapping
/// and option.
#[test]
fn vectors_have_all_that_kernels_decode() {
    let (mut encodings, mut transforms, mut mappings) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    each_block(|samples| {
        let (block, tables) = (samples.block, samples.block.tables());
        encodings.insert((block.encoding(), block.element_bytes()));
        let transform = if block.encoding() == 6 { tables[4] } else { tables[0] };
        transforms.insert((block.encoding(), transform));
        if block.encoding() == 6 {
            mappings.insert(tables[23]);
        }
    });
    let expected = (4..=6).flat_map(|id| [1, 2, 4, 8].map(|width| (id, width))).collect();
    assert_eq!(encodings, expected);
    let expected = BTreeSet::from([(4, 0), (4, 1), (5, 0), (5, 2), (5, 3), (6, 0), (6, 2), (6, 3), (6, 4)]);
    assert_eq!(transforms, expected);
    assert!((0..4).all(|mapping| mappings.iter().any(|field| field & 15 == mapping)), "{mappings:?}");
    assert!([16, 32, 64].iter().all(|option| mappings.iter().any(|field| field & option != 0)), "{mappings:?}");
}

#[test]
fn samples_in_any_order_are_copied_to_their_positions() {
    each_column(|name, column, count| {
        // backwards, with gaps, and the first sample twice
        let mut samples: Vec<u64> = (0..count.min(500)).rev().step_by(3).collect();
        samples.extend((count > 0).then_some(0));
        let Ok(Fixture { decoded, shapes, mut list }) = fixture(column, &samples) else { return };
        list.place(&destination(column), &[in_order(&shapes)]).unwrap();
        let mut found = vec![0; decoded.bytes().len()];
        assert_eq!(Emulator::default().decode(&mut list, &mut found).unwrap(), None, "{name}");
        assert!(found == decoded.bytes(), "{name}, {}", column.schema().name);
    });
}

/// Two parts of a batch whose samples alternate, and rows that are filled up.
#[test]
fn parts_of_a_batch_go_to_their_rows() {
    each_column(|name, column, count| {
        let samples: Vec<u64> = (0..count.min(40)).collect();
        let Ok(Fixture { decoded, .. }) = fixture(column, &samples) else { return };
        let halves = [0, 1].map(|first| (first..samples.len()).step_by(2).collect::<Vec<usize>>());
        let of_half = |half: &[usize]| half.iter().map(|&row| samples[row]).collect::<Vec<u64>>();
        let mut list = BlockList::new();
        let shapes = halves.each_ref().map(|half| {
            let part = usize::from(half.first() == Some(&1));
            collect(column, &of_half(half), &mut |samples| list.push(part, &samples)).unwrap()
        });
        let starts: Vec<usize> = (0..=samples.len()).map(|position| decoded.value_start(position).unwrap()).collect();
        let width = column.schema().dtype.coded_bytes();
        let row_bytes = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) + 3 * width;
        let parts = [0, 1].map(|half| SampleRows { shapes: &shapes[half], rows: Some(&halves[half]) });
        list.place(&Destination { row_bytes: Some(row_bytes), ..destination(column) }, &parts).unwrap();
        let mut expected: Vec<u8> = Vec::new();
        for (row, pair) in starts.windows(2).enumerate() {
            expected.extend(&decoded.bytes()[pair[0]..pair[1]]);
            let filler = [7, 8, 9, 10, 11, 12, 13, 14];
            let missing = row_bytes - (pair[1] - pair[0]);
            list.fill(expected.len(), &filler[..width], missing / width).unwrap();
            expected.extend(filler[..width].iter().cycle().take(missing));
            assert_eq!(expected.len(), (row + 1) * row_bytes);
        }
        list.push_bytes(expected.len(), b"the end").unwrap();
        expected.extend(b"the end");
        let mut found = vec![0xEE; list.batch_bytes()];
        assert_eq!(Emulator::default().decode(&mut list, &mut found).unwrap(), None, "{name}");
        assert!(found == expected, "{name}, {}", column.schema().name);
    });
}

/// A kernel writes as many bytes as the blocks have, so a destination of another type is refused.
#[test]
fn wrong_destinations_are_refused() {
    let reader = open(vector("valid/exponent-tiers.hex")).unwrap();
    let column = readable_columns(&reader).remove(0);
    let right = destination(&column);
    let width = right.dtype.coded_bytes();
    let list = || fixture(&column, &[0, 1]).unwrap();
    let refused = |wrong: Destination| {
        let Fixture { shapes, mut list, .. } = list();
        list.place(&wrong, &[in_order(&shapes)]).unwrap_err();
    };
    let other = if width == 8 { DType::U16 } else { DType::U64 };
    refused(Destination { dtype: other, ..right });
    refused(Destination { conversion: Conversion::F16ToF32, dtype: DType::U16, ..right });
    if width > 1 {
        refused(Destination { offset: 1, ..right });
        refused(Destination { row_bytes: Some(1_000_001), ..right });
    }
    refused(Destination { row_bytes: Some(0), ..right });
    let Fixture { mut list, .. } = list();
    list.push_bytes(0, b"before the blocks have destinations").unwrap_err();
    list.fill(0, &[1], 9).unwrap_err();
}

#[test]
fn samples_of_different_lengths_fill_rows() {
    let mut columns = 0;
    each_column(|name, column, count| {
        let samples: Vec<u64> = (0..count.min(300)).collect();
        let Ok(Fixture { decoded, shapes, mut list }) = fixture(column, &samples) else { return };
        let starts: Vec<usize> = (0..=samples.len()).map(|position| shapes.value_start(position).unwrap()).collect();
        let row_bytes = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) + 16;
        list.place(&Destination { row_bytes: Some(row_bytes), ..destination(column) }, &[in_order(&shapes)]).unwrap();
        let mut found = vec![0xEE; row_bytes * samples.len()];
        assert_eq!(Emulator::default().decode(&mut list, &mut found).unwrap(), None, "{name}");
        for (row, pair) in found.chunks_exact(row_bytes).zip(starts.windows(2)) {
            let (values, padding) = row.split_at(pair[1] - pair[0]);
            assert!(values == &decoded.bytes()[pair[0]..pair[1]], "{name}, {}", column.schema().name);
            assert!(padding.iter().all(|&byte| byte == 0xEE), "{name}");
        }
        columns += 1;
    });
    assert!(columns > 100, "{columns} columns");
}

#[test]
fn floats_of_two_bytes_are_delivered_as_f32() {
    let mut count_of = [0, 0];
    each_column(|name, column, count| {
        let conversion = match column.schema().dtype {
            DType::Bf16 => Conversion::Bf16ToF32,
            DType::F16 => Conversion::F16ToF32,
            _ => return,
        };
        let is_f16 = conversion == Conversion::F16ToF32;
        let samples: Vec<u64> = (0..count).collect();
        let Ok(Fixture { decoded, shapes, mut list }) = fixture(column, &samples) else { return };
        let halves = decoded.bytes().as_chunks().0.iter().map(|&half| u16::from_le_bytes(half));
        let expected: Vec<u32> =
            halves.map(|half| if is_f16 { f32_of_f16(half) } else { u32::from(half) << 16 }).collect();
        list.place(&Destination { conversion, ..destination(column) }, &[in_order(&shapes)]).unwrap();
        let mut found = vec![0_u32; expected.len()];
        assert_eq!(
            Emulator::default().decode(&mut list, bytemuck::cast_slice_mut(&mut found)).unwrap(),
            None,
            "{name}"
        );
        assert!(found == expected, "{name}");
        count_of[usize::from(is_f16)] += expected.len();
    });
    assert!(count_of.iter().all(|&count| count > 0), "{count_of:?}");
}

/// Returns an f16 as an f32, by arithmetic. A NaN keeps its payload.
fn f32_of_f16(bits: u16) -> u32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (bits >> 10 & 31, bits & 1023);
    if exponent == 31 {
        return sign | 0x7F80_0000 | u32::from(fraction) << 13;
    }
    let magnitude = match exponent {
        0 => f32::from(fraction) * 2_f32.powi(-24),
        _ => f32::from(1024 + fraction) * 2_f32.powi(i32::from(exponent) - 25),
    };
    sign | magnitude.to_bits()
}
