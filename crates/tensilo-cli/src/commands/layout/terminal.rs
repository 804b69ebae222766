//! The layout in characters, for a terminal or a pipe.
//!
//! There are at most 24 lines of a fixed width, so each character represents a range of the file.
//! It shows the column with the most bytes in that range: a letter where the column changes,
//! otherwise a shade. The better the chunk is compressed, the lighter the shade.

use super::subject::Subject;
use super::tiles::Tile;
use crate::text::Table;
use std::path::Path;

/// The letters for columns. If there are more columns than letters, the remaining columns share
/// [`OTHER`].
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const OTHER: char = '+';
const STRUCTURE: char = '·';
const DAMAGE: char = '!';

/// How the file is divided into lines and characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// The number of characters in a line that represent the file.
    columns: usize,
    /// The number of characters reserved for the offset before them.
    gutter: usize,
    /// The number of bytes that a character represents.
    pub(super) cell_bytes: u64,
}

impl Grid {
    /// Creates a grid for lines of `width` characters.
    pub(super) fn new(file_bytes: u64, width: usize) -> Self {
        /// The maximum number of lines of the map.
        const LINES: u64 = 24;
        /// The minimum number of bytes that a character represents.
        const MIN_BYTES: u64 = 64;
        let gutter = file_bytes.to_string().len();
        let columns = width.saturating_sub(gutter.saturating_add(1)).max(16);
        let cells = LINES.saturating_mul(columns as u64); // exact: usize has at most 64 bits
        let cell_bytes = file_bytes.div_ceil(cells).next_multiple_of(MIN_BYTES);
        Self { columns, gutter, cell_bytes }
    }
}

/// Draws a file and its legend.
pub(super) fn draw(subject: &Subject, path: &Path, grid: Grid, tiles: &[Tile]) -> String {
    let mut drawing = format!("{}; each character is {} bytes\n\n", subject.title(path), grid.cell_bytes);
    for line in tiles.chunks(grid.columns) {
        let offset = line.first().map_or(0, |tile| tile.range.start);
        drawing += &format!("{offset:>width$} {}\n", line_text(line), width = grid.gutter);
    }
    drawing.push('\n');
    let letters = LETTERS.len();
    let mut table = Table::new(&[" ", "column", "type", ">stored", ">ratio", "encodings"]);
    for (column, (cells, _)) in subject.legend(letters).into_iter().enumerate() {
        table.row([letter(column).to_string()].into_iter().chain(cells).collect());
    }
    let (structure, bytes) = subject.structure();
    table.row([&STRUCTURE.to_string(), structure, "", &bytes, "-", "-"].map(str::to_owned).to_vec());
    let mut legend = Vec::new();
    let _ = table.write(&mut legend); // writing to memory cannot fail
    drawing += &String::from_utf8_lossy(&legend);
    if let Some(more) = subject.more_columns(letters) {
        drawing += &format!("{OTHER}  {more}\n");
    }
    if let Some(finding) = subject.finding() {
        let mark = if subject.findings.is_empty() { String::new() } else { format!("{DAMAGE}  ") };
        drawing += &format!("{mark}{finding}\n");
    }
    drawing + "\nratio: █ below 1.1, ▓ below 2, ▒ below 4, ░ 4 or more\n"
}

fn line_text(line: &[Tile]) -> String {
    let mut last = None;
    let character = |tile: &Tile| {
        let share = tile.main().filter(|_| !tile.is_damaged);
        let is_same = share.map(|share| share.column) == last;
        last = share.map(|share| share.column);
        match share {
            _ if tile.is_damaged => DAMAGE,
            None => STRUCTURE,
            Some(share) if !is_same => letter(share.column),
            Some(share) => match share.ratio() {
                ..1.1 => '█',
                ..2.0 => '▓',
                ..4.0 => '▒',
                _ => '░',
            },
        }
    };
    line.iter().map(character).collect()
}

fn letter(column: usize) -> char {
    LETTERS.chars().nth(column).unwrap_or(OTHER)
}
