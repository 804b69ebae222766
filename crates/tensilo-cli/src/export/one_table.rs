//! The export of one table to one file.

use super::args::ExportArgs;
use crate::failure::{Failure, Outcome};
use crate::options::Names;
use crate::output::{Destination, shown};
use std::ops::ControlFlow;
use std::path::Path;
use tensilo::export::{ExportFormat, ExportOptions, Table, TensorForm, export_into};

/// Exports a table to one file.
pub(super) fn write<T: Table<Error: Into<Failure>>>(
    args: &ExportArgs,
    table: &T,
    destination: Destination,
    format: ExportFormat,
    note: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Outcome {
    let tensors = args.tensors.map(TensorForm::from).unwrap_or_default();
    let options = ExportOptions::new().tensors(tensors).stored_types(args.stored_types).progress(note);
    let options = match Names::all(&args.columns) {
        Some(columns) => options.columns(columns),
        None => options,
    };
    let output = destination.create()?;
    let written = export_into(table, output, format, options);
    written.map(|_| ()).map_err(|error| error.into().in_file(Path::new(&shown(&args.output))))
}
