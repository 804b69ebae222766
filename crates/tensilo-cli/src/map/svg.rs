//! The map as an SVG drawing: self-contained, with a transparent background. Its grey text is
//! legible on black and on white.

use super::colour::{colour, grey};
use super::damage::Subject;
use super::legend;
use super::tiles::{ChunkPart, ColumnShare, Tile};
use super::xml::escape;
use crate::text::damage_line;
use crate::text::human;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use tensilo::Reader;

/// The maximum number of columns in the legend.
const LEGEND: usize = 200;
/// A grey with enough contrast to both backgrounds.
const TEXT: &str = "#767676";
/// The colour of damage, distinct from all hues.
const RED: &str = "#d8000c";
/// The maximum number of drawn damages. A file with more is covered with red anyway.
const DAMAGES: usize = 1000;
/// The heights of a row of the map, of a line of text, and of the gap between rows.
const ROW: f64 = 22.0;
const LINE: f64 = 20.0;
const GAP: f64 = 6.0;
const MARGIN: f64 = 10.0;
/// The width of the offset at the start of a row.
const GUTTER: f64 = 80.0;
/// The top of the map.
const TOP: f64 = 40.0;
/// The average number of tiles in a row, and the maximum number of rows.
const TILES_OF_ROW: usize = 120;
const ROWS: usize = 40;

/// The layout of the drawing.
struct Frame {
    width: f64,
    /// The width without the gutter.
    map_width: f64,
    rows: u64,
    row_bytes: u64,
}

impl Frame {
    fn new(file_bytes: u64, tile_count: usize, width: u32) -> Self {
        let rows = tile_count.div_ceil(TILES_OF_ROW).clamp(1, ROWS) as u64; // exact: at most ROWS
        let row_bytes = file_bytes.div_ceil(rows).max(1);
        let width = f64::from(width);
        let map_width = width - GUTTER - 2.0 * MARGIN;
        Self { width, map_width, rows: file_bytes.div_ceil(row_bytes), row_bytes }
    }

    /// Returns the top of a row; for `rows`, the bottom of the last.
    fn y(&self, row: u64) -> f64 {
        TOP + row as f64 * (ROW + GAP) // exact: at most ROWS
    }

    /// Returns the rectangles of a range of the file, one for each row that it crosses: left, top,
    /// width.
    fn parts(&self, range: &Range<u64>) -> impl Iterator<Item = (f64, f64, f64)> {
        let (mut start, end) = (range.start, range.end);
        std::iter::from_fn(move || {
            let row = start / self.row_bytes;
            let row_start = row.saturating_mul(self.row_bytes);
            let row_end = end.min(row_start.saturating_add(self.row_bytes));
            let bytes = row_end.checked_sub(start).filter(|bytes| *bytes > 0)?;
            let x = GUTTER + MARGIN + self.width_of(start.saturating_sub(row_start));
            start = row_end;
            Some((x, self.y(row), self.width_of(bytes)))
        })
    }

    /// Returns the width of `bytes` bytes.
    fn width_of(&self, bytes: u64) -> f64 {
        bytes as f64 / self.row_bytes as f64 * self.map_width // to scale, except for rounding
    }
}

/// Writes the drawing. `width` is in pixels.
pub(crate) fn write(
    output: &mut impl Write,
    subject: &Subject,
    path: &Path,
    tiles: &[Tile],
    width: u32,
) -> io::Result<()> {
    let reader = &subject.reader;
    let frame = Frame::new(reader.file_bytes(), tiles.len(), width);
    // exact: at most 205
    let lines = reader.schema().columns.len().min(LEGEND).saturating_add(5) as f64;
    let height = frame.y(frame.rows) + LINE * lines + MARGIN;
    let width = frame.width;
    writeln!(
        output,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" fill="{TEXT}">"#
    )?;
    let (chunks, bytes) = (legend::chunk_count(reader), human::bytes(reader.file_bytes()));
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let title = format!("{}: {bytes}, {chunks} chunks, {} samples", human::excerpt(&name), reader.sample_count());
    writeln!(output, "<title>{}</title>", escape(&title))?;
    text(output, MARGIN, 24.0, &title)?;
    write_rows(output, reader, &frame)?;
    tiles.iter().try_for_each(|tile| write_tile(output, reader, &frame, tile))?;
    write_damages(output, subject, &frame)?;
    write_legend(output, subject, frame.y(frame.rows) + LINE)?;
    writeln!(output, "</svg>")
}

/// Draws the whole file as structure. Chunks are drawn over it.
fn write_rows(output: &mut impl Write, reader: &Reader, frame: &Frame) -> io::Result<()> {
    for row in 0..frame.rows {
        let start = row.saturating_mul(frame.row_bytes);
        let bytes = reader.file_bytes().saturating_sub(start).min(frame.row_bytes);
        text(output, MARGIN, frame.y(row) + 15.0, &human::bytes(start))?;
        let title = "structure: header, heads, dictionaries, index, footers, padding";
        rect(output, (GUTTER + MARGIN, frame.y(row)), frame.width_of(bytes), &grey(), title)?;
    }
    Ok(())
}

/// Draws a tile: a rectangle in each row that it crosses. Structure is drawn already.
fn write_tile(output: &mut impl Write, reader: &Reader, frame: &Frame, tile: &Tile) -> io::Result<()> {
    let Some(main) = tile.main() else { return Ok(()) };
    let (title, fill) = (tooltip(reader, tile), colour(main.column, main.ratio()));
    for (x, y, width) in frame.parts(&tile.range) {
        // a gap between wide tiles
        let width = if width > 3.0 { width - 0.5 } else { width };
        rect(output, (x, y), width, &fill, &title)?;
    }
    Ok(())
}

/// Draws a cross over each damage.
fn write_damages(output: &mut impl Write, subject: &Subject, frame: &Frame) -> io::Result<()> {
    for (damage, range) in subject.damages.iter().zip(subject.damaged_ranges()).take(DAMAGES) {
        let title = human::excerpt(&damage_line(damage));
        for (x, y, width) in frame.parts(&range) {
            cross(output, (x, y), width.max(4.0), ROW, &title)?;
        }
    }
    Ok(())
}

/// Draws a crossed red box, which differs from a tile even without colour.
fn cross(output: &mut impl Write, (x, y): (f64, f64), width: f64, height: f64, title: &str) -> io::Result<()> {
    let (right, bottom) = (x + width, y + height);
    let path = format!(
        "M{x:.2} {y:.2}H{right:.2}V{bottom:.2}H{x:.2}ZL{right:.2} {bottom:.2}M{right:.2} {y:.2}L{x:.2} {bottom:.2}"
    );
    // an almost transparent fill makes the whole box respond to the pointer
    writeln!(
        output,
        r#"<path d="{path}" fill="{RED}" fill-opacity="0.15" stroke="{RED}" stroke-width="2"><title>{}</title></path>"#,
        escape(title)
    )
}

/// Returns a tooltip with a line for each column in the tile.
fn tooltip(reader: &Reader, tile: &Tile) -> String {
    let mut lines: Vec<String> = tile.shares.iter().map(|share| share_text(reader, share)).collect();
    if tile.left_out > 0 {
        lines.push(format!("and {} more columns", tile.left_out));
    }
    lines.push(format!("bytes {}..{}", tile.range.start, tile.range.end));
    lines.join("\n")
}

fn share_text(reader: &Reader, share: &ColumnShare) -> String {
    let name = reader.schema().columns.get(share.column).map_or("", |column| column.name.as_str());
    let encodings: Vec<&str> = share.encodings.iter().map(String::as_str).collect();
    let chunks = match share.part {
        Some(ChunkPart::Front { blocks }) => format!("front of {blocks} blocks, "),
        Some(ChunkPart::Block { number, blocks }) => format!("block {number} of {blocks}, "),
        None if share.chunks == 1 => String::new(),
        None => format!("{} chunks, ", share.chunks),
    };
    format!(
        "{}: {chunks}samples {}..{}, {}, {} stored, ratio {}",
        human::excerpt(name),
        share.samples.start,
        share.samples.end,
        encodings.join(" "),
        human::bytes(share.stored_bytes),
        human::ratio(share.raw_bytes, share.stored_bytes)
    )
}

fn write_legend(output: &mut impl Write, subject: &Subject, top: f64) -> io::Result<()> {
    let reader = &subject.reader;
    let mut y = top;
    let mut line = |fill: Option<String>, words: &str| {
        if let Some(fill) = fill {
            swatch(output, MARGIN, y, &fill)?;
        }
        text(output, MARGIN + 24.0, y, words)?;
        y += LINE;
        io::Result::Ok(())
    };
    for (column, entry) in legend::entries(reader, LEGEND).into_iter().enumerate() {
        let words = format!(
            "{}, {}, {} stored, ratio {}, {}",
            entry.name, entry.kind, entry.stored, entry.ratio, entry.encodings
        );
        line(Some(colour(column, entry.compression)), &words)?;
    }
    if let Some(more) = legend::more(reader, LEGEND) {
        line(None, &more)?;
    }
    let structure = human::bytes(legend::structure_bytes(reader));
    let name = subject.structure_name();
    line(Some(grey()), &format!("{name}, {structure}: header, heads, dictionaries, index, footers, padding"))?;
    match subject.damages.len() {
        _ if !subject.is_verified => {}
        0 => line(None, "nothing is damaged: every byte was checked")?,
        _ => {
            line(None, &format!("damaged: {}", subject.damage_text()))?;
            cross(output, (MARGIN, y - LINE - 11.0), 16.0, 14.0, "damaged")?;
        }
    }
    for (at, (ratio, words)) in (0_u32..).zip([(1.0, "ratio 1"), (2.0, "2"), (4.0, "4"), (8.0, "8 or more")]) {
        let x = MARGIN + 100.0 * f64::from(at);
        swatch(output, x, y, &colour(0, ratio))?;
        text(output, x + 24.0, y, words)?;
    }
    Ok(())
}

fn rect(output: &mut impl Write, (x, y): (f64, f64), width: f64, fill: &str, title: &str) -> io::Result<()> {
    let title = escape(title);
    writeln!(
        output,
        r#"<rect x="{x:.2}" y="{y}" width="{width:.2}" height="{ROW}" fill="{fill}"><title>{title}</title></rect>"#
    )
}

/// Draws a coloured square to the left of a line of text at the same `y`.
fn swatch(output: &mut impl Write, x: f64, y: f64, fill: &str) -> io::Result<()> {
    writeln!(output, r#"<rect x="{x}" y="{}" width="16" height="14" rx="2" fill="{fill}"/>"#, y - 11.0)
}

fn text(output: &mut impl Write, x: f64, y: f64, words: &str) -> io::Result<()> {
    writeln!(output, r#"<text x="{x}" y="{y}">{}</text>"#, escape(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_be_markup() {
        assert_eq!(escape("a<b>&\"\u{FFFF}"), "a&lt;b&gt;&amp;&quot;\u{FFFD}");
    }

    #[test]
    fn rows_are_bounded_and_hold_the_file() {
        for (file_bytes, tiles) in [(64, 0), (1000, 1), (10_u64.pow(12), 4000), (u64::MAX, usize::MAX)] {
            let frame = Frame::new(file_bytes, tiles, 1200);
            assert!((1..=40).contains(&frame.rows));
            assert!(u128::from(frame.rows) * u128::from(frame.row_bytes) >= u128::from(file_bytes));
            assert!(frame.width_of(frame.row_bytes) <= 1200.0);
        }
    }
}
