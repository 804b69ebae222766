//! Checks on the inputs of conversions.

use crate::failure::{Failure, Outcome};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use tensilo::error::display_path;
use tensilo_object::Address;

/// Fails if the data of an input would come from a terminal, or from an object store.
pub(crate) fn check_inputs(inputs: &[PathBuf]) -> Outcome {
    if let Some(input) = inputs.iter().find(|input| Address::is_path(input)) {
        let message = "inputs are files of this system: copy the object first";
        return Err(Failure::Usage(format!("{}: {message}", display_path(input))));
    }
    if inputs.iter().any(|input| input == Path::new("-")) && io::stdin().is_terminal() {
        let message = "standard input: is a terminal; redirect or pipe a file into it";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}
