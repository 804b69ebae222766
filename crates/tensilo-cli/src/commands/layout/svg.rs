//! SVG drawings, self-contained and with a transparent background. The gray text is legible on
//! black and on white.
//!
//! [`Svg`] writes the elements. [`draw`] lays out a file in rows, from top to bottom; each row
//! shows the same number of bytes. A chunk has the hue of its column, and is lighter the better it
//! is compressed; a tooltip names the columns of each tile. Damage is drawn as a crossed red box,
//! which differs from a tile even without color. The numbers of tiles, rows, drawn findings and
//! legend lines are bounded.

use super::subject::Subject;
use super::tiles::{ColumnShare, Tile};
use crate::text::{self, finding_line};
use std::ops::Range;
use std::path::Path;
use tensilo::Reader;

/// A gray with enough contrast on both black and white.
const TEXT: &str = "#767676";
/// The color of structure.
pub(super) const GREY: &str = "#999999";
/// The color of damage, distinct from all hues.
const RED: &str = "#d8000c";

/// An SVG document.
pub(super) struct Svg(String);

impl Svg {
    /// Starts a document of this size.
    pub(super) fn new(width: u32, height: f64, title: &str) -> Self {
        let title = escape(title);
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" \
             font-size=\"12\" fill=\"{TEXT}\">\n<title>{title}</title>\n"
        ))
    }

    /// Draws a rectangle with a tooltip.
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, title: &str) {
        let title = escape(title);
        self.0 += &format!(
            "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{height}\" fill=\"{fill}\">\
             <title>{title}</title></rect>\n"
        );
    }

    /// Draws a crossed box with a tooltip. An almost transparent fill makes the whole box respond
    /// to the pointer.
    fn cross(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let (right, bottom, title) = (x + width, y + height, escape(title));
        self.0 += &format!(
            "<path d=\"M{x:.2} {y:.2}H{right:.2}V{bottom:.2}H{x:.2}ZL{right:.2} {bottom:.2}M{right:.2} {y:.2}L{x:.2} \
             {bottom:.2}\" fill=\"{RED}\" fill-opacity=\"0.15\" stroke=\"{RED}\" stroke-width=\"2\">\
             <title>{title}</title></path>\n"
        );
    }

    /// Writes a line of text.
    pub(super) fn text(&mut self, x: f64, y: f64, words: &str) {
        self.0 += &format!("<text x=\"{x}\" y=\"{y}\">{}</text>\n", escape(words));
    }

    /// Ends the document.
    pub(super) fn finish(self) -> String {
        self.0 + "</svg>\n"
    }
}

/// Escapes text for XML. Callers have already removed control characters.
fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace(['\u{FFFE}', '\u{FFFF}'], "\u{FFFD}") // not allowed in XML
}

/// Returns the color of a chunk of column `column` as `#rrggbb`: a mid tone, distinct from black
/// and white. The better the chunk is compressed, the lighter the color.
pub(super) fn color(column: usize, ratio: f64) -> String {
    /// The angle between the hues of adjacent columns, which makes them distinct.
    const GOLDEN_ANGLE: f64 = 137.508;
    /// The hue of the first column.
    const FIRST: f64 = 212.0;
    let hue = (FIRST + (column % 360) as f64 * GOLDEN_ANGLE) % 360.0; // exact: below 360
    let lightness = 0.36 + 0.36 * (ratio.max(1.0).log2() / 3.0).min(1.0);
    let chroma = 0.6 * lightness.min(1.0 - lightness);
    let channel = |offset: f64| {
        let k = (offset + hue / 30.0) % 12.0;
        let value = lightness - chroma * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8 // 0 to 255; `as` saturates
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

/// The height of a row of the map.
const ROW: f64 = 22.0;
/// The height of a line of text.
const LINE: f64 = 20.0;
/// The height of the gap between rows.
const GAP: f64 = 6.0;
const MARGIN: f64 = 10.0;
/// The width reserved for the file offset at the start of a row.
const GUTTER: f64 = 80.0;
/// The top of the map.
const TOP: f64 = 40.0;

/// The layout of the rows.
struct Frame {
    /// The width of the map, without the gutter and the margins.
    map_width: f64,
    rows: u64,
    row_bytes: u64,
}

impl Frame {
    fn new(file_bytes: u64, tile_count: usize, width: u32) -> Self {
        /// The average number of tiles in a row.
        const TILES_OF_ROW: usize = 120;
        /// The maximum number of rows.
        const ROWS: usize = 40;
        let rows = tile_count.div_ceil(TILES_OF_ROW).clamp(1, ROWS) as u64; // exact: at most ROWS
        let row_bytes = file_bytes.div_ceil(rows).max(1);
        let map_width = f64::from(width) - GUTTER - 2.0 * MARGIN;
        Self { map_width, rows: file_bytes.div_ceil(row_bytes), row_bytes }
    }

    /// Returns the top of a row. If `row` is the number of rows, returns the bottom of the last
    /// row.
    fn y(&self, row: u64) -> f64 {
        TOP + row as f64 * (ROW + GAP) // exact: at most 40
    }

    /// Returns the rectangles of a range of the file, one for each row that it crosses, as left,
    /// top and width.
    fn rectangles(&self, range: &Range<u64>) -> impl Iterator<Item = (f64, f64, f64)> {
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

    /// Returns the width that represents `bytes` bytes.
    fn width_of(&self, bytes: u64) -> f64 {
        bytes as f64 / self.row_bytes as f64 * self.map_width // to scale, except for rounding
    }
}

/// Draws a file. `width` is in pixels.
pub(super) fn draw(subject: &Subject, path: &Path, tiles: &[Tile], width: u32) -> String {
    /// The maximum number of columns in the legend.
    const LEGEND: usize = 200;
    /// The maximum number of findings that are drawn. A file with more is covered with red anyway.
    const FINDINGS: usize = 1000;
    const STRUCTURE: &str = "headers, dictionaries, index, footers, padding";
    let reader = &subject.reader;
    let frame = Frame::new(reader.file_bytes(), tiles.len(), width);
    // exact: at most 204
    let lines = reader.schema().columns.len().min(LEGEND).saturating_add(4) as f64;
    let title = format!("{}, {} samples", subject.title(path), reader.sample_count());
    let mut svg = Svg::new(width, frame.y(frame.rows) + LINE * lines + MARGIN, &title);
    svg.text(MARGIN, 24.0, &title);
    // the whole file is drawn as structure, and chunks on top of it
    for row in 0..frame.rows {
        let start = row.saturating_mul(frame.row_bytes);
        let bytes = reader.file_bytes().saturating_sub(start).min(frame.row_bytes);
        svg.text(MARGIN, frame.y(row) + 15.0, &text::bytes(start));
        let position = (GUTTER + MARGIN, frame.y(row));
        svg.rect(position, (frame.width_of(bytes), ROW), GREY, &format!("structure: {STRUCTURE}"));
    }
    for tile in tiles {
        let Some(main) = tile.main() else { continue };
        let (title, fill) = (tooltip(reader, tile), color(main.column, main.ratio()));
        for (x, y, width) in frame.rectangles(&tile.range) {
            // a gap between wide tiles
            svg.rect((x, y), (if width > 3.0 { width - 0.5 } else { width }, ROW), &fill, &title);
        }
    }
    for (damage, range) in subject.findings.iter().zip(subject.damaged_ranges()).take(FINDINGS) {
        let title = text::excerpt(&finding_line(damage));
        frame.rectangles(&range).for_each(|(x, y, width)| svg.cross((x, y), (width.max(4.0), ROW), &title));
    }
    let mut y = frame.y(frame.rows) + LINE;
    let mut line = |svg: &mut Svg, fill: Option<&str>, words: &str| {
        if let Some(fill) = fill {
            svg.rect((MARGIN, y - 11.0), (16.0, 14.0), fill, words);
        }
        svg.text(MARGIN + 24.0, y, words);
        y += LINE;
    };
    for (column, ([name, kind, stored, ratio, encodings], compression)) in
        subject.legend(LEGEND).into_iter().enumerate()
    {
        let words = format!("{name}, {kind}, {stored} stored, ratio {ratio}, {encodings}");
        line(&mut svg, Some(&color(column, compression)), &words);
    }
    if let Some(more) = subject.more_columns(LEGEND) {
        line(&mut svg, None, &more);
    }
    let (name, bytes) = subject.structure();
    line(&mut svg, Some(GREY), &format!("{name}, {bytes}: {STRUCTURE}"));
    if let Some(finding) = subject.finding() {
        line(&mut svg, None, &finding);
        if !subject.findings.is_empty() {
            svg.cross((MARGIN, y - LINE - 11.0), (16.0, 14.0), "damaged");
        }
    }
    svg.finish()
}

/// Returns a tooltip with a line for each column in the tile.
fn tooltip(reader: &Reader, tile: &Tile) -> String {
    /// The maximum number of columns in a tooltip.
    const COLUMNS: usize = 16;
    let mut lines: Vec<String> = tile.shares.iter().take(COLUMNS).map(|share| share_text(reader, share)).collect();
    if let Some(more) = tile.shares.len().checked_sub(COLUMNS).filter(|more| *more > 0) {
        lines.push(format!("and {more} more columns"));
    }
    lines.push(format!("bytes {}..{}", tile.range.start, tile.range.end));
    lines.join("\n")
}

fn share_text(reader: &Reader, share: &ColumnShare) -> String {
    let name = reader.schema().columns.get(share.column).map_or("", |column| column.name.as_str());
    let encodings: Vec<&str> = share.encodings.iter().map(String::as_str).collect();
    let chunks = if share.chunks == 1 { String::new() } else { format!("{} chunks, ", share.chunks) };
    format!(
        "{}: {chunks}samples {}..{}, {}, {} stored, ratio {}",
        text::excerpt(name),
        share.samples.start,
        share.samples.end,
        encodings.join(" "),
        text::bytes(share.stored_bytes),
        text::ratio(share.raw_bytes, share.stored_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_be_markup_and_colors_differ() {
        assert_eq!(escape("a<b>&\"\u{FFFF}"), "a&lt;b&gt;&amp;&quot;\u{FFFD}");
        assert_ne!(color(0, 1.0), color(1, 1.0));
        assert_ne!(color(0, 1.0), color(0, 2.0));
        assert_eq!((color(0, 8.0), color(0, 0.1)), (color(0, 1e9), color(0, 1.0)));
    }
}
