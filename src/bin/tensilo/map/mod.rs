//! `tensilo map`

mod args;
mod colour;
mod legend;
mod svg;
mod terminal;
mod tiles;

pub(crate) use args::MapArgs;

use crate::exit::{Failure, Outcome};
use crate::open::open;
use crate::output::{Output, refuse_to_replace};
use std::env;
use std::io::{self, IsTerminal};
use std::path::Path;
use tensilo::{PositionedFile, Reader};
use terminal::Grid;

/// Chunks that are drawn one by one, and tiles of a drawing of more.
const TILES: u64 = 4000;
/// Pixels of a drawing, if nothing is said.
const SVG_WIDTH: u32 = 1200;
/// Characters of a line, if nothing is said and nothing is known.
const TEXT_WIDTH: u32 = 80;

/// Draws where in a file its columns are.
pub(crate) fn run(args: &MapArgs, quiet: bool) -> Outcome {
    match &args.svg {
        Some(out) => write_svg(args, out, quiet),
        None => write_text(args, quiet),
    }
}

fn write_svg(args: &MapArgs, out: &Path, quiet: bool) -> Outcome {
    let width = args.width.unwrap_or(SVG_WIDTH);
    if width < 600 {
        return Err(Failure::Usage("--width: a drawing is 600 to 10000 pixels wide".to_owned()));
    }
    refuse_to_replace(out, args.force)?;
    let reader = open(&args.file, quiet)?;
    let tiles = match legend::chunk_count(&reader) {
        ..=TILES => tiles::chunk_tiles(&reader, &args.file, quiet)?,
        _ => tiles::equal_tiles(&reader, &args.file, reader.file_bytes().div_ceil(TILES), quiet)?,
    };
    let mut output = Output::create(Some(out), args.force)?;
    svg::write(&mut output, &reader, &args.file, &tiles, width)?;
    output.finish()
}

fn write_text(args: &MapArgs, quiet: bool) -> Outcome {
    let is_terminal = io::stdout().is_terminal();
    let width = args.width.unwrap_or_else(|| if is_terminal { terminal_width() } else { TEXT_WIDTH });
    if width > 1000 {
        return Err(Failure::Usage("--width: a line is 40 to 1000 characters wide".to_owned()));
    }
    let reader: Reader<PositionedFile> = open(&args.file, quiet)?;
    let grid = Grid::new(reader.file_bytes(), usize::try_from(width).unwrap_or(usize::MAX));
    let tiles = tiles::equal_tiles(&reader, &args.file, grid.cell_bytes, quiet)?;
    let colours = is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut output = Output::stdout();
    terminal::write(&mut output, &reader, &args.file, (grid, &tiles), colours)?;
    output.finish()
}

fn terminal_width() -> u32 {
    terminal_size::terminal_size().map_or(TEXT_WIDTH, |(width, _)| u32::from(width.0).clamp(40, 1000))
}
