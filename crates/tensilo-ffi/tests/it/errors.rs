//! Errors fill all of their fields.

use crate::support::*;
use std::fs;
use std::ptr;
use tensilo::{Profile, Reader};
use tensilo_ffi::*;
use tensilo_testing::Folder;

#[test]
fn an_error_of_a_damaged_chunk_names_its_location() {
    let folder = Folder::new();
    let path = file(&folder, Profile::Raw);
    let chunk = Reader::open(&path).unwrap().column("label").unwrap().chunk_of(20).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(chunk.file_range.end).unwrap() - 9] ^= 1;
    fs::write(&path, bytes).unwrap();

    let cursor = open_cursor(&open_reader(&path, TENSILO_IO_AUTO), "label");
    let (indices, mut out) = ([20_u64], [0_u8; 8]);
    let mut error = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    unsafe {
        let (from, to) = (indices.as_ptr(), out.as_mut_ptr());
        let status = tensilo_cursor_gather(cursor.0, from, 1, to, 8, ptr::null_mut(), &raw mut error);
        assert_eq!(status, TENSILO_ERROR_CORRUPT);
        let mut info: tensilo_error_info = sized();
        assert_eq!(tensilo_error_get_info(error, &raw mut info), TENSILO_OK);
        assert_eq!(info.status, TENSILO_ERROR_CORRUPT);
        assert_eq!(text(info.path), path.to_str().unwrap());
        assert_eq!(text(info.column), "label");
        assert!(text(info.rule).starts_with("R-"));
        assert!(info.has_samples && info.samples_start <= 20 && info.samples_end > 20);
        let header_start = chunk.file_range.start - 64;
        assert!(info.has_offset && (header_start..chunk.file_range.end).contains(&info.offset), "{}", info.offset);
        assert!(text(info.text).contains(&text(info.message)));
        assert!(text(info.text).contains("tensilo_verify"));
        assert_eq!(info.advice_count, 1);
        assert!(text(tensilo_error_advice(error, 0)).contains("salvage"));
        assert!(tensilo_error_advice(error, 1).is_null());
        tensilo_error_free(&raw mut error);
    }
}

#[test]
fn an_error_of_the_system_has_its_number() {
    let mut reader = ptr::null_mut();
    let mut error = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    unsafe {
        tensilo_reader_open(c"no/such.tsl".as_ptr(), ptr::null(), &raw mut reader, &raw mut error);
        let mut info: tensilo_error_info = sized();
        assert_eq!(tensilo_error_get_info(error, &raw mut info), TENSILO_OK);
        assert_eq!((info.status, info.os_code), (TENSILO_ERROR_IO, 2));
        assert!(info.column.is_null() && info.rule.is_null() && !info.has_offset && !info.has_samples);
        tensilo_error_free(&raw mut error);
    }
}

#[test]
fn a_success_sets_the_error_to_null() {
    let folder = Folder::new();
    let path = c_path(&file(&folder, Profile::Raw));
    let (mut reader, mut error) = (ptr::null_mut(), ptr::dangling_mut::<tensilo_error>());
    // SAFETY: arguments as the header requires.
    let status = unsafe { tensilo_reader_open(path.as_ptr(), ptr::null(), &raw mut reader, &raw mut error) };
    drop(Handle(reader, tensilo_reader_close));
    assert!(status == TENSILO_OK && error.is_null());
}
