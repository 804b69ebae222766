//! `tensilo dataset`

mod args;
mod log;
mod summary;

pub(crate) use args::DatasetArgs;
pub(crate) use summary::{DatasetSize, dataset_id, write_dataset};

use crate::failure::Outcome;
use crate::output::Output;
use args::{AddArgs, CreateArgs, DatasetCommand};
use std::path::{Path, PathBuf};
use tensilo_data::{Changes, Dataset, DatasetOptions};

/// Makes or changes a dataset, or lists its versions.
pub(crate) fn run(args: &DatasetArgs, quiet: bool) -> Outcome {
    match &args.command {
        DatasetCommand::Create(args) => create(args, quiet),
        DatasetCommand::Add(args) => add(args, quiet),
        DatasetCommand::Log(args) => log::run(args),
    }
}

fn create(args: &CreateArgs, quiet: bool) -> Outcome {
    let files = match args.files.as_slice() {
        // the dataset that a folder is without a manifest
        [] => paths_of(&DatasetOptions::new().open(&args.folder)?)?,
        files => files.to_vec(),
    };
    publish(Dataset::create(&args.folder)?, &args.folder, &files, "create", quiet)
}

fn add(args: &AddArgs, quiet: bool) -> Outcome {
    let changes = Dataset::open(&args.folder)?.change()?;
    publish(changes, &args.folder, &args.files, "add", quiet)
}

/// Returns the paths of all files of a dataset.
fn paths_of(dataset: &Dataset) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for group in dataset.groups() {
        paths.extend(group?.files.into_iter().map(|file| file.path));
    }
    Ok(paths)
}

/// Appends files, and prints a summary.
fn publish(mut changes: Changes, folder: &Path, files: &[PathBuf], change: &str, quiet: bool) -> Outcome {
    if let Some(time) = source_date_epoch() {
        changes.set_time(Some(time));
    }
    for file in files {
        changes.append(file)?;
    }
    let dataset = changes.publish(format!("{change} {} files", files.len()))?;
    if quiet {
        return Ok(());
    }
    let mut output = Output::stdout();
    write_dataset(&dataset, folder, &mut output)?;
    output.finish()
}

/// Returns the time that programs are to record in place of now, so that their output can be
/// reproduced: see reproducible-builds.org.
pub(crate) fn source_date_epoch() -> Option<u64> {
    std::env::var("SOURCE_DATE_EPOCH").ok()?.parse().ok()
}
