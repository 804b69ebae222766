//! `tensilo inspect` of a dataset: the sums of its files.

use super::args::InspectArgs;
use super::document::cast_object;
use crate::dataset::{DatasetFacts, dataset_id};
use crate::failure::Outcome;
use crate::output::{Output, shown, write_json};
use crate::terminal::write_wrapped;
use crate::text::{Cells, Table, human, write_casts};
use serde_json::{Value, json};
use std::io::Write;
use tensilo::Extent;
use tensilo_data::Dataset;

/// Prints the columns of a dataset.
pub(super) fn run(args: &InspectArgs, dataset: &Dataset, quiet: bool) -> Outcome {
    let facts = DatasetFacts::of(dataset, quiet)?;
    let mut output = Output::stdout();
    if args.json {
        write_json(&mut output, &document(dataset, &facts))?;
    } else {
        write_text(args, dataset, &facts, &mut output)?;
    }
    output.finish()
}

pub(crate) fn document(dataset: &Dataset, facts: &DatasetFacts) -> Value {
    let columns = dataset.schema().columns.iter().zip(&facts.columns).map(|(column, sums)| {
        let shape = column.shape.extents().iter().map(|extent| match extent {
            Extent::Fixed(extent) => Some(*extent),
            _ => None,
        });
        json!({
            "name": column.name,
            "dtype": column.dtype.name(),
            "nullable": column.nullable,
            "nullable_levels": column.levels.iter().map(|level| level.nullable).collect::<Vec<bool>>(),
            "shape": shape.collect::<Vec<Option<u32>>>(),
            "files": sums.files,
            "raw_bytes": sums.raw_bytes,
            "stored_bytes": sums.stored_bytes,
            "cast": cast_object(column, sums.cast),
            "null_count": sums.nulls,
            "chunk_count": sums.chunks,
        })
    });
    json!({
        "schema": "tensilo.inspect-dataset/1",
        "dataset_id": dataset_id(dataset),
        "version": dataset.version(),
        "sample_count": dataset.sample_count(),
        "files": facts.size.files,
        "file_bytes": facts.size.bytes,
        "run_samples": dataset.order().run(),
        "window_runs": dataset.order().window(),
        "metadata": dataset.schema().metadata,
        "columns": columns.collect::<Vec<Value>>(),
    })
}

fn write_text(args: &InspectArgs, dataset: &Dataset, facts: &DatasetFacts, output: &mut impl Write) -> Outcome {
    let (samples, files, bytes) =
        (dataset.sample_count(), human::count(facts.size.files, "file"), human::bytes(facts.size.bytes));
    let first = format!("{}: {samples} samples in {files} of {bytes} together", shown(&args.file));
    write_wrapped(output, &first, args.width())?;
    let order = dataset.order();
    let (id, run, window) = (dataset_id(dataset), order.run(), order.window());
    let version = match dataset.version() {
        0 => "no manifest".to_owned(),
        version => format!("version {version}"),
    };
    let second = format!("id {id}, {version}, order of runs of {run} samples in windows of {window} runs");
    write_wrapped(output, &second, args.width())?;
    writeln!(output)?;
    let mut table = Table::new(&[
        ("column", Cells::Name),
        ("type", Cells::Text),
        ("shape", Cells::List(10)),
        ("raw", Cells::Number),
        ("stored", Cells::Number),
        ("ratio", Cells::Number),
        ("nulls", Cells::Number),
        ("files", Cells::Number),
        ("chunks", Cells::Number),
    ]);
    for (column, sums) in dataset.schema().columns.iter().zip(&facts.columns) {
        table.row(vec![
            human::excerpt(&column.name),
            column.type_name(),
            column.shape.to_string(),
            human::bytes(sums.raw_bytes),
            human::bytes(sums.stored_bytes),
            human::ratio(sums.raw_bytes, sums.stored_bytes),
            sums.nulls.to_string(),
            sums.files.to_string(),
            sums.chunks.to_string(),
        ]);
    }
    table.write(output, args.width())?;
    let casts = dataset.schema().columns.iter().zip(facts.columns.iter().map(|sums| sums.cast));
    Ok(write_casts(casts, args.width(), output)?)
}
