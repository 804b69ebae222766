//! JSON output.

use crate::failure::Outcome;
use std::io::{self, Write};

/// Writes an indented JSON document and a line feed.
pub(crate) fn write_json(output: &mut impl Write, document: &serde_json::Value) -> Outcome {
    serde_json::to_writer_pretty(&mut *output, document).map_err(io::Error::from)?;
    Ok(writeln!(output)?)
}
