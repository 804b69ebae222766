//! `tensilo bench`

mod access;
mod args;
mod copy;
mod histogram;
mod loader;
mod measure;
mod pattern;
mod report;
mod source;

pub(crate) use args::BenchArgs;

use crate::failure::{Failure, Outcome};
use crate::open::{is_dataset, warn};
use crate::output::{Output, write_json};
use crate::sys;
use crate::terminal::note;
use access::access;
use args::{IoName, WARM_UP};
use measure::{Counts, Worker, on_threads};
use pattern::{Sequence, share};
use report::BenchReport;
use source::{Counted, drop_from_cache};
use std::time::Instant;
use tensilo::source::{PositionedFile, Source};
use tensilo::{Column, OpenOptions, Reader};

/// Measures how fast one column is read.
pub(crate) fn run(args: &BenchArgs, quiet: bool) -> Outcome {
    if args.loader.loader {
        return loader::run(args);
    }
    if is_dataset(&args.file) {
        let path = tensilo::error::display_path(&args.file);
        if args.is_about_a_column() {
            let message = "this is a dataset, whose batches are measured; --columns chooses their columns, and the \
                           options of one column are for a file of it";
            return Err(Failure::Usage(format!("{path}: {message}")));
        }
        if !quiet {
            note(&format!("{path}: this is a dataset, so batches of a loader are measured, as with --loader"));
        }
        return loader::run(args);
    }
    let about = |error| Failure::about(&args.file, error);
    match args.io {
        IoName::Mmap => run_on(args, quiet, sys::map(&args.file).map_err(about)?),
        IoName::Auto | IoName::Pread => run_on(args, quiet, PositionedFile::open(&args.file).map_err(about)?),
        IoName::IoUring | IoName::Direct => {
            Err(Failure::Usage("--io: io_uring reads batches; add --loader, or use pread or mmap".to_owned()))
        }
    }
}

fn run_on(args: &BenchArgs, quiet: bool, source: impl Source + 'static) -> Outcome {
    let options = OpenOptions::new().verification(args.verification.into());
    let reader = options.open(Counted(source)).map_err(|error| Failure::about(&args.file, error))?;
    if !quiet {
        warn(&args.file, &reader);
    }
    let column = column(args, &reader)?;
    let report = measure(args, &column)?;
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &report.document())?;
    } else {
        report.write_text(&mut output)?;
    }
    output.finish()
}

/// Returns the column that the user named. Without a name, returns the first tensor of a fixed
/// shape; if the file has none, the first scalar; if it has none, the first column.
fn column(args: &BenchArgs, reader: &Reader) -> Outcome<Column> {
    if let Some(name) = &args.column {
        return reader.column(name).map_err(|error| Failure::about(&args.file, error));
    }
    let rank = |column: &Column| match &column.schema().shape {
        _ if column.schema().is_struct_nulls() => 3,
        shape if shape.is_ragged() => 2,
        shape => u8::from(shape.rank() == 0),
    };
    reader
        .columns()
        .min_by_key(rank)
        .ok_or_else(|| Failure::Usage(format!("{}: the file has no columns", tensilo::error::display_path(&args.file))))
}

fn measure<'a>(args: &'a BenchArgs, column: &'a Column) -> Outcome<BenchReport<'a>> {
    let about = |error| Failure::about(&args.file, error);
    let (sample_count, batch) = (column.sample_count(), batch(args));
    let threads = u32::try_from(sample_count).unwrap_or(u32::MAX).min(args.threads);
    let mut workers = (0..threads)
        .map(|thread| {
            let sequence = Sequence::new(args.pattern, sample_count, thread, threads);
            Ok(Worker::new(access(column, batch)?, sequence, batch))
        })
        .collect::<Outcome<Vec<Worker<'_>>>>()?;
    let warmed_up = prepare(args, column, &mut workers)?;
    let results = on_threads(&mut workers, |_, worker| worker.measure(args.seconds, args.cold))?;
    results.into_iter().collect::<tensilo::Result<()>>().map_err(about)?;
    let counts = Counts::sum(workers.iter().map(Worker::counts));
    drop(workers);
    let memcpy_bytes_per_s = memcpy(args, threads, &counts)?;
    Ok(BenchReport { args, column: column.schema(), sample_count, threads, warmed_up, counts, memcpy_bytes_per_s })
}

fn batch(args: &BenchArgs) -> usize {
    usize::try_from(args.batch()).unwrap_or(usize::MAX)
}

/// Warms the caches up, or drops the file from the page cache. Returns whether all chunks were
/// read.
fn prepare(args: &BenchArgs, column: &Column, workers: &mut [Worker<'_>]) -> Outcome<bool> {
    if args.cold {
        return drop_from_cache(&args.file).map(|()| false);
    }
    let deadline = Instant::now().checked_add(args.seconds.saturating_mul(WARM_UP)).unwrap_or_else(Instant::now);
    // exact: it was converted from a u32
    let threads = u32::try_from(workers.len()).unwrap_or(u32::MAX);
    let part = |thread| share(column.facts().chunk_count, thread, threads);
    let results = on_threads(workers, |thread, worker| {
        let part = part(thread);
        let chunks = worker.warm_up(column, part.start, deadline)?;
        Ok(chunks >= part.end.saturating_sub(part.start))
    })?;
    let covered = results.into_iter().collect::<tensilo::Result<Vec<bool>>>();
    let covered = covered.map_err(|error| Failure::about(&args.file, error))?;
    Ok(covered.into_iter().all(|covered| covered))
}

/// Measures copying of as many bytes per sample.
fn memcpy(args: &BenchArgs, threads: u32, counts: &Counts) -> Outcome<Option<f64>> {
    let sample_bytes = counts.decoded_bytes.checked_div(counts.samples).and_then(|bytes| usize::try_from(bytes).ok());
    let Some(sample_bytes) = sample_bytes.filter(|bytes| *bytes > 0) else { return Ok(None) };
    let sequence = |slots, thread| Sequence::new(args.pattern, slots, thread, threads);
    copy::bytes_per_second(sample_bytes, batch(args), threads, args.seconds, sequence)
}
