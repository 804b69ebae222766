//! `tensilo salvage` of a dataset: the losses of all files, and a new dataset of the rest.

use super::args::SalvageArgs;
use super::losses::{DatasetLosses, FileLosses};
use crate::dataset::{set_time, write_dataset};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, write_json};
use crate::progress::{Progress, Unit};
use crate::signals;
use std::path::PathBuf;
use tensilo::salvage::{RewriteOptions, SalvageOptions, Salvaged};
use tensilo_data::{Changes, Dataset, SalvagedFile, SampleGroup};

/// A data file that was written, with its columns: names in the file, and numbers in the dataset.
pub(crate) type WrittenFile = (PathBuf, Vec<(String, usize)>);

/// Reports the losses of all files, and writes a new dataset.
pub(super) fn run(args: &SalvageArgs, dataset: &Dataset, quiet: bool) -> Outcome<Exit> {
    if args.leave_out || args.force {
        let option = if args.force { "--force" } else { "--leave-out" };
        return Err(Failure::Usage(format!("{option} is for a file; a dataset keeps the numbers of all samples")));
    }
    let mut changes = args.output.as_ref().map(|folder| begin(dataset, folder)).transpose()?;
    let mut losses = DatasetLosses::new(dataset);
    let mut output = Output::stdout();
    for group in dataset.groups() {
        let group = group?;
        let mut written = Vec::new();
        for file in 0..group.files.len() {
            let salvaged = open(dataset, &group, file, quiet)?;
            let found = FileLosses::of(dataset, &group, file, &salvaged);
            if let Some(changes) = &mut changes {
                found.columns.iter().filter(|column| !column.lost.is_empty()).for_each(|column| {
                    changes.make_nullable(column.number);
                });
                written.push(write(args, changes, &group, file, &salvaged.salvaged, quiet)?);
            }
            if !args.json && found.is_damaged() {
                found.write_text(&mut output)?;
            }
            losses.add(found);
        }
        if let Some(changes) = &mut changes {
            changes.append_group(&written)?;
        }
    }
    let made = changes.map(|changes| changes.publish("salvage")).transpose()?;
    let made = made.as_ref().zip(args.output.as_deref());
    let exit = if losses.is_empty() { Exit::Done } else { Exit::Damaged };
    let printed = if args.json {
        write_json(&mut output, &losses.document(made)?)
    } else if quiet {
        Ok(())
    } else {
        losses.write_text(&mut output).and_then(|()| match made {
            Some((made, folder)) => write_dataset(made, folder, &mut output),
            None => Ok(()),
        })
    };
    match printed.and_then(|()| output.finish()) {
        // if the reader closes the pipe early, the verdict stays the same
        Ok(()) | Err(Failure::Closed) => Ok(exit),
        Err(failure) => Err(failure),
    }
}

/// Begins a dataset with the columns, metadata and order of another.
pub(crate) fn begin(dataset: &Dataset, folder: &PathBuf) -> Outcome<Changes> {
    let mut changes = Dataset::create(folder)?;
    set_time(&mut changes)?;
    changes.declare(dataset.schema())?;
    changes.set_order(dataset.order());
    Ok(changes)
}

fn open(dataset: &Dataset, group: &SampleGroup, file: usize, quiet: bool) -> Outcome<SalvagedFile> {
    let progress = Progress::new(Unit::Bytes, quiet);
    let mut advance = |done, total| progress.set("looking for chunks", done, Some(total));
    Ok(dataset.salvage_file(group, file, SalvageOptions::new().decode(true).progress(&mut advance))?)
}

/// Writes what is left of a file, with nulls for what is lost.
fn write(
    args: &SalvageArgs,
    changes: &mut Changes,
    group: &SampleGroup,
    file: usize,
    salvaged: &Salvaged,
    quiet: bool,
) -> Outcome<WrittenFile> {
    let output = changes.next_file()?;
    let path = output.path().to_path_buf();
    signals::remove_at_exit(output.temporary_path());
    let progress = Progress::new(Unit::Samples, quiet);
    let mut advance = |done| progress.set("writing", done, Some(salvaged.reader.sample_count()));
    let writer = args.encoding.writer_options().alignment(salvaged.reader.alignment());
    salvaged.write_to(output, &writer, RewriteOptions::new().progress(&mut advance))?;
    let columns = group.files.get(file).map(|file| file.columns.clone()).unwrap_or_default();
    Ok((path, columns))
}
