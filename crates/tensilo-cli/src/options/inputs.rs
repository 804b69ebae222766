//! Checks on the inputs of conversions.

use crate::failure::{Failure, Outcome};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Fails if the data of an input would come from a terminal.
pub(crate) fn check_inputs(inputs: &[PathBuf]) -> Outcome {
    if inputs.iter().any(|input| input == Path::new("-")) && io::stdin().is_terminal() {
        let message = "standard input: is a terminal; redirect or pipe a file into it";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}
