//! The arguments of `tensilo map`.

use clap::Args;
use std::path::PathBuf;

const MAP: &str = "\
Examples:
  tensilo map train.tsl                       on the terminal
  tensilo map train.tsl --svg train.svg       every chunk, with tooltips
  tensilo map train.tsl --width 120 | less
  tensilo map broken.tsl --verify             with its damage
  tensilo map train/ --svg train.svg          a bar for each file of a dataset

Draws the file to scale, from its first byte to its last. On the terminal each
character represents a range of the file, and shows the column that takes most
of it: a letter where the column changes and at the start of a line, otherwise
a block. The lighter the block, the better its chunks are compressed. Bytes
outside chunks (header, heads, dictionaries, index, footers, padding) are
structure, shown as a dot.

With --verify every byte is read and checked first. On the terminal, a range
that contains a damaged byte is an exclamation mark; in the SVG, a cross covers
the damage. If a file is too damaged to be opened, its salvaged chunks are
drawn. Exits with 1 if anything is damaged; \"tensilo verify\" lists it.

The SVG has a tile for each chunk and a hue for each column. A tooltip shows
column, samples, encoding, stored bytes and ratio. A chunk in blocks has a tile
for its front, which lists the blocks, and one for each block, unless these are
more than 4000. If the file has more than 4000 chunks, each tile is a 4000th of
the file.

Of a dataset, the first 200 files are drawn, each as a bar of its stored bytes,
to one scale; in the SVG with its columns in their colours.

Ratio is raw bytes divided by stored bytes.";

/// The arguments of `tensilo map`.
#[derive(Args, Debug)]
#[command(after_help = MAP)]
pub(crate) struct MapArgs {
    /// A tensilo file, the folder of a dataset, or a quoted glob of files
    pub(crate) file: PathBuf,
    /// Write a drawing to a file, which appears when it is complete; - is the standard output
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) svg: Option<PathBuf>,
    /// Check every byte, and mark the damage
    #[arg(long)]
    pub(crate) verify: bool,
    /// Width of a line in characters, 40 to 1000, or of the drawing in pixels, 600 to 10000
    /// [default: the terminal's width or 80; 1200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(40..=10_000))]
    pub(crate) width: Option<u32>,
    /// Replace OUT.svg if it exists
    #[arg(short, long, requires = "svg")]
    pub(crate) force: bool,
}
