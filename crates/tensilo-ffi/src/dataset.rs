//! Datasets of one or more files, which are read as one sequence of samples.
//!
//! A dataset is opened once, and then used to create loaders and sample readers, which may outlive
//! it. Requesting an I/O method that this build lacks fails with an error that names the cargo
//! feature.

use crate::boundary::call::{HandleSlot, call, close, fill, flag, options as read_options, path as read_path, shared};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::{Options, Output};
use crate::reader::{
    TENSILO_IO_AUTO, TENSILO_IO_DIRECT, TENSILO_IO_IO_URING, TENSILO_IO_MMAP, TENSILO_IO_PREAD, tensilo_io,
};
use crate::schema::tensilo_schema;
use std::ffi::c_char;
use std::ptr;
use tensilo_data::{Dataset, DatasetOptions, Io, View};

/// An open dataset: files that are read as one sequence of samples.
///
/// Threads: any number may use a dataset at the same time, but not while it is being closed. A
/// dataset may be closed before its loaders.
pub struct tensilo_dataset {
    dataset: Dataset,
    view: View,
    schema: tensilo_schema,
}

/// The options for opening a dataset. Zero in each member selects the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_dataset_options {
    /// `sizeof(tensilo_dataset_options)`, set by the caller.
    pub struct_size: usize,
    /// The version to open, if `has_version` is 1. Otherwise, the newest version is opened.
    pub version: u64,
    /// Whether `version` is set: 0 or 1.
    pub has_version: u32,
    /// The I/O method.
    pub io: tensilo_io,
    /// The maximum number of open files. 0 means 4,096 for objects in a store. For files, 0 means
    /// half of the process's limit, but at most 256. Raise this number for datasets of many files
    /// that are read in a shuffled order.
    pub max_open_files: usize,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_dataset_options {}
// SAFETY: integers only.
unsafe impl Options for tensilo_dataset_options {}

/// Facts about an open dataset.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_dataset_info {
    /// `sizeof(tensilo_dataset_info)`, set by the caller.
    pub struct_size: usize,
    /// The number of samples.
    pub sample_count: u64,
    /// The version; 0 without a manifest.
    pub version: u64,
    /// The id, which all versions of a dataset share. Without a manifest, the id is derived from
    /// the files.
    pub dataset_id: [u8; 16],
    /// The I/O method.
    pub io: tensilo_io,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_dataset_info {}

impl tensilo_dataset {
    pub(crate) fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }
}

fn options(given: &tensilo_dataset_options) -> Result<DatasetOptions> {
    let mut options = DatasetOptions::new();
    if flag(given.has_version, "has_version")? {
        options = options.version(given.version);
    }
    if given.max_open_files > 0 {
        options = options.max_open_files(given.max_open_files);
    }
    match given.io {
        TENSILO_IO_AUTO => Ok(options),
        TENSILO_IO_PREAD => Ok(options.pread()),
        TENSILO_IO_MMAP => mmap(options),
        TENSILO_IO_IO_URING => io_uring(options, false),
        TENSILO_IO_DIRECT => io_uring(options, true),
        other => Err(tensilo_error::bad_argument(format!("{other} is not a valid tensilo_io"))),
    }
}

#[cfg(feature = "mmap")]
fn mmap(options: DatasetOptions) -> Result<DatasetOptions> {
    // SAFETY: by setting `TENSILO_IO_MMAP`, the caller promises that no process changes the files.
    Ok(unsafe { options.mmap() })
}

#[cfg(not(feature = "mmap"))]
fn mmap(_: DatasetOptions) -> Result<DatasetOptions> {
    Err(tensilo_error::not_built("mmap", "mapping a file into memory"))
}

#[cfg(all(target_os = "linux", feature = "io-uring"))]
fn io_uring(options: DatasetOptions, is_direct: bool) -> Result<DatasetOptions> {
    Ok(if is_direct { options.direct() } else { options.io_uring() })
}

#[cfg(not(all(target_os = "linux", feature = "io-uring")))]
fn io_uring(_: DatasetOptions, _: bool) -> Result<DatasetOptions> {
    Err(tensilo_error::not_built("io-uring", "io_uring (Linux only)"))
}

fn io(dataset: &Dataset) -> tensilo_io {
    match dataset.io() {
        Io::Pread => TENSILO_IO_PREAD,
        Io::Mmap => TENSILO_IO_MMAP,
        Io::IoUring => TENSILO_IO_IO_URING,
        Io::Direct => TENSILO_IO_DIRECT,
        _ => TENSILO_IO_AUTO,
    }
}

/// Opens a dataset: a folder with a manifest, a folder of `*.tsl` files in the order of their
/// names, or a single file. With a manifest, the default is the newest version. `path` may be an
/// address, such as `s3://bucket/train`, if the library has the feature `object`. `options` may be
/// NULL. Close the dataset with `tensilo_dataset_close`.
///
/// Cost: reads one manifest file. Without a manifest, opens all files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_dataset_open(
    path: *const c_char,
    options: *const tensilo_dataset_options,
    dataset: *mut *mut tensilo_dataset,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(dataset, "dataset")?;
            let given = self::options(&read_options(options, "options")?)?;
            let opened = given.open(read_path(path, "path")?)?;
            let (view, schema) = (View::all(&opened), tensilo_schema::new(opened.schema().clone()));
            slot.fill(tensilo_dataset { dataset: opened, view, schema });
            Ok(())
        })
    }
}

/// Closes a dataset and sets the pointer to NULL. Does nothing if `dataset` or `*dataset` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_dataset_close(dataset: *mut *mut tensilo_dataset) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(dataset) }
}

/// Returns the schema of a dataset: its columns and its metadata. The schema lives as long as the
/// dataset. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_dataset_schema(dataset: *const tensilo_dataset) -> *const tensilo_schema {
    // SAFETY: NULL or a dataset, by the rules in `tensilo.h`.
    unsafe { dataset.as_ref() }.map_or(ptr::null(), |dataset| &raw const dataset.schema)
}

/// Fills `info` with facts about a dataset.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_dataset_get_info(
    dataset: *const tensilo_dataset,
    info: *mut tensilo_dataset_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let dataset = shared(dataset, "dataset")?.dataset();
            let found = tensilo_dataset_info {
                struct_size: 0,
                sample_count: dataset.sample_count(),
                version: dataset.version(),
                dataset_id: dataset.id(),
                io: io(dataset),
            };
            fill(info, found, "info")
        })
    }
}
