//! `compare.md`, and what the program prints: a table for each data set.

use super::Report;
use crate::measure::Stats;
use crate::run::{GATHERED, Row, Table};
use std::fmt::Write;

const HEAD: &str = "\
| | ratio | encode GB/s | decode GB/s | of memcpy | a sample us | x memcpy | gather us | each us | x memcpy | view ns |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
";

impl Report {
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let rounds = self.settings.rounds;
        let _ = write!(
            out,
            "# tensilo beside others\n\n{}. One thread; medians of {rounds} rounds (lower to upper quartile), \
             competitors taking turns. Ratio: raw bytes by all bytes of the file. Raw bytes are BF16 for tensors; for \
             texts and lists, their characters or numbers and 4 bytes for each length. GB: 10^9 raw bytes. Everything \
             is warm, in the page cache. A sample: one, uniformly random, copied to the caller's memory. Gather: \
             {GATHERED} of them by one request. View: a sample borrowed from the mapped file, for those that can.\n",
            self.cpu
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
            for row in &group[0].rows {
                let _ = writeln!(out, "* {}: {}", row.name, row.about);
            }
        }
        out
    }

    /// Returns the tables with the same competitors.
    fn groups(&self) -> Vec<&[Table]> {
        self.tables.chunk_by(|a, b| a.facts.is_nested() == b.facts.is_nested()).collect()
    }
}

/// Returns one table of several data sets with the same competitors, as in tensilo's documentation.
fn summary(tables: &[Table]) -> String {
    let mut out = String::from("\n|");
    let names = tables.iter().map(|table| table.facts.name.to_string());
    for name in std::iter::once(String::new()).chain(names) {
        let _ = write!(out, " {name} |");
    }
    let _ = write!(out, "\n|---|{}\n", "---|".repeat(tables.len()));
    let peers = tables.first().map_or(0, |table| table.rows.len());
    for peer in 0..peers {
        let rows: Vec<&Row> = tables.iter().filter_map(|table| table.rows.get(peer)).collect();
        let _ = write!(out, "| {} |", rows.first().map_or("", |row| &row.name));
        for row in rows {
            let decode = number(row.rate(row.decode).median);
            let _ = write!(out, " {:.3} / {decode} / {} |", row.ratio(), number(row.sample.median * 1e6));
        }
        out.push('\n');
    }
    out
}

fn section(table: &Table) -> String {
    let facts = &table.facts;
    // a type in angle brackets would be read as HTML
    let title = if facts.is_nested() { format!("{}: `{}`", facts.name, facts.dtype) } else { facts.title() };
    let mut out = format!(
        "## {title}\n\n{} samples of {} B{}, {:.2} MB in all: {}.\n\n{HEAD}",
        facts.samples,
        facts.sample_bytes(),
        if facts.is_nested() { " in the mean" } else { "" },
        facts.raw_bytes as f64 / 1e6,
        facts.origin
    );
    if let Some(memcpy) = table.rows.first() {
        table.rows.iter().for_each(|row| out.push_str(&line(row, memcpy)));
    }
    if facts.raw_bytes <= 64 << 10 {
        out.push_str(
            "
All of it is one chunk of 64 KiB, which stays decoded: random samples and gathering tell nothing about decoding here.
",
        );
    }
    out
}

fn line(row: &Row, memcpy: &Row) -> String {
    let micro = |stats: Stats| stats.map(|seconds| seconds * 1e6);
    let times = |stats: Stats, base: Stats| number(stats.median / base.median);
    let view = row.view.map_or_else(|| "-".to_owned(), |view| spread(view.map(|seconds| seconds * 1e9)));
    let cells = [
        row.name.clone(),
        format!("{:.3}", row.ratio()),
        spread(row.rate(row.encode)),
        spread(row.rate(row.decode)),
        format!("{} %", number(100.0 * memcpy.decode.median / row.decode.median)),
        spread(micro(row.sample)),
        times(row.sample, memcpy.sample),
        spread(micro(row.gather)),
        number(micro(row.gather).median / GATHERED as f64),
        times(row.gather, memcpy.gather),
        view,
    ];
    format!("| {} |\n", cells.join(" | "))
}

/// `1.23 (1.20-1.31)`.
fn spread(stats: Stats) -> String {
    format!("{} ({}-{})", number(stats.median), number(stats.low), number(stats.high))
}

/// Three digits that count.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
