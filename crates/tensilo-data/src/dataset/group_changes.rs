//! A new dataset whose columns are declared, and whose groups have several files each.

use super::changes::Changes;
use super::{layouts, listed_reader};
use crate::error::{DataError, Result};
use crate::manifest::{Group, Layout};
use std::path::PathBuf;
use tensilo::Schema;
use tensilo::error::display_path;

impl Changes {
    /// Gives a new dataset its columns and metadata, before its first file does so.
    pub fn declare(&mut self, schema: &Schema) -> Result<()> {
        if !self.version.columns.is_empty() {
            return Err(DataError::BadArgument("the dataset has columns".to_owned()));
        }
        self.version.metadata.clone_from(&schema.metadata);
        layouts::adopt_columns(&mut self.version, schema);
        Ok(())
    }

    /// Makes a column nullable, which is named by its number.
    pub fn make_nullable(&mut self, column: usize) {
        self.version.columns.get_mut(column).into_iter().for_each(|column| column.schema.nullable = true);
    }

    /// Appends samples that are in several tensilo files, which are in the folder of the dataset.
    /// Each is given with its columns: their names in the file, and their numbers in
    /// [`Changes::schema`]. Columns that none of them has are null.
    pub fn append_group(&mut self, files: &[(PathBuf, Vec<(String, usize)>)]) -> Result<()> {
        let mut group = Group { samples: 0, files: Vec::new() };
        for (path, columns) in files {
            let facts = self.facts(path)?;
            let refused = |what: String| DataError::BadArgument(format!("{}: {what}", display_path(path)));
            if !group.files.is_empty() && facts.samples != group.samples {
                return Err(refused(format!("{} samples in a group of {}", facts.samples, group.samples)));
            }
            let mut layout = Layout::new();
            for (name, number) in columns {
                let due = self.version.columns.get(*number);
                let due = due.ok_or_else(|| refused(format!("the dataset has no column with the number {number}")))?;
                let (_, found) = facts.schema.find_column(name).map_err(|error| error.with_path(path))?;
                listed_reader::check_column(found, &due.schema).map_err(|broken| refused(broken.message))?;
                layout.insert(name.clone(), due.id);
            }
            let layout = layouts::index_of(&mut self.version.layouts, layout);
            group.samples = facts.samples;
            group.files.push(self.listed(facts, layout));
        }
        self.version.samples = self.version.samples.saturating_add(group.samples);
        self.version.groups.push(group);
        Ok(())
    }
}
