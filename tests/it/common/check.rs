//! Compares everything that can be read from a file with the model.

use super::plan::WritePlan;
use super::with_element;
use super::{ModelSample, Table, full_shape, inner_bytes, shape_bytes, stored_bytes};
use bytemuck::Pod;
use std::ops::Range;
use tensilo::facts::ChunkInfo;
use tensilo::source::Source;
use tensilo::{Column, ColumnBuffer, ColumnSchema, Cursor, DType, Element, Profile, Reader, Sample};
use tensilo_testing::Random;

/// Checks every read path of every column, and the facts that the file records.
pub fn check(reader: &Reader, table: &Table, plan: &WritePlan, seed: u64) {
    assert_eq!(reader.schema(), &table.schema);
    assert_eq!(reader.sample_count(), table.sample_count as u64);
    assert_eq!(reader.alignment(), plan.alignment);
    let random = &mut Random(seed);
    for (column, samples) in reader.columns().zip(&table.columns) {
        assert_eq!(column.sample_count(), samples.len() as u64);
        check_single_samples(&column, samples, reader.source().as_bytes(), plan.profile, random);
        check_many_samples(&column, samples, random);
        check_out_of_range(&column, samples.len() as u64);
    }
    check_rows(reader, table, random);
    check_facts(reader, table, plan);
}

fn check_sample(column: &ColumnSchema, found: &Sample, expected: &ModelSample, what: &str) {
    assert_eq!(found.is_null(), expected.is_none(), "{what}: null");
    assert_eq!(found.extents(), full_shape(column, expected), "{what}: shape");
    let bytes = stored_bytes(column, expected);
    assert_eq!(found.bytes(), bytes, "{what}: bytes");
    with_element!(column.dtype, T => {
        let elements = found.as_slice::<T>().expect(what);
        assert_eq!(bytemuck::cast_slice::<T, u8>(elements), bytes, "{what}: elements");
    });
    // only the column's own element type is accepted
    assert_eq!(found.as_slice::<u8>().is_ok(), super::is_byte_like(column.dtype), "{what}: as u8");
    assert_eq!(found.as_slice::<f64>().is_ok(), column.dtype == DType::F64, "{what}: as f64");
    match column.dtype {
        DType::Utf8 => {
            let text = expected.as_ref().map(|value| std::str::from_utf8(&value.bytes).expect("the model holds text"));
            assert_eq!(found.as_str().expect(what), text, "{what}: text");
        }
        _ => assert!(found.as_str().is_err(), "{what}: as_str of a {}", column.dtype),
    }
}

/// Checks view, read and read_slice of each sample, in an order that jumps between chunks.
fn check_single_samples(
    column: &Column,
    samples: &[ModelSample],
    file: Option<&[u8]>,
    profile: Profile,
    random: &mut Random,
) {
    let schema = column.schema();
    let must_have_views = file.is_some() && profile == Profile::Raw && cfg!(target_endian = "little");
    let mut order: Vec<usize> = (0..samples.len()).collect();
    if random.one_in(2) {
        for i in 0..order.len() {
            order.swap(i, random.below(samples.len() as u64) as usize);
        }
    }
    let mut cursor = column.cursor();
    let mut into = column.cursor();
    for i in order {
        let (number, expected) = (i as u64, &samples[i]);
        let what = format!("column {:?}, sample {i}", schema.name);
        match column.view(number).expect(&what) {
            Some(view) => {
                check_sample(schema, &view, expected, &format!("view of {what}"));
                let file = file.expect("views are of files in memory").as_ptr_range();
                let bytes = view.bytes().as_ptr_range();
                assert!(bytes.is_empty() || (file.start <= bytes.start && bytes.end <= file.end), "{what}: a copy");
            }
            None => assert!(!must_have_views, "{what}: no view"),
        }
        check_sample(schema, &cursor.read(number).expect(&what), expected, &format!("read of {what}"));
        with_element!(schema.dtype, T => check_read_into::<T>(&mut into, number, expected, &what));
    }
}

fn check_read_into<T: Element + Pod>(cursor: &mut Cursor, i: u64, expected: &ModelSample, what: &str) {
    let column = cursor.column();
    let schema = column.schema();
    let bytes = stored_bytes(schema, expected);
    let count = bytes.len() / size_of::<T>();
    let canary = super::elements::<T>(&[0xA5; 16]);
    let mut out: Vec<T> = canary.iter().copied().cycle().take(count + 2).collect();
    let untouched: Vec<u8> = bytemuck::cast_slice(&out[count..]).to_vec();
    let found = cursor.read_slice(i, &mut out).expect(what);
    assert_eq!(found, expected.as_ref().map(|_| count), "read_slice of {what}: count");
    assert_eq!(bytemuck::cast_slice::<T, u8>(&out[..count]), bytes, "read_slice of {what}: elements");
    assert_eq!(bytemuck::cast_slice::<T, u8>(&out[count..]), untouched, "read_slice of {what} wrote too much");
    if count > 0 {
        let short = cursor.read_slice(i, &mut out[..count - 1]);
        assert_eq!(short.map_err(|error| error.kind()), Err(tensilo::ErrorKind::BadArgument), "{what}: too short");
    }
}

fn check_buffer(schema: &ColumnSchema, buffer: &ColumnBuffer, expected: &[&ModelSample], what: &str) {
    assert_eq!(buffer.sample_count(), expected.len(), "{what}: sample count");
    assert_eq!((buffer.dtype(), buffer.shape()), (schema.dtype, &schema.shape), "{what}");
    let bytes: Vec<u8> = expected.iter().flat_map(|sample| stored_bytes(schema, sample)).collect();
    assert_eq!(buffer.bytes(), bytes, "{what}: bytes");
    with_element!(schema.dtype, T => {
        let values = buffer.values::<T>().expect(what);
        assert_eq!(bytemuck::cast_slice::<T, u8>(values), bytes, "{what}: values");
    });
    let nulls = expected.iter().filter(|sample| sample.is_none()).count();
    assert_eq!(buffer.null_count(), nulls, "{what}: null count");
    assert_eq!(buffer.validity().is_some(), nulls > 0, "{what}: validity");
    for (i, sample) in expected.iter().enumerate() {
        assert_eq!(buffer.is_null(i), sample.is_none(), "{what}: null {i}");
        if let Some(bitmap) = buffer.validity() {
            assert_eq!(bitmap[i / 8] >> (i % 8) & 1 == 1, sample.is_some(), "{what}: validity {i}");
        }
    }
    assert!(!buffer.is_null(expected.len()), "{what}: null after the last");
    if !schema.shape.is_ragged() {
        assert!(buffer.offsets().is_empty() && buffer.varying_extents().is_empty(), "{what}: fixed shape");
        return;
    }
    let varying = schema.shape.varying_count();
    let extents: Vec<u32> = expected
        .iter()
        .flat_map(|sample| sample.as_ref().map_or(vec![0; varying], |value| value.extents.clone()))
        .collect();
    assert_eq!(buffer.varying_extents(), extents, "{what}: extents");
    assert_eq!(buffer.offsets().len(), expected.len() + 1, "{what}: offsets");
    let mut offset = 0;
    for (i, sample) in expected.iter().enumerate() {
        let bytes = stored_bytes(schema, sample);
        assert_eq!(buffer.offsets()[i], offset, "{what}: offset {i}");
        assert_eq!(buffer.ragged_bytes(i), Some(bytes.as_slice()), "{what}: ragged bytes {i}");
        offset += (bytes.len() / schema.dtype.element_bytes()) as u64;
    }
    assert_eq!(buffer.offsets()[expected.len()], offset, "{what}: last offset");
    assert_eq!(buffer.ragged_bytes(expected.len()), None, "{what}: ragged bytes after the last");
}

/// Returns indices in any order, with repeats; sometimes none, sometimes all in one chunk.
fn request(samples: usize, random: &mut Random) -> Vec<u64> {
    if samples == 0 {
        return Vec::new();
    }
    let around = random.below(samples as u64);
    let spread = 1 + random.below(samples as u64);
    let mut indices: Vec<u64> =
        (0..random.below(40)).map(|_| (around + random.below(spread)) % samples as u64).collect();
    if random.one_in(4) {
        indices.sort_unstable();
    }
    indices
}

fn subrange(samples: usize, random: &mut Random) -> Range<u64> {
    let (a, b) = (random.below(samples as u64 + 1), random.below(samples as u64 + 1));
    a.min(b)..a.max(b)
}

/// Checks `gather_into`, `gather_slice` and `range_into`. Buffers are reused, and one cursor serves
/// all calls.
fn check_many_samples(column: &Column, samples: &[ModelSample], random: &mut Random) {
    let schema = column.schema();
    let mut cursor = column.cursor();
    #[cfg(feature = "rayon")]
    let mut parallel = column.parallel_cursor();
    let mut buffer = ColumnBuffer::new();
    #[cfg(feature = "rayon")]
    let mut buffer_of_parallel = ColumnBuffer::new();
    let what = format!("column {:?}", schema.name);
    for round in 0..3 {
        let indices = request(samples.len(), random);
        let expected: Vec<&ModelSample> = indices.iter().map(|&i| &samples[i as usize]).collect();
        cursor.gather_into(&indices, &mut buffer).expect(&what);
        check_buffer(schema, &buffer, &expected, &format!("gather_into {indices:?} of {what}"));
        #[cfg(feature = "rayon")]
        check_parallel(&mut parallel, &indices, &expected, &mut buffer_of_parallel, &what);
        with_element!(schema.dtype, T => check_gather_slice::<T>(&mut cursor, &indices, &expected, &what));
        let range = if round == 0 { 0..samples.len() as u64 } else { subrange(samples.len(), random) };
        let expected: Vec<&ModelSample> = samples[range.start as usize..range.end as usize].iter().collect();
        cursor.range_into(range.clone(), &mut buffer).expect(&what);
        check_buffer(schema, &buffer, &expected, &format!("range_into {range:?} of {what}"));
    }
}

fn check_gather_slice<T: Element + Pod>(cursor: &mut Cursor, indices: &[u64], expected: &[&ModelSample], what: &str) {
    let column = cursor.column();
    let schema = column.schema();
    let bytes: Vec<u8> = expected.iter().flat_map(|sample| stored_bytes(schema, sample)).collect();
    let mut out = super::elements::<T>(&vec![0xA5; bytes.len()]);
    let nulls = cursor.gather_slice(indices, &mut out);
    if schema.shape.is_ragged() {
        let kind = nulls.map_err(|error| error.kind());
        assert_eq!(kind, Err(tensilo::ErrorKind::BadArgument), "gather_slice of a ragged column");
        return;
    }
    assert_eq!(nulls.expect(what), expected.iter().filter(|sample| sample.is_none()).count(), "nulls of {what}");
    assert_eq!(bytemuck::cast_slice::<T, u8>(&out), bytes, "gather_slice {indices:?} of {what}");
    out.extend(super::elements::<T>(&[0; 8]));
    assert!(cursor.gather_slice(indices, &mut out).is_err(), "gather_slice of {what} with too long a destination");
}

/// Checks gathers on many threads.
#[cfg(feature = "rayon")]
fn check_parallel(
    cursor: &mut tensilo::ParallelCursor,
    indices: &[u64],
    expected: &[&ModelSample],
    buffer: &mut ColumnBuffer,
    what: &str,
) {
    let column = cursor.column();
    let schema = column.schema();
    cursor.gather_into(indices, buffer).expect(what);
    check_buffer(schema, buffer, expected, &format!("parallel gather_into {indices:?} of {what}"));
    let bytes: Vec<u8> = expected.iter().flat_map(|sample| stored_bytes(schema, sample)).collect();
    with_element!(schema.dtype, T => {
        let mut out = super::elements::<T>(&vec![0xA5; bytes.len()]);
        match cursor.gather_slice(indices, &mut out) {
            Ok(nulls) => {
                assert!(!schema.shape.is_ragged());
                assert_eq!(nulls, expected.iter().filter(|sample| sample.is_none()).count(), "nulls of {what}");
                assert_eq!(bytemuck::cast_slice::<T, u8>(&out), bytes, "parallel gather_slice {indices:?} of {what}");
            }
            Err(error) => assert!(schema.shape.is_ragged(), "{error}"),
        }
        let beyond = cursor.gather_slice::<T>(&[u64::MAX], &mut []).map_err(|error| error.kind());
        assert_eq!(beyond, Err(tensilo::ErrorKind::BadArgument), "{what}");
    });
}

/// Checks that every call refuses samples out of range, by name and number.
fn check_out_of_range(column: &Column, count: u64) {
    let schema = column.schema();
    let mut cursor = column.cursor();
    let mut buffer = ColumnBuffer::new();
    for i in [count, count + 1, u64::MAX] {
        let errors = [
            cursor.read(i).map(|_| ()).unwrap_err(),
            column.chunk_of(i).map(|_| ()).unwrap_err(),
            cursor.gather_into(&[i], &mut buffer).unwrap_err(),
            cursor.range_into(0..i.saturating_add(1), &mut buffer).unwrap_err(),
            with_element!(schema.dtype, T => cursor.read_slice::<T>(i, &mut []).map(|_| ()).unwrap_err()),
        ];
        for error in errors {
            assert_eq!(error.kind(), tensilo::ErrorKind::BadArgument, "{error}");
            assert_eq!(error.column(), Some(schema.name.as_str()), "{error}");
        }
    }
    assert!(column.chunk(u64::MAX).expect("no I/O").is_none());
}

fn check_rows(reader: &Reader, table: &Table, random: &mut Random) {
    let names = table.names();
    if names.is_empty() {
        assert!(reader.rows(&["no such column"]).is_err());
        return;
    }
    // columns in any order, some of them twice
    let chosen: Vec<usize> = (0..random.below(5)).map(|_| random.below(names.len() as u64) as usize).collect();
    let mut rows = reader.rows(&chosen.iter().map(|&i| names[i]).collect::<Vec<_>>()).expect("columns of the file");
    let mut out = vec![ColumnBuffer::new(); 7];
    let of_cursors = rows.cursors().iter().map(|cursor| cursor.column().schema().name.clone());
    assert!(of_cursors.eq(chosen.iter().map(|&i| names[i])), "the cursors of the columns, in order");
    let indices = request(table.sample_count, random);
    rows.gather_into(&indices, &mut out).expect("samples of the file");
    assert_eq!(out.len(), chosen.len());
    for (&column, buffer) in chosen.iter().zip(&out) {
        let expected: Vec<&ModelSample> = indices.iter().map(|&i| &table.columns[column][i as usize]).collect();
        check_buffer(&table.schema.columns[column], buffer, &expected, "Rows::gather_into");
    }
    let range = subrange(table.sample_count, random);
    rows.range_into(range.clone(), &mut out).expect("samples of the file");
    for (&column, buffer) in chosen.iter().zip(&out) {
        let samples = &table.columns[column][range.start as usize..range.end as usize];
        check_buffer(&table.schema.columns[column], buffer, &samples.iter().collect::<Vec<_>>(), "Rows::range_into");
    }
    assert!(reader.rows(&[names[0], "no such column"]).is_err());
}

fn chunks(column: &Column) -> Vec<ChunkInfo> {
    (0..).map_while(|chunk| column.chunk(chunk).expect("an intact index")).collect()
}

fn check_facts(reader: &Reader, table: &Table, plan: &WritePlan) {
    let mut bodies = Vec::new();
    let mut commits = plan.commits(table.sample_count);
    commits.push(table.sample_count);
    for (column, samples) in reader.columns().zip(&table.columns) {
        let schema = column.schema();
        let facts = column.facts();
        let chunks = chunks(&column);
        assert_eq!(facts.chunk_count, chunks.len() as u64);
        assert_eq!(facts.null_count, samples.iter().filter(|sample| sample.is_none()).count() as u64);
        assert_eq!(facts.cast, None);
        let mut next = 0;
        let (mut raw_bytes, mut stored_bytes) = (0, 0);
        for (number, chunk) in chunks.iter().enumerate() {
            assert_eq!(chunk.samples.start, next, "chunk {number} of {:?}", schema.name);
            assert!(chunk.samples.end > next);
            next = chunk.samples.end;
            assert_eq!(chunk.file_range.start % u64::from(plan.alignment), 0, "alignment of chunk {number}");
            assert!(chunk.file_range.end <= reader.file_bytes());
            stored_bytes += chunk.file_range.end - chunk.file_range.start;
            bodies.push(chunk.file_range.clone());
            for i in [chunk.samples.start, (chunk.samples.start + chunk.samples.end) / 2, chunk.samples.end - 1] {
                assert_eq!(&column.chunk_of(i).expect("an intact index"), chunk);
            }
            let in_chunk = &samples[chunk.samples.start as usize..chunk.samples.end as usize];
            assert_eq!(chunk.raw_bytes, chunk_raw_bytes(schema, in_chunk), "raw bytes of chunk {number}");
            raw_bytes += chunk.raw_bytes;
            check_size(schema, samples, chunk, &commits, plan.chunk_bytes);
        }
        assert_eq!(next, samples.len() as u64);
        assert_eq!(facts.raw_bytes, raw_bytes, "raw bytes of {:?}", schema.name);
        assert_eq!(facts.stored_bytes, stored_bytes, "stored bytes of {:?}", schema.name);
        for (encoding, count) in &facts.encodings {
            let found = chunks.iter().filter(|chunk| chunk.encoding == *encoding).count() as u64;
            assert_eq!(*count, found, "chunks of encoding {encoding}");
        }
        assert_eq!(facts.encodings.iter().map(|(_, count)| count).sum::<u64>(), facts.chunk_count);
    }
    // no byte belongs to two chunks, including the 64 bytes of header before each body
    bodies.sort_by_key(|range| range.start);
    assert!(bodies.windows(2).all(|pair| pair[0].end + 64 <= pair[1].start), "chunks overlap");
}

fn values_and_shape_bytes(schema: &ColumnSchema, sample: &ModelSample) -> usize {
    stored_bytes(schema, sample).len() + shape_bytes(schema)
}

/// Returns the decoded bytes of the parts of a chunk (chapter 4.3).
fn chunk_raw_bytes(schema: &ColumnSchema, samples: &[ModelSample]) -> u64 {
    let has_nulls = samples.iter().any(Option::is_none);
    let validity = if has_nulls { samples.len().div_ceil(8) } else { 0 };
    let rest: usize = samples.iter().map(|sample| values_and_shape_bytes(schema, sample)).sum();
    (validity + rest) as u64
}

/// Checks chapter 4.6: a chunk is as large as requested, or one sample. It ends only if the next
/// sample does not fit, or at a commit.
fn check_size(
    schema: &ColumnSchema,
    samples: &[ModelSample],
    chunk: &ChunkInfo,
    commits: &[usize],
    chunk_bytes: usize,
) {
    let (start, end) = (chunk.samples.start as usize, chunk.samples.end as usize);
    let bytes = |end: usize| samples[start..end].iter().map(|s| values_and_shape_bytes(schema, s)).sum::<usize>();
    assert!(end - start == 1 || bytes(end) <= chunk_bytes, "a chunk of {} bytes, {chunk_bytes} requested", bytes(end));
    // if samples have no bytes, only the sum of their counts (a u32) limits a chunk
    if !commits.contains(&end) && inner_bytes(schema) > 0 {
        assert!(bytes(end + 1) > chunk_bytes, "a chunk was closed at {} bytes of {chunk_bytes}", bytes(end));
    }
}
