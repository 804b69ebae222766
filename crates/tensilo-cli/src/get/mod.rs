//! `tensilo get`

mod args;
mod binary;
mod indices;
mod json;
mod npy;

pub(crate) use args::GetArgs;
pub(crate) use indices::Indices;

use crate::exit::Outcome;
use crate::open::open;
use crate::output::{Data, Destination};
use args::Format;
use std::{io, slice};

/// Prints samples of one column. What can be refused is refused before the first byte is written; memory is bounded by
/// the largest chunk.
pub(crate) fn run(args: &GetArgs, quiet: bool) -> Outcome {
    let data = if args.format == Format::Json { Data::Text } else { Data::Binary };
    let inputs = slice::from_ref(&args.file);
    let destination = Destination::or_stdout(args.output.as_deref(), args.force, data, inputs)?;
    let reader = open(&args.file, quiet)?;
    let column = reader.column(&args.column)?;
    let selection = args.indices.resolve(reader.sample_count())?;
    let written = match args.format {
        Format::Json => json::write(args, column, &selection, destination),
        Format::Npy | Format::Raw => binary::write(args, column, &selection, destination),
    };
    written.map_err(|failure| failure.with_output(args.output.as_deref()))
}

/// The bytes of one element as an array; zeros if there are not as many, which never happens.
fn element<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().map_or([0; N], |bytes| *bytes)
}

/// Writes elements, which are in memory order, in little-endian order.
fn write_little_endian(output: &mut impl io::Write, element_bytes: usize, elements: &[u8]) -> io::Result<()> {
    if cfg!(target_endian = "little") || element_bytes == 1 {
        return output.write_all(elements);
    }
    for element in elements.chunks_exact(element_bytes) {
        element.iter().rev().try_for_each(|byte| output.write_all(&[*byte]))?;
    }
    Ok(())
}
