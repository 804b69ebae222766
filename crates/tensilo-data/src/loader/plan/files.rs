//! Opens and plans many files in the same number of round trips as one file.
//!
//! [`open`] starts opening all files of a batch before it waits for the first. [`complete`]
//! advances all plans by one step before any of them takes its next step. If only a few files have
//! to be opened, they are opened one after another, which is faster than waking other threads.

use crate::dataset::{Dataset, GroupColumns, GroupHandle};
use crate::error::{DataError, Result};
use crate::io::IoPool;
use crate::loader::setup::Setup;
use tensilo::stages::ReadPlan;

/// The maximum number of files that are opened one after another. For more files, waking other
/// threads is faster.
const MAX_SERIAL_FILES: usize = 4;
/// The same limit for objects, because opening each takes a round trip.
const MAX_SERIAL_OBJECTS: usize = 1;
/// The maximum number of file groups that are being opened at the same time. Opening a small object
/// reads all of it, so this bounds memory.
const MAX_PENDING_GROUPS: usize = 256;

/// A group of files in one of the view's datasets.
pub(in crate::loader) struct ViewGroup {
    pub dataset: usize,
    pub group: GroupHandle,
}

impl ViewGroup {
    /// Returns the dataset, and the indices of the loader's columns in the schema of the dataset.
    fn dataset<'s>(&self, setup: &'s Setup) -> Result<(&'s Dataset, &'s [usize])> {
        let found = setup.view.datasets().get(self.dataset).zip(setup.columns.in_datasets.get(self.dataset));
        found.map(|(dataset, columns)| (dataset, columns.as_slice())).ok_or_else(not_of_view)
    }
}

/// Finds the group that contains a sample of one of the view's datasets.
pub(in crate::loader) fn find_group(setup: &Setup, dataset: usize, sample: u64) -> Result<ViewGroup> {
    let found = setup.view.datasets().get(dataset).ok_or_else(not_of_view)?;
    Ok(ViewGroup { dataset, group: found.find_group(sample)? })
}

/// In each group, opens the files that have any of the loader's columns. Returns the columns of
/// each group, and whether many files had to be opened.
pub(in crate::loader) fn open<'g>(
    setup: &Setup,
    groups: impl ExactSizeIterator<Item = &'g ViewGroup>,
) -> (Vec<Result<GroupColumns>>, bool) {
    let (mut opened, mut opened_many) = (Vec::with_capacity(groups.len()), false);
    let open = |group: &&ViewGroup| {
        let (dataset, columns) = group.dataset(setup)?;
        dataset.open_group(columns, &group.group)
    };
    let groups: Vec<&ViewGroup> = groups.collect();
    for groups in groups.chunks(MAX_PENDING_GROUPS) {
        let max_serial = if setup.reads_objects { MAX_SERIAL_OBJECTS } else { MAX_SERIAL_FILES };
        let found = || groups.iter().filter_map(|group| Some((group, group.dataset(setup).ok()?)));
        let closed: usize =
            found().map(|(group, (dataset, columns))| dataset.closed_files(columns, &group.group)).sum();
        if closed <= max_serial {
            opened.extend(groups.iter().map(open));
            continue;
        }
        opened_many = true;
        found().for_each(|(group, (dataset, columns))| dataset.begin_group(columns, &group.group));
        opened.extend(setup.io.map(groups.iter(), open));
    }
    (opened, opened_many)
}

/// Advances the plans of all items step by step until they are complete. The plans must have begun.
/// In each step, advances one item after another, or several at the same time on the threads of
/// `io`. Fails with the error of the first item that fails in a step.
pub(in crate::loader) fn complete<P: Send>(
    items: &mut [P],
    plan_of: impl Fn(&mut P) -> &mut ReadPlan + Send + Sync,
    io: Option<&IoPool>,
) -> Result<()> {
    let mut are_complete = false;
    while !are_complete {
        are_complete = true;
        let advance = |item: &mut P| plan_of(item).advance();
        match io {
            Some(io) => {
                for is_complete in io.map(items.iter_mut(), advance) {
                    are_complete &= is_complete?;
                }
            }
            None => {
                for item in items.iter_mut() {
                    are_complete &= advance(item)?;
                }
            }
        }
    }
    Ok(())
}

#[cold]
fn not_of_view() -> DataError {
    DataError::Internal("a sample belongs to no dataset of the view".to_owned())
}
