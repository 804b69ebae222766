//! `tensilo layout`: draws the layout of a file to scale, with its damage, or the files of a
//! dataset.
//!
//! A drawing is text: characters for a terminal, or SVG. It is made in memory from the index of the
//! file; no chunk is read. In SVG, each chunk of a file is a tile. On a terminal, or if there are
//! very many chunks, tiles are ranges of the file of equal size. Each file of a dataset is a bar.

mod dataset;
mod subject;
mod svg;
mod terminal;
mod tiles;

pub(crate) use subject::{Form, LayoutArgs, Subject};

use crate::failure::{Exit, Failure, Outcome, verdict};
use crate::open;
use crate::output::{Data, Destination, Inputs, Output, shown};
use crate::terminal::{Progress, Unit};
use dataset::Bars;
use std::io::Write;
use std::path::Path;
use tensilo_data::Dataset;

/// Draws a file and its damage, or the files of a dataset.
pub(crate) fn run(args: &LayoutArgs, quiet: bool) -> Outcome<Exit> {
    let form = Form::of(args)?;
    let dataset = open::dataset(&args.file)?;
    let inputs = dataset.as_ref().map_or(Inputs::file(&args.file), Inputs::Dataset);
    let destination = args.svg.as_ref().map(|out| Destination::new(out, args.force, Data::Text, inputs)).transpose()?;
    let (drawing, is_damaged) = match &dataset {
        Some(_) if args.verify => {
            let path = shown(&args.file);
            return Err(Failure::Usage(format!("{path}: this is a dataset; --verify needs one of its files")));
        }
        Some(dataset) => (draw_dataset(&args.file, dataset, form)?, false),
        None => {
            let progress = Progress::new(Unit::Bytes, quiet);
            let mut report_progress = |phase, done, total| progress.set(phase, done, total);
            let subject = Subject::open(&args.file, args.verify, quiet, &mut report_progress)?;
            drop(progress);
            (draw_file(&args.file, &subject, form, quiet)?, !subject.findings.is_empty())
        }
    };
    let mut output = destination.map_or_else(|| Ok(Output::stdout()), |destination| destination.create())?;
    let written = output.write_all(drawing.as_bytes()).map_err(Failure::from);
    let written = written.map_err(|failure| failure.with_output(args.svg.as_deref()));
    verdict(if is_damaged { Exit::Damaged } else { Exit::Done }, written.and_then(|()| output.finish()))
}

/// Draws the files of a dataset.
pub(crate) fn draw_dataset(path: &Path, dataset: &Dataset, form: Form) -> Outcome<String> {
    Ok(Bars::of(path, dataset)?.draw(form))
}

/// Draws a file, with its damage.
pub(crate) fn draw_file(path: &Path, subject: &Subject, form: Form, quiet: bool) -> Outcome<String> {
    /// The maximum number of tiles in an SVG.
    const TILES: u64 = 4000;
    let reader = &subject.reader;
    Ok(match form {
        Form::Text(width) => {
            let grid = terminal::Grid::new(reader.file_bytes(), width);
            let mut tiles = tiles::equal_tiles(reader, path, grid.cell_bytes, quiet)?;
            tiles::mark_damage(&mut tiles, &subject.damaged_ranges());
            terminal::draw(subject, path, grid, &tiles)
        }
        Form::Svg(width) => {
            let tiles = match subject.chunk_count() {
                ..=TILES => tiles::chunk_tiles(reader, path, quiet)?,
                _ => tiles::equal_tiles(reader, path, reader.file_bytes().div_ceil(TILES), quiet)?,
            };
            svg::draw(subject, path, &tiles, width)
        }
    })
}
