//! The way in which the files of a dataset are read, and why.

use super::super::args::BenchArgs;
use super::args::AccessName;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::sys;
use tensilo_data::{Dataset, DatasetOptions};

/// A way of reading files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileAccess {
    /// The name in JSON documents.
    pub name: &'static str,
    /// The reason for it, for people.
    pub why: &'static str,
}

/// Opens the dataset as it is asked for, or as suits this system.
pub(super) fn open(args: &BenchArgs) -> Outcome<(Dataset, FileAccess)> {
    let options = DatasetOptions::new();
    let (options, name, why) = match args.loader.access {
        _ if args.map => (sys::mapped(options), "mapped", "mapped, because of --map"),
        Some(AccessName::ByPosition) => (options, "by-position", "by position, because of --access"),
        Some(AccessName::IoUring) => (uring(options, false)?, "io-uring", "by io_uring, because of --access"),
        Some(AccessName::Direct) => (uring(options, true)?, "direct", "past the page cache, because of --access"),
        None => match uring(DatasetOptions::new(), false) {
            Ok(options) => (options, "io-uring", "by io_uring, which reads all ranges of a batch at the same time"),
            Err(_) => (options, "by-position", "by position, because this system has no io_uring"),
        },
    };
    let dataset = match open::dataset_with(options.clone(), &args.file)? {
        Some(dataset) => dataset,
        None => options.open(&args.file)?, // a file is a dataset, too
    };
    Ok((dataset, FileAccess { name, why }))
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
