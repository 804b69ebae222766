//! The export of a dataset to several files: one for each group of samples.

use super::args::ExportArgs;
use super::format::AnyFormat;
use super::one_table::write;
use crate::failure::{Failure, Outcome};
use crate::output::{Data, Destination, Inputs};
use crate::progress::Progress;
use std::collections::BTreeSet;
use std::iter;
use std::path::{Path, PathBuf};
use tensilo::export::{Table, TablePart};
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
pub(super) fn export(args: &ExportArgs, dataset: &Dataset, format: AnyFormat, progress: &Progress) -> Outcome {
    if args.output.is_file() {
        let path = tensilo::error::display_path(&args.output);
        return Err(Failure::Usage(format!("{path}: a file is there; several files are written to a folder")));
    }
    let outputs = outputs(&args.output, dataset, format)?;
    let inputs = Inputs::Dataset(dataset);
    let destinations = outputs.iter().map(|path| Destination::new(path, args.force, Data::Binary, inputs));
    let destinations = destinations.collect::<Outcome<Vec<_>>>()?;
    for ((group, path), destination) in dataset.groups().zip(&outputs).zip(destinations) {
        let group = &group?;
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
fn outputs(folder: &Path, dataset: &Dataset, format: AnyFormat) -> Outcome<Vec<PathBuf>> {
    let mut shared: Option<PathBuf> = None;
    for file in first_files(dataset) {
        let file = file?;
        let shared = shared.get_or_insert_with(|| file.parent().unwrap_or(Path::new("")).to_path_buf());
        while !file.starts_with(&*shared) && shared.pop() {}
    }
    let shared = shared.unwrap_or_default();
    let (mut outputs, mut met) = (Vec::new(), BTreeSet::new());
    for file in first_files(dataset) {
        let file = file?;
        let output = folder.join(file.strip_prefix(&shared).unwrap_or(&file)).with_extension(format.extension());
        // found before there are more outputs than files
        if !met.insert(output.clone()) {
            let path = tensilo::error::display_path(&output);
            let message = format!("{path}: two files of the dataset would get this name; export to one file");
            return Err(Failure::Usage(message));
        }
        outputs.push(output);
    }
    Ok(outputs)
}

/// Returns the first file of each group.
fn first_files(dataset: &Dataset) -> impl Iterator<Item = Outcome<PathBuf>> {
    dataset.groups().filter_map(|group| match group {
        Ok(group) => Some(Ok(group.files.into_iter().next()?.path)),
        Err(error) => Some(Err(error.into())),
    })
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

    fn parts(&self, columns: Vec<usize>) -> impl Iterator<Item = Result<TablePart, Self::Error>> {
        let samples = self.group.samples.end.saturating_sub(self.group.samples.start);
        iter::once(self.columns(&columns).and_then(|columns| Ok(TablePart::new(columns, samples)?)))
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
