//! Columns that stay on the GPU and are gathered there.

use super::{gpu, open, readable_columns};
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, DType};
use tensilo_cuda::{Conversion, Gpu, Refusal, Resident, ResidentBuilder, Result};
use tensilo_testing::{vector, vector_files};

/// Gathers samples to rows that were filled with a byte.
fn gather(gpu: &Gpu, resident: &Resident, samples: &[i64], row_bytes: usize) -> (Vec<u8>, Option<Refusal>) {
    let mut found = vec![0xEE; samples.len() * row_bytes];
    let rows = gpu.buffer_from(&found).unwrap();
    let indices = gpu.buffer_from(bytemuck::cast_slice(samples)).unwrap();
    // SAFETY: rows and indices live until the samples were gathered.
    let gathered = unsafe { resident.gather(indices.address(), samples.len(), rows.as_batch(), row_bytes) }.unwrap();
    let (refusal, time) = gathered.finish().unwrap();
    assert!(samples.is_empty() || !time.is_zero());
    rows.read(&mut found).unwrap();
    (found, refusal)
}

fn each_column(gpu: &Gpu, mut check: impl FnMut(&str, &Column, Result<Resident>)) {
    for name in vector_files().keys().filter(|name| name.starts_with("valid/") && name.ends_with(".hex")) {
        let Ok(reader) = open(vector(name)) else { continue };
        for column in readable_columns(&reader).into_iter().filter(|column| !column.schema().dtype.is_string()) {
            check(name, &column, Resident::new(gpu, &column, Conversion::None));
        }
    }
}

#[test]
fn samples_in_any_order_are_those_of_the_library() {
    let mut columns = 0;
    let gpu = gpu();
    each_column(&gpu, |name, column, resident| {
        let resident = resident.unwrap_or_else(|error| panic!("{name}, {}: {error}", column.schema().name));
        let count = column.sample_count().min(700) as i64;
        // backwards, with gaps, and the first and the last one twice
        let mut samples: Vec<i64> = (0..count).rev().step_by(3).collect();
        samples.extend((count > 0).then_some([0, column.sample_count() as i64 - 1]).into_iter().flatten());
        let mut expected = ColumnBuffer::new();
        let numbers: Vec<u64> = samples.iter().map(|&sample| sample as u64).collect();
        column.cursor().gather_into(&numbers, &mut expected).unwrap();
        let width = column.schema().dtype.coded_bytes();
        let row_bytes = resident.row_bytes() + width;
        let (rows, refusal) = gather(&gpu, &resident, &samples, row_bytes);
        assert_eq!(refusal, None, "{name}");
        for (position, row) in rows.chunks_exact(row_bytes).enumerate() {
            let values = expected.value_start(position).unwrap()..expected.value_start(position + 1).unwrap();
            let (found, rest) = row.split_at(values.len());
            assert!(found == &expected.bytes()[values], "{name}, {}, row {position}", column.schema().name);
            assert!(rest.iter().all(|&byte| byte == 0xEE), "{name}");
        }
        columns += 1;
    });
    assert!(columns > 100, "{columns} columns");
}

#[test]
fn numbers_of_no_sample_are_reported() {
    let gpu = gpu();
    each_column(&gpu, |name, column, resident| {
        let resident = resident.unwrap();
        let row_bytes = resident.row_bytes().max(8);
        for wrong in [column.sample_count() as i64, -1, i64::MIN, i64::MAX] {
            let samples = [wrong, wrong];
            let (rows, refusal) = gather(&gpu, &resident, &samples, row_bytes);
            assert_eq!(refusal.map(|refusal| refusal.block), Some(0), "{name}, sample {wrong}");
            assert!(rows.iter().all(|&byte| byte == 0xEE), "{name}");
        }
    });
}

/// Samples of two files, in another order than theirs, and an upload that is dropped.
#[test]
fn an_upload_has_samples_of_several_files_in_any_order() {
    let gpu = gpu();
    let files = ["valid/exponent-tiers-in-blocks.hex", "valid/exponent-tiers-in-blocks.hex"];
    let columns: Vec<Column> =
        files.iter().map(|name| readable_columns(&open(vector(name)).unwrap()).remove(0)).collect();
    let count = columns[0].sample_count();
    let mut builder = ResidentBuilder::new(&gpu, columns[0].schema().dtype, Conversion::None).unwrap();
    let (mut plan, mut bytes, mut shapes) = (ReadPlan::new(), FetchedBytes::new(), ColumnBuffer::new());
    let mut add = |builder: &mut ResidentBuilder, file: usize, rows: &[usize]| {
        plan.select_range(std::slice::from_ref(&columns[file]), 0..count).unwrap();
        plan.fetch(&mut bytes).unwrap();
        builder.add(&mut Decoder::new(), &plan, &bytes, 0, Some(rows), &mut shapes)
    };
    let count = count as usize;
    builder.begin_upload(count);
    assert!(add(&mut builder, 0, &vec![count; count]).is_err(), "a row outside of the upload");
    builder.begin_upload(2 * count);
    let (even, odd): (Vec<usize>, Vec<usize>) = (0..2 * count).rev().partition(|row| row % 2 == 0);
    add(&mut builder, 0, &even).unwrap();
    let with_one = builder.byte_count();
    add(&mut builder, 1, &odd).unwrap();
    assert!(builder.byte_count() > with_one);
    builder.end_upload().unwrap();
    builder.begin_upload(7);
    let resident = builder.finish().unwrap();
    assert_eq!(resident.sample_count(), 2 * count as u64);
    let mut expected = ColumnBuffer::new();
    columns[0].cursor().range_into(0..count as u64, &mut expected).unwrap();
    let all: Vec<i64> = (0..2 * count as i64).rev().collect();
    let (rows, refusal) = gather(&gpu, &resident, &all, resident.row_bytes());
    assert_eq!(refusal, None);
    for (position, row) in rows.chunks_exact(resident.row_bytes()).enumerate() {
        let sample = position / 2;
        let values = expected.value_start(sample).unwrap()..expected.value_start(sample + 1).unwrap();
        assert!(row == &expected.bytes()[values], "row {position}");
    }
}

#[test]
fn floats_are_delivered_as_f32() {
    let gpu = gpu();
    let reader = open(vector("valid/every-dtype.hex")).unwrap();
    let column = readable_columns(&reader).into_iter().find(|column| column.schema().dtype == DType::Bf16).unwrap();
    let resident = Resident::new(&gpu, &column, Conversion::Bf16ToF32).unwrap();
    let samples: Vec<i64> = (0..column.sample_count() as i64).collect();
    let (rows, refusal) = gather(&gpu, &resident, &samples, resident.row_bytes());
    assert_eq!(refusal, None);
    let mut expected = ColumnBuffer::new();
    column.cursor().range_into(0..column.sample_count(), &mut expected).unwrap();
    let expected: Vec<u8> = expected.bytes().as_chunks().0.iter().flat_map(|&[low, high]| [0, 0, low, high]).collect();
    assert_eq!(rows, expected);
}
