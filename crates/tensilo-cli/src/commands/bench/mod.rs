//! `tensilo bench`: measures how fast the samples of a column, or the batches of a loader, are
//! read.
//!
//! [`mod@column`] reads one column of a file, in an order that the user selects, with one cursor on
//! each thread. [`loader`] takes batches of several columns of a file or a dataset, as a training
//! loop does, and finds how many decode threads are enough. A dataset is always measured with a
//! loader.
//!
//! Warm reads are measured after a warm-up. Before cold reads, the files are dropped from the page
//! cache; only some operating systems can do this.

pub(super) mod args;
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
            let message = "some of the options apply only to the batches of a loader; add --loader";
            return Err(Failure::Usage(format!("{path}: {message}")));
        }
        return column::run(args, quiet);
    }
    if args.has_column_options() {
        return Err(Failure::Usage(format!(
            "{path}: this is a dataset, so batches of several columns are measured, and --column, --access and \
             --threads do not apply; name one of its files, or select columns with --columns"
        )));
    }
    if !quiet {
        note(&format!("{path}: this is a dataset, so batches are measured, as with --loader"));
    }
    loader::run(args)
}
