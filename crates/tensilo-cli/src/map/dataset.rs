//! The map of a dataset: a bar for each file, to scale.

use super::args::MapArgs;
use super::colour::{colour, grey};
use super::xml::escape;
use crate::dataset::DatasetSize;
use crate::failure::{Failure, Outcome};
use crate::output::{Data, Destination, Inputs, Output, shown};
use crate::terminal::write_wrapped;
use crate::text::human;
use std::io::{self, Write};
use std::path::PathBuf;
use tensilo_data::Dataset;

/// The most files that are drawn.
const FILES: usize = 200;
/// The widths of the texts around a bar, in characters.
const NAME: usize = 24;
const FACTS: usize = 26;
/// The height of a line of the drawing, and the width of a name, in pixels.
const LINE: usize = 24;
const GUTTER: usize = 200;

/// A file that is drawn.
struct FileBar {
    path: PathBuf,
    bytes: u64,
    raw_bytes: u64,
    /// The stored and raw bytes of each column, by its number in the dataset.
    columns: Vec<(usize, u64, u64)>,
}

/// The first files of a dataset, and the number of all.
pub(crate) struct Bars {
    title: String,
    files: Vec<FileBar>,
    left_out: u64,
}

/// Draws the files of a dataset, as text of this width or as a drawing.
pub(super) fn run(args: &MapArgs, dataset: &Dataset, width: usize) -> Outcome {
    if args.verify {
        let path = shown(&args.file);
        return Err(Failure::Usage(format!("{path}: this is a dataset; --verify is for a file of it")));
    }
    let inputs = Inputs::Dataset(dataset);
    let destination = args.svg.as_ref().map(|out| Destination::new(out, args.force, Data::Text, inputs)).transpose()?;
    let bars = Bars::of(args, dataset)?;
    let Some(destination) = destination else {
        let mut output = Output::stdout();
        bars.write_text(&mut output, width)?;
        return output.finish();
    };
    let mut output = destination.create()?;
    let written = bars.write_svg(&mut output, dataset, width);
    written.map_err(|error| Failure::from(error).with_output(args.svg.as_deref()))?;
    output.finish()
}

impl Bars {
    /// Opens the files that are drawn.
    pub(crate) fn of(args: &MapArgs, dataset: &Dataset) -> Outcome<Self> {
        let (size, samples) = (DatasetSize::of(dataset)?, dataset.sample_count());
        let (path, bytes) = (human::excerpt(&shown(&args.file)), human::bytes(size.bytes));
        let title = format!("{path}: {bytes} in {}, {samples} samples", human::count(size.files, "file"));
        let mut files = Vec::new();
        'all: for group in dataset.groups() {
            let group = group?;
            for (number, file) in group.files.iter().enumerate() {
                if files.len() == FILES {
                    break 'all;
                }
                let reader = dataset.open_file(&group, number)?;
                let mut bar = FileBar { path: file.path.clone(), bytes: file.bytes, raw_bytes: 0, columns: Vec::new() };
                for (name, column) in &file.columns {
                    let facts = reader.column(name)?.facts();
                    bar.raw_bytes = bar.raw_bytes.saturating_add(facts.raw_bytes);
                    bar.columns.push((*column, facts.stored_bytes, facts.raw_bytes));
                }
                files.push(bar);
            }
        }
        let drawn = u64::try_from(files.len()).unwrap_or(u64::MAX);
        Ok(Self { title, files, left_out: size.files.saturating_sub(drawn) })
    }

    fn most_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).max().unwrap_or(0).max(1)
    }

    fn rest(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("not drawn: {}", human::count(self.left_out, "more file")))
    }

    fn write_text(&self, output: &mut impl Write, width: usize) -> io::Result<()> {
        write_wrapped(output, &self.title, width)?;
        writeln!(output)?;
        let bar_width = width.saturating_sub(NAME + FACTS).max(8);
        for file in &self.files {
            let length = scaled(file.bytes, self.most_bytes(), bar_width);
            let bar = "\u{2588}".repeat(length.max(1));
            writeln!(output, "{:<NAME$} {bar} {}", file.name(), file.facts())?;
        }
        match self.rest() {
            Some(rest) => writeln!(output, "{rest}"),
            None => Ok(()),
        }
    }

    /// Writes a drawing with the columns of each file in their colours.
    pub(crate) fn write_svg(&self, output: &mut impl Write, dataset: &Dataset, width: usize) -> io::Result<()> {
        let columns = &dataset.schema().columns;
        let lines = self.files.len().saturating_add(columns.len().min(FILES)).saturating_add(3);
        let height = lines.saturating_mul(LINE);
        writeln!(
            output,
            r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12" fill="#767676">"##
        )?;
        writeln!(output, "<title>{0}</title><text x=\"10\" y=\"17\">{0}</text>", escape(&self.title))?;
        let bar_width = width.saturating_sub(GUTTER + 220);
        let mut y = LINE;
        for file in &self.files {
            let length = scaled(file.bytes, self.most_bytes(), bar_width);
            writeln!(output, r#"<text x="10" y="{}">{}</text>"#, y + 16, escape(&file.name()))?;
            rectangle(output, (GUTTER, y, length), &grey(), &format!("{}: structure", file.name()))?;
            let mut x = GUTTER;
            for &(column, stored, raw) in &file.columns {
                let name = columns.get(column).map_or("", |column| column.name.as_str());
                let fact =
                    format!("{}: {}, ratio {}", human::excerpt(name), human::bytes(stored), human::ratio(raw, stored));
                let part = scaled(stored, self.most_bytes(), bar_width);
                let ratio = raw as f64 / stored.max(1) as f64; // for a colour
                rectangle(output, (x, y, part), &colour(column, ratio), &fact)?;
                x = x.saturating_add(part);
            }
            let x = GUTTER.saturating_add(length).saturating_add(8);
            writeln!(output, r#"<text x="{x}" y="{}">{}</text>"#, y + 16, escape(&file.facts()))?;
            y = y.saturating_add(LINE);
        }
        if let Some(rest) = self.rest() {
            writeln!(output, r#"<text x="10" y="{}">{rest}</text>"#, y + 16)?;
            y = y.saturating_add(LINE);
        }
        for (number, column) in columns.iter().enumerate().take(FILES) {
            rectangle(output, (10, y, 16), &colour(number, 1.0), &column.name)?;
            writeln!(output, r#"<text x="34" y="{}">{}</text>"#, y + 16, escape(&human::excerpt(&column.name)))?;
            y = y.saturating_add(LINE);
        }
        writeln!(output, "</svg>")
    }
}

impl FileBar {
    /// Returns the end of the path.
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        human::excerpt(&name).chars().take(NAME).collect()
    }

    fn facts(&self) -> String {
        format!("{}, ratio {}", human::bytes(self.bytes), human::ratio(self.raw_bytes, self.bytes))
    }
}

fn rectangle(output: &mut impl Write, place: (usize, usize, usize), fill: &str, title: &str) -> io::Result<()> {
    let ((x, y, width), height, title) = (place, LINE - 4, escape(title));
    writeln!(
        output,
        r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"><title>{title}</title></rect>"#
    )
}

/// Returns the length of a bar of `bytes`, if one of `most` has the length `full`.
fn scaled(bytes: u64, most: u64, full: usize) -> usize {
    let share = bytes as f64 / most.max(1) as f64; // to scale, except for rounding
    (share * full as f64) as usize
}
