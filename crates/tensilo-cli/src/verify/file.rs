//! The verification of a file.

use super::args::VerifyArgs;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::options::threads;
use crate::progress::{Progress, Unit};
use std::path::Path;
use tensilo::verify::{VerifyOptions, VerifyReport};

/// Verifies a file.
pub(super) fn verify(path: &Path, args: &VerifyArgs, quiet: bool) -> Outcome<VerifyReport> {
    let about = |error| Failure::about(path, error);
    let source = open::source(path)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |bytes| progress.set("verifying", bytes, Some(source.byte_count()));
    let options = VerifyOptions::new().decode(args.deep).threads(threads(args.threads)).progress(&mut advance);
    tensilo::verify::verify(&source, options).map_err(about)
}
