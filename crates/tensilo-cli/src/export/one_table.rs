//! The export of one table to one file.

use super::args::ExportArgs;
use super::format::AnyFormat;
use crate::failure::{Failure, Outcome};
use crate::options::Names;
use crate::output::{Destination, shown};
use std::ops::ControlFlow;
use std::path::Path;
use tensilo::export::{ExportOptions, Table, TensorForm, export_into};
use tensilo_convert::{TargetOptions, export_megatron, export_to};

/// Exports a table to one file.
pub(super) fn write<T: Table<Error: Into<Failure>>>(
    args: &ExportArgs,
    table: &T,
    destination: Destination,
    format: AnyFormat,
    note: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Outcome {
    let columns = Names::all(&args.columns);
    let options = |note| {
        let options = TargetOptions::new().progress(note);
        if let Some(columns) = &columns { options.columns(columns) } else { options }
    };
    let written = match format {
        AnyFormat::Table(format) => {
            let tensors = args.tensors.map(TensorForm::from).unwrap_or_default();
            let options = ExportOptions::new().tensors(tensors).stored_types(args.stored_types).progress(note);
            let options = if let Some(columns) = &columns { options.columns(columns) } else { options };
            export_into(table, destination.create()?, format, options).map(|_| ())
        }
        AnyFormat::Other(format) => export_to(table, destination.create()?, format, options(note)).map(|_| ()),
        AnyFormat::Megatron => {
            let tokens = destination.beside("bin")?.create()?;
            export_megatron(table, (destination.create()?, tokens), options(note)).map(|_| ())
        }
    };
    written.map_err(|error| error.into().in_file(Path::new(&shown(&args.output))))
}
