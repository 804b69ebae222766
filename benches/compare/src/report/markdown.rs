//! `compare.md`, which the program also prints: a table for each data set.

use super::Report;
use crate::measure::Stats;
use crate::run::{GATHER_SAMPLES, Row, Table};
use std::fmt::Write;

const TABLE_HEADER: &str = "\
| | ratio | encode GB/s | decode GB/s | of memcpy | a sample us | x memcpy | by position us | gather us | each us | x memcpy | view ns |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

impl Report {
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let rounds = self.settings.rounds;
        let _ = write!(
            out,
            "# tensilo and other formats\n\n{}; tensilo's kernels: {}. One thread; medians of {rounds} rounds (lower to upper \
             quartile), competitors taking turns. Ratio: raw bytes divided by the bytes of the file. Raw bytes are the elements \
             of tensors, or the characters or numbers of texts and lists plus 4 bytes for each length. GB: 10^9 raw bytes. \
             Everything is warm, in the page cache. A sample: a uniformly random one, copied to the caller's memory from a \
             mapped file. By position: the same from a file that is read by position (`pread`), also warm. Gather: \
             {GATHER_SAMPLES} samples in one request. View: a sample borrowed from the mapped file, if the format allows it.\n",
            self.cpu, self.kernels
        );
        if let Some(simd) = &self.simd {
            let _ = write!(out, "\nSIMD of c-blosc2: {simd}.\n");
        }
        let groups = self.groups();
        out.push_str("\n## In short\n\nRatio / decode GB/s / us for one random sample.\n");
        groups.iter().for_each(|group| out.push_str(&summary(group)));
        for table in &self.tables {
            let _ = write!(out, "\n{}", section(table));
        }
        for group in groups {
            let of = if group[0].facts.is_nested() { "texts and lists" } else { "tensors" };
            let _ = write!(out, "\n## Competitors: {of}\n\n");
            for row in rows_of(group) {
                let _ = writeln!(out, "* {}: {}", row.name, row.about);
            }
        }
        out
    }

    /// Returns the tables in groups with the same competitors.
    fn groups(&self) -> Vec<&[Table]> {
        self.tables.chunk_by(|a, b| a.facts.is_nested() == b.facts.is_nested()).collect()
    }
}

/// Returns one table for several data sets with the same competitors, as in the documentation.
fn summary(tables: &[Table]) -> String {
    let mut out = String::from("\n|");
    let names = tables.iter().map(|table| table.facts.name.to_string());
    for name in std::iter::once(String::new()).chain(names) {
        let _ = write!(out, " {name} |");
    }
    let _ = write!(out, "\n|---|{}\n", "---|".repeat(tables.len()));
    for name in names_of_rows(tables) {
        let _ = write!(out, "| {name} |");
        for table in tables {
            let Some(row) = table.rows.iter().find(|row| row.name == name) else {
                out.push_str(" - |");
                continue;
            };
            let decode = number(row.rate(row.decode).median);
            let sample = if row.stays_decoded { "-".to_owned() } else { number(row.sample.median * 1e6) };
            let _ = write!(out, " {:.3} / {decode} / {sample} |", row.ratio());
        }
        out.push('\n');
    }
    out
}

/// Returns the distinct names of the rows of several tables. Tables of other element types have
/// other competitors, but in the same order.
fn names_of_rows(tables: &[Table]) -> Vec<&str> {
    rows_of(tables).into_iter().map(|row| row.name.as_str()).collect()
}

/// Returns the first row with each name.
fn rows_of(tables: &[Table]) -> Vec<&Row> {
    let mut found: Vec<&Row> = Vec::new();
    for table in tables {
        let mut next = 0;
        for row in &table.rows {
            next = match found.iter().position(|other| other.name == row.name) {
                Some(at) => at + 1,
                None => {
                    found.insert(next, row);
                    next + 1
                }
            };
        }
    }
    found
}

fn section(table: &Table) -> String {
    let facts = &table.facts;
    // a type in angle brackets would be read as HTML
    let title = if facts.is_nested() { format!("{}: `{}`", facts.name, facts.dtype) } else { facts.title() };
    let mut out = format!(
        "## {title}\n\n{} samples of {} B{}, {:.2} MB in all: {}.\n\n{TABLE_HEADER}",
        facts.samples,
        facts.sample_bytes(),
        if facts.is_nested() { " on average" } else { "" },
        facts.raw_bytes as f64 / 1e6,
        facts.origin
    );
    if let Some(memcpy) = table.rows.first() {
        table.rows.iter().for_each(|row| out.push_str(&line(row, memcpy)));
    }
    out.push_str(&choices(table));
    if facts.raw_bytes <= 64 << 10 {
        out.push_str(
            "
The data fits into one chunk of 64 KiB, which stays decoded, so random samples and gathering do not measure decoding here.
",
        );
    }
    out
}

/// Returns the settings that competitors have chosen.
fn choices(table: &Table) -> String {
    let mut out = String::new();
    for row in &table.rows {
        if let Some(choice) = &row.choice {
            let line = if out.is_empty() { "\n" } else { "" };
            let _ = writeln!(out, "{line}* {}: {choice}", row.name);
        }
    }
    if table.rows.iter().any(|row| row.stays_decoded) {
        out.push_str("\nA column in one chunk stays decoded, so its random samples are not shown.\n");
    }
    out
}

fn line(row: &Row, memcpy: &Row) -> String {
    let mut cells = vec![
        row.name.clone(),
        format!("{:.3}", row.ratio()),
        spread(row.rate(row.encode)),
        spread(row.rate(row.decode)),
        format!("{} %", number(100.0 * memcpy.decode.median / row.decode.median)),
    ];
    if row.stays_decoded {
        cells.extend(["-"; 7].map(str::to_owned));
    } else {
        cells.extend(random_cells(row, memcpy));
    }
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the cells for random samples.
fn random_cells(row: &Row, memcpy: &Row) -> [String; 7] {
    let micro = |stats: Stats| stats.map(|seconds| seconds * 1e6);
    let times = |stats: Stats, base: Stats| number(stats.median / base.median);
    let dash = || "-".to_owned();
    [
        spread(micro(row.sample)),
        times(row.sample, memcpy.sample),
        row.position.map_or_else(dash, |position| spread(micro(position))),
        spread(micro(row.gather)),
        number(micro(row.gather).median / GATHER_SAMPLES as f64),
        times(row.gather, memcpy.gather),
        row.view.map_or_else(dash, |view| spread(view.map(|seconds| seconds * 1e9))),
    ]
}

/// Formats median and quartiles, such as `1.23 (1.20-1.31)`.
fn spread(stats: Stats) -> String {
    format!("{} ({}-{})", number(stats.median), number(stats.low), number(stats.high))
}

/// Formats a number with three significant digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
