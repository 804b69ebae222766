//! Plain text tables within a given width: columns as wide as their cells, two spaces apart.

use super::width;
use std::io::{self, Write};

/// The content of a column's cells: their alignment, and how they shrink in a table that is too
/// wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    /// A short text, never cut.
    Text,
    /// A number, never cut, aligned to the right.
    Number,
    /// A name, which may lose its middle.
    Name,
    /// A list, which may lose its end but keeps this width.
    List(usize),
    /// Sentences, which wrap. Only the last column may contain them.
    Prose,
}

impl Cells {
    /// Returns the minimum width of a column with a widest cell of `widest`, in a table of width
    /// `table`.
    fn least(self, heading: &str, widest: usize, table: usize) -> usize {
        let least = match self {
            Self::Text | Self::Number => widest,
            Self::Name => table.saturating_mul(7) / 20, // 28 of 80
            Self::List(least) => least,
            Self::Prose => table / 5,
        };
        least.max(width::columns(heading)).min(widest)
    }

    /// Returns the lines of a cell.
    fn fit(self, cell: &str, width: usize) -> Vec<String> {
        match self {
            Self::Name => vec![width::cut_middle(cell, width)],
            Self::Prose => width::wrap(cell, width, 0),
            Self::Text | Self::Number | Self::List(_) => vec![width::cut_end(cell, width)],
        }
    }
}

/// A table of text.
pub(crate) struct Table<'a> {
    columns: Vec<(&'a str, Cells)>,
    rows: Vec<Vec<String>>,
}

/// The space between two columns.
const GAP: &str = "  ";

impl<'a> Table<'a> {
    /// Creates a table with these headings, the most important first.
    pub(crate) fn new(columns: &[(&'a str, Cells)]) -> Self {
        let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        Self { columns: columns.to_vec(), rows: vec![headings] }
    }

    /// Adds a row: one cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Returns the table without the columns whose cells are all `-`.
    pub(crate) fn without_blank(mut self) -> Self {
        let rows = self.rows.get(1..).unwrap_or(&[]);
        let is_blank = |column| rows.iter().filter_map(|row| row.get(column)).all(|cell: &String| cell == "-");
        let kept: Vec<bool> = (0..self.columns.len()).map(|column| rows.is_empty() || !is_blank(column)).collect();
        let keep = |column: usize| kept.get(column) == Some(&true);
        let mut number = 0..;
        self.columns.retain(|_| number.next().is_some_and(keep));
        for row in &mut self.rows {
            let mut number = 0..;
            row.retain(|_| number.next().is_some_and(keep));
        }
        self
    }

    /// Returns whether the table has no rows other than the headings.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Writes the table, headings first, in lines of at most `width`. Cells shrink as their
    /// [`Cells`] say. If that is not enough, the last columns are left out.
    pub(crate) fn write(&self, output: &mut impl Write, width: usize) -> io::Result<()> {
        let widths = self.widths(width);
        for row in &self.rows {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cells: Vec<_> = cells.map(|((cell, (_, cells)), width)| cells.fit(cell, *width)).collect();
            for number in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                writeln!(output, "{}", self.line(number, &cells, &widths))?;
            }
        }
        Ok(())
    }

    /// Returns the headings of the columns that are left out in lines of this width.
    pub(crate) fn left_out(&self, width: usize) -> Vec<&'a str> {
        self.columns.iter().skip(self.widths(width).len()).map(|(heading, _)| *heading).collect()
    }

    /// Returns line `number` of a row.
    fn line(&self, number: usize, cells: &[Vec<String>], widths: &[usize]) -> String {
        let mut line = String::new();
        for (at, ((cell, (_, cells)), width)) in cells.iter().zip(&self.columns).zip(widths).enumerate() {
            let cell = cell.get(number).map_or("", String::as_str);
            let padding = " ".repeat(width.saturating_sub(width::columns(cell)));
            line.push_str(if at == 0 { "" } else { GAP });
            match cells {
                Cells::Number => line.extend([&padding, cell]),
                _ => line.extend([cell, &padding]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// Returns the widths of the columns that fit in lines of this width.
    fn widths(&self, width: usize) -> Vec<usize> {
        let (mut widths, mut widest) = (Vec::new(), Vec::new());
        let mut free = width;
        for (at, (heading, cells)) in self.columns.iter().enumerate() {
            let natural = self.widest(at);
            let gap = if at == 0 { 0 } else { GAP.len() };
            let least = cells.least(heading, natural, width).saturating_add(gap);
            let left = free.checked_sub(least);
            if left.is_none() && at > 0 {
                break;
            }
            widths.push(least.min(free).saturating_sub(gap));
            widest.push(natural);
            free = left.unwrap_or(0);
        }
        for (width, widest) in widths.iter_mut().zip(widest) {
            let more = widest.saturating_sub(*width).min(free);
            *width = width.saturating_add(more);
            free = free.saturating_sub(more);
        }
        widths
    }

    /// Returns the width of the widest cell of a column.
    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width::columns(cell)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &Table<'_>, width: usize) -> String {
        let mut out = Vec::new();
        table.write(&mut out, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Cells::Text), ("bytes", Cells::Number), ("note", Cells::Text)]);
        table.row(vec!["a".into(), "1".into(), "x".into()]);
        table.row(vec!["längere".into(), "123456".into(), String::new()]);
        table.row(vec!["日本".into(), "2".into(), "y".into()]);
        let due = "name      bytes  note\na             1  x\nlängere  123456\n日本          2  y\n";
        assert_eq!(text(&table, usize::MAX), due);
    }

    fn wide_table() -> Table<'static> {
        let [name, number] = [("name", Cells::Name), ("bytes", Cells::Number)];
        let mut table = Table::new(&[name, number, ("list", Cells::List(10)), ("because", Cells::Prose)]);
        for (name, bytes) in [("encoder.layers.11.attention.weight", "4711"), ("b", "12345678")] {
            let because = "it is the smallest of all that were tried";
            table.row([name, bytes, "raw:1 constant:22", because].map(str::to_owned).to_vec());
        }
        table
    }

    #[test]
    fn no_line_is_wider_than_it_may_be() {
        let table = wide_table();
        for width in 4..120 {
            let text = text(&table, width);
            assert!(text.lines().all(|line| width::columns(line) <= width), "{width}: {text}");
            // each column is written, or named as left out
            assert_eq!(text.contains("bytes"), !table.left_out(width).contains(&"bytes"), "{width}: {text}");
        }
        assert!(table.left_out(usize::MAX).is_empty() && table.left_out(80).is_empty());
        assert_eq!(table.left_out(30), ["list", "because"]);
    }

    #[test]
    fn cells_give_way_and_nothing_is_lost_where_there_is_room() {
        let table = wide_table();
        let due = "\
name                         bytes  list        because
encoder.laye…tion.weight      4711  raw:1 con…  it is the
                                                smallest of
                                                all that
                                                were tried
b                         12345678  raw:1 con…  it is the
                                                smallest of
                                                all that
                                                were tried
";
        assert_eq!(text(&table, 60), due);
        let whole = text(&table, 200);
        assert_eq!(whole.lines().count(), 3);
        assert!(!whole.contains('…'), "{whole}");
    }
}
