//! The export of a dataset to several files: one for each group of samples.

use super::args::ExportArgs;
use super::one_table::write;
use crate::dataset::paths_of;
use crate::failure::{Failure, Outcome};
use crate::output::{Data, Destination};
use crate::progress::Progress;
use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};
use tensilo::export::{ExportFormat, Table, TablePart};
use tensilo::facts::CastFacts;
use tensilo::source::FileIdentity;
use tensilo::{Column, Schema};
use tensilo_data::{Dataset, SampleGroup};

/// The samples of one group, with all columns of the dataset.
struct GroupTable<'a> {
    dataset: &'a Dataset,
    group: &'a SampleGroup,
}

/// Exports each group to a file, which has the name of its first data file.
pub(super) fn export(args: &ExportArgs, dataset: &Dataset, format: ExportFormat, progress: &Progress) -> Outcome {
    let inputs = paths_of(dataset)?;
    let groups = dataset.groups().collect::<Result<Vec<_>, _>>()?;
    let outputs = outputs(&args.output, &groups, format)?;
    let destinations = outputs.iter().map(|path| Destination::new(path, args.force, Data::Binary, &inputs));
    let destinations = destinations.collect::<Outcome<Vec<_>>>()?;
    for ((group, path), destination) in groups.iter().zip(&outputs).zip(destinations) {
        let folder = path.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder).map_err(|error| Failure::output(folder, error))?;
        let mut note = |samples| {
            let done = group.samples.start.saturating_add(samples);
            progress.set("exporting", done, Some(dataset.sample_count()))
        };
        write(args, &GroupTable { dataset, group }, destination, format, &mut note)?;
    }
    Ok(())
}

/// Returns the outputs: the names of the first files of all groups, from the folder on that has all
/// of them.
fn outputs(folder: &Path, groups: &[SampleGroup], format: ExportFormat) -> Outcome<Vec<PathBuf>> {
    let files: Vec<&Path> = groups.iter().filter_map(|group| Some(group.files.first()?.path.as_path())).collect();
    let mut shared = files.first().and_then(|file| file.parent()).unwrap_or(Path::new(""));
    while let Some(outer) = shared.parent().filter(|_| !files.iter().all(|file| file.starts_with(shared))) {
        shared = outer;
    }
    let ending = if format == ExportFormat::Arrow { "arrow" } else { "parquet" };
    let output = |file: &&Path| folder.join(file.strip_prefix(shared).unwrap_or(file)).with_extension(ending);
    let outputs: Vec<PathBuf> = files.iter().map(output).collect();
    let mut met = BTreeSet::new();
    match outputs.iter().find(|output| !met.insert(*output)) {
        None => Ok(outputs),
        Some(twice) => {
            let path = tensilo::error::display_path(twice);
            Err(Failure::Usage(format!("{path}: two files of the dataset would get this name; export to one file")))
        }
    }
}

impl GroupTable<'_> {
    fn columns(&self, columns: &[usize]) -> Result<Vec<Option<Column>>, tensilo_data::DataError> {
        let find = |&number: &usize| Ok(self.dataset.find(number, self.group.samples.start)?.column);
        columns.iter().map(find).collect()
    }
}

impl Table for GroupTable<'_> {
    type Error = tensilo_data::DataError;

    fn schema(&self) -> &Schema {
        self.dataset.schema()
    }

    fn path(&self) -> Option<&Path> {
        Table::path(self.dataset)
    }

    fn parts(&self, columns: &[usize]) -> impl Iterator<Item = Result<TablePart, Self::Error>> {
        let samples = self.group.samples.end.saturating_sub(self.group.samples.start);
        iter::once(self.columns(columns).and_then(|columns| Ok(TablePart::new(columns, samples)?)))
    }

    fn cast_facts(&self, columns: &[usize]) -> Result<Vec<Option<CastFacts>>, Self::Error> {
        Ok(self.columns(columns)?.into_iter().map(|column| column?.facts().cast).collect())
    }

    fn is_of_one_conversion(&self) -> Result<bool, Self::Error> {
        self.dataset.is_of_one_conversion()
    }

    fn check_output(&self, _: Option<FileIdentity>, _: Option<&Path>) -> Result<(), Self::Error> {
        Ok(()) // `Destination` has done so
    }
}
