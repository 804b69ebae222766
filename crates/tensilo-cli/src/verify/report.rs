//! The report of `tensilo verify`, as a JSON document and as text.

use crate::text::{damage_line, human};
use serde_json::{Value, json};
use std::io::{self, Write};
use tensilo::facts::RegionKind;
use tensilo::verify::{Damage, DamageKind, FileState, VerifyReport};

/// Returns the JSON document of schema `tensilo.verify/1`.
pub(super) fn document(report: &VerifyReport) -> Value {
    let damages: Vec<Value> = report.damages.iter().map(damage_object).collect();
    json!({
        "schema": "tensilo.verify/1",
        "ok": report.state() == FileState::Intact,
        "state": report.state().name(),
        "file_bytes": report.file_bytes,
        "chunk_count": report.chunk_count,
        "sample_count": report.sample_count,
        "damages": damages,
    })
}

fn damage_object(damage: &Damage) -> Value {
    let range = &damage.file_range;
    json!({
        "kind": damage.kind.name(),
        "offset": range.start,
        "bytes": range.end.saturating_sub(range.start),
        "region": damage.region.map(RegionKind::name),
        "column": damage.column.as_deref(),
        "samples": damage.samples.as_ref().map(|samples| [samples.start, samples.end]),
        "rule": damage.error.rule(),
        "message": damage.error.message(),
    })
}

/// Writes the report. `deep`: chunks were decoded, so that those which need a damaged table are
/// among the damages.
pub(super) fn write_text(report: &VerifyReport, deep: bool, quiet: bool, output: &mut impl Write) -> io::Result<()> {
    for damage in &report.damages {
        writeln!(output, "{}", damage_line(damage))?;
    }
    if quiet {
        return Ok(());
    }
    if !deep && report.damages.iter().any(|damage| damage.region == Some(RegionKind::Table)) {
        writeln!(output, "chunks that need a damaged table are lost with it; --deep names their samples")?;
    }
    let (bytes, chunks) = (report.file_bytes, report.chunk_count);
    let samples =
        report.sample_count.map_or_else(|| "no readable commit".to_owned(), |count| format!("{count} samples"));
    match report.state() {
        FileState::Intact => writeln!(output, "ok: {bytes} bytes, {chunks} chunks, {samples}"),
        FileState::Unfinished => writeln!(
            output,
            "unfinished: {bytes} bytes, {chunks} chunks, {samples}; all of these are intact, but a writer is at work or \
             was stopped"
        ),
        _ => {
            let is_damage = |damage: &&Damage| damage.kind == DamageKind::Damaged;
            let ranges = human::count(
                u64::try_from(report.damages.iter().filter(is_damage).count()).unwrap_or(u64::MAX),
                "range",
            );
            writeln!(output, "damaged: {ranges} in {bytes} bytes; {chunks} chunks are intact, {samples}")
        }
    }
}
