//! The summary that `tensilo convert` prints.

use crate::dataset::DatasetFacts;
use crate::failure::Outcome;
use crate::output::{Output, shown};
use crate::terminal::{output_width, write_wrapped};
use crate::text::{Cells, Table, human, write_casts, write_found};
use std::io::Write;
use std::path::Path;
use tensilo::facts::CastFacts;
use tensilo::{Schema, Summary};
use tensilo_data::Dataset;

/// The bytes of a column, and the errors of its cast.
struct ColumnBytes {
    raw: u64,
    stored: u64,
    cast: Option<CastFacts>,
}

/// Writes a table of the columns, the shapes found, the casts, and the size of the file.
pub(super) fn write_file(written: &Summary<Output>, path: &Path, output: &mut impl Write) -> Outcome {
    let columns = written.columns.iter().map(|facts| {
        let (raw, stored) = (facts.raw_bytes, facts.stored_bytes);
        ColumnBytes { raw, stored, cast: facts.cast }
    });
    let raw = write_columns(&written.schema, columns.collect(), output)?;
    let (path, samples, bytes) = (shown(path), written.sample_count, written.file_bytes);
    let (raw_bytes, stored, ratio) = (human::bytes(raw), human::bytes(bytes), human::ratio(raw, bytes));
    let line = format!("{path}: {samples} samples, {raw_bytes} raw, {stored} in the file, ratio {ratio}");
    Ok(write_wrapped(output, &line, output_width())?)
}

/// Writes the same of all files of a dataset.
pub(super) fn write_dataset(dataset: &Dataset, path: &Path, output: &mut impl Write) -> Outcome {
    let facts = DatasetFacts::of(dataset, true)?;
    let columns = facts.columns.iter().map(|sums| {
        let (raw, stored) = (sums.raw_bytes, sums.stored_bytes);
        ColumnBytes { raw, stored, cast: sums.cast }
    });
    let raw = write_columns(dataset.schema(), columns.collect(), output)?;
    let (path, samples, files, version) =
        (shown(path), dataset.sample_count(), human::count(facts.size.files, "file"), dataset.version());
    let bytes = facts.size.bytes;
    let (raw_bytes, stored, ratio) = (human::bytes(raw), human::bytes(bytes), human::ratio(raw, bytes));
    let line =
        format!("{path}: {samples} samples, {raw_bytes} raw, {stored} in {files}, ratio {ratio}; version {version}");
    Ok(write_wrapped(output, &line, output_width())?)
}

/// Writes a table of the columns, the shapes found, the casts, and an empty line. Returns the raw
/// bytes of all columns.
fn write_columns(schema: &Schema, columns: Vec<ColumnBytes>, output: &mut impl Write) -> Outcome<u64> {
    let mut table = Table::new(&[
        ("column", Cells::Name),
        ("type", Cells::Text),
        ("shape", Cells::List(10)),
        ("raw bytes", Cells::Number),
        ("stored bytes", Cells::Number),
        ("ratio", Cells::Number),
    ]);
    for (column, bytes) in schema.columns.iter().zip(&columns) {
        table.row(vec![
            human::excerpt(&column.name),
            column.type_name(),
            column.shape.to_string(),
            human::bytes(bytes.raw),
            human::bytes(bytes.stored),
            human::ratio(bytes.raw, bytes.stored),
        ]);
    }
    let width = output_width();
    table.write(output, width)?;
    write_found(schema, width, output)?;
    write_casts(schema.columns.iter().zip(columns.iter().map(|column| column.cast)), width, output)?;
    writeln!(output)?;
    Ok(columns.iter().map(|column| column.raw).fold(0, u64::saturating_add))
}
