//! One open file: its I/O method, the options for opening it, and facts about it.
//!
//! Cursors share ownership of the file, so a [`tensilo_reader`] may be closed before its cursors.
//! Datasets are opened with the same [`tensilo_io`] values.

use crate::boundary::call::{HandleSlot, call, close, fill, options as read_options, path as read_path, shared};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::{Options, Output};
use crate::schema::tensilo_schema;
use std::ffi::c_char;
use std::path::Path;
use std::ptr;
use tensilo::{OpenOptions, Reader, Verification};

/// The I/O method for reading files.
pub type tensilo_io = u32;

/// The default: positional reads (`pread`) for a file; for a dataset, io_uring if the build and the
/// system provide it.
pub const TENSILO_IO_AUTO: tensilo_io = 0;
/// Positional reads (`pread`): safe, and suitable for network file systems.
pub const TENSILO_IO_PREAD: tensilo_io = 1;
/// Memory maps: no system calls and no copies. While any handle of the file is open, no process may
/// change or truncate the bytes up to the last commit. If bytes change, the behavior is undefined.
/// If the file is truncated, accessing a page beyond the new end kills the process (`SIGBUS`).
/// tensilo itself does neither: it replaces files by renaming, and appends after the last commit.
/// Do not map files on a network file system.
pub const TENSILO_IO_MMAP: tensilo_io = 2;
/// io_uring with buffered I/O, which reads all ranges of a batch at the same time. Only for
/// datasets on Linux.
pub const TENSILO_IO_IO_URING: tensilo_io = 3;
/// io_uring with direct I/O (`O_DIRECT`), which bypasses the page cache. Suits shuffled datasets
/// that are larger than memory. Only for datasets on Linux.
pub const TENSILO_IO_DIRECT: tensilo_io = 4;

/// An open file.
///
/// Threads: any number may use a reader at the same time, but not while it is being closed. A
/// reader may be closed before its cursors.
pub struct tensilo_reader {
    reader: Reader,
    schema: tensilo_schema,
}

/// When the checksum of a chunk is verified.
pub type tensilo_verification = u32;

/// When this reader first uses the chunk.
pub const TENSILO_VERIFICATION_FIRST_TOUCH: tensilo_verification = 0;
/// Each time the chunk is loaded.
pub const TENSILO_VERIFICATION_ALWAYS: tensilo_verification = 1;
/// Never. Damaged bytes can then lead to wrong values without an error.
pub const TENSILO_VERIFICATION_NEVER: tensilo_verification = 2;

/// The options for opening a file. Zero in each member selects the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_open_options {
    /// `sizeof(tensilo_open_options)`, set by the caller.
    pub struct_size: usize,
    /// The I/O method.
    pub io: tensilo_io,
    /// When chunks are verified.
    pub verification: tensilo_verification,
    /// The maximum decoded size of a chunk in bytes. 0 means the limit of the format, 4 GiB. A
    /// larger chunk is refused before memory is allocated for it. Set this for untrusted files.
    pub max_chunk_bytes: u64,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_open_options {}
// SAFETY: integers only.
unsafe impl Options for tensilo_open_options {}

/// Facts about an open file.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_reader_info {
    /// `sizeof(tensilo_reader_info)`, set by the caller.
    pub struct_size: usize,
    /// The number of samples.
    pub sample_count: u64,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// The length of the uncommitted tail, which is ignored; normally 0.
    pub tail_bytes: u64,
    /// The number of commits.
    pub commit_count: u32,
    /// Whether the writer finished the file.
    pub is_finished: bool,
    /// The id of the file.
    pub file_id: [u8; 12],
    /// The id of the content up to the commit that is read.
    pub content_id: [u8; 16],
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_reader_info {}

impl tensilo_reader {
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }
}

fn open(path: &Path, options: &tensilo_open_options) -> Result<Reader> {
    let verification = match options.verification {
        TENSILO_VERIFICATION_FIRST_TOUCH => Verification::FirstTouch,
        TENSILO_VERIFICATION_ALWAYS => Verification::Always,
        TENSILO_VERIFICATION_NEVER => Verification::Never,
        other => return Err(tensilo_error::bad_argument(format!("{other} is not a valid tensilo_verification"))),
    };
    let mut how = OpenOptions::new().verification(verification);
    if options.max_chunk_bytes > 0 {
        how = how.max_chunk_bytes(u32::try_from(options.max_chunk_bytes).unwrap_or(u32::MAX));
    }
    match options.io {
        TENSILO_IO_AUTO if is_address(path) => open_object(path, how),
        TENSILO_IO_AUTO | TENSILO_IO_PREAD => Ok(how.open(path)?),
        TENSILO_IO_MMAP => map(path, how),
        TENSILO_IO_IO_URING | TENSILO_IO_DIRECT => {
            Err(tensilo_error::bad_argument("io: io_uring reads only datasets; use tensilo_dataset_open"))
        }
        other => Err(tensilo_error::bad_argument(format!("{other} is not a valid tensilo_io"))),
    }
}

#[cfg(feature = "mmap")]
fn map(path: &Path, options: OpenOptions) -> Result<Reader> {
    // SAFETY: by setting `TENSILO_IO_MMAP`, the caller promises that no process changes the file.
    Ok(unsafe { options.map_file(path) }?)
}

#[cfg(not(feature = "mmap"))]
fn map(_: &Path, _: OpenOptions) -> Result<Reader> {
    Err(tensilo_error::not_built("mmap", "mapping a file into memory"))
}

#[cfg(feature = "object")]
fn is_address(path: &Path) -> bool {
    tensilo_object::Address::is_url_path(path)
}

#[cfg(feature = "object")]
fn open_object(path: &Path, options: OpenOptions) -> Result<Reader> {
    let source = tensilo_object::source_at(path)?;
    Ok(options.open_source(source)?.with_path(path))
}

#[cfg(not(feature = "object"))]
fn is_address(_: &Path) -> bool {
    false
}

#[cfg(not(feature = "object"))]
fn open_object(_: &Path, _: OpenOptions) -> Result<Reader> {
    Err(tensilo_error::not_built("object", "opening an object in a store"))
}

/// Opens a file. `path` may be the address of an object, such as `s3://bucket/x.tsl`, if the
/// library has the feature `object`. `options` may be NULL. Close the reader with
/// `tensilo_reader_close`.
///
/// Cost: a few reads, and memory for the schema and for facts about each column, no matter how many
/// samples the file has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_reader_open(
    path: *const c_char,
    options: *const tensilo_open_options,
    reader: *mut *mut tensilo_reader,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(reader, "reader")?;
            let opened = open(&read_path(path, "path")?, &read_options(options, "options")?)?;
            let schema = tensilo_schema::new(opened.schema().clone());
            slot.fill(tensilo_reader { reader: opened, schema });
            Ok(())
        })
    }
}

/// Closes a reader and sets the pointer to NULL. Does nothing if `reader` or `*reader` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_reader_close(reader: *mut *mut tensilo_reader) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(reader) }
}

/// Returns the schema of a file: its columns and its metadata. The schema lives as long as the
/// reader. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_reader_schema(reader: *const tensilo_reader) -> *const tensilo_schema {
    // SAFETY: NULL or a reader, by the rules in `tensilo.h`.
    unsafe { reader.as_ref() }.map_or(ptr::null(), |reader| &raw const reader.schema)
}

/// Fills `info` with facts about a file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_reader_get_info(
    reader: *const tensilo_reader,
    info: *mut tensilo_reader_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let reader = shared(reader, "reader")?.reader();
            let found = tensilo_reader_info {
                struct_size: 0,
                sample_count: reader.sample_count(),
                file_bytes: reader.file_bytes(),
                tail_bytes: reader.tail_bytes(),
                commit_count: reader.commit_count(),
                is_finished: reader.is_finished(),
                file_id: reader.file_id().0,
                content_id: reader.content_id().0,
            };
            fill(info, found, "info")
        })
    }
}
