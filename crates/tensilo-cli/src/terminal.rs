//! The terminal: its width, messages on standard error, and the progress bar.
//!
//! Messages look like clap's and follow the same rules: colors only on a terminal, and none with
//! `NO_COLOR`. A progress bar is shown only if standard error is a terminal and `--quiet` is
//! absent. Work also polls for signals through the bar: [`Progress::set`] returns `Break` after a
//! signal, even if the bar is not shown.
//!
//! `indicatif` draws the bar, at most 20 times a second. On a terminal with fewer than 80 columns,
//! the line shows only the percentage and the phase, so that it never wraps.

use crate::signals;
use clap::builder::Styles;
use clap::builder::styling::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::Duration;
use tensilo::import;

/// The width of a line if the width of the terminal is unknown.
pub(crate) const DEFAULT_WIDTH: u16 = 80;

/// Returns the width of the terminal, or `None` if standard output is not a terminal.
pub(crate) fn stdout_width() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
}

/// Prints an error in the style of clap.
pub(crate) fn error(message: &str) {
    print(*Styles::styled().get_error(), "error:", message);
}

/// Prints a warning.
pub(crate) fn warning(message: &str) {
    print(*Styles::styled().get_invalid(), "warning:", message);
}

/// Prints a note.
pub(crate) fn note(message: &str) {
    print(*Styles::styled().get_valid(), "note:", message);
}

/// Prints the heading in its style, if the terminal has colors, and then the message unchanged.
fn print(style: Style, heading: &str, message: &str) {
    // if stderr is closed, no one can read the message
    let _ = writeln!(anstream::stderr(), "{style}{heading}{style:#} {message}");
}

/// How long work with a progress bar may take to end after a signal.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(2);

/// The unit of the progress.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    /// Samples.
    Samples,
    /// Bytes of a file.
    Bytes,
}

impl Unit {
    fn style(self, has_total: bool) -> ProgressStyle {
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(DEFAULT_WIDTH, |(width, _)| width.0);
        let template = match (self, has_total) {
            (_, true) if width < DEFAULT_WIDTH => "{percent:>3} % {wide_msg}",
            (Self::Samples, true) => "{msg} [{wide_bar}] {human_pos}/{human_len} samples, {per_sec}, {eta} left",
            (Self::Bytes, true) => {
                "{msg} [{wide_bar}] {decimal_bytes}/{decimal_total_bytes}, {decimal_bytes_per_sec}, {eta} left"
            }
            (Self::Samples, false) => "{human_pos} samples {wide_msg}",
            (Self::Bytes, false) => "{decimal_bytes} {wide_msg}",
        };
        // a malformed template would show the default bar
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
    }
}

/// A function that receives the phase of some work, the amount done, and the total, if known. If it
/// returns `Break`, the work ends with an error of kind `Cancelled`, and its output is removed.
pub type ProgressCallback<'a> = &'a mut dyn FnMut(&'static str, u64, Option<u64>) -> ControlFlow<()>;

/// A progress bar without colors. Dropping it clears the line.
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: Unit,
    /// The phase and the total of the current style.
    phase: Cell<Option<(&'static str, Option<u64>)>>,
}

impl Progress {
    /// Creates a bar. It is hidden if `quiet` is set or standard error is not a terminal.
    pub(crate) fn new(unit: Unit, quiet: bool) -> Self {
        let is_shown = !quiet && io::stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target), unit, phase: Cell::new(None) }
    }

    /// Shows `done` of `total` in this phase. Returns `Break` if a signal has arrived.
    pub(crate) fn set(&self, phase: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()> {
        signals::begin_work(SIGNAL_TIMEOUT);
        if signals::received().is_some() {
            return ControlFlow::Break(());
        }
        if self.bar.is_hidden() {
            return ControlFlow::Continue(());
        }
        signals::show_line(true);
        if self.phase.replace(Some((phase, total))) != Some((phase, total)) {
            // set the style first, because each of the later calls draws the bar
            self.bar.set_style(self.unit.style(total.is_some()));
            self.bar.set_message(phase);
            match total {
                Some(total) => self.bar.set_length(total),
                None => self.bar.unset_length(),
            }
            self.bar.reset();
        }
        self.bar.set_position(done);
        ControlFlow::Continue(())
    }
}

/// Shows the progress of an import; `verb` names the writing phase.
pub(crate) fn show_import(progress: &Progress, verb: &'static str, at: import::Progress) -> ControlFlow<()> {
    match at {
        import::Progress::Scanning { done, total } => progress.set("scanning", done, total),
        import::Progress::Converting { done, total } => progress.set(verb, done, total),
        _ => progress.set("working", 0, None), // a phase that is newer than this program
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        signals::end_work();
    }
}
