//! `compare.json`: all results for programs, in seconds and bytes.

use super::Report;
use crate::measure::Stats;
use crate::run::{GATHER_SAMPLES, Row, Table};
use anyhow::Result;
use serde_json::{Value, json};

const SCHEMA: &str = "tensilo.compare/1";

impl Report {
    pub fn json(&self) -> Result<String> {
        let simd = self.simd.as_ref().map(|simd| {
            json!({
                "avx2_compiled": simd.has_avx2,
                "avx512_compiled": simd.has_avx512,
                "bitshuffle_gb_per_s": { "as_used": simd.chosen, "scalar": simd.scalar, "avx2": simd.avx2 },
            })
        });
        let value = json!({
            "schema": SCHEMA,
            "cpu": self.cpu,
            "kernels": self.kernels,
            "threads": 1,
            "rounds": self.settings.rounds,
            "min_seconds": self.settings.min_time.as_secs_f64(),
            "gathered_samples": GATHER_SAMPLES,
            "c_blosc2": simd,
            "datasets": self.tables.iter().map(table).collect::<Vec<_>>(),
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}

fn table(table: &Table) -> Value {
    let facts = &table.facts;
    json!({
        "name": facts.name,
        "origin": facts.origin,
        "dtype": facts.dtype,
        "shape": facts.shape.as_deref().unwrap_or(&[]),
        "nested": facts.is_nested(),
        "samples": facts.samples,
        "sample_bytes": facts.sample_bytes(),
        "raw_bytes": facts.raw_bytes,
        "peers": table.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(row: &Row) -> Value {
    json!({
        "name": row.name,
        "about": row.about,
        "choice": row.choice,
        "stays_decoded": row.stays_decoded,
        "family": row.family.name(),
        "stored_bytes": row.stored_bytes,
        "ratio": row.ratio(),
        "encode_gb_per_s": stats(row.rate(row.encode)),
        "decode_gb_per_s": stats(row.rate(row.decode)),
        "encode_s": stats(row.encode),
        "decode_s": stats(row.decode),
        "sample_s": stats(row.sample),
        "gather_s": stats(row.gather),
        "position_s": row.position.map(stats),
        "view_s": row.view.map(stats),
    })
}

fn stats(stats: Stats) -> Value {
    let Stats { min, low, median, high, max } = stats;
    json!({ "min": min, "q1": low, "median": median, "q3": high, "max": max })
}
