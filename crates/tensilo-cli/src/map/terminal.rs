//! The map in characters.

use super::damage::Subject;
use super::legend::{self, Entry};
use super::tiles::{ColumnShare, Tile};
use crate::terminal::write_wrapped;
use crate::text::human;
use crate::text::wrap;
use crate::text::{Cells, Table};
use std::io::{self, Write};
use std::path::Path;

/// The letters of columns. Columns after the last letter share [`OTHER`].
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const OTHER: char = '+';
const STRUCTURE: char = '·';
const DAMAGE: char = '!';
/// White on red.
const DAMAGE_CODE: &str = "\u{1b}[1;97;41m";
/// The maximum number of lines of the map.
const LINES: u64 = 24;
/// The minimum number of bytes that a character represents.
const LEAST_BYTES: u64 = 64;
/// SGR codes of foreground colours that are legible on black and on white.
const COLOURS: [u8; 6] = [31, 32, 34, 35, 36, 33];

/// The division of the file into lines and characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// The characters of a line that show the file.
    columns: usize,
    /// The characters of the offset before them.
    gutter: usize,
    /// The number of bytes that a character represents.
    pub(super) cell_bytes: u64,
}

impl Grid {
    /// Creates a grid for lines of `width` characters.
    pub(super) fn new(file_bytes: u64, width: usize) -> Self {
        let gutter = file_bytes.to_string().len();
        let columns = width.saturating_sub(gutter.saturating_add(1)).max(16);
        let cells = LINES.saturating_mul(columns as u64); // exact: usize has at most 64 bits
        let cell_bytes = file_bytes.div_ceil(cells).next_multiple_of(LEAST_BYTES);
        Self { columns, gutter, cell_bytes }
    }

    /// Returns the width of a line.
    fn width(&self) -> usize {
        self.columns.saturating_add(self.gutter).saturating_add(1)
    }
}

/// Writes the map and its legend.
pub(super) fn write(
    output: &mut impl Write,
    subject: &Subject,
    path: &Path,
    (grid, tiles): (Grid, &[Tile]),
    colours: bool,
) -> io::Result<()> {
    let (chunks, file_bytes) = (legend::chunk_count(&subject.reader), subject.reader.file_bytes());
    let name = human::excerpt(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
    let (bytes, cell) = (human::bytes(file_bytes), grid.cell_bytes);
    let title = format!("{name}: {bytes}, {chunks} chunks; a character is {cell} bytes");
    write_wrapped(output, &title, grid.width())?;
    writeln!(output)?;
    for line in tiles.chunks(grid.columns) {
        let offset = line.first().map_or(0, |tile| tile.range.start);
        writeln!(output, "{offset:>width$} {}", line_text(line, colours), width = grid.gutter)?;
    }
    writeln!(output)?;
    write_legend(output, subject, grid.width(), colours)
}

/// The content of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ink {
    Structure,
    Column(usize),
    Damage,
}

impl Ink {
    fn of(tile: &Tile) -> Self {
        match tile.main() {
            _ if tile.is_damaged => Self::Damage,
            Some(share) => Self::Column(share.column),
            None => Self::Structure,
        }
    }

    fn code(self) -> String {
        match self {
            Self::Structure => RESET.to_owned(),
            Self::Column(column) => paint(column),
            Self::Damage => DAMAGE_CODE.to_owned(),
        }
    }
}

/// Returns the text of a line: a letter where the column changes, otherwise a shade.
fn line_text(line: &[Tile], colours: bool) -> String {
    let mut text = String::new();
    let mut last = None;
    for tile in line {
        let ink = Ink::of(tile);
        if colours && last.unwrap_or(Ink::Structure) != ink {
            // the previous style may have a background
            let reset = if last == Some(Ink::Damage) && ink != Ink::Structure { RESET } else { "" };
            text.push_str(reset);
            text.push_str(&ink.code());
        }
        text.push(match (ink, tile.main()) {
            (Ink::Damage, _) => DAMAGE,
            (Ink::Column(_), Some(share)) if last == Some(ink) => shade(share),
            (Ink::Column(column), _) => letter(column),
            (Ink::Structure, _) => STRUCTURE,
        });
        last = Some(ink);
    }
    if colours && last.is_some_and(|ink| ink != Ink::Structure) {
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

/// Returns a block: the lighter, the better the chunk is compressed.
fn shade(share: &ColumnShare) -> char {
    match share.ratio() {
        ..1.1 => '█',
        ..2.0 => '▓',
        ..4.0 => '▒',
        _ => '░',
    }
}

fn write_legend(output: &mut impl Write, subject: &Subject, width: usize, colours: bool) -> io::Result<()> {
    let (reader, letters) = (&subject.reader, LETTERS.len());
    let mut table = Table::new(&[
        (" ", Cells::Text),
        ("column", Cells::Name),
        ("type", Cells::List(10)),
        ("stored", Cells::Number),
        ("ratio", Cells::Number),
        ("encodings", Cells::List(16)),
    ]);
    for (column, entry) in legend::entries(reader, letters).into_iter().enumerate() {
        let Entry { name, kind, encodings, stored, ratio, .. } = entry;
        table.row(vec![letter(column).to_string(), name, kind, stored, ratio, encodings]);
    }
    let structure = human::bytes(legend::structure_bytes(reader));
    table.row(["·", subject.structure_name(), "", &structure, "-", "-"].map(str::to_owned).to_vec());
    let mut text = Vec::new();
    table.write(&mut text, width)?;
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
    write_damage(output, subject, width, colours)?;
    writeln!(output)?;
    write_wrapped(output, "ratio: █ below 1.1, ▓ below 2, ▒ below 4, ░ from 4 on", width)
}

/// Writes the number of damages if the file was verified.
fn write_damage(output: &mut impl Write, subject: &Subject, width: usize, colours: bool) -> io::Result<()> {
    if !subject.is_verified {
        return Ok(());
    }
    if subject.damages.is_empty() {
        return write_wrapped(output, "nothing is damaged: every byte was checked", width);
    }
    let (code, reset) = if colours { (DAMAGE_CODE, RESET) } else { ("", "") };
    let text = wrap(&format!("damaged: {}", subject.damage_text()), width.saturating_sub(3), 0).join("\n   ");
    writeln!(output, "{code}{DAMAGE}{reset}  {text}")
}

#[cfg(test)]
mod tests {
    use super::super::tiles::{equal_tiles, mark_damage};
    use super::*;
    use tensilo::sink::Stream;
    use tensilo::source::InMemory;
    use tensilo::verify::{VerifyOptions, verify};
    use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

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

    /// Returns a file of two columns of 300 bytes each, with damage in these ranges.
    fn subject(damages: &[std::ops::Range<u64>]) -> Subject {
        let schema = Schema::new(["a", "b"].map(|name| ColumnSchema::tensor(name, DType::U8, Shape::fixed(&[300]))));
        let mut writer = Writer::new(Stream(Vec::new()), schema, &WriterOptions::new().profile(Profile::Raw)).unwrap();
        writer.push(&[Value::tensor(&[1_u8; 300]), Value::tensor(&[2_u8; 300])]).unwrap();
        let mut bytes = writer.into_bytes().unwrap();
        let reader = Reader::from_bytes(bytes.clone()).unwrap();
        for range in damages {
            bytes[usize::try_from(range.start).unwrap()] ^= 1;
        }
        let damages = verify(&InMemory(&bytes), VerifyOptions::new()).unwrap().damages;
        Subject { reader, is_verified: true, is_salvaged: false, damages }
    }

    fn text(subject: &Subject, colours: bool) -> String {
        let grid = Grid::new(subject.reader.file_bytes(), 80);
        let mut tiles = equal_tiles(&subject.reader, Path::new("a.tsl"), grid.cell_bytes, true).unwrap();
        mark_damage(&mut tiles, &subject.damaged_ranges());
        let mut out = Vec::new();
        write(&mut out, subject, Path::new("a.tsl"), (grid, &tiles), colours).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn colours_change_nothing_but_the_colour() {
        let [a, b] = [0, 1].map(paint);
        let whole = subject(&[]);
        let damaged = whole.reader.column("b").unwrap().chunk(0).unwrap().unwrap().file_range;
        for subject in [whole, subject(&[damaged])] {
            let (plain, coloured) = (text(&subject, false), text(&subject, true));
            assert!(!plain.contains('\u{1b}'));
            assert!(coloured.contains(&format!("{a}A")) && coloured.contains(&format!("{RESET}·")), "{coloured}");
            assert!(coloured.contains(&format!("\n{b}B{RESET}  b")), "{coloured}");
            let is_damaged = !subject.damages.is_empty();
            assert_eq!(coloured.contains(&format!("{DAMAGE_CODE}!")), is_damaged, "{coloured}");
            assert_eq!(plain.contains("!!!!!"), is_damaged, "{plain}");
            assert_eq!(plain.contains("\n!  damaged: 1 range;"), is_damaged, "{plain}");
            assert_eq!(plain.contains("nothing is damaged"), !is_damaged, "{plain}");
            let codes = [a.as_str(), &b, DAMAGE_CODE, RESET];
            assert_eq!(codes.iter().fold(coloured, |text, code| text.replace(code, "")), plain);
        }
    }

    #[test]
    fn letters_run_out_and_colours_come_again() {
        assert_eq!((letter(0), letter(51), letter(52), letter(10_000)), ('A', 'z', OTHER, OTHER));
        assert_eq!(paint(1), paint(1 + COLOURS.len()));
    }
}
