//! `tensilo inspect` of a dataset: the sums of its files.

use super::args::InspectArgs;
use crate::dataset::{DatasetSize, dataset_id};
use crate::failure::{Failure, Outcome};
use crate::output::{Output, shown, write_json};
use crate::progress::{Progress, Unit};
use crate::terminal::write_wrapped;
use crate::text::{Cells, Table, human};
use serde_json::{Value, json};
use std::io::Write;
use tensilo::Extent;
use tensilo_data::Dataset;

/// The facts of a column in all files.
#[derive(Clone, Copy, Default)]
struct ColumnSums {
    files: u64,
    raw_bytes: u64,
    stored_bytes: u64,
    nulls: u64,
    chunks: u64,
}

/// The facts of all files.
struct DatasetFacts {
    size: DatasetSize,
    /// By column of the schema.
    columns: Vec<ColumnSums>,
}

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

impl DatasetFacts {
    /// Opens all files. Samples of a column that a group of files does not have are null.
    fn of(dataset: &Dataset, quiet: bool) -> Outcome<Self> {
        let mut facts = Self {
            size: DatasetSize::of(dataset)?,
            columns: vec![ColumnSums::default(); dataset.schema().columns.len()],
        };
        let progress = Progress::new(Unit::Samples, quiet);
        for group in dataset.groups() {
            let group = group?;
            let samples = group.samples.end.saturating_sub(group.samples.start);
            let mut is_there = vec![false; facts.columns.len()];
            for (number, file) in group.files.iter().enumerate() {
                let reader = dataset.open_file(&group, number)?;
                for (name, column) in &file.columns {
                    let found = reader.column(name)?.facts();
                    let (Some(sums), Some(is_there)) = (facts.columns.get_mut(*column), is_there.get_mut(*column))
                    else {
                        continue;
                    };
                    *is_there = true;
                    sums.files = sums.files.saturating_add(1);
                    sums.raw_bytes = sums.raw_bytes.saturating_add(found.raw_bytes);
                    sums.stored_bytes = sums.stored_bytes.saturating_add(found.stored_bytes);
                    sums.nulls = sums.nulls.saturating_add(found.null_count);
                    sums.chunks = sums.chunks.saturating_add(found.chunk_count);
                }
            }
            for (sums, _) in facts.columns.iter_mut().zip(is_there).filter(|(_, is_there)| !is_there) {
                sums.nulls = sums.nulls.saturating_add(samples);
            }
            if progress.set("inspecting", group.samples.end, Some(dataset.sample_count())).is_break() {
                return Err(Failure::Cancelled);
            }
        }
        Ok(facts)
    }
}

fn document(dataset: &Dataset, facts: &DatasetFacts) -> Value {
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
    let (samples, files, bytes) = (dataset.sample_count(), facts.size.files, human::bytes(facts.size.bytes));
    let first = format!("{}: {samples} samples in {files} files of {bytes} together", shown(&args.file));
    write_wrapped(output, &first, args.width())?;
    let order = dataset.order();
    let (id, version, run, window) = (dataset_id(dataset), dataset.version(), order.run(), order.window());
    let second = format!("id {id}, version {version}, order of runs of {run} samples in windows of {window} runs");
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
    Ok(())
}
