//! Compares everything that can be read from a nested column with the model.

use super::model::{Entry, Plan, entries_of, entry_of, with_all_extents};
use std::ops::Range;
use tensilo::stages::{Decoder, FetchedBytes, ReadPlan};
use tensilo::{Column, ColumnBuffer, ErrorKind, Reader};
use tensilo_testing::Random;

/// Checks every read path of every column.
pub fn check_file(reader: &Reader, columns: &[(&Plan, &[Entry])]) {
    assert_eq!(reader.schema().columns.len(), columns.len());
    for (number, (plan, samples)) in columns.iter().enumerate() {
        let column = reader.column_at(number).unwrap();
        assert_eq!(column.sample_count(), samples.len() as u64);
        let nulls = samples.iter().filter(|sample| **sample == Entry::Null).count() as u64;
        assert_eq!(column.facts().null_count, nulls);
        check(plan, &column, samples);
    }
    check_rows(reader, columns);
}

/// Checks every read path of a column.
pub fn check(plan: &Plan, column: &Column, samples: &[Entry]) {
    let random = &mut Random(plan.seed ^ 1);
    check_single_lists(plan, column, samples, random);
    let (mut cursor, mut out) = (column.cursor(), ColumnBuffer::new());
    #[cfg(feature = "rayon")]
    let mut parallel = column.parallel_cursor();
    for round in 0..4 {
        let range = if round == 0 { 0..samples.len() } else { some_range(samples, random) };
        cursor.range_into(range.start as u64..range.end as u64, &mut out).unwrap();
        assert_eq!(entries_of(plan, &out), samples[range.clone()], "samples {range:?}");
        let indices = request(samples, random);
        let expected: Vec<Entry> = indices.iter().map(|&i| samples[i as usize].clone()).collect();
        cursor.gather_into(&indices, &mut out).unwrap();
        assert_eq!(entries_of(plan, &out), expected, "samples {indices:?}");
        #[cfg(feature = "rayon")]
        {
            parallel.gather_into(&indices, &mut out).unwrap();
            assert_eq!(entries_of(plan, &out), expected, "samples {indices:?}, by several threads");
        }
        check_stages(plan, column, &indices, &expected);
        let mut too_many = indices.clone();
        too_many.push(samples.len() as u64);
        assert_eq!(cursor.gather_into(&too_many, &mut out).unwrap_err().kind(), ErrorKind::BadArgument);
    }
}

fn check_single_lists(plan: &Plan, column: &Column, samples: &[Entry], random: &mut Random) {
    let mut cursor = column.cursor();
    for _ in 0..if samples.is_empty() { 0 } else { 20 } {
        let i = random.below(samples.len() as u64);
        let expected = with_all_extents(plan, &samples[i as usize]);
        assert_eq!(entry_of(cursor.read_list(i).unwrap()), expected, "sample {i}");
        if let Some(list) = column.view_list(i).unwrap() {
            assert_eq!(entry_of(list), expected, "view of sample {i}");
        }
        assert!(cursor.read(i).is_err() && column.view(i).is_err());
        assert!(cursor.read_bytes(i, &mut [0; 1000]).is_err());
    }
    for (i, sample) in (0..).zip(samples) {
        assert_eq!(entry_of(cursor.read_list(i).unwrap()), with_all_extents(plan, sample), "sample {i}, in order");
    }
    assert_eq!(cursor.read_list(samples.len() as u64).unwrap_err().kind(), ErrorKind::BadArgument);
}

/// Checks plan, fetch and decode, in segments and in reverse order.
fn check_stages(plan: &Plan, column: &Column, indices: &[u64], expected: &[Entry]) {
    let (mut read, mut fetched, mut buffers) = (ReadPlan::new(), FetchedBytes::new(), [ColumnBuffer::new()]);
    read.select(std::slice::from_ref(column), indices).unwrap();
    read.fetch(&mut fetched).unwrap();
    read.decode_segments(3, &mut buffers, |parts| {
        parts.into_iter().rev().try_for_each(|part| part.decode(&mut Decoder::new(), &fetched))
    })
    .unwrap();
    assert_eq!(entries_of(plan, &buffers[0]), expected, "samples {indices:?}, in stages");
    let mut joined = ColumnBuffer::new();
    let samples = (0..expected.len()).rev().map(|i| Some((&buffers[0], i)));
    joined.join(column.schema(), samples).unwrap();
    assert!(entries_of(plan, &joined).iter().eq(expected.iter().rev()), "samples {indices:?}, joined");
    joined.join(column.schema(), [None, Some((&buffers[0], expected.len()))]).expect_err("there is no such sample");
    joined.join(column.schema(), [None, None]).unwrap();
    assert_eq!(entries_of(plan, &joined), [Entry::Null, Entry::Null]);
}

fn check_rows(reader: &Reader, columns: &[(&Plan, &[Entry])]) {
    let names: Vec<&str> = reader.schema().columns.iter().map(|column| column.name.as_str()).collect();
    let (mut rows, mut out) = (reader.rows(&names).unwrap(), Vec::new());
    let Some((plan, samples)) = columns.first() else { return };
    let indices = request(samples, &mut Random(plan.seed ^ 2));
    rows.gather_into(&indices, &mut out).unwrap();
    for ((plan, samples), buffer) in columns.iter().zip(&out) {
        let expected: Vec<Entry> = indices.iter().map(|&i| samples[i as usize].clone()).collect();
        assert_eq!(entries_of(plan, buffer), expected, "rows {indices:?}");
    }
}

/// Returns samples in any order, with repeats.
fn request(samples: &[Entry], random: &mut Random) -> Vec<u64> {
    let count = if samples.is_empty() { 0 } else { random.below(40) };
    (0..count).map(|_| random.below(samples.len() as u64)).collect()
}

fn some_range(samples: &[Entry], random: &mut Random) -> Range<usize> {
    let [a, b] = [(); 2].map(|()| random.index(samples.len() + 1));
    a.min(b)..a.max(b)
}
