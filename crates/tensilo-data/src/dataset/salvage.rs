//! The remains of the files of a damaged dataset.

use super::dataset_place::source_at;
use super::handle::{Dataset, GroupFile, SampleGroup};
use super::listed_reader;
use crate::error::{DataError, Result};
use std::io;
use tensilo::salvage::{SalvageOptions, Salvaged, nothing_left, salvage};
use tensilo::{ErrorKind, OpenOptions, Reader, Schema};

/// A file of a dataset, as far as it is intact.
#[non_exhaustive]
pub struct SalvagedFile {
    /// The samples of the file, which are all that the manifest says.
    pub salvaged: Salvaged,
    /// The reason why nothing of the file can be salvaged, so that all samples are lost: it is
    /// missing, another file has its name, or neither its header nor a footer is intact.
    pub lost: Option<DataError>,
}

impl Dataset {
    /// Salvages a file of a group, see [`tensilo::salvage`]. `file` is counted from 0.
    ///
    /// Samples keep their numbers in the group. A file that is missing, or of which nothing is
    /// left, has the columns that the manifest knows, and has lost all samples. So has a valid file
    /// that is not the one in the manifest: its samples are of something else. A damaged file that
    /// may be another one has [unconfirmed](Salvaged::unconfirmed) samples: nothing confirms them
    /// but an index with the content id in the manifest.
    pub fn salvage_file(&self, group: &SampleGroup, file: usize, options: SalvageOptions<'_>) -> Result<SalvagedFile> {
        let listed = group.files.get(file).ok_or_else(|| {
            DataError::BadArgument(format!("file {file} of a group with {} files, counted from 0", group.files.len()))
        })?;
        let samples = group.samples.end.saturating_sub(group.samples.start);
        let salvaged = check_replaced(listed)
            .and_then(|()| {
                let options = options.commit(listed.bytes, samples).content_id(listed.content_id);
                Ok(salvage(source_at(&listed.path)?, options)?)
            })
            .and_then(|salvaged| self.check_columns(listed, salvaged));
        match salvaged {
            Ok(salvaged) => Ok(SalvagedFile { salvaged, lost: None }),
            Err(DataError::File(error)) if !is_lost(&error) => Err(error.with_path(&listed.path).into()),
            Err(error) => {
                let error = match error {
                    DataError::File(error) => error.with_path(&listed.path).into(),
                    other => other,
                };
                Ok(SalvagedFile { salvaged: nothing_left(self.schema_of(listed), samples)?, lost: Some(error) })
            }
        }
    }

    /// Returns the columns of a file, as the manifest knows them.
    fn schema_of(&self, file: &GroupFile) -> Schema {
        let columns = file.columns.iter().filter_map(|(name, number)| {
            let mut column = self.schema().columns.get(*number)?.clone();
            column.name.clone_from(name);
            Some(column)
        });
        Schema::new(columns)
    }

    /// Fails if a file does not have the columns that the manifest says.
    fn check_columns(&self, file: &GroupFile, salvaged: Salvaged) -> Result<Salvaged> {
        for (name, number) in &file.columns {
            let (_, found) = salvaged.reader.schema().find_column(name).map_err(|error| error.with_path(&file.path))?;
            let due = self.schema().columns.get(*number);
            due.map_or(Ok(()), |due| listed_reader::check_column(found, due))
                .map_err(|broken| broken.of(&file.path))?;
        }
        Ok(salvaged)
    }
}

/// Fails if a whole file is not the one that the manifest lists. Nothing confirms the samples of a
/// damaged one that is another.
fn check_replaced(file: &GroupFile) -> Result<()> {
    let found: Reader = match OpenOptions::new().first_bytes(file.bytes).open(source_at(&file.path)?) {
        Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(()),
        opened => opened.map_err(|error| error.with_path(&file.path))?,
    };
    if found.tail_bytes() > 0 || found.content_id() == file.content_id {
        return Ok(());
    }
    let path = tensilo::error::display_path(&file.path);
    Err(DataError::BadArgument(format!("{path}: another file is there: its content id is not that of the manifest")))
}

/// Returns whether an error says that nothing of a file is left. Another one, such as a missing
/// permission, may be gone the next time.
fn is_lost(error: &tensilo::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    let is_missing = source.is_some_and(|source| source.kind() == io::ErrorKind::NotFound);
    is_missing || matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::BadArgument)
}
