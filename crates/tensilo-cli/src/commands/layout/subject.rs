//! The arguments of `tensilo layout`, and its subject: a file and its damage.
//!
//! Without `--verify`, the file is opened as usual. With `--verify`, every byte is checked first.
//! If the file then cannot be opened, its intact chunks are salvaged; damaged chunks count as
//! structure.
//!
//! Every finding is drawn, even if its range is empty, for example because the end of the file is
//! missing.

use crate::failure::{Failure, Outcome};
use crate::open::{open, source, warn};
use crate::options::threads;
use crate::terminal::{DEFAULT_WIDTH, ProgressCallback, stdout_width, warning};
use crate::text;
use clap::Args;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tensilo::error::display_path;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::Source;
use tensilo::verify::{Finding, FindingKind, VerifyOptions, verify};
use tensilo::{Column, ErrorKind, OpenOptions, Reader};

const LAYOUT: &str = "\
Examples:
  tensilo layout train.tsl                    on the terminal
  tensilo layout train.tsl --svg train.svg    every chunk, with tooltips
  tensilo layout train.tsl --width 120 | less
  tensilo layout broken.tsl --verify          with its damage
  tensilo layout train/ --svg train.svg       a bar for each file of a dataset

Draws the file to scale. On a terminal, each character represents a range of the
file and shows the column that takes most of it: a letter where the column
changes, otherwise a shade. The lighter the shade, the better the chunks are
compressed. Bytes outside chunks (headers, dictionaries, index, footers,
padding) are structure, shown as a dot.

With --verify, every byte is checked first. An exclamation mark marks a damaged
range; in the SVG, a cross covers it. If a file is too damaged to be opened, its
salvaged chunks are drawn. Exits with 1 if anything is damaged.

The SVG has a tile for each chunk and a hue for each column. A tooltip shows the
column, samples, encoding, stored size and ratio. If the file has more than 4000
chunks, each tile is a 4000th of the file.

For a dataset, the first 200 files are drawn. Each is a bar whose length is
proportional to its stored size. In the SVG, a bar shows the columns in their
colors.

The ratio is the raw size divided by the stored size.";

#[derive(Args, Debug)]
#[command(after_help = LAYOUT)]
pub(crate) struct LayoutArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(super) file: PathBuf,
    /// Write an SVG file, which appears when it is complete; - is standard output
    #[arg(long, value_name = "OUT.svg")]
    pub(super) svg: Option<PathBuf>,
    /// Check every byte and mark the damage
    #[arg(long)]
    pub(super) verify: bool,
    /// The width of a line in characters, 40 to 1000 [default: the terminal's width, or 80], or of
    /// the SVG in pixels, 600 to 10000 [default: 1200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=10_000))]
    width: Option<u32>,
    /// Replace OUT.svg if it exists
    #[arg(short, long, requires = "svg")]
    pub(super) force: bool,
}

/// The form of a drawing, and its width.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Text, with this many characters per line.
    Text(usize),
    /// An SVG that is this many pixels wide.
    Svg(u32),
}

impl Form {
    pub(super) fn of(args: &LayoutArgs) -> Outcome<Self> {
        let Some(out) = &args.svg else {
            let default_width = usize::from(stdout_width().unwrap_or(DEFAULT_WIDTH)).clamp(20, 1000);
            let width = args.width.map_or(default_width, |width| usize::try_from(width).unwrap_or(usize::MAX));
            return match width {
                ..=1000 => Ok(Self::Text(width)),
                _ => Err(Failure::Usage("--width: expected 40 to 1000 characters for a line".to_owned())),
            };
        };
        let ending = out.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        if let Some(ending) = ending.filter(|ending| OTHER_PICTURES.contains(&ending.as_str())) {
            let (out, other) = (display_path(out), out.with_extension("svg"));
            let other = display_path(&other);
            return Err(Failure::Usage(format!(
                "--svg {out}: the drawing is an SVG file, not {ending}; write to {other}, and convert it with a \
                 browser or Inkscape"
            )));
        }
        match args.width.unwrap_or(1200) {
            ..600 => Err(Failure::Usage("--width: expected 600 to 10000 pixels for an SVG".to_owned())),
            width => Ok(Self::Svg(width)),
        }
    }
}

/// Extensions of other picture formats.
const OTHER_PICTURES: &[&str] = &[
    "avif", "bmp", "emf", "eps", "gif", "heic", "ico", "jpeg", "jpg", "pdf", "png", "ps", "svgz", "tif", "tiff",
    "webp", "wmf",
];

/// A file and its damage.
pub(crate) struct Subject {
    pub(super) reader: Reader,
    /// Whether every byte was checked.
    pub(super) is_verified: bool,
    /// Whether the file could not be opened and its chunks were salvaged. Missing chunks are then
    /// damaged or were not found.
    pub(super) is_salvaged: bool,
    /// The findings, in file order; empty if the file is not verified.
    pub(super) findings: Vec<Finding>,
}

impl Subject {
    /// Opens the file. If `is_verified`, verifies it first, and if it then cannot be opened,
    /// salvages its intact chunks. `report_progress` receives the phase, the number of bytes done,
    /// and the total.
    pub(crate) fn open(
        path: &Path,
        is_verified: bool,
        quiet: bool,
        report_progress: ProgressCallback<'_>,
    ) -> Outcome<Self> {
        if !is_verified {
            let reader = open(path, quiet)?;
            return Ok(Self { reader, is_verified: false, is_salvaged: false, findings: Vec::new() });
        }
        let about = |error| Failure::about(path, error);
        let source = source(path)?;
        let mut advance = |bytes| report_progress("verifying", bytes, Some(source.byte_count()));
        let options = VerifyOptions::new().threads(threads(None)).progress(&mut advance);
        let mut findings = verify(&source, options).map_err(about)?.findings;
        findings.retain(|damage| damage.kind == FindingKind::Damaged); // `warn` reports the other findings
        let mut is_salvaged = false;
        let reader = match OpenOptions::new().open_source(source.clone()) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let mut look = |done, total| report_progress("looking for chunks", done, Some(total));
                let salvaged = salvage(source, SalvageOptions::new().progress(&mut look)).map_err(about)?;
                if !quiet {
                    let path = display_path(path);
                    warning(&format!("{path}: the file cannot be opened; the drawing shows only salvaged chunks"));
                }
                is_salvaged = true;
                salvaged.reader
            }
            opened => {
                let reader = opened.map_err(about)?;
                if !quiet {
                    warn(path, &reader);
                }
                reader
            }
        };
        Ok(Self { reader, is_verified: true, is_salvaged, findings })
    }

    /// Returns the range to draw for each finding, at least one byte long.
    pub(super) fn damaged_ranges(&self) -> Vec<Range<u64>> {
        let whole = 0..self.reader.file_bytes();
        self.findings.iter().map(|damage| drawn_range(&damage.file_range, &whole)).collect()
    }

    pub(super) fn chunk_count(&self) -> u64 {
        self.reader.columns().map(|column| column.facts().chunk_count).fold(0, u64::saturating_add)
    }

    /// Returns the name of the file, its size and its number of chunks.
    pub(super) fn title(&self, path: &Path) -> String {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let (bytes, chunks) = (text::bytes(self.reader.file_bytes()), self.chunk_count());
        format!("{}: {bytes}, {chunks} chunks", text::excerpt(&name))
    }

    /// Returns the legend of the first `max` columns: the name, the type and shape, the stored
    /// size, the ratio and the encodings as texts, and the ratio again as a number.
    pub(super) fn legend(&self, max: usize) -> Vec<([String; 5], f64)> {
        let entry = |column: Column| {
            let (schema, facts) = (column.schema(), column.facts());
            let (stored, ratio) = (facts.stored_bytes, text::ratio(facts.raw_bytes, facts.stored_bytes));
            let kind = format!("{} {}", schema.type_name(), schema.shape);
            let cells = [text::excerpt(&schema.name), kind, text::bytes(stored), ratio, text::encodings(&facts)];
            (cells, facts.raw_bytes as f64 / stored.max(1) as f64) // an approximation
        };
        self.reader.columns().take(max).map(entry).collect()
    }

    /// Returns `and 3 more columns` if the file has more than `max` columns.
    pub(super) fn more_columns(&self, max: usize) -> Option<String> {
        let more = self.reader.schema().columns.len().checked_sub(max).filter(|more| *more > 0)?;
        Some(format!("and {more} more columns"))
    }

    /// Returns a label for the bytes outside readable chunks, and how many there are.
    pub(super) fn structure(&self) -> (&'static str, String) {
        let name = if self.is_salvaged { "structure, or lost" } else { "structure" };
        let stored = self.reader.columns().map(|column| column.facts().stored_bytes).fold(0, u64::saturating_add);
        (name, text::bytes(self.reader.file_bytes().saturating_sub(stored)))
    }

    /// Returns the result of the verification, or `None` if the file was not verified.
    pub(super) fn finding(&self) -> Option<String> {
        let ranges = text::count(u64::try_from(self.findings.len()).unwrap_or(u64::MAX), "range");
        self.is_verified.then(|| match self.findings.is_empty() {
            true => "nothing is damaged: every byte was checked".to_owned(),
            false => format!("damaged: {ranges}; \"tensilo verify\" lists them"),
        })
    }
}

/// Returns the range to draw for a finding in `range`.
fn drawn_range(range: &Range<u64>, whole: &Range<u64>) -> Range<u64> {
    /// The size of the header of the first region, in bytes.
    const HEADER_BYTES: u64 = 64;
    match range {
        // a damaged file header puts the whole file in doubt, but salvaged chunks are intact, so
        // only the header is drawn as damaged
        range if range == whole => 0..whole.end.min(HEADER_BYTES),
        // bytes are missing at this offset
        range if range.is_empty() => range.start.saturating_sub(1)..range.start.max(1),
        range => range.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damage_is_drawn_somewhere() {
        let whole = 0..1000;
        for (range, expected) in [(64..640, 64..640), (0..1000, 0..64), (1000..1000, 999..1000), (0..0, 0..1)] {
            assert_eq!(drawn_range(&range, &whole), expected);
        }
    }
}
