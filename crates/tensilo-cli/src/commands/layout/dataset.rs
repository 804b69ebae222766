//! The layout of a dataset: a bar for each file, whose length is proportional to its stored size.
//!
//! Opening a file in an object store costs a request, so only the first files are drawn; the
//! remaining files are only counted. In SVG, a bar is divided into the columns of the file.

use super::subject::Form;
use super::svg::{GREY, Svg, color};
use crate::commands::dataset::DatasetSize;
use crate::failure::Outcome;
use crate::output::shown;
use crate::text;
use std::path::{Path, PathBuf};
use tensilo_data::Dataset;

/// The maximum number of files that are drawn, and of columns in the legend.
const MAX: usize = 200;
/// The maximum length of a name, in characters.
const NAME: usize = 24;

/// A file that is drawn.
struct FileBar {
    path: PathBuf,
    bytes: u64,
    raw_bytes: u64,
    /// For each column: its number in the dataset, its stored size and its raw size in bytes.
    columns: Vec<(usize, u64, u64)>,
}

/// The bars of the first files of a dataset.
pub(super) struct Bars {
    title: String,
    files: Vec<FileBar>,
    columns: Vec<String>,
    /// The number of files that are not drawn.
    left_out: u64,
}

impl Bars {
    /// Opens the files that are drawn.
    pub(super) fn of(path: &Path, dataset: &Dataset) -> Outcome<Self> {
        let (size, samples) = (DatasetSize::of(dataset)?, dataset.sample_count());
        let (path, bytes) = (text::excerpt(&shown(path)), text::bytes(size.bytes));
        let title = format!("{path}: {bytes} in {}, {samples} samples", text::count(size.files, "file"));
        let columns = dataset.schema().columns.iter().map(|column| text::excerpt(&column.name)).collect();
        let mut bars = Self { title, files: Vec::new(), columns, left_out: 0 };
        for group in dataset.groups() {
            let group = group?;
            for (number, file) in group.files.iter().enumerate() {
                if bars.files.len() == MAX {
                    bars.left_out = size.files.saturating_sub(u64::try_from(MAX).unwrap_or(u64::MAX));
                    return Ok(bars);
                }
                let reader = dataset.open_file(&group, number)?;
                let mut bar = FileBar { path: file.path.clone(), bytes: file.bytes, raw_bytes: 0, columns: Vec::new() };
                for (name, column) in &file.columns {
                    let facts = reader.column(name)?.facts();
                    bar.raw_bytes = bar.raw_bytes.saturating_add(facts.raw_bytes);
                    bar.columns.push((*column, facts.stored_bytes, facts.raw_bytes));
                }
                bars.files.push(bar);
            }
        }
        Ok(bars)
    }

    /// Draws the files.
    pub(super) fn draw(&self, form: Form) -> String {
        match form {
            Form::Text(width) => self.text(width),
            Form::Svg(width) => self.svg(width),
        }
    }

    /// Returns the length of a bar for `bytes` bytes. The bar of the largest file has length
    /// `full`.
    fn scaled(&self, bytes: u64, full: f64) -> f64 {
        let max = self.files.iter().map(|file| file.bytes).max().unwrap_or(0).max(1);
        bytes as f64 / max as f64 * full // to scale, except for rounding
    }

    fn rest(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("not drawn: {}", text::count(self.left_out, "more file")))
    }

    fn text(&self, width: usize) -> String {
        /// The width reserved for the facts after a bar.
        const FACTS: usize = 26;
        let full = width.saturating_sub(NAME + FACTS).max(8);
        let mut drawing = format!("{}\n\n", self.title);
        for file in &self.files {
            let length = self.scaled(file.bytes, full as f64) as usize; // at most `full`
            drawing += &format!("{:<NAME$} {} {}\n", file.name(), "\u{2588}".repeat(length.max(1)), file.facts());
        }
        drawing + &self.rest().map_or_else(String::new, |rest| format!("{rest}\n"))
    }

    fn svg(&self, width: u32) -> String {
        /// The height of a line in pixels.
        const LINE: f64 = 24.0;
        /// The width reserved for a name in pixels.
        const GUTTER: f64 = 200.0;
        let lines = self.files.len().saturating_add(self.columns.len().min(MAX)).saturating_add(3);
        let mut svg = Svg::new(width, lines as f64 * LINE, &self.title); // exact: at most 403
        svg.text(10.0, 17.0, &self.title);
        let full = f64::from(width) - GUTTER - 220.0;
        let mut y = LINE;
        for file in &self.files {
            let length = self.scaled(file.bytes, full);
            svg.text(10.0, y + 16.0, &file.name());
            svg.rect((GUTTER, y), (length, LINE - 4.0), GREY, &format!("{}: structure", file.name()));
            let mut x = GUTTER;
            for &(column, stored, raw) in &file.columns {
                let name = self.columns.get(column).map_or("", String::as_str);
                let fact = format!("{name}: {}, ratio {}", text::bytes(stored), text::ratio(raw, stored));
                let ratio = raw as f64 / stored.max(1) as f64; // for a color
                svg.rect((x, y), (self.scaled(stored, full), LINE - 4.0), &color(column, ratio), &fact);
                x += self.scaled(stored, full);
            }
            svg.text(GUTTER + length + 8.0, y + 16.0, &file.facts());
            y += LINE;
        }
        if let Some(rest) = self.rest() {
            svg.text(10.0, y + 16.0, &rest);
            y += LINE;
        }
        for (number, name) in self.columns.iter().enumerate().take(MAX) {
            svg.rect((10.0, y), (16.0, LINE - 4.0), &color(number, 1.0), name);
            svg.text(34.0, y + 16.0, name);
            y += LINE;
        }
        svg.finish()
    }
}

impl FileBar {
    /// Returns the shortened file name.
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        text::excerpt(&name).chars().take(NAME).collect()
    }

    fn facts(&self) -> String {
        format!("{}, ratio {}", text::bytes(self.bytes), text::ratio(self.raw_bytes, self.bytes))
    }
}
