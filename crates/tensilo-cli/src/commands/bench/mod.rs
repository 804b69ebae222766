//! `tensilo bench`: measures how fast samples of a column, or batches of a loader, are read.
//!
//! [`mod@column`] reads one column of a file with a cursor on each thread, in a pattern. [`loader`]
//! takes batches of several columns of a file or a dataset as a training loop does, and finds how
//! many decode threads are enough. A dataset is always measured by a loader.
//!
//! Warm reads follow a warm-up. For cold reads, the pages of the files are dropped from the page
//! cache first, which only some systems can do.

mod args;
mod column;
mod loader;

pub(crate) use args::BenchArgs;

use crate::failure::{Failure, Outcome};
use crate::open::is_dataset;
use crate::terminal::note;
use tensilo::error::display_path;

/// Measures how fast one column, or the batches of a loader, are read.
pub(crate) fn run(args: &BenchArgs, quiet: bool) -> Outcome {
    if args.loader.loader {
        return loader::run(args);
    }
    let path = display_path(&args.file);
    if !is_dataset(&args.file) {
        if args.has_loader_options() {
            let message = "these options measure batches of a loader; add --loader";
            return Err(Failure::Usage(format!("{path}: {message}")));
        }
        return column::run(args, quiet);
    }
    if args.has_column_options() {
        return Err(Failure::Usage(format!(
            "{path}: this is a dataset, so batches are measured: --columns selects their columns; --column, --pattern \
             and --threads need one of its files"
        )));
    }
    if !quiet {
        note(&format!("{path}: this is a dataset, so batches are measured, as with --loader"));
    }
    loader::run(args)
}
