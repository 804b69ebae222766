//! Columns that are added, renamed and dropped.

use super::changes::Changes;
use super::facts::FileFacts;
use super::layouts;
use crate::error::{DataError, Result};
use crate::manifest::{IdentifiedColumn, Layout};
use std::path::Path;
use tensilo::ColumnSchema;
use tensilo::error::display_path;

/// The key of the metadata that makes a column a field of a struct.
const PATH_KEY: &str = "tensilo.path";

impl Changes {
    /// Adds columns to the samples that the dataset has: those of the given tensilo files, which
    /// are in its folder. The first has the samples of the first group, and so on. All have the
    /// same columns, whose names are new.
    ///
    /// Cost: the reading of all pages of the manifest, and the opening of the files.
    pub fn add_columns<P: AsRef<Path>>(&mut self, files: impl IntoIterator<Item = P>) -> Result<()> {
        let groups: Vec<u64> = self.groups_mut()?.iter().map(|group| group.samples).collect();
        let added = self.facts_of_columns(&groups, files)?;
        let Some(columns) = added.first().map(|facts| facts.schema.columns.clone()) else {
            return Err(bad("a dataset without samples; append the first file with all its columns".to_owned()));
        };
        columns.iter().try_for_each(|column| self.check_new(&column.name))?;
        // nothing fails from here on
        let ids = columns.into_iter().map(|column| {
            let name = column.name.clone();
            (name, layouts::add_column(&mut self.version, column))
        });
        let layout: Layout = ids.collect();
        let layout = layouts::index_of(&mut self.version.layouts, layout);
        for (group, facts) in added.into_iter().enumerate() {
            let file = self.listed(facts, layout);
            self.version.groups.get_mut(group).into_iter().for_each(|group| group.files.push(file.clone()));
        }
        Ok(())
    }

    /// Returns the facts of files with new columns for groups with so many samples.
    fn facts_of_columns<P: AsRef<Path>>(
        &self,
        groups: &[u64],
        files: impl IntoIterator<Item = P>,
    ) -> Result<Vec<FileFacts>> {
        let mut found: Vec<FileFacts> = Vec::with_capacity(groups.len());
        for path in files {
            let path = path.as_ref();
            let facts = self.facts(path)?;
            let due = groups.get(found.len()).copied().unwrap_or(0);
            if facts.samples != due {
                let (path, group, samples) = (display_path(path), found.len(), facts.samples);
                return Err(bad(format!("{path}: {samples} samples for group {group}, which has {due}")));
            }
            if found.first().is_some_and(|first| first.schema.columns != facts.schema.columns) {
                return Err(bad(format!("{}: the columns are not those of the first file", display_path(path))));
            }
            found.push(facts);
        }
        if found.len() != groups.len() {
            return Err(bad(format!("{} files for {} groups of samples", found.len(), groups.len())));
        }
        Ok(found)
    }

    /// Adds a nullable column, in which all samples that the dataset has are null.
    pub fn add_nullable_column(&mut self, column: ColumnSchema) -> Result<()> {
        if !column.nullable {
            let name = &column.name;
            return Err(bad(format!(
                "column {name:?}: without files, a new column is null, and this one is not nullable"
            )));
        }
        self.check_new(&column.name)?;
        layouts::add_column(&mut self.version, column);
        Ok(())
    }

    /// Removes a column. Its files stay, as older versions have it.
    pub fn drop_column(&mut self, name: &str) -> Result<()> {
        let index = self.index_of(name)?;
        self.version.columns.remove(index);
        Ok(())
    }

    /// Gives a column another name. Files keep the name that they have.
    pub fn rename_column(&mut self, name: &str, new_name: &str) -> Result<()> {
        let index = self.index_of(name)?;
        self.check_new(new_name)?;
        if let Some(column) = self.version.columns.get_mut(index) {
            new_name.clone_into(&mut column.schema.name);
        }
        Ok(())
    }

    /// Returns the index of a column that can be changed.
    fn index_of(&self, name: &str) -> Result<usize> {
        let (index, _) = self.schema().find_column(name)?;
        let is_field = |column: &IdentifiedColumn| column.schema.metadata.contains_key(PATH_KEY);
        if self.version.columns.get(index).is_some_and(is_field) {
            return Err(bad(format!("column {name:?} is a field of a struct, which is kept as it is")));
        }
        Ok(index)
    }

    fn check_new(&self, name: &str) -> Result<()> {
        if self.version.columns.iter().any(|column| column.schema.name == name) {
            return Err(bad(format!("the dataset has a column {name:?} already")));
        }
        Ok(())
    }
}

fn bad(message: String) -> DataError {
    DataError::BadArgument(message)
}
