//! The manifest of a dataset of many files: its size, its memory, and the time to open it.

use super::Failure;
use super::reads::modes;
use crate::manifest::ManifestModel;
use crate::table::{Table, difference, seconds, si};
use std::fs;
use std::path::Path;
use std::time::Instant;
use tensilo_data::model::ColumnModel;
use tensilo_data::{Dataset, LoaderOptions, ReadAhead, View};
use tensilo_testing::exclusive_test;

/// How often opening is repeated.
const ROUNDS: usize = 5;

/// Returns the table of a manifest: its sizes and memory, next to the model.
pub fn table(folder: &Path, model: &ColumnModel) -> Result<Table, Failure> {
    let expected = ManifestModel::of(model);
    let pages: Vec<u64> = sizes(&folder.join("manifest/pages"))?;
    let version = fs::metadata(folder.join("manifest/0000000001.json"))?.len();
    let exclusive_test = exclusive_test();
    let (dataset, opened) = exclusive_test.retained_bytes(|| Dataset::open(folder));
    let dataset = dataset?;
    let (read, all) = exclusive_test.retained_bytes(|| dataset.groups().try_for_each(|group| group.map(drop)));
    read?;
    let mut table = Table::new(&["", "model", "measured", "difference"]);
    let mut row = |what: &str, expected: u64, found: u64, unit: &str| {
        let text = |number: u64| si(number as f64, unit);
        table.row(&[what, &text(expected), &text(found), &difference(found as f64, expected as f64)]);
    };
    row("samples", model.sample_count(), dataset.sample_count(), "");
    row("file of the version", expected.version_bytes, version, "B");
    row("pages", expected.pages, pages.len() as u64, "");
    row("all pages", expected.pages * expected.page_bytes, pages.iter().sum(), "B");
    row("memory after opening", expected.opened_memory, opened as u64, "B");
    row("memory of all pages", expected.pages_memory, all as u64, "B");
    Ok(table)
}

fn sizes(folder: &Path) -> Result<Vec<u64>, Failure> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len())).collect()
}

/// Returns the table of the times until a dataset is open, and until its first batch.
pub fn times(folder: &Path) -> Result<Table, Failure> {
    let mut table = Table::new(&["", "median", "min", "max"]);
    let mut row = |what: &str, mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        let at = |number: usize| times.get(number).copied().map_or(String::new(), seconds);
        table.row(&[what, &at(times.len() / 2), &at(0), &at(times.len() - 1)]);
    };
    let opening: Result<Vec<f64>, Failure> = (0..ROUNDS).map(|_| Ok(timed(|| Dataset::open(folder))?.0)).collect();
    row("opening", opening?);
    for (name, mode) in modes(Dataset::open(folder)?.window_sizes()) {
        let first: Result<Vec<f64>, Failure> = (0..ROUNDS)
            .map(|_| {
                let dataset = Dataset::open(folder)?;
                let options =
                    LoaderOptions::new(256).order(mode).seed(1).decode_threads(1).read_ahead(ReadAhead::Never);
                let loader = options.loader(&View::all(&dataset))?;
                let (time, _) = timed(|| loader.epoch(0).next().transpose())?;
                Ok(time)
            })
            .collect();
        row(&format!("first batch of 256, {name}"), first?);
    }
    Ok(table)
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(f64, T), E> {
    let begun = Instant::now();
    let result = work()?;
    Ok((begun.elapsed().as_secs_f64(), result))
}

#[cfg(test)]
mod tests {
    use super::super::datasets;
    use super::*;
    use tensilo_testing::Folder;

    #[test]
    fn manifests_are_as_long_as_the_model_says() {
        let folder = Folder::new();
        let dataset = datasets::link(folder.root(), 800, 70_000).unwrap();
        let file = dataset.groups().next().unwrap().unwrap().files[0].path.clone();
        let expected = ManifestModel::of(&datasets::model(&dataset, &file).unwrap());
        let pages = sizes(&folder.path("manifest/pages")).unwrap();
        let version = fs::metadata(folder.path("manifest/0000000001.json")).unwrap().len();
        assert_eq!((expected.pages, pages.len()), (2, 2));
        let close = |found: u64, expected: u64| {
            assert!(found.abs_diff(expected) * 100 <= expected, "{found}, expected {expected}")
        };
        pages.iter().for_each(|&found| close(found, expected.page_bytes));
        close(version, expected.version_bytes);
    }
}
