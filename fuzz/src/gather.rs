//! A gather returns what a loop of single reads returns.
//!
//! This holds for any file, in memory or read by position, any list of samples (unsorted, repeated,
//! out of range), any verification setting, and whatever the same cursor and buffer did before. The
//! input chooses all of them.

use super::case::{self, Case, rarely};
use super::lists::{self, Flat};
use super::open::Positional;
use arbitrary::Unstructured;
use tensilo::sink::Stream;
use tensilo::source::{InMemory, Source};
use tensilo::{Column, ColumnBuffer, Cursor, DType, Extent, OpenOptions, Sample, Verification};

pub fn run(input: &[u8]) {
    case::run(input, check);
}

fn check(case: &Case, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let file = case.write(Stream(Vec::new()), &case.options, usize::MAX).unwrap().0;
    let verification = *u.choose(&[Verification::FirstTouch, Verification::Always, Verification::Never])?;
    if u.arbitrary()? {
        gather(InMemory(file.clone()), verification, case, u)
    } else {
        gather(Positional(file.clone()), verification, case, u)
    }
}

fn gather<S: Source + 'static>(
    source: S,
    verification: Verification,
    case: &Case,
    u: &mut Unstructured<'_>,
) -> arbitrary::Result<()> {
    let reader = OpenOptions::new().verification(verification).open_source(source).unwrap();
    let names: Vec<&str> = case.columns.iter().map(|column| column.schema.name.as_str()).collect();
    let mut rows = reader.rows(&names).unwrap();
    let mut buffers = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let indices = indices(u, reader.sample_count())?;
        match rows.gather_into(&indices, &mut buffers) {
            Ok(()) => {
                for (column, gathered) in reader.columns().zip(&buffers) {
                    assert_same(&column, &indices, gathered);
                }
            }
            // an index out of range
            Err(_) => assert!(indices.iter().any(|&i| i >= reader.sample_count())),
        }
        for cursor in rows.cursors() {
            others(cursor, u, case.sample_count as u64)?;
        }
    }
    Ok(())
}

/// Draws indices, which are in range in most inputs.
fn indices(u: &mut Unstructured<'_>, count: u64) -> arbitrary::Result<Vec<u64>> {
    let wrong = rarely(u, 16)?;
    let length = u.int_in_range(0..=40)?;
    let index = |u: &mut Unstructured<'_>| Ok(u64::from(u.arbitrary::<u8>()?) % (count + u64::from(wrong)).max(1));
    let length = if count == 0 && !wrong { 0 } else { length };
    (0..length).map(|_| index(u)).collect()
}

/// Compares gathered samples with single reads by a new cursor.
fn assert_same(column: &Column, indices: &[u64], gathered: &ColumnBuffer) {
    let mut cursor = column.cursor();
    let (mut bytes, mut extents, mut nulls) = (Vec::<u8>::new(), Vec::<u32>::new(), Vec::<bool>::new());
    let shape = column.schema().shape.extents();
    let varying: Vec<usize> = (0..shape.len()).filter(|&at| shape[at] == Extent::Varying).collect();
    let mut read = 0;
    for &i in indices {
        let sample = flat(column, &mut cursor, i);
        let items = sample.nulls.len();
        let of_item = |item: usize| varying.iter().map(move |at| (item, at));
        extents.extend((0..items).flat_map(of_item).map(|(item, at)| sample.extents[item * shape.len() + at]));
        bytes.extend(sample.bytes);
        nulls.extend(sample.nulls);
        read += items;
    }
    assert_eq!((gathered.sample_count(), gathered.item_count()), (indices.len(), read));
    assert_eq!(gathered.bytes(), bytes);
    assert_eq!(gathered.varying_extents(), extents);
    assert!((0..nulls.len()).map(|i| gathered.is_null(i)).eq(nulls));
}

/// Reads a sample, with all items if it is a list, and compares it with its view.
fn flat(column: &Column, cursor: &mut Cursor, i: u64) -> Flat {
    let is_text = column.schema().dtype == DType::Utf8;
    if column.schema().levels.is_empty() {
        let of = |sample: Sample<'_>| Flat {
            lists: Vec::new(),
            nulls: vec![sample.is_null()],
            extents: sample.extents().to_vec(),
            bytes: sample.bytes().to_vec(),
        };
        let read = of(cursor.read(i).unwrap());
        column.view(i).unwrap().into_iter().for_each(|view| assert_eq!(of(view), read));
        return read;
    }
    let read = lists::flat(&cursor.read_list(i).unwrap(), is_text).unwrap();
    column.view_list(i).unwrap().into_iter().for_each(|view| assert_eq!(lists::flat(&view, is_text).unwrap(), read));
    read
}

/// Makes other calls, which leave other chunks in the cursor's memory.
fn others(cursor: &mut Cursor, u: &mut Unstructured<'_>, count: u64) -> arbitrary::Result<()> {
    if count == 0 {
        return Ok(());
    }
    let i = u.int_in_range(0..=count - 1)?;
    let column = cursor.column();
    let single = flat(&column, cursor, i).bytes;
    if column.schema().dtype == DType::F32 && column.schema().levels.is_empty() {
        let mut out = vec![0_f32; single.len() / 4];
        cursor.read_slice(i, &mut out).unwrap();
        assert!(out.iter().flat_map(|element| element.to_le_bytes()).eq(single));
    }
    let mut buffer = ColumnBuffer::new();
    let range = i..count.min(i + u.int_in_range(0..=20)?);
    cursor.range_into(range.clone(), &mut buffer).unwrap();
    let range: Vec<u64> = range.collect();
    assert_same(&column, &range, &buffer);
    Ok(())
}
