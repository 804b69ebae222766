//! Salvaging the files of a damaged dataset.
//!
//! The `tensilo` crate salvages each file. In a dataset, the manifest also states the commit, the
//! number of samples and the columns of the file. So samples keep their indices even if headers are
//! lost, and all samples of a missing or replaced file count as lost.

use super::groups::{GroupFile, SampleGroup};
use super::listed_file::check_column;
use super::store::location::{RemoteOptions, source_at};
use crate::error::{DataError, Result};
use tensilo::salvage::{SalvageOptions, Salvaged, all_lost, salvage};
use tensilo::{ErrorKind, OpenOptions, Reader, Schema};

/// The intact contents of a file of a dataset.
#[non_exhaustive]
pub struct SalvagedFile {
    /// The samples of the file: as many as the manifest states.
    pub salvaged: Salvaged,
    /// The reason why all samples are lost: the file is missing, a different file has its name, or
    /// neither its header nor a footer is intact. `None` if anything was salvaged.
    pub lost: Option<DataError>,
}

/// Salvages a file of a group of a dataset with this schema; see
/// [`Dataset::salvage_file`](crate::Dataset::salvage_file).
pub(super) fn salvage_file(
    (schema, remote): (&Schema, &RemoteOptions),
    group: &SampleGroup,
    file: usize,
    options: SalvageOptions<'_>,
) -> Result<SalvagedFile> {
    let listed = group.files.get(file).ok_or_else(|| {
        DataError::BadArgument(format!(
            "there is no file {file}: the group has {} files, numbered from 0",
            group.files.len()
        ))
    })?;
    let samples = group.samples.end.saturating_sub(group.samples.start);
    let salvaged = check_replaced(listed, remote)
        .and_then(|()| {
            let options = options.commit(listed.bytes, samples).content_id(listed.content_id);
            Ok(salvage(source_at(&listed.path, remote)?, options)?)
        })
        .and_then(|salvaged| check_columns(schema, listed, salvaged));
    match salvaged {
        Ok(salvaged) => Ok(SalvagedFile { salvaged, lost: None }),
        Err(error) => {
            let error = match error {
                DataError::File(error) => error.with_path(&listed.path).into(),
                other => other,
            };
            if !error.is_permanent() {
                return Err(error);
            }
            Ok(SalvagedFile { salvaged: all_lost(schema_of(schema, listed), samples)?, lost: Some(error) })
        }
    }
}

/// Returns the columns of a file as the manifest states them.
fn schema_of(schema: &Schema, file: &GroupFile) -> Schema {
    let columns = file.columns.iter().filter_map(|(name, number)| {
        let mut column = schema.columns.get(*number)?.clone();
        column.name.clone_from(name);
        Some(column)
    });
    Schema::new(columns)
}

/// Fails if a file does not have the columns that the manifest states.
fn check_columns(schema: &Schema, file: &GroupFile, salvaged: Salvaged) -> Result<Salvaged> {
    for (name, number) in &file.columns {
        let (_, found) = salvaged.reader.schema().find_column(name).map_err(|error| error.with_path(&file.path))?;
        let expected = schema.columns.get(*number);
        expected
            .map_or(Ok(()), |expected| check_column(found, expected))
            .map_err(|violation| violation.of(&file.path))?;
    }
    Ok(salvaged)
}

/// Fails if a valid file is not the file that the manifest lists. For a damaged file, this cannot
/// be determined, so its samples are unconfirmed.
fn check_replaced(file: &GroupFile, remote: &RemoteOptions) -> Result<()> {
    let found: Reader = match OpenOptions::new().commit_within(file.bytes).open_source(source_at(&file.path, remote)?) {
        Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(()),
        opened => opened.map_err(|error| error.with_path(&file.path))?,
    };
    if found.tail_bytes() > 0 || found.content_id() == file.content_id {
        return Ok(());
    }
    let path = tensilo::error::display_path(&file.path);
    Err(DataError::BadArgument(format!(
        "{path}: this is not the file that the manifest lists: its content id is different"
    )))
}
