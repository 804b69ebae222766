//! Plain text tables: columns as wide as they need to be, two spaces apart.

use std::io::{self, Write};

/// Which side the cells of a column stand on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table of text.
pub(crate) struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(columns: &[(&str, Side)]) -> Self {
        let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
        Self { sides: columns.iter().map(|(_, side)| *side).collect(), rows: vec![headings] }
    }

    /// Adds a row: a cell for each heading.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Writes the table, headings first.
    pub(crate) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let widths = self.widths();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, side), width) in row.iter().zip(&self.sides).zip(&widths) {
                let gap = if line.is_empty() { "" } else { "  " };
                let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
                let cell = match side {
                    Side::Left => format!("{gap}{cell}{padding}"),
                    Side::Right => format!("{gap}{padding}{cell}"),
                };
                line.push_str(&cell);
            }
            writeln!(output, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn widths(&self) -> Vec<usize> {
        let width = |i| self.rows.iter().filter_map(|row| row.get(i)).map(|cell: &String| cell.chars().count()).max();
        (0..self.sides.len()).map(|i| width(i).unwrap_or(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("name", Side::Left), ("bytes", Side::Right), ("note", Side::Left)]);
        table.row(vec!["a".into(), "1".into(), "x".into()]);
        table.row(vec!["längere".into(), "123456".into(), String::new()]);
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        let due = "name      bytes  note\na             1  x\nlängere  123456\n";
        assert_eq!(String::from_utf8(out).unwrap(), due);
    }
}
