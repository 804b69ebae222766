//! The inputs of conversions: checks, and those in object stores.

use crate::failure::{Failure, Outcome};
use crate::terminal;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tensilo::import::InputStore;
use tensilo_object::{ObjectInputs, ObjectOptions, UNREADABLE_KEY};

/// Returns the store of inputs that are objects. Warns about those that cannot be read; if `quiet`,
/// they are errors, because nothing is left out in silence.
pub(crate) fn store(quiet: bool) -> Arc<dyn InputStore> {
    let warn = |address: &str| {
        terminal::warning(&format!("{address}: passed over: {UNREADABLE_KEY}"));
    };
    let inputs = ObjectInputs::new(ObjectOptions::new());
    Arc::new(if quiet { inputs } else { inputs.pass_over(warn) })
}

/// Fails if the data of an input would come from a terminal.
pub(crate) fn check_inputs(inputs: &[PathBuf]) -> Outcome {
    if inputs.iter().any(|input| input == Path::new("-")) && io::stdin().is_terminal() {
        let message = "standard input: is a terminal; redirect or pipe a file into it";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}
