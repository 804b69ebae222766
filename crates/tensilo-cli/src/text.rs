//! Text for people: numbers with units, tables, and the lines that several commands print.
//!
//! `comfy_table` lays out tables without borders: columns are two spaces apart, and numbers are
//! right-aligned. On a terminal, a table is as wide as the terminal; text wraps within its column,
//! but numbers do not. In a pipe or a file, nothing is wrapped or cut, so each row is one line for
//! `grep` and `awk`.
//!
//! Names and values in files are untrusted. [`excerpt`] escapes their control characters, so that
//! they cannot control the terminal, and limits their length.

use crate::terminal::stdout_width;
use chrono::DateTime;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement};
use std::io::{self, Write};
use tensilo::facts::{CastFacts, ColumnFacts};
use tensilo::import::InferredShape;
use tensilo::verify::Finding;
use tensilo::{ColumnSchema, Schema};

/// A table of text.
pub(crate) struct Table(comfy_table::Table);

impl Table {
    /// Creates a table with these headings. A heading that starts with `>` is for a column of
    /// numbers.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(NOTHING);
        table.set_header(headings.iter().map(|heading| heading.trim_start_matches('>')));
        for (column, heading) in table.column_iter_mut().zip(headings) {
            column.set_padding((0, 2));
            if heading.starts_with('>') {
                column.set_constraint(ColumnConstraint::ContentWidth).set_cell_alignment(CellAlignment::Right);
            }
        }
        Self(table)
    }

    /// Adds a row, with one cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.0.add_row(cells);
    }

    /// Returns whether the table has no rows other than the headings.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.row_count() == 0
    }

    /// Hides the columns whose cells are all `-`.
    pub(crate) fn hide_blank(&mut self) {
        let is_blank = |column| self.0.column_cells_iter(column).flatten().all(|cell| cell.content() == "-");
        let blank: Vec<bool> = (0..self.0.column_iter().count()).map(is_blank).collect();
        for (column, _) in self.0.column_iter_mut().zip(blank).filter(|(_, is_blank)| *is_blank) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }

    /// Writes the table. If standard output is a terminal, wraps the table to its width.
    pub(crate) fn write(mut self, output: &mut impl Write) -> io::Result<()> {
        /// The minimum width of a terminal on which numbers do not wrap.
        const MIN_WIDTH: u16 = 60;
        if let Some(width) = stdout_width() {
            self.0.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
            for column in self.0.column_iter_mut().filter(|column| width < MIN_WIDTH && !column.is_hidden()) {
                column.remove_constraint();
            }
        }
        self.write_wide(output)
    }

    /// Writes the table in lines of any width.
    pub(crate) fn write_wide(self, output: &mut impl Write) -> io::Result<()> {
        writeln!(output, "{}", self.0.trim_fmt())
    }
}

/// Returns the cells that several tables show for a column: name, type, shape, raw size, stored
/// size, and their ratio.
pub(crate) fn column_cells(schema: &ColumnSchema, raw_bytes: u64, stored_bytes: u64) -> Vec<String> {
    let (name, shape) = (excerpt(&schema.name), schema.shape.to_string());
    vec![name, schema.type_name(), shape, bytes(raw_bytes), bytes(stored_bytes), ratio(raw_bytes, stored_bytes)]
}

/// Writes pairs of a name and a value, one per line.
pub(crate) fn write_facts(output: &mut impl Write, facts: &[(&str, String)]) -> io::Result<()> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    facts.iter().try_for_each(|(name, value)| writeln!(output, "{name:width$}  {value}"))
}

/// Writes an empty line and a table of the rounded columns, or nothing if there are none.
pub(crate) fn write_casts<'a>(
    columns: impl Iterator<Item = (&'a ColumnSchema, Option<CastFacts>)>,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut table = Table::new(&["rounded", "cast", ">max rel error", ">to inf", ">to subnormal"]);
    for (schema, facts) in columns {
        let (Some(spec), Some(cast)) = (schema.cast, facts) else { continue };
        table.row(vec![
            excerpt(&schema.name),
            format!("{}->{}", spec.source, schema.dtype),
            format!("{:.1e}", cast.max_rel_error),
            cast.to_infinite.to_string(),
            cast.to_subnormal.to_string(),
        ]);
    }
    write_if_any(table, output)
}

/// Writes an empty line and a table of the inferred shapes, or nothing if there are none.
pub(crate) fn write_inferred_shapes(schema: &Schema, output: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(&["inferred", "shape", ">in samples", ">other samples"]);
    for column in &schema.columns {
        let Some(found) = InferredShape::of(column) else { continue };
        let (agreeing, others) = (found.agreeing_count().to_string(), found.odd_count.to_string());
        table.row(vec![excerpt(&column.name), found.shape.to_string(), agreeing, others]);
    }
    write_if_any(table, output)
}

fn write_if_any(table: Table, output: &mut impl Write) -> io::Result<()> {
    if table.is_empty() {
        return Ok(());
    }
    writeln!(output)?;
    table.write(output)
}

/// Returns `bytes 4160..4672: chunk, column "x", samples 0..32: MESSAGE (rule )`.
pub(crate) fn finding_line(finding: &Finding) -> String {
    let region = finding.region.map(|region| region.to_string());
    let column = finding.column.as_ref().map(|column| format!("column \"{}\"", excerpt(column)));
    let samples = finding.samples.as_ref().map(|samples| format!("samples {}..{}", samples.start, samples.end));
    let what: Vec<String> = [region, column, samples].into_iter().flatten().collect();
    let what = if what.is_empty() { String::new() } else { format!("{}: ", what.join(", ")) };
    let rule = finding.error.rule().map(|rule| format!(" (rule {rule})")).unwrap_or_default();
    let range = &finding.file_range;
    format!("bytes {}..{}: {what}{}{rule}", range.start, range.end, finding.error.message())
}

/// Formats a number of bytes in powers of 1000: `512 B`, `41.6 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64; // an approximation
    let mut unit = "B";
    for next in UNITS {
        // 999.95 would be printed as 1000.0
        if value < 999.95 {
            break;
        }
        value /= 1_000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// Formats a count: `1 file`, `2 files`.
pub(crate) fn count(number: impl Into<u64>, thing: &str) -> String {
    let number = number.into();
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Formats a time: `840 ns`, `26.1 us`, `1.20 ms`.
pub(crate) fn nanoseconds(time: f64) -> String {
    match time {
        ..999.5 => format!("{time:.0} ns"),
        ..999_950.0 => format!("{:.1} us", time / 1e3),
        _ => format!("{:.2} ms", time / 1e6),
    }
}

/// Returns a quotient, or `None` if the divisor is not positive.
pub(crate) fn divide(amount: u64, divisor: f64) -> Option<f64> {
    (divisor > 0.0).then(|| amount as f64 / divisor) // an approximation
}

/// Formats a value, or returns `-` if it is unknown.
pub(crate) fn or_dash<T>(value: Option<T>, format: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), format)
}

/// Formats raw bytes divided by stored bytes, or returns `-` if either is 0.
pub(crate) fn ratio(raw_bytes: u64, stored_bytes: u64) -> String {
    let ratio = divide(raw_bytes, stored_bytes as f64); // an approximation
    or_dash(ratio.filter(|ratio| *ratio > 0.0), |ratio| format!("{ratio:.2}"))
}

/// Formats the encodings of a column's chunks, such as `constant:1 exponent-tiers:12`, or returns
/// `-` if the column has no chunks. Omits encodings that encode only validity or shapes.
pub(crate) fn encodings(facts: &ColumnFacts) -> String {
    let used = facts.encodings.iter().filter(|(_, chunks)| *chunks > 0);
    let used: Vec<String> = used.map(|(name, chunks)| format!("{name}:{chunks}")).collect();
    if used.is_empty() { "-".to_owned() } else { used.join(" ") }
}

/// Formats a time in seconds since 1970 as `2026-11-23 22:19`. A number that is out of range is
/// formatted unchanged.
pub(crate) fn utc(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(|| seconds.to_string(), |time| time.format("%Y-%m-%d %H:%M").to_string())
}

/// Formats any text as one line of at most 120 characters, with control characters escaped.
pub(crate) fn excerpt(text: &str) -> String {
    const LIMIT: usize = 120;
    let mut excerpt = String::new();
    for (i, character) in text.chars().enumerate() {
        if i == LIMIT {
            // exact: usize has at most 64 bits
            return format!("{excerpt}... ({})", bytes(text.len() as u64));
        }
        if character.is_control() {
            excerpt.extend(character.escape_default());
        } else {
            excerpt.push(character);
        }
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_an_excerpt_cannot_steer_the_terminal() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (41_560_000, "41.6 MB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        let texts = [0.4, 839.6, 999.6, 26_100.0, 999_960.0, 1.2e9].map(nanoseconds);
        assert_eq!(texts, ["0 ns", "840 ns", "1.0 us", "26.1 us", "1.00 ms", "1200.00 ms"]);
        assert_eq!([ratio(3, 2), ratio(0, 2), ratio(2, 0)], ["1.50", "-", "-"]);
        assert_eq!(excerpt("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert!(excerpt(&"x".repeat(5_000)).ends_with("... (5.0 kB)"));
    }

    #[test]
    fn columns_line_up_and_blank_ones_can_be_hidden() {
        let mut table = Table::new(&["name", ">bytes", ">nulls", "note"]);
        for (name, bytes, note) in [("a", "1", "x"), ("längere", "123456", ""), ("日本", "2", "y")] {
            table.row([name, bytes, "-", note].map(str::to_owned).to_vec());
        }
        table.hide_blank();
        let mut out = Vec::new();
        table.write_wide(&mut out).unwrap();
        let expected = "name      bytes  note\na             1  x\nlängere  123456\n日本          2  y\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
