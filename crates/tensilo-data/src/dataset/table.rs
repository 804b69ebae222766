//! A dataset as a table that can be exported.
//!
//! Groups follow one another in the table, and the files of a group are opened when the export
//! reaches it. Facts about the whole table, such as the errors of a cast, need all files.

use super::handle::{Dataset, Location};
use super::store::location::address_of;
use crate::error::{DataError, Result};
use std::path::Path;
use tensilo::error::display_path;
use tensilo::export::{Table, TableGroup};
use tensilo::facts::CastFacts;
use tensilo::source::FileIdentity;
use tensilo::{Column, Schema};

/// The metadata key of the Arrow schema of the source that a file was converted from.
const SAVED_SCHEMA: &str = "ARROW:schema";

/// The samples of all files, in order, for [`tensilo::export`]. Files are opened one after another.
impl Table for Dataset {
    type Error = DataError;

    fn schema(&self) -> &Schema {
        self.schema()
    }

    fn path(&self) -> Option<&Path> {
        match &self.0.location {
            Location::Folder(folder) => Some(folder),
            Location::Anywhere => None,
        }
    }

    fn groups(&self, columns: Vec<usize>) -> impl Iterator<Item = Result<TableGroup>> {
        self.groups().map(move |group| {
            let samples = group?.samples;
            let found = columns_of_group(self, &columns, samples.start)?;
            Ok(TableGroup::new(found, samples.end.saturating_sub(samples.start))?)
        })
    }

    /// Cost: none if no column has a cast; otherwise opens all files.
    fn cast_facts(&self, columns: &[usize]) -> Result<Vec<Option<CastFacts>>> {
        let has_cast = |number: &usize| self.schema().columns.get(*number).is_some_and(|column| column.cast.is_some());
        let mut facts: Vec<Option<CastFacts>> =
            columns.iter().map(|number| has_cast(number).then(CastFacts::default)).collect();
        if facts.iter().all(Option::is_none) {
            return Ok(facts);
        }
        for group in self.groups() {
            let found = columns_of_group(self, columns, group?.samples.start)?;
            for (facts, column) in facts.iter_mut().zip(found) {
                if let (Some(facts), Some(more)) = (facts, column.and_then(|column| column.facts().cast)) {
                    *facts = facts.merged(&more);
                }
            }
        }
        Ok(facts)
    }

    /// Returns `false` if the version has a parent, or if any file has a different Arrow schema
    /// than the dataset. Cost: opens all files.
    fn is_from_one_conversion(&self) -> Result<bool> {
        if self.parent().is_some() {
            return Ok(false);
        }
        for group in self.groups() {
            let group = group?;
            for file in 0..group.files.len() {
                let reader = self.open_file(&group, file)?;
                if reader.schema().metadata.get(SAVED_SCHEMA) != self.schema().metadata.get(SAVED_SCHEMA) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Fails for a data file of the dataset, and for any path in the folder of the manifest. Cost:
    /// none for a file that does not exist; otherwise checks each file, or the path of each object.
    fn check_output(&self, identity: Option<FileIdentity>, path: Option<&Path>) -> Result<()> {
        if let Some(path) = path.filter(|path| has_in_manifest(self, path)) {
            let path = display_path(path);
            let message = format!("{path}: the output is in the folder of the manifest; choose another file");
            return Err(DataError::BadArgument(message));
        }
        let address = path.and_then(address_of);
        if identity.is_none() && address.is_none() {
            return Ok(());
        }
        let is_output = |file: &Path| match &address {
            Some(address) => address_of(file).as_ref() == Some(address),
            None => FileIdentity::at(file).is_ok_and(|found| found == identity),
        };
        for group in self.groups() {
            for file in group?.files {
                if is_output(&file.path) {
                    let (output, file) = (display_path(path.unwrap_or(&file.path)), display_path(&file.path));
                    let message =
                        format!("{output}: the output is {file}, a file of this dataset; choose another file");
                    return Err(DataError::BadArgument(message));
                }
            }
        }
        Ok(())
    }
}

/// Returns whether a path, which need not exist, is in the folder of the manifest.
fn has_in_manifest(dataset: &Dataset, path: &Path) -> bool {
    let Location::Folder(folder) = &dataset.0.location else { return false };
    let manifest = folder.join("manifest");
    if let (Some(path), Some(manifest)) = (address_of(path), address_of(&manifest)) {
        return path.strip_prefix(&manifest).is_some_and(|rest| rest.starts_with('/'));
    }
    let Ok(manifest) = manifest.canonicalize() else { return false };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = path.canonicalize().or_else(|_| parent.canonicalize());
    found.is_ok_and(|found| found.starts_with(manifest))
}

/// Returns the given columns of the group that contains `sample`: `None` for a column that no file
/// of the group has.
fn columns_of_group(dataset: &Dataset, columns: &[usize], sample: u64) -> Result<Vec<Option<Column>>> {
    let mut all = vec![None; columns.len()];
    for file in dataset.open_group(columns, &dataset.find_group(sample)?)?.files {
        for (column, slot) in file.columns.into_iter().zip(file.slots) {
            all.get_mut(slot).into_iter().for_each(|slot| *slot = Some(column.clone()));
        }
    }
    Ok(all)
}
