//! The export of one table to one file.

use super::args::ExportArgs;
use super::format::AnyFormat;
use crate::failure::{Failure, Outcome};
use crate::options::Names;
use crate::output::{Destination, shown};
use std::ops::ControlFlow;
use std::path::Path;
use tensilo::export::{ExportOptions, Table, TensorForm, export_into};
use tensilo_convert::{TargetOptions, export_to};

/// Exports a table to one file.
pub(super) fn write<T: Table<Error: Into<Failure>>>(
    args: &ExportArgs,
    table: &T,
    destination: Destination,
    format: AnyFormat,
    note: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Outcome {
    let output = destination.create()?;
    let columns = Names::all(&args.columns);
    let written = match format {
        AnyFormat::Table(format) => {
            let tensors = args.tensors.map(TensorForm::from).unwrap_or_default();
            let options = ExportOptions::new().tensors(tensors).stored_types(args.stored_types).progress(note);
            let options = if let Some(columns) = columns { options.columns(columns) } else { options };
            export_into(table, output, format, options).map(|_| ())
        }
        AnyFormat::Other(format) => {
            let options = TargetOptions::new().progress(note);
            let options = if let Some(columns) = columns { options.columns(columns) } else { options };
            export_to(table, output, format, options).map(|_| ())
        }
    };
    written.map_err(|error| error.into().in_file(Path::new(&shown(&args.output))))
}
