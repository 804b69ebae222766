//! `tensilo dataset`

mod args;
mod facts;
mod gc;
mod log;
mod manifest;
mod publish;
mod repack;
mod summary;

pub(crate) use args::DatasetArgs;
pub(crate) use facts::DatasetFacts;
pub(crate) use manifest::need_manifest;
pub(crate) use publish::set_time;
pub(crate) use summary::{DatasetSize, dataset_id, write_dataset};

use crate::failure::{Failure, Outcome};
use crate::foreign::foreign;
use args::{AddArgs, CreateArgs, DatasetCommand};
use publish::publish;
use std::path::{Path, PathBuf};
use tensilo::error::display_path;
use tensilo_data::{Changes, DataError, Dataset, DatasetOptions, RunsAndWindows};

/// Makes or changes a dataset, or lists its versions.
pub(crate) fn run(args: &DatasetArgs, quiet: bool) -> Outcome {
    match &args.command {
        DatasetCommand::Create(args) => create(args, quiet),
        DatasetCommand::Add(args) => add(args, quiet),
        DatasetCommand::AddColumns(args) => {
            let changes = change(&args.folder, |changes| changes.add_columns(&args.files))?;
            publish(changes, &args.folder, format!("add the columns of {} files", args.files.len()), quiet)
        }
        DatasetCommand::RenameColumn(args) => {
            let changes = change(&args.folder, |changes| changes.rename_column(&args.old, &args.new))?;
            publish(changes, &args.folder, format!("rename column {:?} to {:?}", args.old, args.new), quiet)
        }
        DatasetCommand::DropColumn(args) => {
            let changes = change(&args.folder, |changes| changes.drop_column(&args.name))?;
            publish(changes, &args.folder, format!("drop column {:?}", args.name), quiet)
        }
        DatasetCommand::SetOrder(args) => {
            let order = RunsAndWindows::new(args.run, args.window)?;
            let set = |changes: &mut Changes| {
                changes.set_order(order);
                Ok(())
            };
            let text = format!("set the order to runs of {} samples in windows of {} runs", args.run, args.window);
            publish(change(&args.folder, set)?, &args.folder, text, quiet)
        }
        DatasetCommand::Repack(args) => repack::run(args, quiet),
        DatasetCommand::Gc(args) => gc::run(args, quiet),
        DatasetCommand::Log(args) => log::run(args),
    }
}

fn create(args: &CreateArgs, quiet: bool) -> Outcome {
    let files = match args.files.as_slice() {
        // the dataset that a folder is without a manifest
        [] => paths_of(&DatasetOptions::new().open(&args.folder)?)?,
        files => files.to_vec(),
    };
    let mut changes = Dataset::create(&args.folder)?;
    set_time(&mut changes)?;
    append(&mut changes, &files)?;
    publish(changes, &args.folder, format!("create {} files", files.len()), quiet)
}

fn add(args: &AddArgs, quiet: bool) -> Outcome {
    if let Some((file, what)) = args.files.iter().find_map(|file| Some((file, foreign(file)?))) {
        let (file, folder) = (display_path(file), display_path(&args.folder));
        let message = format!("{file}: {what}; \"tensilo append {folder} {file}\" appends its rows");
        return Err(Failure::Usage(message));
    }
    let changes = change(&args.folder, |changes| append(changes, &args.files))?;
    publish(changes, &args.folder, format!("add {} files", args.files.len()), quiet)
}

fn append(changes: &mut Changes, files: &[PathBuf]) -> Result<(), DataError> {
    files.iter().try_for_each(|file| changes.append(file))
}

/// Returns changes to the newest version of a dataset.
fn change(folder: &Path, make: impl FnOnce(&mut Changes) -> Result<(), DataError>) -> Outcome<Changes> {
    let dataset = Dataset::open(folder)?;
    need_manifest(&dataset, folder)?;
    let mut changes = dataset.change()?;
    set_time(&mut changes)?;
    make(&mut changes)?;
    Ok(changes)
}

/// Returns the paths of all files of a dataset.
fn paths_of(dataset: &Dataset) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for group in dataset.groups() {
        paths.extend(group?.files.into_iter().map(|file| file.path));
    }
    Ok(paths)
}
