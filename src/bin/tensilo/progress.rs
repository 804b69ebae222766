//! A progress bar on the standard error, where that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::cell::Cell;
use std::fmt::Write;
use std::io::{self, IsTerminal};

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    /// Samples.
    Samples,
    /// Bytes of a file.
    Bytes,
}

impl Unit {
    fn style(self, knows_total: bool) -> ProgressStyle {
        let template = match (self, knows_total) {
            (Self::Samples, true) => "{msg} [{bar:30}] {human_pos}/{human_len} samples, {rate}, {eta} left",
            (Self::Samples, false) => "{msg} {human_pos} samples, {elapsed}",
            (Self::Bytes, true) => "{msg} [{bar:30}] {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
            (Self::Bytes, false) => "{msg} {bytes}, {elapsed}",
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let rate = |state: &ProgressState, text: &mut dyn Write| {
            let _ = write!(text, "{:.0}/s", state.per_sec()); // it is only a display
        };
        style.with_key("rate", rate).progress_chars("=> ")
    }
}

/// A bar without colours. It takes itself off the screen when it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: Unit,
    /// Phase and total that the bar was set up for.
    phase: Cell<Option<(&'static str, Option<u64>)>>,
}

impl Progress {
    /// A bar, invisible if `quiet` or if the standard error is not a terminal.
    pub(crate) fn new(unit: Unit, quiet: bool) -> Self {
        let bar = if !quiet && io::stderr().is_terminal() {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        Self { bar, unit, phase: Cell::new(None) }
    }

    /// `done` of `total`, in this phase of the work.
    pub(crate) fn set(&self, phase: &'static str, done: u64, total: Option<u64>) {
        if self.bar.is_hidden() {
            return;
        }
        if self.phase.replace(Some((phase, total))) != Some((phase, total)) {
            // first what it looks like: the other calls draw it
            self.bar.set_style(self.unit.style(total.is_some()));
            self.bar.set_message(phase);
            match total {
                Some(total) => self.bar.set_length(total),
                None => self.bar.unset_length(),
            }
            self.bar.reset();
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
