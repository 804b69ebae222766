//! What the terminal is like: its width, and whether it shows colours. Messages on the standard
//! error.

use crate::layout;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use clap::builder::Styles;
use std::io::{self, Write};

/// Of a line, where nothing is known of the terminal or there is none.
pub(crate) const USUAL_WIDTH: usize = 80;

/// The columns of the terminal that is the standard output; `None` if that is no terminal.
pub(crate) fn stdout_width() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// The columns of a line on the standard output.
pub(crate) fn output_width() -> usize {
    stdout_width().unwrap_or(USUAL_WIDTH)
}

/// The columns of the terminal that is the standard error, as it is now.
pub(crate) fn stderr_width() -> usize {
    terminal_size::terminal_size_of(io::stderr()).map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0))
}

/// Writes a line, which continues on others, indented, if it is wider than this.
pub(crate) fn write_wrapped(output: &mut impl Write, line: &str, width: usize) -> io::Result<()> {
    layout::wrap(line, width, 2).iter().try_for_each(|line| writeln!(output, "{line}"))
}

/// Whether colours are shown, by the rules of all that clap prints: a terminal that has them,
/// `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE`.
pub(crate) fn has_colours(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Prints an error as clap prints its own.
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

/// The heading is painted only where colours are shown; the message is printed as it is.
fn print(heading: &str, message: &str) {
    let mut stderr = anstream::stderr();
    let _ = writeln!(stderr, "{heading} {message}"); // nobody is left to tell
}
