//! `tensilo dataset log`

use super::args::LogArgs;
use super::manifest::need_manifest;
use super::summary::{DatasetSize, dataset_id};
use crate::failure::Outcome;
use crate::output::{Output, write_json};
use crate::terminal::output_width;
use crate::text::{Cells, Table, human};
use serde_json::{Value, json};
use tensilo_data::{Dataset, DatasetOptions};

/// Lists the versions of a dataset, the newest first.
pub(super) fn run(args: &LogArgs) -> Outcome {
    let newest = Dataset::open(&args.folder)?;
    need_manifest(&newest, &args.folder)?;
    let mut versions = newest.versions()?;
    versions.reverse();
    let open = |&version: &u64| DatasetOptions::new().version(version).open(&args.folder);
    let datasets = versions.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &document(&newest, &datasets)?)?;
    } else {
        table(&datasets)?.write(&mut output, output_width())?;
    }
    output.finish()
}

fn document(newest: &Dataset, datasets: &[Dataset]) -> Outcome<Value> {
    let mut versions = Vec::new();
    for dataset in datasets {
        let size = DatasetSize::of(dataset)?;
        versions.push(json!({
            "version": dataset.version(),
            "parent": dataset.parent(),
            "time": dataset.time(),
            "samples": dataset.sample_count(),
            "files": size.files,
            "bytes": size.bytes,
            "change": dataset.change_text(),
        }));
    }
    Ok(json!({ "schema": "tensilo.log/1", "dataset_id": dataset_id(newest), "versions": versions }))
}

fn table(datasets: &[Dataset]) -> Outcome<Table<'static>> {
    let mut table = Table::new(&[
        ("version", Cells::Number),
        ("time (UTC)", Cells::Text),
        ("samples", Cells::Number),
        ("files", Cells::Number),
        ("bytes", Cells::Number),
        ("change", Cells::Prose),
    ]);
    for dataset in datasets {
        let size = DatasetSize::of(dataset)?;
        table.row(vec![
            dataset.version().to_string(),
            dataset.time().map_or_else(String::new, human::utc),
            dataset.sample_count().to_string(),
            size.files.to_string(),
            human::bytes(size.bytes),
            human::excerpt(dataset.change_text()),
        ]);
    }
    Ok(table)
}
