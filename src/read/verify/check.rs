//! The check of a file from its first byte to its last.

use super::batch::Batch;
use super::body::BodyCheck;
use super::findings::Findings;
use super::met_tables::MetTables;
use super::options::VerifyOptions;
use super::report::{VerifyReport, passing, whole_file};
use super::span::span_bytes;
use super::walk::Walk;
use crate::Result;
use crate::error::go_on;
use crate::format::region::HEAD;
use crate::open::{Source, open_header, open_last_commit};

/// Checks every byte of a file: structure, checksums, padding, and that all parts agree (chapter 10
/// of the specification).
///
/// Damage is reported, not returned, and so is a file whose writer has not finished: the
/// [`DamageKind`](super::DamageKind) of each finding, and [`VerifyReport::state`], tell one from
/// the other. An error means that the source could not be read, that memory ran out, or that the
/// file needs a newer release or another build. Works on files that cannot be opened.
///
/// Cost: one pass over the file, at the speed of its source or of CRC-32 on each thread. Small
/// chunks are fetched several MiB at a time, see [`Source::coalesce`]. Memory: 40 bytes for each
/// chunk of a commit, and for each thread at most 7 MiB and, if it decodes, the largest chunk,
/// stored and decoded. A damaged chunk in blocks is read again, and its validity and shape are
/// decoded.
pub fn verify(source: &dyn Source, mut options: VerifyOptions<'_>) -> Result<VerifyReport> {
    let mut report = VerifyReport { file_bytes: source.byte_count(), ..VerifyReport::default() };
    let header = match open_header(source) {
        Ok(header) => header,
        Err(error) => {
            report.damages.push(whole_file(source, passing(error)?));
            return Ok(report);
        }
    };
    let (end, trailer_crc, chunk_count) = match open_last_commit(source, &header) {
        Ok(commit) => {
            commit.check_encodings(&header.schema)?;
            report.sample_count = Some(commit.footer.sample_count);
            let chunks = commit.footer.columns.iter().map(|facts| facts.chunk_count);
            let end = commit.trailer_offset.saturating_add(HEAD);
            (end, commit.trailer_crc, chunks.fold(0, u64::saturating_add))
        }
        Err(error) => {
            passing(error)?; // the walk will meet it, and name the offset
            (source.byte_count(), 0, 0)
        }
    };
    let span_bytes = span_bytes(source, end.checked_div(chunk_count));
    let layouts = header.schema.columns.iter().map(|column| column.layout()).collect::<Result<Vec<_>>>()?;
    let tables = MetTables::new(source, header.header.file_id);
    let worker = |_| BodyCheck::new(source, &layouts, &tables, options.decode);
    let mut workers: Vec<_> = (0..options.threads.max(1)).map(worker).collect();
    let mut walk = Walk::new(source, &header, end);
    let mut findings = Findings::new(source, &header, options.decode);
    loop {
        let (met, error) = Batch::check(&mut walk, &tables, &mut workers, span_bytes);
        let is_over = met.is_empty();
        met.into_iter().try_for_each(|(met, body)| findings.add(met, body))?;
        if let Some(error) = error {
            return Err(error);
        }
        if is_over {
            findings.finish(end, trailer_crc, &mut report)?;
            return Ok(report);
        }
        if let Some(progress) = &mut options.progress {
            go_on(progress(walk.at()))?;
        }
    }
}
