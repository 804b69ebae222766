//! The progress bar on the standard error. Nothing is shown if that is not a terminal.

use super::line::{End, ProgressLine};
use crate::signals;
use crate::terminal::stderr_width;
use crate::text::human;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::cell::Cell;
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::time::Duration;

/// The time that work with a progress bar has to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

/// The unit of the progress.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    /// Samples.
    Samples,
    /// Bytes of a file.
    Bytes,
}

impl Unit {
    /// Returns a style that lays out the line at each draw, for the current width of the terminal.
    fn style(self, phase: &'static str) -> ProgressStyle {
        let style = ProgressStyle::with_template("{line}").unwrap_or_else(|_| ProgressStyle::default_bar());
        style.with_key("line", move |state: &ProgressState, text: &mut dyn Write| {
            // terminals differ in what they do after their last column
            let line = self.line(phase, state).fit(stderr_width().saturating_sub(1));
            let _ = text.write_str(&line); // only the display would be incomplete
        })
    }

    fn line(self, phase: &'static str, state: &ProgressState) -> ProgressLine<'static> {
        let end = state.len().map(|total| End {
            total: self.amount(total, true),
            fraction: f64::from(state.fraction()),
            rate: self.rate(state.per_sec()),
            left: format!("{:#}", HumanDuration(state.eta())),
        });
        let elapsed = format!("{:#}", HumanDuration(state.elapsed()));
        ProgressLine { phase, done: self.amount(state.pos(), end.is_none()), elapsed, end }
    }

    fn amount(self, amount: u64, with_unit: bool) -> String {
        match self {
            Self::Bytes => human::bytes(amount),
            Self::Samples if with_unit => format!("{} samples", HumanCount(amount)),
            Self::Samples => HumanCount(amount).to_string(),
        }
    }

    fn rate(self, per_second: f64) -> String {
        match self {
            Self::Samples => format!("{per_second:.0}/s"),
            // saturates; an approximation
            Self::Bytes => format!("{}/s", human::bytes(per_second as u64)),
        }
    }
}

/// A progress bar without colours. Dropping it clears the line.
pub(crate) struct Progress {
    bar: ProgressBar,
    unit: Unit,
    /// The phase and the total of the current style.
    phase: Cell<Option<(&'static str, Option<u64>)>>,
}

impl Progress {
    /// Creates a bar, which is hidden if `quiet` or if the standard error is not a terminal.
    pub(crate) fn new(unit: Unit, quiet: bool) -> Self {
        let bar = if !quiet && io::stderr().is_terminal() {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        Self { bar, unit, phase: Cell::new(None) }
    }

    /// Shows `done` of `total` in this phase. Returns `Break` if a signal has arrived.
    pub(crate) fn set(&self, phase: &'static str, done: u64, total: Option<u64>) -> ControlFlow<()> {
        signals::at_work(PATIENCE);
        if signals::received().is_some() {
            return ControlFlow::Break(());
        }
        if !self.bar.is_hidden() {
            signals::show_line(true);
            self.show(phase, done, total);
        }
        ControlFlow::Continue(())
    }

    fn show(&self, phase: &'static str, done: u64, total: Option<u64>) {
        if self.phase.replace(Some((phase, total))) != Some((phase, total)) {
            // the style first, because each later call draws
            self.bar.set_style(self.unit.style(phase));
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
        signals::idle();
    }
}
