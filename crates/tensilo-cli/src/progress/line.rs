//! The text of the progress line, for any width of the terminal.

use crate::text::{columns, cut_end};

/// The progress of a job, as text.
#[derive(Clone, Debug)]
pub(crate) struct ProgressLine<'a> {
    /// The name of the phase.
    pub(crate) phase: &'a str,
    /// The amount done; with a unit if the total is unknown.
    pub(crate) done: String,
    /// The time since the start.
    pub(crate) elapsed: String,
    /// The estimate of the end, if the total is known.
    pub(crate) end: Option<End>,
}

/// The estimate of a job's end.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// The total, with a unit.
    pub(crate) total: String,
    /// The fraction done, 0 to 1.
    pub(crate) fraction: f64,
    /// The amount done per second.
    pub(crate) rate: String,
    /// The remaining time.
    pub(crate) left: String,
}

/// The texts before and after the bar.
type WithBar = (String, String);

const LONGEST_BAR: usize = 30;
const SHORTEST_BAR: usize = 8;

impl ProgressLine<'_> {
    /// Returns the most detailed line that fits in `width`. If it is too wide, the line drops the
    /// total, the bar and the time, in this order.
    pub(crate) fn fit(&self, width: usize) -> String {
        let Some(end) = &self.end else {
            return self.words(width, &self.done, &[&format!(", {}", self.elapsed), ""]);
        };
        let drawn = self.with_bar(end).into_iter().find_map(|(before, after)| {
            let free = width.checked_sub(columns(&before).saturating_add(columns(&after)).saturating_add(2))?;
            let bar = bar(free.min(LONGEST_BAR), end.fraction);
            (free >= SHORTEST_BAR).then(|| format!("{before}[{bar}]{after}"))
        });
        let percent = format!("{:.0} %", (end.fraction * 100.0).floor());
        drawn.unwrap_or_else(|| self.words(width, &percent, &[&format!(", {} left", end.left), ""]))
    }

    fn with_bar(&self, end: &End) -> [WithBar; 3] {
        let (before, done) = (format!("{} ", self.phase), &self.done);
        let End { total, rate, left, .. } = end;
        [
            (before.clone(), format!(" {done}/{total}, {rate}, {left} left")),
            (before.clone(), format!(" {done}/{total}, {left} left")),
            (before, format!(" {:.0} %, {left} left", (end.fraction * 100.0).floor())),
        ]
    }

    /// Returns the phase, the amount done and the first of `more` that fits. Cuts the phase if it
    /// must.
    fn words(&self, width: usize, done: &str, more: &[&str]) -> String {
        const LEAST_PHASE: usize = 4;
        let whole = more.iter().map(|more| format!("{} {done}{more}", self.phase));
        whole.into_iter().find(|line| columns(line) <= width).unwrap_or_else(|| {
            let free = width.saturating_sub(columns(done).saturating_add(1));
            match free {
                ..LEAST_PHASE => cut_end(done, width),
                _ => format!("{} {done}", cut_end(self.phase, free)),
            }
        })
    }
}

fn bar(width: usize, fraction: f64) -> String {
    // at most `width`, which is small
    let full = (fraction.clamp(0.0, 1.0) * width as f64) as usize;
    let head = if full < width { ">" } else { "" };
    format!("{:<width$}", format!("{}{head}", "=".repeat(full)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(phase: &str, fraction: f64) -> ProgressLine<'_> {
        let [done, elapsed, total] = ["123,456", "12s", "1,234,567 samples"].map(str::to_owned);
        let [rate, left] = ["99999/s", "15s"].map(str::to_owned);
        ProgressLine { phase, done, elapsed, end: Some(End { total, fraction, rate, left }) }
    }

    #[test]
    fn the_line_fits_in_any_width_and_says_how_far_it_is() {
        for phase in ["converting", "looking for chunks"] {
            for width in 5..200 {
                for fraction in [0.0, 0.1, 0.999, 1.0] {
                    let known = line(phase, fraction);
                    let text = known.fit(width);
                    assert!(columns(&text) <= width, "{text:?} in {width}");
                    assert!(text.contains('%') || text.contains("123,456/1,234,567"), "{text:?} in {width}");
                    let unknown = ProgressLine { end: None, done: "123,456 samples".to_owned(), ..known };
                    let text = unknown.fit(width);
                    assert!(columns(&text) <= width && (width < 7 || text.contains("123")), "{text:?} in {width}");
                }
            }
        }
    }

    #[test]
    fn what_matters_least_goes_first() {
        let line = line("converting", 0.1);
        for (width, due) in [
            (100, "converting [===>                          ] 123,456/1,234,567 samples, 99999/s, 15s left"),
            (70, "converting [=>          ] 123,456/1,234,567 samples, 99999/s, 15s left"),
            (60, "converting [=>         ] 123,456/1,234,567 samples, 15s left"),
            (40, "converting [=>          ] 10 %, 15s left"),
            (30, "converting 10 %, 15s left"),
            (20, "converting 10 %"),
            (12, "conver… 10 %"),
            (6, "10 %"),
        ] {
            assert_eq!(line.fit(width), due, "{width}");
        }
        let unknown = ProgressLine { end: None, done: "123,456 samples".to_owned(), ..line };
        assert_eq!(unknown.fit(40), "converting 123,456 samples, 12s");
        assert_eq!(unknown.fit(26), "converting 123,456 samples");
        assert_eq!(unknown.fit(24), "convert… 123,456 samples");
    }
}
