//! The table of shapes that a conversion inferred from the data.

use super::human;
use super::table::{Cells, Table};
use std::io::{self, Write};
use tensilo::Schema;
use tensilo::import::FoundShape;

/// Writes an empty line and a table of the columns whose shape was inferred; nothing if none was.
pub(crate) fn write_found(schema: &Schema, width: usize, output: &mut impl Write) -> io::Result<()> {
    let [samples, others] = ["in samples", "others"].map(|name| (name, Cells::Number));
    let mut table = Table::new(&[("shape found", Cells::Name), ("shape", Cells::List(10)), samples, others]);
    for column in &schema.columns {
        let Some(found) = FoundShape::of(column) else { continue };
        table.row(vec![
            human::excerpt(&column.name),
            found.shape.to_string(),
            found.agreeing_count().to_string(),
            found.odd_count.to_string(),
        ]);
    }
    if table.is_empty() {
        return Ok(());
    }
    writeln!(output)?;
    table.write(output, width)
}
