//! Columns that stay on the GPU, gathered there by sample.

use super::{open, readable_columns};
use tensilo::{Column, ColumnBuffer, DType};
use tensilo_cuda::{BatchMemory, Conversion, Gpu, Refusal, Resident, ResidentOptions, Result};
use tensilo_testing::{vector, vector_files};

/// Gathers samples to rows, which are full of a byte before.
fn gather(resident: &Resident, samples: &[i64], row_bytes: usize) -> (Vec<u8>, Option<Refusal>) {
    let mut rows = vec![0xEEEE_EEEE_EEEE_EEEE_u64; (samples.len() * row_bytes).div_ceil(8)];
    let address = rows.as_mut_ptr().expose_provenance() as u64;
    let indices = samples.as_ptr().expose_provenance() as u64;
    let batch = BatchMemory { address, bytes: samples.len() * row_bytes, stream: 0 };
    // SAFETY: the memory of the emulated GPU is that of this process. Rows and indices live until
    // the samples were gathered.
    let gathered = unsafe { resident.gather(indices, samples.len(), batch, row_bytes) }.unwrap();
    let refusal = gathered.finish().unwrap();
    let bytes: &[u8] = bytemuck::cast_slice(&rows);
    (bytes[..samples.len() * row_bytes].to_vec(), refusal)
}

fn each_column(mut check: impl FnMut(&str, &Column, Result<Resident>)) {
    let gpu = Gpu::emulated();
    for name in vector_files().keys().filter(|name| name.starts_with("valid/") && name.ends_with(".hex")) {
        let Ok(reader) = open(vector(name)) else { continue };
        for column in readable_columns(&reader).into_iter().filter(|column| !column.schema().dtype.is_string()) {
            check(name, &column, Resident::new(&gpu, &column, ResidentOptions::default()));
        }
    }
}

#[test]
fn samples_in_any_order_are_those_of_the_library() {
    let mut columns = 0;
    each_column(|name, column, resident| {
        let resident = resident.unwrap_or_else(|error| panic!("{name}, {}: {error}", column.schema().name));
        let count = column.sample_count().min(700) as i64;
        // backwards, with gaps, and the first and the last one twice
        let mut samples: Vec<i64> = (0..count).rev().step_by(3).collect();
        samples.extend((count > 0).then_some([0, column.sample_count() as i64 - 1]).into_iter().flatten());
        let mut due = ColumnBuffer::new();
        let numbers: Vec<u64> = samples.iter().map(|&sample| sample as u64).collect();
        column.cursor().gather_into(&numbers, &mut due).unwrap();
        let width = column.schema().dtype.coded_bytes();
        let row_bytes = resident.row_bytes() + width;
        let (rows, refusal) = gather(&resident, &samples, row_bytes);
        assert_eq!(refusal, None, "{name}");
        for (position, row) in rows.chunks_exact(row_bytes).enumerate() {
            let values = due.value_start(position).unwrap()..due.value_start(position + 1).unwrap();
            let (found, rest) = row.split_at(values.len());
            assert!(found == &due.bytes()[values], "{name}, {}, row {position}", column.schema().name);
            assert!(rest.iter().all(|&byte| byte == 0xEE), "{name}");
        }
        columns += 1;
    });
    assert!(columns > 100, "{columns} columns");
}

#[test]
fn numbers_of_no_sample_are_reported() {
    each_column(|name, column, resident| {
        let resident = resident.unwrap();
        let row_bytes = resident.row_bytes().max(8);
        for wrong in [column.sample_count() as i64, -1, i64::MIN, i64::MAX] {
            let samples = [wrong, wrong];
            let (rows, refusal) = gather(&resident, &samples, row_bytes);
            assert_eq!(refusal.map(|refusal| refusal.block), Some(0), "{name}, sample {wrong}");
            assert!(rows.iter().all(|&byte| byte == 0xEE), "{name}");
        }
    });
}

#[test]
fn a_column_that_takes_too_much_memory_is_refused() {
    let gpu = Gpu::emulated();
    let reader = open(vector("valid/exponent-tiers-in-blocks.hex")).unwrap();
    let column = readable_columns(&reader).remove(0);
    let takes = Resident::new(&gpu, &column, ResidentOptions::default()).unwrap().byte_count();
    let options = ResidentOptions { max_bytes: takes / 2, ..ResidentOptions::default() };
    let refused = Resident::new(&gpu, &column, options).unwrap_err().to_string();
    assert!(refused.contains("takes more than"), "{refused}");
}

#[test]
fn floats_are_delivered_as_f32() {
    let gpu = Gpu::emulated();
    let reader = open(vector("valid/every-dtype.hex")).unwrap();
    let column = readable_columns(&reader).into_iter().find(|column| column.schema().dtype == DType::Bf16).unwrap();
    let options = ResidentOptions { conversion: Conversion::Bf16ToF32, ..ResidentOptions::default() };
    let resident = Resident::new(&gpu, &column, options).unwrap();
    let samples: Vec<i64> = (0..column.sample_count() as i64).collect();
    let (rows, refusal) = gather(&resident, &samples, resident.row_bytes());
    assert_eq!(refusal, None);
    let mut due = ColumnBuffer::new();
    column.cursor().range_into(0..column.sample_count(), &mut due).unwrap();
    let due: Vec<u8> = due.bytes().as_chunks().0.iter().flat_map(|&[low, high]| [0, 0, low, high]).collect();
    assert_eq!(rows, due);
}
