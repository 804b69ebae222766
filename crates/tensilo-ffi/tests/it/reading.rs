//! C reads the same samples as Rust.

use crate::support::*;
use std::path::Path;
use std::ptr;
use std::slice;
use tensilo::{ColumnBuffer, Profile, Reader};
use tensilo_ffi::*;
use tensilo_testing::{Allocations, Folder, allocations_of, exclusive_test};

const COLUMNS: [&str; 5] = ["embedding", "label", "text", "pitch", "words"];

/// Returns the values behind a pointer of the library; an empty slice for NULL.
///
/// # Safety
///
/// Pointer and length come from the library, and their owner lives on.
unsafe fn found<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if pointer.is_null() { &[] } else { unsafe { slice::from_raw_parts(pointer, count) } }
}

/// Asserts that a buffer of the C library has the same samples as a buffer of Rust.
fn assert_same(buffer: &Handle<tensilo_buffer>, expected: &ColumnBuffer) {
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut samples: tensilo_samples = sized();
        done(|e| tensilo_buffer_get_samples(buffer.0, &raw mut samples, e));
        assert_eq!(samples.sample_count, expected.sample_count());
        assert_eq!(samples.item_count, expected.item_count());
        assert_eq!(found(samples.values, samples.value_bytes), expected.bytes());
        assert_eq!(found(samples.offsets, samples.item_count + 1), expected.offsets());
        assert_eq!(found(samples.varying_extents, samples.varying_extent_count), expected.varying_extents());
        assert_eq!(samples.null_count, expected.null_count());
        assert_eq!(samples.validity.is_null(), expected.validity().is_none());
        let bits = found(samples.validity, samples.item_count.div_ceil(8));
        assert_eq!(bits, expected.validity().unwrap_or(&[]));
        assert_eq!(samples.level_count as usize, expected.lists().len());
        for (level, expected) in expected.lists().iter().enumerate() {
            let mut lists: tensilo_lists = sized();
            done(|e| tensilo_buffer_get_lists(buffer.0, level, &raw mut lists, e));
            assert_eq!(lists.list_count, expected.list_count());
            assert_eq!(found(lists.offsets, lists.list_count + 1), expected.offsets());
            assert_eq!(found(lists.validity, lists.list_count.div_ceil(8)), expected.validity().unwrap_or(&[]));
        }
    }
}

fn columns_are_read(path: &Path, io: tensilo_io) {
    let (reader, rust) = (open_reader(path, io), Reader::open(path).unwrap());
    let buffer = new_buffer();
    let indices = some_indices();
    for name in COLUMNS {
        let (cursor, mut expected) = (open_cursor(&reader, name), ColumnBuffer::new());
        let mut rust = rust.column(name).unwrap().cursor();
        rust.gather_into(&indices, &mut expected).unwrap();
        // SAFETY: arguments as the header requires.
        done(|e| unsafe { tensilo_cursor_fill_buffer(cursor.0, indices.as_ptr(), indices.len(), buffer.0, e) });
        assert_same(&buffer, &expected);
        rust.range_into(17..911, &mut expected).unwrap();
        // SAFETY: arguments as the header requires.
        done(|e| unsafe { tensilo_cursor_fill_buffer_range(cursor.0, 17, 911, buffer.0, e) });
        assert_same(&buffer, &expected);
    }
}

#[test]
fn buffers_have_the_samples_of_any_column() {
    for profile in [Profile::Raw, Profile::Balanced] {
        let folder = Folder::new();
        let path = file(&folder, profile);
        columns_are_read(&path, TENSILO_IO_PREAD);
        #[cfg(feature = "mmap")]
        columns_are_read(&path, TENSILO_IO_MMAP);
    }
}

#[test]
fn samples_of_a_fixed_shape_go_to_memory_of_the_caller() {
    let folder = Folder::new();
    let path = file(&folder, Profile::Balanced);
    let reader = open_reader(&path, TENSILO_IO_AUTO);
    let cursor = open_cursor(&reader, "embedding");
    drop(reader); // the cursor keeps the file open
    let mut rust = Reader::open(&path).unwrap().column("embedding").unwrap().cursor();
    let indices = some_indices();
    let mut expected = vec![0_f32; indices.len() * 6];
    rust.gather_slice(&indices, &mut expected).unwrap();
    let mut out = vec![0_f32; expected.len()];
    let (to, bytes) = (out.as_mut_ptr().cast(), out.len() * 4);
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut nulls = 9;
        let from = indices.as_ptr();
        done(|e| tensilo_cursor_gather(cursor.0, from, indices.len(), to, bytes, &raw mut nulls, e));
        assert!(out == expected && nulls == 0);
        let (status, text) =
            refused(|e| tensilo_cursor_gather(cursor.0, from, indices.len(), to, bytes - 1, ptr::null_mut(), e));
        assert!(status == TENSILO_ERROR_BAD_ARGUMENT && text.contains("24 bytes each"), "{text}");

        let expected: Vec<f32> = (100..104).flat_map(|i| (0..6).map(move |k| (i * 37 % 101 + k) as f32)).collect();
        done(|e| tensilo_cursor_gather_range(cursor.0, 100, 104, to, 96, ptr::null_mut(), e));
        assert_eq!(out[..24], expected);
        for (start, end) in [(100, 105), (104, 100), (998, 1002), (0, u64::MAX)] {
            let (status, _) =
                refused(|e| tensilo_cursor_gather_range(cursor.0, start, end, to, 96, ptr::null_mut(), e));
            assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT, "{start}..{end}");
        }
    }
}

#[test]
fn one_sample_is_lent_or_copied() {
    let folder = Folder::new();
    let reader = open_reader(&file(&folder, Profile::Balanced), TENSILO_IO_AUTO);
    let cursor = open_cursor(&reader, "text");
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut sample: tensilo_sample = sized();
        done(|e| tensilo_cursor_read(cursor.0, 123, &raw mut sample, e));
        assert_eq!(found(sample.values, sample.value_bytes), b"text 123");
        assert_eq!(found(sample.extents, sample.ndim), [8]);
        assert!(!sample.is_null);
        done(|e| tensilo_cursor_read(cursor.0, 7, &raw mut sample, e));
        assert!(sample.is_null && sample.value_bytes == 0);
        let (status, _) = refused(|e| tensilo_cursor_read(cursor.0, SAMPLES, &raw mut sample, e));
        assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);

        let (mut out, mut count, mut is_null) = ([0_u8; 16], 0, true);
        let to = out.as_mut_ptr();
        done(|e| tensilo_cursor_read_into(cursor.0, 123, to, 16, &raw mut count, &raw mut is_null, e));
        assert!(&out[..count] == b"text 123" && !is_null);
        done(|e| tensilo_cursor_read_into(cursor.0, 7, to, 16, &raw mut count, &raw mut is_null, e));
        assert!(is_null && count == 0);
        let (status, _) =
            refused(|e| tensilo_cursor_read_into(cursor.0, 123, to, 7, ptr::null_mut(), ptr::null_mut(), e));
        assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);
        let (status, text) = refused(|e| tensilo_cursor_gather_range(cursor.0, 1, 2, to, 8, ptr::null_mut(), e));
        assert!(status == TENSILO_ERROR_BAD_ARGUMENT && text.contains("tensilo_buffer"), "{text}");

        let cursor = open_cursor(&reader, "words");
        let (status, text) = refused(|e| tensilo_cursor_read(cursor.0, 1, &raw mut sample, e));
        assert!(status == TENSILO_ERROR_BAD_ARGUMENT && text.contains("tensilo_buffer"), "{text}");
    }
}

#[test]
fn schemas_have_names_shapes_and_metadata() {
    let folder = Folder::new();
    let reader = open_reader(&file(&folder, Profile::Raw), TENSILO_IO_AUTO);
    // SAFETY: arguments as the header requires.
    unsafe {
        let schema = tensilo_reader_schema(reader.0);
        assert_eq!(tensilo_schema_column_count(schema), COLUMNS.len());
        let mut column: tensilo_column_info = sized();
        for (index, name) in COLUMNS.iter().enumerate() {
            let mut at = 99;
            let c_name = c_text(name);
            done(|e| tensilo_schema_find_column(schema, c_name.as_ptr(), &raw mut at, e));
            done(|e| tensilo_schema_get_column(schema, at, &raw mut column, e));
            assert!(at == index && text(column.name) == **name);
        }
        assert_eq!(text(column.type_name), "list<utf8>");
        assert_eq!((column.dtype, column.level_count, column.nullable), (TENSILO_DTYPE_UTF8, 1, true));
        assert!(*column.level_nullable && !column.is_fixed);
        assert_eq!(found(column.extents, column.ndim as usize), [-1]);
        done(|e| tensilo_schema_get_column(schema, 0, &raw mut column, e));
        assert_eq!(found(column.extents, column.ndim as usize), [2, 3]);
        assert!(column.is_fixed && column.sample_bytes == 24 && column.varying_count == 0);

        let mut entry = tensilo_metadata { key: ptr::null(), key_bytes: 0, value: ptr::null(), value_bytes: 0 };
        assert_eq!((tensilo_schema_metadata_count(schema, 0), column.metadata_count), (1, 1));
        done(|e| tensilo_schema_get_metadata(schema, 0, 0, &raw mut entry, e));
        assert_eq!(found(entry.value.cast::<u8>(), entry.value_bytes), b"a\0b");
        done(|e| tensilo_schema_get_metadata(schema, TENSILO_NO_COLUMN, 0, &raw mut entry, e));
        assert_eq!((text(entry.key).as_str(), text(entry.value).as_str()), ("made by", "a test"));
        for (column, index) in [(0, 1), (5, 0)] {
            let (status, _) = refused(|e| tensilo_schema_get_metadata(schema, column, index, &raw mut entry, e));
            assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);
        }
    }
}

#[test]
fn a_gather_allocates_nothing_once_it_is_warm() {
    let _exclusive_test = exclusive_test();
    let folder = Folder::new();
    let path = file(&folder, Profile::Balanced);
    let (indices, mut out) = (some_indices(), vec![0_u8; 8 * 400]);
    let to = out.as_mut_ptr();
    for io in [TENSILO_IO_PREAD, TENSILO_IO_MMAP] {
        if io == TENSILO_IO_MMAP && cfg!(not(feature = "mmap")) {
            continue;
        }
        let reader = open_reader(&path, io);
        let (cursor, buffer) = (open_cursor(&reader, "label"), new_buffer());
        let (from, count) = (indices.as_ptr(), indices.len());
        // SAFETY: arguments as the header requires.
        let gather = || unsafe {
            let mut error = ptr::null_mut();
            for work in 0..3 {
                let status = match work {
                    0 => tensilo_cursor_gather(cursor.0, from, count, to, 8 * count, ptr::null_mut(), &raw mut error),
                    1 => tensilo_cursor_gather_range(cursor.0, 100, 500, to, 3200, ptr::null_mut(), &raw mut error),
                    _ => tensilo_cursor_fill_buffer(cursor.0, from, count, buffer.0, &raw mut error),
                };
                assert_eq!(status, TENSILO_OK);
            }
        };
        gather();
        assert_eq!(allocations_of(gather).0, Allocations { count: 0, bytes: 0 });
    }
}
