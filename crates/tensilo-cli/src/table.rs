//! Plain text tables: columns as wide as they need to be, two spaces apart, in lines that are only
//! so wide.

use crate::layout;
use std::io::{self, Write};

/// What the cells of a column hold: which side they stand on, and how they give way in a table that
/// is too wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cells {
    /// A few characters, whole.
    Text,
    /// A number, whole.
    Number,
    /// A name, of which the middle may be left out.
    Name,
    /// A list, of which the end may be left out, but not of what is only so wide.
    List(usize),
    /// Sentences, which take several lines. Only the last column may hold them.
    Prose,
}

impl Cells {
    /// The least width of a column in a table of width `table`, whose widest cell is `widest` wide.
    fn least(self, heading: &str, widest: usize, table: usize) -> usize {
        let least = match self {
            Self::Text | Self::Number => widest,
            Self::Name => table.saturating_mul(7) / 20, // 28 of 80
            Self::List(least) => least,
            Self::Prose => table / 5,
        };
        least.max(layout::columns(heading)).min(widest)
    }

    /// The lines of a cell.
    fn fit(self, cell: &str, width: usize) -> Vec<String> {
        match self {
            Self::Name => vec![layout::cut_middle(cell, width)],
            Self::Prose => layout::wrap(cell, width, 0),
            Self::Text | Self::Number | Self::List(_) => vec![layout::cut_end(cell, width)],
        }
    }
}

/// A table of text.
pub(crate) struct Table<'a> {
    columns: Vec<(&'a str, Cells)>,
    rows: Vec<Vec<String>>,
}

/// Between two columns.
const GAP: &str = "  ";

impl<'a> Table<'a> {
    /// A table with these headings, the most important first.
    pub(crate) fn new(columns: &[(&'a str, Cells)]) -> Self {
        let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        Self { columns: columns.to_vec(), rows: vec![headings] }
    }

    /// Adds a row: a cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table without the columns that have nothing in any row.
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

    /// Whether it has no rows but the headings.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Writes the table, headings first, in lines of at most this width: cells give way as their
    /// [`Cells`] say; columns for which that is not enough are left out, from the last on.
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

    /// The headings of the columns that are left out in lines of this width.
    pub(crate) fn left_out(&self, width: usize) -> Vec<&'a str> {
        self.columns.iter().skip(self.widths(width).len()).map(|(heading, _)| *heading).collect()
    }

    /// Line `number` of a row.
    fn line(&self, number: usize, cells: &[Vec<String>], widths: &[usize]) -> String {
        let mut line = String::new();
        for (at, ((cell, (_, cells)), width)) in cells.iter().zip(&self.columns).zip(widths).enumerate() {
            let cell = cell.get(number).map_or("", String::as_str);
            let padding = " ".repeat(width.saturating_sub(layout::columns(cell)));
            line.push_str(if at == 0 { "" } else { GAP });
            match cells {
                Cells::Number => line.extend([&padding, cell]),
                _ => line.extend([cell, &padding]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// The widths of the columns that are written in lines of this width.
    fn widths(&self, width: usize) -> Vec<usize> {
        let (mut widths, mut widest) = (Vec::new(), Vec::new());
        let mut room = width;
        for (at, (heading, cells)) in self.columns.iter().enumerate() {
            let natural = self.widest(at);
            let gap = if at == 0 { 0 } else { GAP.len() };
            let least = cells.least(heading, natural, width).saturating_add(gap);
            let left = room.checked_sub(least);
            if left.is_none() && at > 0 {
                break;
            }
            widths.push(least.min(room).saturating_sub(gap));
            widest.push(natural);
            room = left.unwrap_or(0);
        }
        for (width, widest) in widths.iter_mut().zip(widest) {
            let more = widest.saturating_sub(*width).min(room);
            *width = width.saturating_add(more);
            room = room.saturating_sub(more);
        }
        widths
    }

    /// The width of the widest cell of a column.
    fn widest(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| layout::columns(cell)).max().unwrap_or(0)
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
            assert!(text.lines().all(|line| layout::columns(line) <= width), "{width}: {text}");
            // a column is written or named as left out
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
