//! The table of casts and their errors.

use super::human;
use super::table::{Cells, Table};
use std::io::{self, Write};
use tensilo::ColumnSchema;
use tensilo::facts::CastFacts;

/// Writes an empty line and a table of the columns that were rounded; nothing if none was.
pub(crate) fn write_casts<'a>(
    columns: impl Iterator<Item = (&'a ColumnSchema, Option<CastFacts>)>,
    width: usize,
    output: &mut impl Write,
) -> io::Result<()> {
    let numbers = ["max rel error", "to inf", "to subnormal"].map(|name| (name, Cells::Number));
    let [error, infinite, subnormal] = numbers;
    let mut table = Table::new(&[("rounded", Cells::Name), ("cast", Cells::Text), error, infinite, subnormal]);
    for (schema, facts) in columns {
        let (Some(spec), Some(cast)) = (schema.cast, facts) else { continue };
        table.row(vec![
            human::excerpt(&schema.name),
            format!("{}->{}", spec.source, schema.dtype),
            format!("{:.1e}", cast.max_rel_error),
            cast.to_infinite.to_string(),
            cast.to_subnormal.to_string(),
        ]);
    }
    if table.is_empty() {
        return Ok(());
    }
    writeln!(output)?;
    table.write(output, width)
}
