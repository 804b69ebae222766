//! The map in characters.

use super::legend::{self, Entry};
use super::tiles::{Piece, Tile};
use crate::human;
use crate::table::{Side, Table};
use std::io::{self, Write};
use std::path::Path;
use tensilo::{Reader, Source};

/// Letters of columns; those after the last share [`OTHER`].
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const OTHER: char = '+';
const STRUCTURE: char = '·';
/// Lines of the map at most.
const LINES: u64 = 24;
/// No character stands for less.
const LEAST_BYTES: u64 = 64;
/// SGR codes of foreground colours that can be read on black and on white.
const COLOURS: [u8; 6] = [31, 32, 34, 35, 36, 33];

/// How the file is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Characters of a line that show the file.
    columns: usize,
    /// Characters of the offset before them.
    gutter: usize,
    /// What a character stands for.
    pub(super) cell_bytes: u64,
}

impl Grid {
    /// For lines of `width` characters.
    pub(super) fn new(file_bytes: u64, width: usize) -> Self {
        let gutter = file_bytes.to_string().len();
        let columns = width.saturating_sub(gutter.saturating_add(1)).max(16);
        let cells = LINES.saturating_mul(columns as u64); // exact: usize has at most 64 bits
        let cell_bytes = file_bytes.div_ceil(cells).next_multiple_of(LEAST_BYTES);
        Self { columns, gutter, cell_bytes }
    }
}

/// Writes the map and its legend.
pub(super) fn write<S: Source>(
    output: &mut impl Write,
    reader: &Reader<S>,
    path: &Path,
    (grid, tiles): (Grid, &[Tile]),
    colours: bool,
) -> io::Result<()> {
    let (chunks, file_bytes) = (legend::chunk_count(reader), reader.file_bytes());
    writeln!(
        output,
        "{}: {}, {chunks} chunks; a character is {} bytes\n",
        human::excerpt(&path.to_string_lossy()),
        human::bytes(file_bytes),
        grid.cell_bytes
    )?;
    for line in tiles.chunks(grid.columns) {
        let offset = line.first().map_or(0, |tile| tile.range.start);
        writeln!(output, "{offset:>width$} {}", line_text(line, colours), width = grid.gutter)?;
    }
    writeln!(output)?;
    write_legend(output, reader, colours)
}

/// The tiles of a line: a letter where the column changes, else a shade.
fn line_text(line: &[Tile], colours: bool) -> String {
    let mut text = String::new();
    let (mut last, mut painted) = (None, None);
    for tile in line {
        let main = tile.main();
        let column = main.map(|piece| piece.column);
        if colours && painted != column {
            text.push_str(&column.map_or_else(|| RESET.to_owned(), paint));
            painted = column;
        }
        text.push(match main {
            None => STRUCTURE,
            Some(piece) if last == column => shade(piece),
            Some(piece) => letter(piece.column),
        });
        last = column;
    }
    if painted.is_some() {
        text.push_str(RESET);
    }
    text
}

const RESET: &str = "\u{1b}[0m";

fn paint(column: usize) -> String {
    let colour = COLOURS.iter().cycle().nth(column % COLOURS.len()).copied().unwrap_or(0);
    format!("\u{1b}[{colour}m")
}

fn letter(column: usize) -> char {
    LETTERS.chars().nth(column).unwrap_or(OTHER)
}

/// The lighter the better it is compressed.
fn shade(piece: &Piece) -> char {
    match piece.ratio() {
        ..1.1 => '█',
        ..2.0 => '▓',
        ..4.0 => '▒',
        _ => '░',
    }
}

fn write_legend<S: Source>(output: &mut impl Write, reader: &Reader<S>, colours: bool) -> io::Result<()> {
    let letters = LETTERS.len();
    let mut table = Table::new(&[
        (" ", Side::Left),
        ("column", Side::Left),
        ("type", Side::Left),
        ("stored", Side::Right),
        ("ratio", Side::Right),
        ("encodings", Side::Left),
    ]);
    for (column, entry) in legend::entries(reader, letters).into_iter().enumerate() {
        let Entry { name, kind, encodings, stored, ratio, .. } = entry;
        table.row(vec![letter(column).to_string(), name, kind, stored, ratio, encodings]);
    }
    let structure = human::bytes(legend::structure_bytes(reader));
    table.row(["·", "structure", "", &structure, "-", "-"].map(str::to_owned).to_vec());
    let mut text = Vec::new();
    table.write(&mut text)?;
    for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
        match number.checked_sub(1).filter(|column| colours && *column < reader.schema().columns.len().min(letters)) {
            None => writeln!(output, "{line}")?,
            Some(column) => {
                let rest = line.strip_prefix(letter(column)).unwrap_or(line);
                writeln!(output, "{}{}{RESET}{rest}", paint(column), letter(column))?;
            }
        }
    }
    if let Some(more) = legend::more(reader, letters) {
        writeln!(output, "{OTHER}  {more}")?;
    }
    writeln!(output, "\nratio: █ below 1.1, ▓ below 2, ▒ below 4, ░ from 4 on")
}

#[cfg(test)]
mod tests {
    use super::super::tiles::equal_tiles;
    use super::*;
    use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Stream, Value, Writer, WriterOptions};

    #[test]
    fn the_map_has_a_bounded_number_of_lines() {
        for file_bytes in [1, 64, 1000, 123_456, 10_u64.pow(12)] {
            let grid = Grid::new(file_bytes, 80);
            let cells = file_bytes.div_ceil(grid.cell_bytes);
            assert!(cells <= LINES * 80, "{grid:?}");
            assert!(grid.columns + grid.gutter + 1 == 80 && grid.cell_bytes.is_multiple_of(LEAST_BYTES), "{grid:?}");
        }
        assert!(Grid::new(u64::MAX, 40).columns >= 16);
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        let schema = Schema::new(["a", "b"].map(|name| ColumnSchema::tensor(name, DType::U8, Shape::fixed(&[300]))));
        let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(Profile::Raw)).unwrap();
        writer.push(&[Value::tensor(&[1_u8; 300]), Value::tensor(&[2_u8; 300])]).unwrap();
        let reader = Reader::from_bytes(writer.finish().unwrap().sink.0).unwrap();
        let grid = Grid::new(reader.file_bytes(), 80);
        let tiles = equal_tiles(&reader, Path::new("a.tsl"), grid.cell_bytes, true).unwrap();
        let text = |colours| {
            let mut out = Vec::new();
            write(&mut out, &reader, Path::new("a.tsl"), (grid, &tiles), colours).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (plain, coloured) = (text(false), text(true));
        assert!(!plain.contains('\u{1b}'));
        let [a, b] = [0, 1].map(paint);
        assert!(coloured.contains(&format!("{a}A")) && coloured.contains(&format!("{RESET}·")), "{coloured}");
        assert!(coloured.contains(&format!("\n{b}B{RESET}  b")), "{coloured}");
        assert_eq!([a.as_str(), &b, RESET].iter().fold(coloured, |text, code| text.replace(code, "")), plain);
    }

    #[test]
    fn letters_run_out_and_colours_come_again() {
        assert_eq!((letter(0), letter(51), letter(52), letter(10_000)), ('A', 'z', OTHER, OTHER));
        assert_eq!(paint(1), paint(1 + COLOURS.len()));
    }
}
