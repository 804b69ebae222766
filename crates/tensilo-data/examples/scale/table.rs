//! Tables in Markdown, and numbers for people.

use std::fmt;

/// A table whose first column is text. The other columns are numbers.
pub struct Table {
    columns: usize,
    text: String,
}

impl Table {
    pub fn new(header: &[&str]) -> Self {
        let mut table = Self { columns: header.len(), text: String::new() };
        table.row(header);
        table.text += "|---|";
        table.text += &"--:|".repeat(table.columns.saturating_sub(1));
        table.text += "\n";
        table
    }

    pub fn row<S: AsRef<str>>(&mut self, cells: &[S]) {
        debug_assert_eq!(cells.len(), self.columns);
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        self.text += &format!("| {} |\n", cells.join(" | "));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const PREFIXES: [&str; 7] = ["", " k", " M", " G", " T", " P", " E"];

/// Formats a number with three digits, a decimal prefix and its unit.
pub fn si(number: f64, unit: &str) -> String {
    let power = (0..PREFIXES.len() as i32 - 1).take_while(|power| number >= 999.5 * 1000_f64.powi(*power)).count();
    let scaled = number / 1000_f64.powi(power as i32);
    let digits = if power == 0 && number == number.round() { digits_of(number) } else { three_digits(scaled) };
    let prefix = PREFIXES[power];
    match (prefix, unit) {
        ("", "") => digits,
        ("", unit) => format!("{digits} {unit}"),
        (prefix, unit) => format!("{digits}{prefix}{unit}"),
    }
}

/// Formats seconds in a suitable unit.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        days if days >= 2.0 * 86_400.0 => format!("{} days", three_digits(days / 86_400.0)),
        whole if whole >= 1.0 => format!("{} s", three_digits(whole)),
        milli if milli >= 1e-3 => format!("{} ms", three_digits(milli * 1e3)),
        micro => format!("{} us", three_digits(micro * 1e6)),
    }
}

/// Returns how much larger a number is than expected, in percent.
pub fn difference(number: f64, expected: f64) -> String {
    match expected {
        0.0 if number == 0.0 => "0.0 %".to_owned(),
        expected => format!("{:+.1} %", (number / expected - 1.0) * 100.0),
    }
}

fn digits_of(number: f64) -> String {
    format!("{number:.0}")
}

fn three_digits(number: f64) -> String {
    match number {
        large if large >= 99.95 => format!("{large:.0}"),
        middle if middle >= 9.995 => format!("{middle:.1}"),
        small => format!("{small:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let expected = [(0.0, "0 B"), (7.0, "7 B"), (999.0, "999 B"), (1234.0, "1.23 kB"), (999_999.0, "1.00 MB")];
        expected.iter().for_each(|(number, text)| assert_eq!(si(*number, "B"), *text));
        assert_eq!(si(1.5e12, ""), "1.50 T");
        assert_eq!([0.0012, 3.0, 1e6].map(seconds), ["1.20 ms", "3.00 s", "11.6 days"]);
        assert_eq!(difference(110.0, 100.0), "+10.0 %");
    }
}
