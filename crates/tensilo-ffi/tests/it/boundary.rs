//! Arguments that are not valid are refused, and handles are closed once.

use crate::support::*;
use std::ptr;
use tensilo::{DType, Profile};
use tensilo_ffi::*;
use tensilo_testing::Folder;

#[track_caller]
fn is_refused(expected: &str, call: impl FnOnce(*mut *mut tensilo_error) -> tensilo_status) {
    let (status, text) = refused(call);
    assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT, "{text}");
    assert!(text.contains(expected), "{expected}: {text}");
}

#[test]
fn null_pointers_are_refused() {
    let folder = Folder::new();
    let path = c_path(&file(&folder, Profile::Raw));
    let reader = open_reader(&folder.path("all.tsl"), TENSILO_IO_AUTO);
    let cursor = open_cursor(&reader, "label");
    let mut value = 0_u64;
    let out = (&raw mut value).cast::<u8>();
    // SAFETY: null, or arguments as the header requires.
    unsafe {
        let mut none: *mut tensilo_reader = ptr::null_mut();
        let mut no_cursor: *mut tensilo_cursor = ptr::null_mut();
        is_refused("path is NULL", |e| tensilo_reader_open(ptr::null(), ptr::null(), &raw mut none, e));
        is_refused("reader is NULL", |e| tensilo_reader_open(path.as_ptr(), ptr::null(), ptr::null_mut(), e));
        is_refused("column is NULL", |e| tensilo_cursor_open(reader.0, ptr::null(), &raw mut no_cursor, e));
        is_refused("reader is NULL", |e| tensilo_cursor_open(ptr::null(), c"label".as_ptr(), &raw mut no_cursor, e));
        is_refused("cursor is NULL", |e| {
            tensilo_cursor_gather(ptr::null_mut(), ptr::null(), 0, out, 0, ptr::null_mut(), e)
        });
        is_refused("indices is NULL", |e| tensilo_cursor_gather(cursor.0, ptr::null(), 1, out, 8, ptr::null_mut(), e));
        is_refused("out is NULL", |e| {
            tensilo_cursor_gather(cursor.0, &raw const value, 1, ptr::null_mut(), 8, ptr::null_mut(), e)
        });
        is_refused("sample is NULL", |e| tensilo_cursor_read(cursor.0, 0, ptr::null_mut(), e));
        is_refused("buffer is NULL", |e| tensilo_cursor_fill_buffer_range(cursor.0, 0, 1, ptr::null_mut(), e));
        is_refused("schema is NULL", |e| tensilo_schema_get_column(ptr::null(), 0, ptr::null_mut(), e));
        is_refused("report is NULL", |e| tensilo_report_get_info(ptr::null(), ptr::null_mut(), e));
        is_refused("batches is NULL", |e| tensilo_batches_wait(ptr::null(), 0, ptr::null_mut(), e));
        is_refused("dataset is NULL", |e| tensilo_loader_new(ptr::null(), ptr::null(), (&raw mut none).cast(), e));
        // without a slot for the error, there is only the status
        let status = tensilo_reader_open(ptr::null(), ptr::null(), &raw mut none, ptr::null_mut());
        assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);
        // functions without a status accept NULL
        tensilo_reader_close(ptr::null_mut());
        tensilo_error_free(ptr::null_mut());
        assert!(tensilo_reader_schema(ptr::null()).is_null());
        assert_eq!(tensilo_schema_column_count(ptr::null()), 0);
        assert_eq!(tensilo_error_status(ptr::null()), TENSILO_OK);
        assert_eq!(tensilo_error_get_info(ptr::null(), ptr::null_mut()), TENSILO_ERROR_BAD_ARGUMENT);
    }
}

#[test]
fn a_failed_open_sets_the_handle_to_null() {
    let mut reader = ptr::dangling_mut::<tensilo_reader>();
    // SAFETY: arguments as the header requires.
    let (status, text) =
        refused(|error| unsafe { tensilo_reader_open(c"no/such.tsl".as_ptr(), ptr::null(), &raw mut reader, error) });
    assert_eq!(status, TENSILO_ERROR_IO);
    assert!(text.contains("no/such.tsl") && reader.is_null(), "{text}");
}

#[test]
fn misaligned_pointers_and_lengths_of_no_memory_are_refused() {
    let folder = Folder::new();
    let cursor = open_cursor(&open_reader(&file(&folder, Profile::Raw), TENSILO_IO_AUTO), "label");
    let indices = [0_u64; 3];
    let mut out = [0_u8; 8];
    let (odd, out) = (indices.as_ptr().cast::<u8>().wrapping_add(1).cast::<u64>(), out.as_mut_ptr());
    // SAFETY: refused before anything is read.
    unsafe {
        is_refused("indices is not aligned to 8", |e| {
            tensilo_cursor_gather(cursor.0, odd, 1, out, 8, ptr::null_mut(), e)
        });
        is_refused("is too large", |e| {
            tensilo_cursor_gather(cursor.0, indices.as_ptr(), usize::MAX, out, 8, ptr::null_mut(), e)
        });
        is_refused("is too large", |e| {
            tensilo_cursor_gather(cursor.0, indices.as_ptr(), 1, out, usize::MAX, ptr::null_mut(), e)
        });
    }
}

/// A change of options.
type Set = fn(&mut tensilo_loader_options);

#[test]
fn wrong_numbers_are_refused() {
    let folder = Folder::new();
    let path = c_path(&file(&folder, Profile::Raw));
    // SAFETY: arguments as the header requires, except for the numbers.
    unsafe {
        let mut reader = ptr::null_mut();
        let mut dataset = ptr::null_mut();
        let mut options: tensilo_open_options = sized();
        options.io = 77;
        is_refused("77 is not a valid tensilo_io", |e| {
            tensilo_reader_open(path.as_ptr(), &raw const options, &raw mut reader, e)
        });
        options = sized();
        options.verification = 3;
        is_refused("3 is not a valid tensilo_verification", |e| {
            tensilo_reader_open(path.as_ptr(), &raw const options, &raw mut reader, e)
        });
        let mut options: tensilo_dataset_options = sized();
        options.has_version = 2;
        is_refused("has_version is 2", |e| {
            tensilo_dataset_open(path.as_ptr(), &raw const options, &raw mut dataset, e)
        });
        done(|e| tensilo_dataset_open(path.as_ptr(), ptr::null(), &raw mut dataset, e));
        let dataset = Handle(dataset, tensilo_dataset_close);
        let with = |set: Set| {
            let mut options: tensilo_loader_options = sized();
            options.batch_size = 8;
            set(&mut options);
            let mut loader = ptr::null_mut();
            let result = refused(|e| tensilo_loader_new(dataset.0, &raw const options, &raw mut loader, e));
            drop(Handle(loader, tensilo_loader_close));
            result
        };
        assert_eq!(with(|_| ()).0, TENSILO_OK);
        let wrong: [(Set, &str); 6] = [
            (|options| options.order = 9, "9 is not a valid tensilo_order"),
            (|options| options.last_batch = 9, "9 is not a valid tensilo_last_batch"),
            (|options| options.on_damage = 9, "9 is not a valid tensilo_on_damage"),
            (|options| options.cast_count = 1, "casts is NULL"),
            (|options| (options.order, options.run_samples) = (TENSILO_ORDER_SHUFFLED, 4), "TENSILO_ORDER_WINDOWED"),
            (|options| options.batch_size = 0, "batches of 0 samples"),
        ];
        for (set, expected) in wrong {
            let (status, text) = with(set);
            assert!(status == TENSILO_ERROR_BAD_ARGUMENT && text.contains(expected), "{expected}: {text}");
        }
        assert_eq!(tensilo_dtype_bytes(0), 0);
        assert!(tensilo_dtype_name(27).is_null());
        assert_eq!(
            (text(tensilo_dtype_name(TENSILO_DTYPE_I4)), tensilo_dtype_bytes(TENSILO_DTYPE_I4)),
            ("i4".to_owned(), 1)
        );
        assert_eq!(tensilo_dtype_bytes(TENSILO_DTYPE_COMPLEX64), 8);
        for (dtype, number) in DType::ALL.into_iter().zip(1..) {
            assert_eq!(text(tensilo_dtype_name(number)), dtype.name());
            assert_eq!(tensilo_dtype_bytes(number), dtype.element_bytes());
        }
        assert_eq!(text(tensilo_dtype_name(TENSILO_DTYPE_BF16)), "bf16");
    }
}

/// Options as a later header may declare them.
#[repr(C)]
struct LaterOptions {
    now: tensilo_open_options,
    later: [u64; 4],
}

/// A result as a later header may declare it.
#[repr(C)]
struct LaterInfo {
    now: tensilo_reader_info,
    later: [u64; 4],
}

#[test]
fn structs_may_be_those_of_a_later_header() {
    let folder = Folder::new();
    let path = c_path(&file(&folder, Profile::Raw));
    // SAFETY: arguments as the header requires, of the size that they state.
    unsafe {
        let mut reader = ptr::null_mut();
        let mut options: LaterOptions = sized();
        let given = (&raw const options).cast::<tensilo_open_options>();
        done(|e| tensilo_reader_open(path.as_ptr(), given, &raw mut reader, e));
        let reader = Handle(reader, tensilo_reader_close);
        options.later[3] = 1;
        let mut other = ptr::null_mut();
        let given = (&raw const options).cast::<tensilo_open_options>();
        is_refused("members that this release does not have", |e| {
            tensilo_reader_open(path.as_ptr(), given, &raw mut other, e)
        });
        let mut info: LaterInfo = sized();
        info.later = [7; 4];
        done(|e| tensilo_reader_get_info(reader.0, (&raw mut info).cast(), e));
        assert_eq!((info.now.sample_count, info.later), (SAMPLES, [7; 4]));
        assert_eq!(info.now.struct_size, size_of::<LaterInfo>());
        info.now.struct_size = 0;
        is_refused("struct_size is 0", |e| tensilo_reader_get_info(reader.0, &raw mut info.now, e));
    }
}

#[test]
fn handles_go_from_thread_to_thread() {
    fn any_number<T: Send + Sync>() {}
    fn one_at_a_time<T: Send>() {}
    any_number::<tensilo_reader>();
    any_number::<tensilo_dataset>();
    any_number::<tensilo_loader>();
    any_number::<tensilo_schema>();
    any_number::<tensilo_batch>();
    any_number::<tensilo_buffer>();
    any_number::<tensilo_error>();
    any_number::<tensilo_report>();
    one_at_a_time::<tensilo_cursor>();
    one_at_a_time::<tensilo_batches>();
    one_at_a_time::<tensilo_sample_reader>();
}
