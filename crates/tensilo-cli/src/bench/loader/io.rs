//! How the files of a dataset are read, and why.

use super::super::args::{BenchArgs, IoName};
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::sys;
use tensilo_data::{Dataset, DatasetOptions, Io};

/// Opens the dataset as it is asked for, or as suits its files.
pub(super) fn open(args: &BenchArgs) -> Outcome<Dataset> {
    let options = DatasetOptions::new();
    let options = match args.io {
        IoName::Auto => options,
        IoName::Mmap => sys::mmap(options),
        IoName::Pread => options.pread(),
        IoName::IoUring => uring(options, false)?,
        IoName::Direct => uring(options, true)?,
    };
    match open::dataset_with(options.clone(), &args.file)? {
        Some(dataset) => Ok(dataset),
        None => Ok(options.open(&args.file)?), // a file is a dataset, too
    }
}

/// Describes how files are read, and why.
pub(super) fn describe((io, why): (Io, &str)) -> String {
    format!("{}: {why}", io.name())
}

/// Reads files by io_uring. Fails if the system has none.
#[cfg(target_os = "linux")]
fn uring(options: DatasetOptions, is_direct: bool) -> Outcome<DatasetOptions> {
    use tensilo_data::UringFile;
    match UringFile::unavailable() {
        None => Ok(if is_direct { options.direct() } else { options.io_uring() }),
        Some(error) => Err(Failure::Usage(format!("--io: this system has no io_uring, or forbids it: {error}"))),
    }
}

/// Fails: this system has no io_uring.
#[cfg(not(target_os = "linux"))]
fn uring(_: DatasetOptions, _: bool) -> Outcome<DatasetOptions> {
    Err(Failure::Usage("--io: io_uring is there on Linux only".to_owned()))
}
