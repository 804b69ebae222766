//! `tensilo salvage`: lists the losses of a damaged file or dataset, and writes the intact samples
//! to a new one.
//!
//! The core finds every intact chunk, even if the header, the index or a footer is lost. Samples
//! that a column has lost become nulls in that column, so all samples keep their indices. If
//! neither an index nor a footer confirms a chunk, it is copied, and its samples are listed as
//! unconfirmed.
//!
//! A report is printed as JSON or as text. For a file, both come from a [`SalvageReport`]. For a
//! dataset, both come from [`FileLosses`]: its files are salvaged individually, but sample indices
//! refer to the whole dataset.

use super::dataset::{DatasetSize, dataset_id, set_time, summary};
use crate::failure::{Exit, Failure, Outcome, verdict};
use crate::open;
use crate::options::EncodingArgs;
use crate::output::{Data, Destination, Inputs, Output, shown, write_json};
use crate::signals;
use crate::terminal::{Progress, Unit};
use crate::text::{self, Table};
use clap::Args;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tensilo::Summary;
use tensilo::salvage::{Losses, RewriteOptions, SalvageOptions, Salvaged, salvage};
use tensilo::sink::Sink;
use tensilo_data::{Changes, Dataset, GroupFile, SalvagedFile, SampleGroup};

const SALVAGE: &str = "\
Examples:
  tensilo salvage broken.tsl                    list the losses
  tensilo salvage broken.tsl -o whole.tsl       also write the intact samples
  tensilo salvage broken.tsl -o whole.tsl --json | jq '.columns[].lost'
  tensilo salvage train/ -o whole/              salvage a dataset to a new one

Finds every intact chunk, even if the header, the index, the footers or the
trailers are damaged, cut off or missing, or if the writer was killed. Chunks
are copied unchanged. If a damaged chunk is divided into blocks and its block
index is intact, only the samples in its damaged blocks are lost. If the file
header and all footers are lost, nothing can be salvaged, because the columns
are unknown. BROKEN.tsl is never changed.

If neither the index nor a footer confirms a chunk, it could come from an older
file, for example if BROKEN.tsl was copied over that file and the copy was
interrupted. The samples of the chunk are copied, but listed as unconfirmed;
OUT.tsl lists them in the metadata key \"tensilo.unconfirmed\" of their columns.

Samples that a column has lost become nulls in that column, and all samples
keep their indices. With --drop-lost, samples that any column has lost are
dropped, and the indices of later samples shift down. The encoding options
apply only to chunks in which samples became null or were dropped.

In a dataset with a manifest, every file is salvaged. The new dataset has the
same groups and sample indices. If a file is missing, destroyed or not the one
that the manifest lists, the samples that it stores become null.

Exits with 1 if a sample is lost or unconfirmed, or if samples could be missing
at the end; the output is still written completely.

JSON, schema tensilo.salvage/1 (these members are stable, and more may be
added):
  schema, ok, file_bytes, sample_count
  file_header_is_intact  if false, the schema comes from a footer
  committed_samples      up to the last commit with an intact footer, or null
  end_is_known           if false, samples could be missing at the end
  columns: [{ name, chunk_count, stored_bytes, lost_count,
    lost     [[first, end], ...] sample indices, end excluded
    unconfirmed_count, unconfirmed  the same for unconfirmed samples }]
  output             null, or { path, file_bytes, sample_count, file_id,
    content_id }
For a dataset, schema tensilo.salvage-dataset/1:
  schema, ok, dataset_id, version, sample_count
  files: [{ path, ok, samples,
    message  why everything in the file is lost, or null
    columns  [{ name, lost_count, lost, unconfirmed_count, unconfirmed }], with
             sample indices in the dataset }]
  output   null, or { path, dataset_id, sample_count, file_count, file_bytes }";

#[derive(Args, Debug)]
#[command(after_help = SALVAGE)]
pub(crate) struct SalvageArgs {
    /// A damaged tensilo file, the folder of a dataset, or a quoted glob of files
    #[arg(value_name = "BROKEN.tsl")]
    file: PathBuf,
    /// The file to write (- is standard output), or the folder of the new dataset. Without this
    /// option, the losses are only listed
    #[arg(short, long, value_name = "OUT.tsl|OUT/")]
    output: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Drop the samples that any column has lost, instead of making them null in that column
    #[arg(long)]
    drop_lost: bool,
    /// Replace OUT.tsl if it exists; allow binary data on a terminal
    #[arg(short, long, requires = "output")]
    force: bool,
    #[command(flatten)]
    encoding: EncodingArgs,
}

/// Reports the losses, and writes the intact chunks to a new file.
pub(crate) fn run(args: &SalvageArgs, quiet: bool) -> Outcome<Exit> {
    if let Some(dataset) = open::dataset(&args.file)? {
        return salvage_dataset(args, &dataset, quiet);
    }
    let inputs = Inputs::file(&args.file);
    let destination = |path: &PathBuf| Destination::new(path, args.force, Data::Binary, inputs);
    let destination = args.output.as_ref().map(destination).transpose()?;
    let salvaged = salvaged(&args.file, quiet)?;
    let written = destination.map(|destination| write(args, &salvaged, destination.create()?, quiet)).transpose()?;
    let mut output =
        written.as_ref().map_or_else(|| Box::new(Output::stdout()) as Box<dyn Write>, |it| it.sink.summary());
    let report = SalvageReport { salvaged: &salvaged, written: args.output.as_deref().zip(written.as_ref()) };
    let exit = if report.is_whole() { Exit::Done } else { Exit::Damaged };
    let printed = match args.json {
        true => write_json(&mut output, &report.document()),
        false => report.write_text(quiet, &mut output).map_err(Failure::from),
    };
    verdict(exit, printed.and_then(|()| Ok(output.flush()?)))
}

fn salvaged(file: &Path, quiet: bool) -> Outcome<Salvaged> {
    let about = |error| Failure::about(file, error);
    let source = open::source(file)?;
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |done, total| progress.set("looking for chunks", done, Some(total));
    salvage(source, SalvageOptions::new().deep(true).progress(&mut advance)).map_err(about)
}

/// Writes the intact samples of a file, with nulls in place of lost samples.
fn write<S: Sink>(args: &SalvageArgs, salvaged: &Salvaged, output: S, quiet: bool) -> Outcome<Summary<S>> {
    let progress = Progress::new(Unit::Samples, quiet);
    let mut advance = |done| progress.set("writing", done, Some(salvaged.reader.sample_count()));
    let writer = args.encoding.writer_options().alignment(salvaged.reader.alignment());
    let options = RewriteOptions::new().drop_lost(args.drop_lost).progress(&mut advance);
    Ok(salvaged.write_to(output, &writer, options)?)
}

/// The result of salvaging a file, and the file that was written, if any.
pub(crate) struct SalvageReport<'a, K> {
    pub(crate) salvaged: &'a Salvaged,
    pub(crate) written: Option<(&'a Path, &'a Summary<K>)>,
}

impl<K> SalvageReport<'_, K> {
    /// Returns whether every sample is intact and confirmed.
    fn is_whole(&self) -> bool {
        let Salvaged { losses, unconfirmed, end_is_known, .. } = self.salvaged;
        losses.is_empty() && unconfirmed.is_empty() && *end_is_known
    }

    /// Returns the JSON document of schema `tensilo.salvage/1`.
    pub(crate) fn document(&self) -> Value {
        let Salvaged { reader, losses, unconfirmed, .. } = self.salvaged;
        let samples = losses.columns.iter().zip(&unconfirmed.columns);
        let columns = reader.columns().zip(samples).map(|(column, ((name, lost), (_, unconfirmed)))| {
            let facts = column.facts();
            json!({
                "name": name,
                "chunk_count": facts.chunk_count,
                "stored_bytes": facts.stored_bytes,
                "lost_count": lost.count(),
                "lost": pairs(lost.ranges()),
                "unconfirmed_count": unconfirmed.count(),
                "unconfirmed": pairs(unconfirmed.ranges()),
            })
        });
        let output = self.written.map(|(path, summary)| {
            json!({
                "path": path.to_string_lossy(),
                "file_bytes": summary.file_bytes,
                "sample_count": summary.sample_count,
                "file_id": summary.file_id.to_string(),
                "content_id": summary.content_id.to_string(),
            })
        });
        json!({
            "schema": "tensilo.salvage/1",
            "ok": self.is_whole(),
            "file_bytes": reader.file_bytes(),
            "sample_count": reader.sample_count(),
            "file_header_is_intact": self.salvaged.file_header_is_intact,
            "committed_samples": self.salvaged.committed_samples,
            "end_is_known": self.salvaged.end_is_known,
            "columns": columns.collect::<Vec<_>>(),
            "output": output,
        })
    }

    /// Writes a table of the columns, and remarks on the file.
    fn write_text(&self, quiet: bool, output: &mut impl Write) -> io::Result<()> {
        let Salvaged { reader, losses, unconfirmed, .. } = self.salvaged;
        let mut table = Table::new(&["column", ">chunks", ">bytes", ">lost", "lost samples", "unconfirmed samples"]);
        let samples = losses.columns.iter().zip(&unconfirmed.columns);
        for (column, ((name, lost), (_, unconfirmed))) in reader.columns().zip(samples) {
            let facts = column.facts();
            table.row(vec![
                text::excerpt(name),
                facts.chunk_count.to_string(),
                text::bytes(facts.stored_bytes),
                lost.count().to_string(),
                ranges(lost.ranges()),
                ranges(unconfirmed.ranges()),
            ]);
        }
        table.hide_blank();
        table.write(output)?;
        if quiet {
            return Ok(());
        }
        writeln!(output)?;
        self.remarks().iter().try_for_each(|remark| writeln!(output, "{remark}"))
    }

    fn remarks(&self) -> Vec<String> {
        let Salvaged { reader, losses, unconfirmed, file_header_is_intact, committed_samples, end_is_known, .. } =
            self.salvaged;
        let mut remarks = Vec::new();
        if !file_header_is_intact {
            remarks.push("the file header is damaged; the columns come from a footer".to_owned());
        }
        match committed_samples {
            None => remarks.push("no footer is intact".to_owned()),
            Some(committed) if *committed < reader.sample_count() => {
                remarks.push(format!("the last commit with an intact footer has {committed} samples"));
            }
            Some(_) => {}
        }
        if !end_is_known {
            remarks.push("the end of the file is missing or damaged; the file could have had more samples".to_owned());
        }
        let (any, all) = (losses.of_all().count(), reader.sample_count());
        let unconfirmed = unconfirmed.of_all().count();
        remarks.push(match any {
            0 if unconfirmed == 0 => format!("all {all} samples are intact"),
            0 => format!("all {all} samples can be read"),
            _ => format!("{} of {all} samples are intact in all columns", all.saturating_sub(any)),
        });
        if unconfirmed > 0 {
            remarks.push(unconfirmed_remark(unconfirmed));
        }
        if let Some((path, summary)) = self.written {
            let (samples, bytes) = (summary.sample_count, text::bytes(summary.file_bytes));
            remarks.push(format!("{}: {samples} samples, {bytes}", shown(path)));
        }
        remarks
    }
}

/// Reports the losses of all files, and writes a new dataset.
fn salvage_dataset(args: &SalvageArgs, dataset: &Dataset, quiet: bool) -> Outcome<Exit> {
    if args.drop_lost || args.force {
        let option = if args.force { "--force" } else { "--drop-lost" };
        return Err(Failure::Usage(format!("{option} applies only to a file, but this is a dataset")));
    }
    let mut changes = args.output.as_ref().map(|folder| create_like(dataset, folder)).transpose()?;
    let (mut losses, mut output) = (Vec::new(), Output::stdout());
    for group in dataset.groups() {
        let group = group?;
        let mut written = Vec::new();
        for (number, file) in group.files.iter().enumerate() {
            let progress = Progress::new(Unit::Bytes, quiet);
            let mut advance = |done, total| progress.set("looking for chunks", done, Some(total));
            let options = SalvageOptions::new().deep(true).progress(&mut advance);
            let salvaged = dataset.salvage_file(&group, number, options)?;
            drop(progress);
            let found = FileLosses::of(dataset, &group, file, &salvaged);
            if let Some(changes) = &mut changes {
                let lossy = found.columns.iter().filter(|column| !column.lost.is_empty());
                lossy.for_each(|column| changes.make_nullable(column.number));
                let output = changes.next_file()?;
                let path = output.path().to_path_buf();
                signals::remove_at_exit(output.temporary_path());
                write(args, &salvaged.salvaged, output, quiet)?;
                written.push((path, file.columns.clone()));
            }
            if !args.json && found.is_damaged() {
                found.write_text(&mut output)?;
            }
            losses.push(found);
        }
        if let Some(changes) = &mut changes {
            changes.add_group(&written)?;
        }
    }
    let made = changes.map(|changes| changes.publish("salvage")).transpose()?;
    let made = made.as_ref().zip(args.output.as_deref());
    let is_whole = !losses.iter().any(FileLosses::is_damaged);
    let printed = if args.json {
        write_json(&mut output, &dataset_document(dataset, &losses, made)?)
    } else if quiet {
        Ok(())
    } else {
        write_sums(dataset, &losses, &mut output)?;
        made.map_or(Ok(()), |(made, folder)| Ok(writeln!(output, "{}", summary(made, folder)?)?))
    };
    verdict(if is_whole { Exit::Done } else { Exit::Damaged }, printed.and_then(|()| output.finish()))
}

/// Starts a dataset with the columns, metadata and window sizes of another dataset.
pub(crate) fn create_like(dataset: &Dataset, folder: &PathBuf) -> Outcome<Changes> {
    let mut changes = Dataset::create(folder)?;
    set_time(&mut changes)?;
    changes.declare(dataset.schema())?;
    changes.set_window_sizes(dataset.window_sizes());
    Ok(changes)
}

/// The lost and unconfirmed samples of one column of a file.
pub(crate) struct ColumnLosses {
    /// The name of the column in the dataset.
    name: String,
    /// The number of the column in the dataset.
    pub(crate) number: usize,
    /// The lost samples, as sample indices in the dataset.
    pub(crate) lost: Vec<Range<u64>>,
    /// The unconfirmed samples, as sample indices in the dataset.
    unconfirmed: Vec<Range<u64>>,
}

/// The losses of a file.
pub(crate) struct FileLosses {
    path: PathBuf,
    samples: Range<u64>,
    /// The reason why everything in the file is lost, if it is.
    message: Option<String>,
    /// The columns of the file.
    pub(crate) columns: Vec<ColumnLosses>,
}

impl FileLosses {
    /// Returns the losses of a file in a group.
    pub(crate) fn of(dataset: &Dataset, group: &SampleGroup, file: &GroupFile, found: &SalvagedFile) -> Self {
        let first = group.samples.start;
        let columns = file.columns.iter().map(|(name, number)| {
            let of_dataset = |losses: &Losses| -> Vec<Range<u64>> {
                let samples = losses.columns.iter().find(|(column, _)| column == name);
                let ranges = samples.into_iter().flat_map(|(_, samples)| samples.ranges());
                ranges.map(|range| range.start.saturating_add(first)..range.end.saturating_add(first)).collect()
            };
            let (lost, unconfirmed) = (of_dataset(&found.salvaged.losses), of_dataset(&found.salvaged.unconfirmed));
            let name = dataset.schema().columns.get(*number).map_or(name, |column| &column.name);
            ColumnLosses { name: name.clone(), number: *number, lost, unconfirmed }
        });
        let (path, samples, columns) = (file.path.clone(), group.samples.clone(), columns.collect());
        Self { path, samples, message: found.lost.as_ref().map(ToString::to_string), columns }
    }

    /// Returns whether anything in a column of the dataset is lost or unconfirmed.
    fn is_damaged(&self) -> bool {
        let is_damaged = |column: &ColumnLosses| !column.lost.is_empty() || !column.unconfirmed.is_empty();
        self.message.is_some() || self.columns.iter().any(is_damaged)
    }

    /// Writes the lost and unconfirmed samples.
    fn write_text(&self, output: &mut impl Write) -> io::Result<()> {
        if let Some(message) = &self.message {
            let Range { start, end } = self.samples;
            return writeln!(output, "{message}; its columns have lost samples {start}..{end}");
        }
        writeln!(output, "{}:", shown(&self.path))?;
        for ColumnLosses { name, lost, unconfirmed, .. } in &self.columns {
            for (what, samples) in [("lost", lost), ("unconfirmed", unconfirmed)] {
                if !samples.is_empty() {
                    writeln!(output, "column {:?}: {what} {}", text::excerpt(name), ranges(samples))?;
                }
            }
        }
        Ok(())
    }

    fn document(&self) -> Value {
        let columns = self.columns.iter().map(|ColumnLosses { name, lost, unconfirmed, .. }| {
            json!({
                "name": name,
                "lost_count": count(lost),
                "lost": pairs(lost),
                "unconfirmed_count": count(unconfirmed),
                "unconfirmed": pairs(unconfirmed),
            })
        });
        json!({
            "path": self.path.to_string_lossy(),
            "ok": !self.is_damaged(),
            "samples": [self.samples.start, self.samples.end],
            "message": self.message,
            "columns": columns.collect::<Vec<Value>>(),
        })
    }
}

/// Returns the JSON document of schema `tensilo.salvage-dataset/1`, with the written dataset, if
/// any.
pub(crate) fn dataset_document(
    dataset: &Dataset,
    files: &[FileLosses],
    written: Option<(&Dataset, &Path)>,
) -> Outcome<Value> {
    let output = written.map(|(dataset, folder)| {
        let size = DatasetSize::of(dataset)?;
        Outcome::Ok(json!({
            "path": folder.to_string_lossy(),
            "dataset_id": dataset_id(dataset),
            "sample_count": dataset.sample_count(),
            "file_count": size.files,
            "file_bytes": size.bytes,
        }))
    });
    Ok(json!({
        "schema": "tensilo.salvage-dataset/1",
        "ok": !files.iter().any(FileLosses::is_damaged),
        "dataset_id": dataset_id(dataset),
        "version": dataset.version(),
        "sample_count": dataset.sample_count(),
        "files": files.iter().map(FileLosses::document).collect::<Vec<Value>>(),
        "output": output.transpose()?,
    }))
}

/// Writes how many files are damaged and how many samples are intact.
fn write_sums(dataset: &Dataset, files: &[FileLosses], output: &mut impl Write) -> io::Result<()> {
    let samples = dataset.sample_count();
    match (files.len(), files.iter().filter(|file| file.is_damaged()).count()) {
        (all, 0) => writeln!(output, "all {samples} samples in {all} files are intact")?,
        (all, damaged) => {
            let intact = samples.saturating_sub(count(&of_any(files, |column| &column.lost)));
            writeln!(
                output,
                "{damaged} of {all} files are damaged; {intact} of {samples} samples are intact in all columns"
            )?;
        }
    }
    match count(&of_any(files, |column| &column.unconfirmed)) {
        0 => Ok(()),
        unconfirmed => writeln!(output, "{}", unconfirmed_remark(unconfirmed)),
    }
}

/// Returns the union of the samples of all columns, as ranges that do not overlap.
fn of_any(files: &[FileLosses], samples: impl Fn(&ColumnLosses) -> &Vec<Range<u64>>) -> Vec<Range<u64>> {
    let columns = files.iter().flat_map(|file| &file.columns);
    let mut all: Vec<Range<u64>> = columns.flat_map(|column| samples(column).iter().cloned()).collect();
    all.sort_unstable_by_key(|lost| lost.start);
    let mut end = 0;
    for lost in &mut all {
        lost.start = lost.start.max(end).min(lost.end.max(end));
        lost.end = lost.end.max(end);
        end = lost.end;
    }
    all
}

/// Returns the number of samples in ranges that do not overlap.
fn count(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end.saturating_sub(range.start)).fold(0, u64::saturating_add)
}

/// The maximum number of ranges in a line of text. The JSON document has all of them.
const RANGES: usize = 8;

/// Returns `[[100, 200], [300, 301]]` for a JSON document.
fn pairs(ranges: &[Range<u64>]) -> Vec<[u64; 2]> {
    ranges.iter().map(|range| [range.start, range.end]).collect()
}

/// Returns the remark about unconfirmed samples.
fn unconfirmed_remark(count: u64) -> String {
    format!(
        "unconfirmed: {}; neither the index nor a footer confirms them, so they could come from an older file",
        text::count(count, "sample")
    )
}

/// Returns `100..200, 300..301`.
fn ranges(ranges: &[Range<u64>]) -> String {
    let mut words: Vec<String> =
        ranges.iter().take(RANGES).map(|range| format!("{}..{}", range.start, range.end)).collect();
    match ranges.len().saturating_sub(RANGES) {
        0 if words.is_empty() => "-".to_owned(),
        0 => words.join(", "),
        more => {
            words.push(format!("and {more} more ranges (--json lists all)"));
            words.join(", ")
        }
    }
}
