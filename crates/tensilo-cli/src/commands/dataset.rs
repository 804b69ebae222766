//! `tensilo dataset`: creates and changes datasets, and lists or removes their versions. It also
//! collects the facts about datasets that other commands print.
//!
//! A dataset is a folder of tensilo files with a manifest. Each command opens the newest version,
//! changes it in memory and publishes the result as the next version, completely or not at all. If
//! another program publishes first, the command fails without changing anything, and must be run
//! again. For reproducible builds, `SOURCE_DATE_EPOCH` sets the time that a version records.

use crate::failure::{Failure, Outcome, foreign_format};
use crate::options::{self, EncodingArgs, WindowArgs};
use crate::output::{Output, print_json, print_line, shown};
use crate::terminal::{Progress, Unit};
use crate::text::{self, Table};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use tensilo::error::display_path;
use tensilo::facts::CastFacts;
use tensilo_data::{Changes, DataError, Dataset, DatasetOptions, Garbage};

const DATASET: &str = "\
Examples:
  tensilo convert 'shards/*.parquet' -o train/ --shard-bytes 1GiB
      create a dataset by converting files
  tensilo dataset create train/
      create a dataset from the *.tsl files in a folder
  tensilo dataset add-files train/ train/new/*.tsl
      append the samples of files in the folder
  tensilo dataset add-columns train/ train/labels/*.tsl
      add columns from files in the folder, one file for each group
  tensilo dataset rename-column train/ emb embedding
  tensilo dataset drop-column train/ draft
      no data is written; older versions keep the column
  tensilo dataset set-window-sizes train/ --run-samples 64 --streams 8
      set the default sizes for shuffling
  tensilo dataset repack train/ --shard-bytes 256MiB --profile fast
      write the same samples to new files; training resumes with the same
      batches
  tensilo dataset gc train/ --keep 1 --dry-run
      list the old versions and files that would be removed
  tensilo dataset log train/
      list the versions
  tensilo verify train/
      check the manifest, and every byte of every file

A dataset is a folder of tensilo files with a manifest, which lists them as one
sequence of samples. Each change publishes a new version, completely or not at
all; older versions stay unchanged. If two programs change a dataset at the same
time, one succeeds; the other fails and must be run again.

JSON of \"log\", schema tensilo.log/1 (these members are stable, and more may be
added):
  schema, dataset_id
  versions: [{ version, parent, time, sample_count, file_count, file_bytes,
              change }]
             time in seconds since 1970, or null";

const ADD_COLUMNS: &str = "\
Example:
  tensilo dataset add-columns train/ train/labels/*.tsl

A group is a range of consecutive samples with the files that hold their
columns: one file at first, and one more for each \"add-columns\". The file with
the new columns must have as many samples as the group; \"tensilo inspect\" shows
the number of samples in a file.";

const SET_WINDOW_SIZES: &str = "\
Example:
  tensilo dataset set-window-sizes train/ --run-samples 64 --window-runs 128 \\
      --streams 8
      deal runs of 64 consecutive samples to 8 streams, shuffle the runs of each
      stream, and then the samples within each window of 128 runs

With at least as many streams as ranks, each rank reads its own runs only. The
windows of all streams together determine how well samples are mixed: here,
8 * 128 * 64 samples.

To measure the speed of an order first, use
  tensilo bench train/ --loader --order windowed --run-samples 64 \\
      --window-runs 128 --streams 8";

const REPACK: &str = "\
Example:
  tensilo dataset repack train/ --shard-bytes 256MiB --profile fast

Samples keep their indices, so training resumes with the same batches. Values
stay identical, bit for bit. Dropped columns are not copied. The previous
version remains until \"tensilo dataset gc DIR --keep 1\" removes it.";

const GC: &str = "\
Examples:
  tensilo dataset gc train/ --keep 1 --dry-run   list what would be removed
  tensilo dataset gc train/                      remove leftovers only

Keeps the newest N versions. Removes older versions, data files that only the
removed versions list, and leftovers of killed programs in DIR/data and
DIR/manifest. Keeps files that a running program could still publish. Programs
that read a removed version get errors, and training cannot resume from a state
of that version.";

#[derive(Args, Debug)]
#[command(after_help = DATASET)]
pub(crate) struct DatasetArgs {
    #[command(subcommand)]
    command: DatasetCommand,
}

#[derive(Debug, Subcommand)]
enum DatasetCommand {
    /// Create a dataset from the tensilo files in a folder
    Create {
        /// The folder
        folder: PathBuf,
        /// Files in the folder, in this order [default: all its *.tsl files, sorted by name]
        files: Vec<PathBuf>,
    },
    /// Add tensilo files in the folder, with more samples; for other files, use "tensilo append"
    AddFiles {
        /// The folder of the dataset
        folder: PathBuf,
        /// Files in the folder
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Add columns to the existing samples, from tensilo files in the folder
    #[command(after_help = ADD_COLUMNS)]
    AddColumns {
        /// The folder of the dataset
        folder: PathBuf,
        /// Files in the folder that hold the new columns: one for each group, in order, with as
        /// many samples as the group
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Rename a column
    RenameColumn {
        /// The folder of the dataset
        folder: PathBuf,
        /// The current name
        old: String,
        /// The new name
        new: String,
    },
    /// Drop a column; older versions keep it, and "repack" writes files without it
    DropColumn {
        /// The folder of the dataset
        folder: PathBuf,
        /// The name of the column
        name: String,
    },
    /// Set the default sizes of runs and windows for shuffling
    #[command(after_help = SET_WINDOW_SIZES)]
    SetWindowSizes {
        /// The folder of the dataset
        folder: PathBuf,
        #[command(flatten)]
        windows: WindowArgs,
    },
    /// Write all samples to new files with another size or profile
    #[command(after_help = REPACK)]
    Repack(RepackArgs),
    /// Remove old versions, the files that only they list, and leftovers of killed programs
    #[command(after_help = GC)]
    Gc {
        /// The folder of the dataset
        folder: PathBuf,
        /// Keep only the newest N versions, at least 1 [default: all]
        #[arg(long, value_name = "N", value_parser = options::version_count)]
        keep: Option<NonZeroU64>,
        /// Only list what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// List the versions of a dataset
    Log {
        /// The folder of the dataset
        folder: PathBuf,
        /// Print a JSON document
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Debug)]
struct RepackArgs {
    /// The folder of the dataset
    folder: PathBuf,
    /// The maximum size of a file, counted before encoding, such as 256MiB
    #[arg(long, value_name = "N", value_parser = options::shard_bytes, default_value = "1GiB")]
    shard_bytes: u64,
    /// Start every chunk at a multiple of BYTES; with 4096, programs can read chunks with direct
    /// I/O (O_DIRECT)
    #[arg(long, value_name = "BYTES", value_parser = options::alignments(), default_value = "64")]
    align: u32,
    #[command(flatten)]
    encoding: EncodingArgs,
}

/// Creates or changes a dataset, or lists its versions.
pub(crate) fn run(args: &DatasetArgs, quiet: bool) -> Outcome {
    match &args.command {
        DatasetCommand::Create { folder, files } => create(folder, files, quiet),
        DatasetCommand::AddFiles { folder, files } => add_files(folder, files, quiet),
        DatasetCommand::AddColumns { folder, files } => {
            let text = format!("add the columns of {} files", files.len());
            change(folder, text, quiet, |changes| changes.add_columns(files))
        }
        DatasetCommand::RenameColumn { folder, old, new } => {
            let text = format!("rename column {old:?} to {new:?}");
            change(folder, text, quiet, |changes| changes.rename_column(old, new))
        }
        DatasetCommand::DropColumn { folder, name } => {
            change(folder, format!("drop column {name:?}"), quiet, |changes| changes.drop_column(name))
        }
        DatasetCommand::SetWindowSizes { folder, windows } => set_window_sizes(folder, windows, quiet),
        DatasetCommand::Repack(args) => repack(args, quiet),
        DatasetCommand::Gc { folder, keep, dry_run } => gc(folder, *keep, *dry_run, quiet),
        DatasetCommand::Log { folder, json } => log(folder, *json),
    }
}

fn create(folder: &Path, files: &[PathBuf], quiet: bool) -> Outcome {
    let mut files = files.to_vec();
    if files.is_empty() {
        // without a manifest, the folder opens as a dataset of its *.tsl files
        for group in DatasetOptions::new().open(folder)?.groups() {
            files.extend(group?.files.into_iter().map(|file| file.path));
        }
    }
    let mut changes = Dataset::create(folder)?;
    set_time(&mut changes)?;
    files.iter().try_for_each(|file| changes.add_file(file))?;
    publish(changes, folder, format!("create the dataset from {} files", files.len()), quiet)
}

fn add_files(folder: &Path, files: &[PathBuf], quiet: bool) -> Outcome {
    if let Some((file, what)) = files.iter().find_map(|file| Some((file, foreign_format(file)?))) {
        let (file, folder) = (display_path(file), display_path(folder));
        let message = format!("{file}: {what}; \"tensilo append {folder} {file}\" appends its rows");
        return Err(Failure::Usage(message));
    }
    let add = |changes: &mut Changes| files.iter().try_for_each(|file| changes.add_file(file));
    change(folder, format!("add {} files", files.len()), quiet, add)
}

/// Changes the newest version of a dataset, and publishes the result.
fn change(
    folder: &Path,
    text: String,
    quiet: bool,
    make: impl FnOnce(&mut Changes) -> Result<(), DataError>,
) -> Outcome {
    let dataset = Dataset::open(folder)?;
    require_manifest(&dataset, folder)?;
    let mut changes = dataset.change()?;
    set_time(&mut changes)?;
    make(&mut changes)?;
    publish(changes, folder, text, quiet)
}

/// Publishes a version, and prints a summary.
fn publish(changes: Changes, folder: &Path, change: String, quiet: bool) -> Outcome {
    let dataset = changes.publish(change)?;
    if quiet { Ok(()) } else { print_line(&summary(&dataset, folder)?) }
}

/// Records window sizes. Sizes that are not set do not change.
fn set_window_sizes(folder: &Path, windows: &WindowArgs, quiet: bool) -> Outcome {
    if !windows.is_set() {
        return Err(Failure::Usage("set at least one of --run-samples, --window-runs and --streams".to_owned()));
    }
    let sizes = windows.sizes(Dataset::open(folder)?.window_sizes())?;
    change(folder, format!("set the window sizes: {sizes}"), quiet, |changes| {
        changes.set_window_sizes(sizes);
        Ok(())
    })
}

/// Writes all samples into new files, and prints the sizes before and after.
fn repack(args: &RepackArgs, quiet: bool) -> Outcome {
    let before = Dataset::open(&args.folder)?;
    let mut changes = before.change()?;
    set_time(&mut changes)?;
    let progress = Progress::new(Unit::Samples, quiet);
    let total = Some(before.sample_count());
    let options = args.encoding.writer_options().alignment(args.align);
    changes.repack(args.shard_bytes, &options, &mut |done| progress.set("repacking", done, total))?;
    drop(progress);
    let (profile, shard_bytes) = (args.encoding.profile.name(), text::bytes(args.shard_bytes));
    publish(changes, &args.folder, format!("repack into files of at most {shard_bytes}, profile {profile}"), quiet)?;
    if quiet {
        return Ok(());
    }
    let (DatasetSize { files, bytes }, version) = (DatasetSize::of(&before)?, before.version());
    let (files, bytes) = (text::count(files, "file"), text::bytes(bytes));
    print_line(&format!("before: {files}, {bytes} in total; version {version} keeps them until it is removed"))
}

/// Removes old versions and the files that only those versions need. With `dry_run`, only lists
/// them.
fn gc(folder: &Path, keep: Option<NonZeroU64>, dry_run: bool, quiet: bool) -> Outcome {
    let garbage = Garbage::find(folder, keep.map_or(u64::MAX, u64::from))?;
    let mut output = Output::stdout();
    if dry_run {
        garbage.versions.iter().try_for_each(|version| writeln!(output, "version {version}"))?;
        garbage.paths.iter().try_for_each(|path| writeln!(output, "{}", shown(path)))?;
    } else {
        garbage.remove()?;
    }
    if !quiet {
        let number = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let versions = text::count(number(garbage.versions.len()), "version");
        let paths = text::count(number(garbage.paths.len()), "path");
        let (folder, bytes) = (shown(folder), text::bytes(garbage.bytes));
        let verb = if dry_run { "would remove" } else { "removed" };
        writeln!(output, "{folder}: {verb} {versions} and {paths}, {bytes} in total")?;
    }
    output.finish()
}

/// Lists the versions of a dataset, the newest first.
fn log(folder: &Path, as_json: bool) -> Outcome {
    let newest = Dataset::open(folder)?;
    require_manifest(&newest, folder)?;
    let mut versions = Vec::new();
    let mut table = Table::new(&[">version", "time (UTC)", ">samples", ">files", ">bytes", "change"]);
    for version in newest.versions()?.into_iter().rev() {
        let dataset = DatasetOptions::new().version(version).open(folder)?;
        let size = DatasetSize::of(&dataset)?;
        table.row(vec![
            dataset.version().to_string(),
            dataset.time().map_or_else(String::new, text::utc),
            dataset.sample_count().to_string(),
            size.files.to_string(),
            text::bytes(size.bytes),
            text::excerpt(dataset.change_text()),
        ]);
        versions.push(json!({
            "version": dataset.version(),
            "parent": dataset.parent(),
            "time": dataset.time(),
            "sample_count": dataset.sample_count(),
            "file_count": size.files,
            "file_bytes": size.bytes,
            "change": dataset.change_text(),
        }));
    }
    if as_json {
        let id = dataset_id(&newest);
        return print_json(&json!({ "schema": "tensilo.log/1", "dataset_id": id, "versions": Value::Array(versions) }));
    }
    let mut output = Output::stdout();
    table.write(&mut output)?;
    output.finish()
}

/// Fails if a dataset has no manifest and therefore cannot be changed.
pub(crate) fn require_manifest(dataset: &Dataset, path: &Path) -> Outcome {
    if dataset.version() > 0 {
        return Ok(());
    }
    let shown = display_path(path);
    let message = match path.is_dir() {
        true => format!("{shown}: the folder has no manifest; \"tensilo dataset create {shown}\" writes one"),
        false => format!("{shown}: expected the folder of a dataset, found a file or a pattern"),
    };
    Err(Failure::Usage(message))
}

/// If `SOURCE_DATE_EPOCH` is set, records its time in the version, so that the version can be
/// reproduced (see reproducible-builds.org). An empty variable counts as unset.
///
/// Must be called before other work, so that a malformed variable is reported early.
pub(crate) fn set_time(changes: &mut Changes) -> Outcome {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|text| !text.is_empty()) else { return Ok(()) };
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(time) => {
            changes.set_time(Some(time));
            Ok(())
        }
        None => Err(Failure::Usage(format!("SOURCE_DATE_EPOCH={text:?}: expected a number of seconds since 1970"))),
    }
}

/// The number of files in a dataset, and their total size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DatasetSize {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl DatasetSize {
    /// Counts the files that the manifest lists, and adds up their sizes.
    pub(crate) fn of(dataset: &Dataset) -> Outcome<Self> {
        let mut size = Self::default();
        for group in dataset.groups() {
            for file in group?.files {
                size.files = size.files.saturating_add(1);
                size.bytes = size.bytes.saturating_add(file.bytes);
            }
        }
        Ok(size)
    }
}

/// Returns the id of a dataset as hexadecimal digits.
pub(crate) fn dataset_id(dataset: &Dataset) -> String {
    dataset.id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a one-line summary of a changed dataset.
pub(crate) fn summary(dataset: &Dataset, folder: &Path) -> Outcome<String> {
    let size = DatasetSize::of(dataset)?;
    let (path, samples, version) = (shown(folder), dataset.sample_count(), dataset.version());
    let (files, bytes) = (text::count(size.files, "file"), text::bytes(size.bytes));
    Ok(format!("{path}: {samples} samples in {files}, {bytes} in total; version {version}"))
}

/// The facts of a column, summed over all files.
#[derive(Clone, Copy, Default)]
pub(crate) struct ColumnSums {
    pub(crate) files: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) nulls: u64,
    pub(crate) chunks: u64,
    /// The facts of the casts: the largest errors in any file, and the sums of the counts.
    pub(crate) cast: Option<CastFacts>,
}

/// The facts of a dataset, summed over all files.
pub(crate) struct DatasetFacts {
    pub(crate) size: DatasetSize,
    /// One entry for each column of the schema.
    pub(crate) columns: Vec<ColumnSums>,
}

impl DatasetFacts {
    /// Opens all files and adds up their facts. If a group lacks a column, all samples of the group
    /// count as null in that column.
    pub(crate) fn of(dataset: &Dataset, quiet: bool) -> Outcome<Self> {
        let mut facts = Self {
            size: DatasetSize::of(dataset)?,
            columns: vec![ColumnSums::default(); dataset.schema().columns.len()],
        };
        let progress = Progress::new(Unit::Samples, quiet);
        for group in dataset.groups() {
            let group = group?;
            let samples = group.samples.end.saturating_sub(group.samples.start);
            // count all samples as null, then subtract them for each column that the group has
            facts.columns.iter_mut().for_each(|sums| sums.nulls = sums.nulls.saturating_add(samples));
            for (number, file) in group.files.iter().enumerate() {
                let reader = dataset.open_file(&group, number)?;
                for (name, column) in &file.columns {
                    let found = reader.column(name)?.facts();
                    let Some(sums) = facts.columns.get_mut(*column) else { continue };
                    sums.files = sums.files.saturating_add(1);
                    sums.raw_bytes = sums.raw_bytes.saturating_add(found.raw_bytes);
                    sums.stored_bytes = sums.stored_bytes.saturating_add(found.stored_bytes);
                    sums.nulls = sums.nulls.saturating_add(found.null_count).saturating_sub(samples);
                    sums.chunks = sums.chunks.saturating_add(found.chunk_count);
                    sums.cast = match (sums.cast, found.cast) {
                        (Some(sum), Some(cast)) => Some(sum.merged(&cast)),
                        (sum, cast) => sum.or(cast),
                    };
                }
            }
            if progress.set("inspecting", group.samples.end, Some(dataset.sample_count())).is_break() {
                return Err(Failure::Cancelled);
            }
        }
        Ok(facts)
    }
}
