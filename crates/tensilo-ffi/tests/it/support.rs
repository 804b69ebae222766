//! A test file with a column of each kind, and wrappers for calls of the C library.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr;
use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_ffi::*;
use tensilo_testing::Folder;

pub const SAMPLES: u64 = 1000;

/// Returns the number from which sample `i` of each column is made.
fn seed(i: u64) -> f32 {
    (i * 37 % 101) as f32
}

/// Writes a file with a column of each kind. In nullable columns, every seventh sample is null.
pub fn file(folder: &Folder, profile: Profile) -> PathBuf {
    let mut embedding = ColumnSchema::tensor("embedding", DType::F32, Shape::fixed(&[2, 3]));
    embedding.metadata.insert("model".into(), "a\0b".into());
    let mut schema = Schema::new([
        embedding,
        ColumnSchema::tensor("label", DType::I64, Shape::scalar()).nullable(),
        ColumnSchema::utf8("text").nullable(),
        ColumnSchema::tensor("pitch", DType::F32, Shape::ragged()),
        ColumnSchema::utf8("words").nullable().list().nullable(),
    ]);
    schema.metadata.insert("made by".into(), "a test".into());
    let path = folder.path("all.tsl");
    let options = WriterOptions::new().profile(profile).chunk_bytes(4096);
    let mut writer = Writer::create(&path, schema, &options).unwrap();
    for i in 0..SAMPLES {
        let embedding = [0, 1, 2, 3, 4, 5].map(|k| seed(i) + k as f32);
        let (label, text, is_null) = ([i64::try_from(i).unwrap()], format!("text {i}"), i % 7 == 0);
        let pitch: Vec<f32> = (0..i % 5).map(|k| k as f32).collect();
        let words = [Value::text("one"), Value::NULL, Value::text(&text)];
        writer
            .push(&[
                Value::tensor(&embedding),
                if is_null { Value::NULL } else { Value::tensor(&label) },
                if is_null { Value::NULL } else { Value::text(&text) },
                Value::ragged(&pitch, &[u32::try_from(pitch.len()).unwrap()]),
                if is_null { Value::NULL } else { Value::list(&words[..(i % 4) as usize]) },
            ])
            .unwrap();
    }
    writer.finish().unwrap();
    path
}

/// Returns indices of samples out of order, with repetitions.
pub fn some_indices() -> Vec<u64> {
    (0..300).map(|i| i * 7919 % SAMPLES).chain([5, 5, 0, SAMPLES - 1]).collect()
}

pub fn c_text(text: &str) -> CString {
    CString::new(text).unwrap()
}

pub fn c_path(path: &Path) -> CString {
    c_text(path.to_str().unwrap())
}

/// Returns a text of the library.
pub fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: a text of the library, which ends with a NUL.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap().to_owned()
}

/// A handle and the function that closes it.
pub struct Handle<T>(pub *mut T, pub unsafe extern "C" fn(*mut *mut T));

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: created by the library.
        unsafe { (self.1)(&raw mut self.0) };
        assert!(self.0.is_null());
        // SAFETY: as above; the second call does nothing.
        unsafe { (self.1)(&raw mut self.0) };
    }
}

/// Makes a call, and returns its status and the text of its error.
pub fn refused(call: impl FnOnce(*mut *mut tensilo_error) -> tensilo_status) -> (tensilo_status, String) {
    let mut error = ptr::null_mut();
    let status = call(&raw mut error);
    // SAFETY: NULL or an error.
    unsafe {
        assert_eq!(tensilo_error_status(error), status);
        let text = text(tensilo_error_text(error));
        tensilo_error_free(&raw mut error);
        assert!(error.is_null());
        (status, text)
    }
}

/// Makes a call that succeeds.
#[track_caller]
pub fn done(call: impl FnOnce(*mut *mut tensilo_error) -> tensilo_status) {
    let (status, text) = refused(call);
    assert_eq!((status, text.as_str()), (TENSILO_OK, ""));
}

pub fn open_reader(path: &Path, io: tensilo_io) -> Handle<tensilo_reader> {
    let mut reader = ptr::null_mut();
    let path = c_path(path);
    let options = tensilo_open_options {
        struct_size: size_of::<tensilo_open_options>(),
        io,
        verification: 0,
        max_chunk_bytes: 0,
    };
    // SAFETY: arguments as the header requires.
    done(|error| unsafe { tensilo_reader_open(path.as_ptr(), &raw const options, &raw mut reader, error) });
    Handle(reader, tensilo_reader_close)
}

pub fn open_cursor(reader: &Handle<tensilo_reader>, column: &str) -> Handle<tensilo_cursor> {
    let mut cursor = ptr::null_mut();
    let column = c_text(column);
    // SAFETY: arguments as the header requires.
    done(|error| unsafe { tensilo_cursor_open(reader.0, column.as_ptr(), &raw mut cursor, error) });
    Handle(cursor, tensilo_cursor_close)
}

pub fn new_buffer() -> Handle<tensilo_buffer> {
    let mut buffer = ptr::null_mut();
    // SAFETY: arguments as the header requires.
    done(|error| unsafe { tensilo_buffer_new(&raw mut buffer, error) });
    Handle(buffer, tensilo_buffer_close)
}

/// Returns a struct of the header with its size set and all other members zero.
///
/// # Safety
///
/// Zeros are a valid value, and the first member is the size.
pub unsafe fn sized<T>() -> T {
    let mut made = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the caller's promise.
    unsafe {
        made.as_mut_ptr().cast::<usize>().write(size_of::<T>());
        made.assume_init()
    }
}
