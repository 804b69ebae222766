//! Throughput against decode threads: as bars of text, and as a drawing.

use std::io::{self, Write};

/// Writes a bar for each number of decode threads, and a mark at what is required.
///
/// `rates` has the decode threads and the bytes per second of each run.
pub(super) fn write_text(output: &mut impl Write, rates: &[(u32, f64)], required: f64, width: usize) -> io::Result<()> {
    let most = rates.iter().map(|(_, rate)| *rate).fold(required, f64::max);
    let width = width.saturating_sub(20).clamp(10, 60);
    // at most the width
    let columns = |rate: f64| (rate / most.max(1.0) * width as f64) as usize;
    let mark = columns(required).min(width.saturating_sub(1));
    for &(threads, rate) in rates {
        let bar: String = (0..width)
            .map(|column| match column {
                column if column == mark => '|',
                column if column < columns(rate) => '#',
                _ => ' ',
            })
            .collect();
        writeln!(output, "{threads:>7}  {bar} {:.2} GB/s", rate / 1e9)?;
    }
    writeln!(output, "{:>7}  {:>mark$} required", "", "|", mark = mark.saturating_add(1))
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const MARGIN: f64 = 60.0;
/// A grey with enough contrast to black and to white.
const TEXT: &str = "#767676";
const LINE: &str = "#2f7ed8";
const RED: &str = "#d8000c";

/// Writes the drawing. Arguments are those of [`write_text`].
pub(super) fn write_svg(output: &mut impl Write, rates: &[(u32, f64)], required: f64) -> io::Result<()> {
    let required = required / 1e9;
    let rates: Vec<(f64, f64)> = rates.iter().map(|&(threads, rate)| (f64::from(threads), rate / 1e9)).collect();
    let most = rates.iter().map(|(_, rate)| *rate).fold(required, f64::max).max(1e-9) * 1.1;
    let threads = rates.iter().map(|(threads, _)| *threads).fold(1.0, f64::max);
    let x = |of: f64| MARGIN + of / threads * (WIDTH - 2.0 * MARGIN);
    let y = |rate: f64| HEIGHT - MARGIN - rate / most * (HEIGHT - 2.0 * MARGIN);
    writeln!(
        output,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" fill="{TEXT}">"#
    )?;
    let (left, right, bottom) = (x(0.0), x(threads), y(0.0));
    writeln!(output, r#"<path d="M{left},{} V{bottom} H{right}" fill="none" stroke="{TEXT}"/>"#, y(most))?;
    writeln!(output, r#"<text x="{left}" y="{}">GB/s of values</text>"#, MARGIN - 12.0)?;
    writeln!(output, r#"<text x="{right}" y="{}" text-anchor="end">decode threads</text>"#, bottom + 36.0)?;
    let due = y(required);
    writeln!(output, r#"<path d="M{left},{due} H{right}" stroke="{RED}" stroke-dasharray="6 4"/>"#)?;
    writeln!(output, r#"<text x="{left}" dx="6" y="{}" fill="{RED}">required {required:.2}</text>"#, due - 6.0)?;
    let points: Vec<String> =
        rates.iter().map(|&(threads, rate)| format!("{:.1},{:.1}", x(threads), y(rate))).collect();
    writeln!(output, r#"<polyline points="{}" fill="none" stroke="{LINE}" stroke-width="2"/>"#, points.join(" "))?;
    for &(threads, rate) in &rates {
        let (at, height) = (x(threads), y(rate));
        writeln!(output, r#"<circle cx="{at:.1}" cy="{height:.1}" r="4" fill="{LINE}"/>"#)?;
        writeln!(output, r#"<text x="{at:.1}" y="{:.1}" text-anchor="middle">{rate:.2}</text>"#, height - 10.0)?;
        writeln!(output, r#"<text x="{at:.1}" y="{:.1}" text-anchor="middle">{threads}</text>"#, bottom + 18.0)?;
    }
    writeln!(output, "</svg>")
}
