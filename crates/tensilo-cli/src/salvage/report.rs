//! The report of `tensilo salvage`, as a JSON document and as text.

use super::ranges::{pairs, ranges, unconfirmed_remark};
use crate::output::{Output, shown};
use crate::terminal::{output_width, write_wrapped};
use crate::text::human;
use crate::text::{Cells, Table};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use tensilo::Summary;
use tensilo::salvage::Salvaged;

/// The result of a salvage, and the file that was written.
pub(crate) struct SalvageReport<'a> {
    pub(crate) salvaged: &'a Salvaged,
    pub(crate) written: Option<(&'a Path, &'a Summary<Output>)>,
}

impl SalvageReport<'_> {
    /// Returns whether every sample is there and confirmed.
    pub(super) fn is_whole(&self) -> bool {
        let Salvaged { losses, unconfirmed, end_is_known, .. } = self.salvaged;
        losses.is_empty() && unconfirmed.is_empty() && *end_is_known
    }

    /// Returns the JSON document of schema `tensilo.salvage/1`.
    pub(crate) fn document(&self) -> Value {
        let Salvaged { reader, losses, unconfirmed, .. } = self.salvaged;
        let samples = losses.columns.iter().zip(&unconfirmed.columns);
        let columns = reader.columns().zip(samples).map(|(column, ((name, lost), (_, unconfirmed)))| {
            let facts = column.facts();
            json!({
                "name": name,
                "chunk_count": facts.chunk_count,
                "stored_bytes": facts.stored_bytes,
                "lost_count": lost.count(),
                "lost": pairs(lost.ranges()),
                "unconfirmed_count": unconfirmed.count(),
                "unconfirmed": pairs(unconfirmed.ranges()),
            })
        });
        let output = self.written.map(|(path, summary)| {
            json!({
                "path": path.to_string_lossy(),
                "file_bytes": summary.file_bytes,
                "sample_count": summary.sample_count,
                "file_id": summary.file_id.to_string(),
                "content_id": summary.content_id.to_string(),
            })
        });
        json!({
            "schema": "tensilo.salvage/1",
            "ok": self.is_whole(),
            "file_bytes": reader.file_bytes(),
            "sample_count": reader.sample_count(),
            "header_is_intact": self.salvaged.header_is_intact,
            "committed_samples": self.salvaged.committed_samples,
            "end_is_known": self.salvaged.end_is_known,
            "columns": columns.collect::<Vec<_>>(),
            "output": output,
        })
    }

    /// Writes a table of the columns, and remarks on the file.
    pub(super) fn write_text(&self, quiet: bool, output: &mut impl Write) -> io::Result<()> {
        self.write_columns(output)?;
        self.write_unconfirmed(output)?;
        if quiet {
            return Ok(());
        }
        writeln!(output)?;
        for remark in self.remarks() {
            write_wrapped(output, &remark, output_width())?;
        }
        Ok(())
    }

    fn write_columns(&self, output: &mut impl Write) -> io::Result<()> {
        let right = ["chunks", "bytes", "lost"].map(|name| (name, Cells::Number));
        let [chunks, bytes, lost] = right;
        let mut table = Table::new(&[("column", Cells::Name), chunks, bytes, lost, ("lost samples", Cells::Prose)]);
        for (column, (name, lost)) in self.salvaged.reader.columns().zip(&self.salvaged.losses.columns) {
            let facts = column.facts();
            table.row(vec![
                human::excerpt(name),
                facts.chunk_count.to_string(),
                human::bytes(facts.stored_bytes),
                lost.count().to_string(),
                ranges(lost.ranges()),
            ]);
        }
        table.write(output, output_width())
    }

    /// Writes the unconfirmed samples, once for columns that follow each other and have the same.
    fn write_unconfirmed(&self, output: &mut impl Write) -> io::Result<()> {
        let columns = &self.salvaged.unconfirmed.columns;
        for same in columns.chunk_by(|(_, one), (_, other)| one == other) {
            let Some((name, unconfirmed)) = same.first().filter(|(_, unconfirmed)| !unconfirmed.is_empty()) else {
                continue;
            };
            let last =
                same.last().filter(|_| same.len() > 1).map(|(name, _)| format!(" to {:?}", human::excerpt(name)));
            let columns = format!("{:?}{}", human::excerpt(name), last.unwrap_or_default());
            let word = if same.len() > 1 { "columns" } else { "column" };
            let line = format!("{word} {columns}: unconfirmed {}", ranges(unconfirmed.ranges()));
            write_wrapped(output, &line, output_width())?;
        }
        Ok(())
    }

    fn remarks(&self) -> Vec<String> {
        let Salvaged { reader, losses, unconfirmed, header_is_intact, committed_samples, end_is_known, .. } =
            self.salvaged;
        let mut remarks = Vec::new();
        if !header_is_intact {
            remarks.push("The header is damaged: the columns are those that a footer names.".to_owned());
        }
        match committed_samples {
            None => remarks.push("No footer is intact.".to_owned()),
            Some(committed) if *committed < reader.sample_count() => {
                remarks.push(format!("Samples after {committed} come after the last commit whose footer is intact."));
            }
            Some(_) => {}
        }
        if !end_is_known {
            remarks.push("The end of the file is missing or damaged: there may have been more samples.".to_owned());
        }
        let (any, all) = (losses.of_all().count(), reader.sample_count());
        let unconfirmed = unconfirmed.of_all().count();
        remarks.push(match any {
            0 if unconfirmed == 0 => format!("All {all} samples are intact."),
            0 => format!("All {all} samples can be read."),
            _ => format!("Of {all} samples, {} are intact in all columns.", all.saturating_sub(any)),
        });
        if unconfirmed > 0 {
            remarks.push(unconfirmed_remark(unconfirmed));
        }
        if let Some((path, summary)) = self.written {
            let (samples, bytes) = (summary.sample_count, human::bytes(summary.file_bytes));
            remarks.push(format!("{}: {samples} samples, {bytes}", shown(path)));
        }
        remarks
    }
}
