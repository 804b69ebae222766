//! `tensilo bench`: how fast the samples of a column, or the batches of a loader, are read.
//!
//! [`mod@column`] measures one column of a file with cursors on threads, in a pattern. [`loader`]
//! measures batches of several columns of a file or a dataset as a training takes them, and says
//! how many decode threads are enough. A dataset is always measured by a loader.
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

/// Measures how fast one column is read, or the batches of a loader.
pub(crate) fn run(args: &BenchArgs, quiet: bool) -> Outcome {
    if args.loader.loader {
        return loader::run(args);
    }
    let path = display_path(&args.file);
    if !is_dataset(&args.file) {
        if args.has_loader_options() {
            let message = "bench measures one column of a file; add --loader to measure batches";
            return Err(Failure::Usage(format!("{path}: {message}")));
        }
        return column::run(args, quiet);
    }
    if args.has_column_options() {
        return Err(Failure::Usage(format!(
            "{path}: this is a dataset, whose batches are measured; --columns chooses their columns, and the options \
             of one column are for a file of it"
        )));
    }
    if !quiet {
        note(&format!("{path}: this is a dataset, so batches of a loader are measured, as with --loader"));
    }
    loader::run(args)
}
