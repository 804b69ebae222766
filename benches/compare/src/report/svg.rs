//! `compare.svg`: ratio and decoding speed of every competitor, with a panel for each data set.

use super::Report;
use crate::peers::Family;
use crate::run::{Row, Table};
use std::fmt::Write;

const PANEL: (f64, f64) = (560.0, 380.0);
const COLUMNS: usize = 2;
/// The margins of a panel: left, top, right, bottom.
const MARGIN: (f64, f64, f64, f64) = (52.0, 54.0, 16.0, 44.0);
const HEADER: f64 = 62.0;
/// The approximate width of a character of 11 px.
const CHARACTER: f64 = 6.5;
/// The height of a line of 11 px.
const LINE: f64 = 13.0;

/// Has colors for light and dark backgrounds, because the image has none.
const STYLE: &str = "\
text{font:11px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#3d4450}\
.title{font-size:17px;font-weight:600;fill:#1b1f24}.panel{font-size:13px;font-weight:600;fill:#1b1f24}\
.grid{stroke:#8b949e;stroke-opacity:.22}.axis{stroke:#8b949e;stroke-opacity:.7}.lead{stroke:#8b949e;stroke-opacity:.6}\
.tensilo{fill:#0969da}.recipe{fill:#cf222e}.other{fill:#9a6700}.memory{fill:#6e7781}text.tensilo{font-weight:600}\
@media(prefers-color-scheme:dark){text{fill:#b3bcc6}.title,.panel{fill:#f0f3f6}\
.tensilo{fill:#58a6ff}.recipe{fill:#ff7b72}.other{fill:#d8a42e}.memory{fill:#9aa4af}}";

impl Report {
    pub fn svg(&self) -> String {
        let rows = self.tables.len().div_ceil(COLUMNS).max(1);
        let columns = self.tables.len().clamp(1, COLUMNS);
        let (width, height) = (columns as f64 * PANEL.0, HEADER + rows as f64 * PANEL.1);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"Compression ratio and decoding speed of tensilo and others\">\n<style>{STYLE}</style>\n\
             <text class=\"title\" x=\"16\" y=\"26\">Ratio and decoding speed, one thread</text>\n"
        );
        let families = [Family::Tensilo, Family::Recipe, Family::Other, Family::Memory];
        let words = ["tensilo", "LMDB", "other formats", "nothing encoded"];
        let mut x = 22.0;
        for (family, word) in families.into_iter().zip(words) {
            let class = family.name();
            let _ = writeln!(
                out,
                "<circle class=\"{class}\" cx=\"{x}\" cy=\"46\" r=\"4.5\"/><text x=\"{}\" y=\"50\">{word}</text>",
                x + 9.0
            );
            x += 30.0 + CHARACTER * word.len() as f64;
        }
        for (number, table) in self.tables.iter().enumerate() {
            let (column, row) = (number % COLUMNS, number / COLUMNS);
            let (left, top) = (column as f64 * PANEL.0, HEADER + row as f64 * PANEL.1);
            let _ = writeln!(out, "<g transform=\"translate({left} {top})\">\n{}</g>", Panel::new(table).draw());
        }
        out.push_str("</svg>\n");
        out
    }
}

/// A rectangle: left, top, width, height.
type Area = [f64; 4];

fn overlap(a: Area, b: Area) -> f64 {
    let along = |i: usize| (a[i] + a[i + 2]).min(b[i] + b[i + 2]) - a[i].max(b[i]);
    along(0).max(0.0) * along(1).max(0.0)
}

struct Panel<'a> {
    table: &'a Table,
    /// The minimum ratio shown.
    left: f64,
    /// The maximum ratio shown.
    right: f64,
    /// The decimal logarithm of the minimum speed shown.
    bottom: f64,
    /// The decimal logarithm of the maximum speed shown.
    top: f64,
}

impl<'a> Panel<'a> {
    fn new(table: &'a Table) -> Self {
        let speeds: Vec<f64> = table.rows.iter().map(|row| speed(row).log10()).collect();
        let low = table.rows.iter().map(Row::ratio).fold(1.0, f64::min);
        let high = table.rows.iter().map(Row::ratio).fold(1.0, f64::max);
        let span = (high - low).max(0.2);
        Self {
            table,
            left: low - 0.08 * span,
            right: high + 0.28 * span, // space for labels
            bottom: speeds.iter().copied().fold(0.0, f64::min) - 0.12,
            top: speeds.iter().copied().fold(0.0, f64::max) + 0.12,
        }
    }

    fn x(&self, ratio: f64) -> f64 {
        MARGIN.0 + (ratio - self.left) / (self.right - self.left) * (PANEL.0 - MARGIN.0 - MARGIN.2)
    }

    fn y(&self, gigabytes: f64) -> f64 {
        let share = (gigabytes.log10() - self.bottom) / (self.top - self.bottom);
        PANEL.1 - MARGIN.3 - share * (PANEL.1 - MARGIN.1 - MARGIN.3)
    }

    fn draw(&self) -> String {
        let title = self.table.facts.title().replace('<', "&lt;").replace('>', "&gt;");
        let mut out = format!("<text class=\"panel\" x=\"{}\" y=\"22\">{title}</text>\n", MARGIN.0);
        self.axes(&mut out);
        self.points(&mut out);
        out
    }

    fn axes(&self, out: &mut String) {
        let (left, right) = (MARGIN.0, PANEL.0 - MARGIN.2);
        let (top, bottom) = (MARGIN.1, PANEL.1 - MARGIN.3);
        let span = self.right - self.left;
        let step = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0].into_iter().find(|step| span / step <= 8.0).unwrap_or(10.0);
        let mut ratio = 1.0;
        while ratio < self.right {
            let x = self.x(ratio);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{ratio:.1}</text>",
                bottom + 16.0
            );
            ratio += step;
        }
        for power in -4..4 {
            for digit in [1.0, 2.0, 5.0] {
                let gigabytes = digit * 10_f64.powi(power);
                if (self.bottom..self.top).contains(&gigabytes.log10()) {
                    let y = self.y(gigabytes);
                    let _ = writeln!(
                        out,
                        "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>\
                         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{gigabytes}</text>",
                        left - 6.0,
                        y + 4.0
                    );
                }
            }
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" fill=\"none\" d=\"M{left} {top}V{bottom}H{right}\"/>\
             <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">ratio</text>\
             <text x=\"{left}\" y=\"{}\">GB/s</text>",
            bottom + 32.0,
            top - 12.0
        );
    }

    /// Draws the points, and places each label next to its point where it overlaps the least.
    fn points(&self, out: &mut String) {
        let mut taken: Vec<Area> = Vec::new();
        let points: Vec<(f64, f64)> =
            self.table.rows.iter().map(|row| (self.x(row.ratio()), self.y(speed(row)))).collect();
        taken.extend(points.iter().map(|(x, y)| [x - 5.0, y - 5.0, 10.0, 10.0]));
        for (row, &(x, y)) in self.table.rows.iter().zip(&points) {
            let width = CHARACTER * row.name.len() as f64;
            let label = place_label(x, y, width, &taken);
            taken.push(label);
            let class = row.family.name();
            let middle = label[1] + LINE / 2.0;
            let nearest = x.clamp(label[0], label[0] + width);
            if (nearest - x).hypot(middle - y) > 14.0 {
                let _ = writeln!(out, "<path class=\"lead\" d=\"M{x:.1} {y:.1}L{nearest:.1} {middle:.1}\"/>");
            }
            let _ = writeln!(
                out,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"><title>{}: ratio {:.3}, {:.2} GB/s</title>\
                 </circle><text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                row.name,
                row.ratio(),
                speed(row),
                label[0],
                label[1] + LINE - 3.0,
                row.name
            );
        }
    }
}

fn speed(row: &Row) -> f64 {
    row.rate(row.decode).median
}

fn place_label(x: f64, y: f64, width: f64, taken: &[Area]) -> Area {
    let mut best = (f64::INFINITY, [0.0; 4]);
    for step in 0..9 {
        for side in [1.0, -1.0] {
            for direction in [1.0, -1.0] {
                let distance = f64::from(step) * LINE * 0.8;
                let left = if side > 0.0 { x + 8.0 } else { x - 8.0 - width };
                let area = [left, y - LINE / 2.0 + direction * distance, width, LINE];
                let inside = overlap(
                    area,
                    [MARGIN.0, MARGIN.1 - 8.0, PANEL.0 - MARGIN.0 - 4.0, PANEL.1 - MARGIN.3 - MARGIN.1 + 8.0],
                );
                let covered: f64 = taken.iter().map(|&other| overlap(area, other)).sum();
                let cost = 10.0 * (covered + (width * LINE - inside)) + distance + if side < 0.0 { 5.0 } else { 0.0 };
                if cost < best.0 {
                    best = (cost, area);
                }
            }
        }
    }
    best.1
}
