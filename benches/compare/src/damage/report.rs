//! Reports the outcomes as Markdown and JSON.

use super::child::Trial;
use super::kind::Kind;
use anyhow::Result;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

const SCHEMA: &str = "tensilo.damage/1";

pub struct Report {
    pub trials: u32,
    pub seed: u64,
    /// The origin of the values of each data set.
    pub origins: Vec<(&'static str, String)>,
    pub rows: Vec<Row>,
}

/// A peer, with a cell for each kind of damage.
pub struct Row {
    pub name: String,
    pub about: String,
    pub cells: [Cell; Kind::ALL.len()],
}

/// The trials of a peer with one kind of damage.
#[derive(Default)]
pub struct Cell {
    detected: u32,
    wrong: u32,
    /// The number of `wrong` trials with an error elsewhere.
    wrong_with_error: u32,
    harmless: u32,
    crashes: BTreeMap<String, u32>,
    /// The sum of the shares of samples with the right values.
    read: f64,
    salvage_result: Option<SalvageStats>,
}

/// The results of the peer's own tools for damaged files.
#[derive(Default)]
struct SalvageStats {
    found: u32,
    /// The sum of the shares of salvaged samples.
    salvaged: f64,
    /// The number of trials in which salvage returned a wrong value.
    wrong: u32,
}

impl Cell {
    pub fn count(&mut self, trial: &Trial, samples: usize) {
        match (trial.wrong > 0, trial.error) {
            (true, error) => {
                self.wrong += 1;
                self.wrong_with_error += u32::from(error);
            }
            (false, true) => self.detected += 1,
            (false, false) => self.harmless += 1,
        }
        self.read += trial.right as f64 / samples as f64;
        if let Some(salvage_result) = &trial.salvage_result {
            let sum = self.salvage_result.get_or_insert_default();
            sum.found += u32::from(salvage_result.found);
            sum.salvaged += salvage_result.right as f64 / samples as f64;
            sum.wrong += u32::from(salvage_result.wrong > 0);
        }
    }

    /// Counts a crash. None of its samples count as read.
    pub fn crash(&mut self, reason: String) {
        *self.crashes.entry(reason).or_default() += 1;
    }

    fn crashed(&self) -> u32 {
        self.crashes.values().sum()
    }

    fn trials(&self) -> f64 {
        f64::from(self.detected + self.wrong + self.crashed() + self.harmless)
    }

    fn outcomes(&self) -> String {
        let share = |count: u32| percent(f64::from(count) / self.trials(), 1);
        [self.detected, self.wrong, self.crashed(), self.harmless].map(share).join(" / ")
    }

    fn json(&self, kind: Kind) -> Value {
        let salvage_result = self.salvage_result.as_ref().map(|salvage_result| {
            json!({
                "verify_found": salvage_result.found,
                "salvaged_samples": salvage_result.salvaged / self.trials(),
                "salvage_wrong": salvage_result.wrong,
            })
        });
        json!({
            "damage": kind.name(),
            "detected": self.detected,
            "wrong": self.wrong,
            "wrong_with_error": self.wrong_with_error,
            "crash": self.crashed(),
            "crashes": self.crashes,
            "harmless": self.harmless,
            "read_samples": self.read / self.trials(),
            "rescue": salvage_result,
        })
    }
}

impl Row {
    pub fn new(name: String, about: String) -> Self {
        Self { name, about, cells: Kind::ALL.map(|_| Cell::default()) }
    }

    fn salvage_stats(&self) -> Option<Vec<&SalvageStats>> {
        self.cells.iter().map(|cell| cell.salvage_result.as_ref()).collect()
    }

    /// Returns the kinds of crashes, and the number of each.
    fn crashes(&self) -> String {
        let mut sum = BTreeMap::<&str, u32>::new();
        for (reason, count) in self.cells.iter().flat_map(|cell| &cell.crashes) {
            *sum.entry(reason).or_default() += count;
        }
        sum.iter().map(|(reason, count)| format!("{count} x {reason}")).collect::<Vec<_>>().join(", ")
    }

    /// `1000 of 1000`.
    fn found(&self) -> String {
        let trials: f64 = self.cells.iter().map(Cell::trials).sum();
        let found = |salvage_stats: Vec<&SalvageStats>| {
            salvage_stats.iter().map(|salvage_stats| salvage_stats.found).sum::<u32>()
        };
        self.salvage_stats()
            .map_or_else(|| "-".to_owned(), |salvage_stats| format!("{} of {trials}", found(salvage_stats)))
    }
}

impl Report {
    pub fn markdown(&self) -> String {
        let mut out = format!(
            "# Damage, side by side\n\nEach peer writes the same tensors to a file. The file is damaged once, at a random offset, \
             and read from start to end by the peer's ordinary reader with its default checks. {} trials for each kind of \
             damage, seed {}.\n\n## Outcomes\n\ndetected / **wrong values** / crash / harmless, % of the trials. Wrong: the \
             reader returned at least one value that was not written, without an error for it. If other values had an error, \
             the trial still counts as wrong (`wrong_with_error` in damage.json).\n\n",
            self.trials, self.seed
        );
        table_header(&mut out, "verify finds");
        for row in &self.rows {
            let cells = row.cells.iter().map(Cell::outcomes);
            line(&mut out, &row.name, cells.chain([row.found()]));
        }
        for row in self.rows.iter().filter(|row| row.cells.iter().any(|cell| cell.crashed() > 0)) {
            let _ = write!(out, "\nCrashes of {}: {}.\n", row.name, row.crashes());
        }
        let salvages = self.rows.iter().filter_map(Row::salvage_stats).flatten();
        let _ = write!(
            out,
            "\n## Samples that can still be read\n\nMean share in % of samples that are read from the damaged file with the right \
             values. A reader that returns wrong values does not say which. Trials in which salvage returned a wrong value: \
             {}.\n\n",
            salvages.map(|salvage_stats| salvage_stats.wrong).sum::<u32>()
        );
        table_header(&mut out, "");
        for row in &self.rows {
            line(&mut out, &row.name, row.cells.iter().map(|cell| percent(cell.read / cell.trials(), 2)));
            if let Some(salvage_stats) = row.salvage_stats() {
                let shares = salvage_stats
                    .iter()
                    .zip(&row.cells)
                    .map(|(salvage_stats, cell)| salvage_stats.salvaged / cell.trials());
                line(&mut out, &format!("{}, salvage", row.name), shares.map(|share| percent(share, 2)));
            }
        }
        out.push_str("\n## Peers\n\n");
        self.rows.iter().for_each(|row| _ = writeln!(out, "* {}: {}", row.name, row.about));
        out.push_str("\n## Data\n\n");
        self.origins.iter().for_each(|(name, origin)| _ = writeln!(out, "* {name}: {origin}"));
        out
    }

    pub fn json(&self) -> Result<String> {
        let row = |row: &Row| {
            let cells = row.cells.iter().zip(Kind::ALL).map(|(cell, kind)| cell.json(kind));
            json!({ "name": row.name, "about": row.about, "damages": cells.collect::<Vec<_>>() })
        };
        let origin = |(name, origin): &(&str, String)| json!({ "name": name, "origin": origin });
        let value = json!({
            "schema": SCHEMA,
            "trials": self.trials,
            "seed": self.seed,
            "datasets": self.origins.iter().map(origin).collect::<Vec<_>>(),
            "peers": self.rows.iter().map(row).collect::<Vec<_>>(),
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}

/// Writes the header of a table. If `last` is not empty, it is the name of an additional column.
fn table_header(out: &mut String, last: &str) {
    let names = Kind::ALL.map(Kind::name).into_iter().chain((!last.is_empty()).then_some(last));
    let columns = names.clone().count();
    line(out, "", names.map(str::to_owned));
    let _ = writeln!(out, "|---|{}", "--:|".repeat(columns));
}

fn line(out: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let _ = writeln!(out, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

/// Formats a percentage, rounded down so that 100 means all.
fn percent(share: f64, decimals: usize) -> String {
    let unit = 10_f64.powi(decimals as i32);
    let value = (share * 100.0 * unit + 1e-6).floor() / unit;
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.decimals$}") }
}
