//! `tensilo get`

mod args;
mod binary;
mod decimal;
mod element;
mod indices;
mod json;
mod npy_header;
mod structs;

pub(crate) use args::GetArgs;

use crate::failure::{Failure, Outcome};
use crate::open::open;
use crate::output::{Data, Destination};
use args::Format;
use std::slice;
use structs::NamedStruct;
use tensilo::{Column, Reader};

/// Prints samples of one column or struct. Checks all arguments before it writes the first byte.
/// Memory is bounded by the largest chunk of each column.
pub(crate) fn run(args: &GetArgs, quiet: bool) -> Outcome {
    let data = if args.format == Format::Json { Data::Text } else { Data::Binary };
    let inputs = slice::from_ref(&args.file);
    let destination = Destination::or_stdout(args.output.as_deref(), args.force, data, inputs)?;
    let reader = open(&args.file, quiet)?;
    let found = find(args, &reader)?;
    let selection = args.indices.resolve(reader.sample_count())?;
    let written = match (found, args.format) {
        (Found::Struct(found), _) => found.write(args, &reader, &selection, destination),
        (Found::Column(column), Format::Json) => json::write(args, column, &selection, destination),
        (Found::Column(column), _) => binary::write(args, column, &selection, destination),
    };
    written.map_err(|failure| failure.with_output(args.output.as_deref()))
}

/// The samples that a name stands for.
enum Found {
    Column(Column),
    Struct(NamedStruct),
}

/// Finds a column, or the columns that are the fields of a struct.
fn find(args: &GetArgs, reader: &Reader) -> Outcome<Found> {
    let column = reader.column(&args.column);
    let has_values = column.as_ref().is_ok_and(|column| !column.schema().is_struct_nulls());
    let found = if has_values { None } else { NamedStruct::find(reader, &args.column) };
    match (found, args.format) {
        (None, _) => Ok(Found::Column(column?)),
        (Some(found), Format::Json) => Ok(Found::Struct(found)),
        (Some(_), _) => {
            let message = format!("{:?} is a struct, which has no binary form; use --format json", args.column);
            Err(Failure::Usage(message))
        }
    }
}
