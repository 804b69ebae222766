//! `tensilo map`

mod args;
mod colour;
pub(crate) mod damage;
pub(crate) mod dataset;
pub(crate) mod legend;
pub(crate) mod svg;
mod terminal;
pub(crate) mod tiles;
mod xml;

pub(crate) use args::MapArgs;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::output::{Data, Destination, Inputs, Output};
use crate::terminal::{USUAL_WIDTH, has_colours, stdout_width};
use damage::Subject;
use std::io;
use std::path::Path;
use tensilo::error::display_path;
use terminal::Grid;

/// The largest number of chunks that get a tile each, and of their fronts and blocks. A drawing of
/// more chunks has at most this many equal tiles.
pub(crate) const TILES: u64 = 4000;
/// The default width of a drawing in pixels.
const SVG_WIDTH: u32 = 1200;
/// File name extensions of other picture formats.
const OTHER_PICTURES: &[&str] = &[
    "avif", "bmp", "emf", "eps", "gif", "heic", "ico", "jpeg", "jpg", "pdf", "png", "ps", "svgz", "tif", "tiff",
    "webp", "wmf",
];

/// Draws the columns of a file to scale, and its damage.
pub(crate) fn run(args: &MapArgs, quiet: bool) -> Outcome<Exit> {
    if let Some(found) = open::dataset(&args.file)? {
        let width = match &args.svg {
            Some(out) => {
                refuse_other_picture(out)?;
                usize::try_from(svg_width(args)?).unwrap_or(usize::MAX)
            }
            None => text_width(args)?,
        };
        return dataset::run(args, &found, width).map(|()| Exit::Done);
    }
    let subject = match &args.svg {
        Some(out) => write_svg(args, out, quiet),
        None => write_text(args, quiet),
    };
    subject.map(|subject| if subject.damages.is_empty() { Exit::Done } else { Exit::Damaged })
}

fn write_svg(args: &MapArgs, out: &Path, quiet: bool) -> Outcome<Subject> {
    let width = svg_width(args)?;
    refuse_other_picture(out)?;
    let destination = Destination::new(out, args.force, Data::Text, Inputs::file(&args.file))?;
    let subject = Subject::open(args, quiet)?;
    let reader = &subject.reader;
    let tiles = match legend::chunk_count(reader) {
        ..=TILES => tiles::chunk_tiles(reader, &args.file, TILES, quiet)?,
        _ => tiles::equal_tiles(reader, &args.file, reader.file_bytes().div_ceil(TILES), quiet)?,
    };
    let mut output = destination.create()?;
    let written = svg::write(&mut output, &subject, &args.file, &tiles, width);
    written.map_err(|error| Failure::from(error).with_output(Some(out)))?;
    output.finish()?;
    Ok(subject)
}

/// Fails if the extension names another picture format: the program writes only SVG.
fn refuse_other_picture(out: &Path) -> Outcome {
    let ending = out.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.filter(|ending| OTHER_PICTURES.contains(&ending.as_str())) {
        None => Ok(()),
        Some(ending) => Err(Failure::Usage(format!(
            "--svg {}: the drawing is an SVG file, not {ending}; write to {}, which browsers and Inkscape convert",
            display_path(out),
            display_path(&out.with_extension("svg"))
        ))),
    }
}

/// Returns the width of a drawing in pixels.
fn svg_width(args: &MapArgs) -> Outcome<u32> {
    match args.width.unwrap_or(SVG_WIDTH) {
        ..600 => Err(Failure::Usage("--width: a drawing is 600 to 10000 pixels wide".to_owned())),
        width => Ok(width),
    }
}

/// Returns the width of a line in characters.
fn text_width(args: &MapArgs) -> Outcome<usize> {
    let width = match args.width {
        Some(width) => usize::try_from(width).unwrap_or(usize::MAX),
        None => stdout_width().unwrap_or(USUAL_WIDTH).clamp(20, 1000),
    };
    match width {
        ..=1000 => Ok(width),
        _ => Err(Failure::Usage("--width: a line is 40 to 1000 characters wide".to_owned())),
    }
}

fn write_text(args: &MapArgs, quiet: bool) -> Outcome<Subject> {
    let width = text_width(args)?;
    let subject = Subject::open(args, quiet)?;
    let grid = Grid::new(subject.reader.file_bytes(), width);
    let mut tiles = tiles::equal_tiles(&subject.reader, &args.file, grid.cell_bytes, quiet)?;
    tiles::mark_damage(&mut tiles, &subject.damaged_ranges());
    let mut output = Output::stdout();
    terminal::write(&mut output, &subject, &args.file, (grid, &tiles), has_colours(&io::stdout()))?;
    match output.finish() {
        // if the reader closes the pipe early, the verdict stays the same
        Ok(()) | Err(Failure::Closed) => Ok(subject),
        Err(failure) => Err(failure),
    }
}
