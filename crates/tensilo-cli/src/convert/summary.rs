//! The summary that `tensilo convert` prints.

use crate::failure::Outcome;
use crate::output::{Output, shown};
use crate::terminal::{output_width, write_wrapped};
use crate::text::{Cells, Table, human, write_casts, write_found};
use std::io::Write;
use std::path::Path;
use tensilo::Summary;

/// Writes a table of the columns, the shapes found, the casts, and the size of the file.
pub(super) fn write_summary(written: &Summary<Output>, path: &Path, output: &mut impl Write) -> Outcome {
    let mut table = Table::new(&[
        ("column", Cells::Name),
        ("type", Cells::Text),
        ("shape", Cells::List(10)),
        ("raw bytes", Cells::Number),
        ("stored bytes", Cells::Number),
        ("ratio", Cells::Number),
    ]);
    let mut raw_bytes = 0_u64;
    for (schema, facts) in written.schema.columns.iter().zip(&written.columns) {
        raw_bytes = raw_bytes.saturating_add(facts.raw_bytes);
        table.row(vec![
            human::excerpt(&schema.name),
            schema.type_name(),
            schema.shape.to_string(),
            human::bytes(facts.raw_bytes),
            human::bytes(facts.stored_bytes),
            human::ratio(facts.raw_bytes, facts.stored_bytes),
        ]);
    }
    let width = output_width();
    table.write(output, width)?;
    write_found(&written.schema, width, output)?;
    let facts = written.columns.iter().map(|facts| facts.cast);
    write_casts(written.schema.columns.iter().zip(facts), width, output)?;
    let (samples, file_bytes) = (written.sample_count, written.file_bytes);
    let (raw, stored, ratio) = (human::bytes(raw_bytes), human::bytes(file_bytes), human::ratio(raw_bytes, file_bytes));
    let line = format!("{}: {samples} samples, {raw} raw, {stored} in the file, ratio {ratio}", shown(path));
    writeln!(output)?;
    Ok(write_wrapped(output, &line, width)?)
}
