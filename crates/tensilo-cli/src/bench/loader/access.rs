//! The way in which the files of a dataset are read, and why.

use super::super::args::BenchArgs;
use super::args::AccessName;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::sys;
use tensilo_data::{Dataset, DatasetOptions, FileAccess};

/// Opens the dataset as it is asked for, or as suits its files.
pub(super) fn open(args: &BenchArgs) -> Outcome<Dataset> {
    let options = DatasetOptions::new();
    let options = match args.loader.access {
        _ if args.map => sys::mapped(options),
        Some(AccessName::ByPosition) => options.by_position(),
        Some(AccessName::IoUring) => uring(options, false)?,
        Some(AccessName::Direct) => uring(options, true)?,
        None => options,
    };
    match open::dataset_with(options.clone(), &args.file)? {
        Some(dataset) => Ok(dataset),
        None => Ok(options.open(&args.file)?), // a file is a dataset, too
    }
}

/// Describes how files are read, and why.
pub(super) fn describe((access, why): (FileAccess, &str)) -> String {
    let how = match access {
        FileAccess::Mapped => "mapped",
        FileAccess::IoUring => "by io_uring",
        FileAccess::Direct => "by io_uring, past the page cache",
        _ => "by position",
    };
    format!("{how}: {why}")
}

/// Reads files by io_uring. Fails if the system has none.
#[cfg(target_os = "linux")]
fn uring(options: DatasetOptions, is_direct: bool) -> Outcome<DatasetOptions> {
    use tensilo_data::{PageCache, UringFile};
    match UringFile::unavailable() {
        None => Ok(options.io_uring(if is_direct { PageCache::Passed } else { PageCache::Used })),
        Some(error) => Err(Failure::Usage(format!("--access: this system has no io_uring, or forbids it: {error}"))),
    }
}

/// Fails: this system has no io_uring.
#[cfg(not(target_os = "linux"))]
fn uring(_: DatasetOptions, _: bool) -> Outcome<DatasetOptions> {
    Err(Failure::Usage("--access: io_uring is there on Linux only".to_owned()))
}
