//! Properties of the terminal (width, colours), and messages on the standard error.

use crate::text::wrap;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::builder::Styles;
use std::io::{self, Write};

/// The width of a line if the terminal's is unknown.
pub(crate) const USUAL_WIDTH: usize = 80;

/// Returns the width of the terminal on the standard output; `None` if it is not a terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Returns the width of a line on the standard output.
pub(crate) fn output_width() -> usize {
    stdout_width().unwrap_or(USUAL_WIDTH)
}

/// Returns the current width of the terminal on the standard error.
pub(crate) fn stderr_width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0))
}

/// Writes a line, wrapped at `width`. Continuation lines are indented.
pub(crate) fn write_wrapped(output: &mut impl Write, line: &str, width: usize) -> io::Result<()> {
    wrap(line, width, 2).iter().try_for_each(|line| writeln!(output, "{line}"))
}

/// Returns whether to use colours, by the same rules as clap: `NO_COLOR`, `CLICOLOR`,
/// `CLICOLOR_FORCE` and the terminal's capabilities.
pub(crate) fn has_colours(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Prints an error in the style of clap.
pub(crate) fn error(message: &str) {
    let style = Styles::styled();
    let style = style.get_error();
    print(&format!("{style}error:{style:#}"), message);
}

/// Prints a warning.
pub(crate) fn warning(message: &str) {
    let style = Styles::styled();
    let style = style.get_invalid();
    print(&format!("{style}warning:{style:#}"), message);
}

/// Prints a note.
pub(crate) fn note(message: &str) {
    let style = Styles::styled();
    let style = style.get_valid();
    print(&format!("{style}note:{style:#}"), message);
}

/// Prints `heading`, without its colours if the terminal has none, and the message unchanged.
fn print(heading: &str, message: &str) {
    let mut stderr = anstream::stderr();
    // if stderr is closed, nobody can read the message
    let _ = writeln!(stderr, "{heading} {message}");
}
