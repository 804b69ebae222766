//! The first pass over a damaged file: finds its regions, and decides which file they belong to.
//!
//! Offsets stated in the file are not trusted. The scan tests every multiple of 64 for a region
//! header, and accepts it if its CRC is correct and it states the offset at which it was found. The
//! body is verified in the same pass. An intact body is skipped, because it can contain bytes that
//! look like headers. After a damaged body, the scan continues directly after the header, so that
//! it finds regions that were written over the body.
//!
//! Then the file is identified: its id and schema come from the header or, if that is damaged, from
//! a footer. Bytes of another file can have replaced bytes of this one, even its header. So if
//! headers or footers of several files are intact, the file with the largest number of intact
//! chunks is chosen.
//!
//! Both this pass and the one that collects chunks report their progress to the caller.

use crate::error::check_cancelled;
use crate::format::file_header::Header;
use crate::format::footer::Footer;
use crate::format::region::{FileId, HEADER_LEN, RegionHeader, RegionKind, align};
use crate::format::{Schema, schema_block};
use crate::open::source::{Source, fetch};
use crate::open::{HeaderScan, ReadSizes, body};
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// A region whose header is intact and lies at the offset that it states.
pub(super) struct Region {
    pub header: RegionHeader,
    /// Whether the body is complete and its checksum is correct.
    pub is_intact: bool,
}

/// The first read is only 64 bytes long, because the next header usually follows the region
/// directly.
const READS: ReadSizes = ReadSizes { first: HEADER_LEN, second: 4 << 10, max: 1 << 20 };

/// Returns all regions whose headers obey, in file order. Unreadable bytes count as
/// damaged.
pub(super) fn regions(source: &dyn Source, progress: &mut ScanProgress<'_>) -> Result<Vec<Region>> {
    let mut regions = Vec::new();
    let mut buffer = Vec::new();
    let mut scan = HeaderScan::new(source, READS).skip_unreadable();
    let mut at = 0;
    let end = source.byte_count();
    while let Some(header) = scan.first(at, end, |found| RegionHeader::parse(found.bytes, found.offset).ok())? {
        let is_intact = is_intact(source, &header, &mut buffer)?;
        at = if is_intact { align(header.end(), HEADER_LEN) } else { header.body_offset() };
        regions.push(Region { header, is_intact });
        progress.scanned(at)?;
    }
    progress.scanned(end)?;
    Ok(regions)
}

/// Returns whether a body can be read and its checksum is correct. Fails only for reasons outside
/// the file, such as lack of memory.
fn is_intact(source: &dyn Source, header: &RegionHeader, buffer: &mut Vec<u8>) -> Result<bool> {
    let length =
        usize::try_from(header.body_bytes).map_err(|_| Error::over_limit("a region is too large for this machine"))?;
    let body = fetch(source, header.body_offset(), length, buffer);
    match body.and_then(|body| header.check_body(body)) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The properties that all regions of the file share.
pub(super) struct Identity {
    pub file_id: FileId,
    pub schema: Schema,
    pub schema_block: Vec<u8>,
    /// The alignment; `None` if the header is damaged.
    pub alignment: Option<u32>,
}

/// Returns the identity of the file to which most intact chunks belong, among the files with an
/// intact header or footer.
pub(super) fn identify(source: &dyn Source, regions: &[Region]) -> Result<Identity> {
    let mut chunk_counts: HashMap<FileId, u64> = HashMap::new();
    for region in regions.iter().filter(|region| region.is_intact && region.header.kind == RegionKind::Chunk) {
        *chunk_counts.entry(region.header.file_id).or_default() += 1;
    }
    let chunk_count = |id: FileId| chunk_counts.get(&id).copied().unwrap_or(0);
    let mut best: Option<Identity> = None;
    // backwards, because the last footer is the most complete; the header comes last and takes
    // precedence over any footer
    for region in regions.iter().rev().filter(|region| region.is_intact) {
        let is_better = |found: &Identity| {
            let (new, old) = (chunk_count(region.header.file_id), chunk_count(found.file_id));
            new > old || (new == old && region.header.kind == RegionKind::FileHeader)
        };
        let describes = matches!(region.header.kind, RegionKind::FileHeader | RegionKind::Footer);
        if describes && best.as_ref().is_none_or(is_better) {
            match read_identity(source, &region.header) {
                Ok(identity) => best = Some(identity),
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
    }
    best.ok_or_else(|| {
        let message = format!(
            "neither the header nor any footer is intact, so the columns are unknown; {} chunks are intact",
            chunk_counts.values().sum::<u64>()
        );
        Error::corrupt("R-2.9", message).with_offset(0)
    })
}

/// Reads the identity of a file from its header or a footer.
fn read_identity(source: &dyn Source, header: &RegionHeader) -> Result<Identity> {
    let body = body(source, header)?;
    let (alignment, schema_block) = if header.kind == RegionKind::FileHeader {
        (Some(Header::parse(header)?.alignment), body)
    } else {
        Footer::flags(header).check()?;
        (None, Footer::schema_block(&body)?.to_vec())
    };
    let schema = schema_block::parse(&schema_block)?;
    Ok(Identity { file_id: header.file_id, schema, schema_block, alignment })
}

/// Counts the examined bytes, in one pass or two.
pub(super) struct ScanProgress<'a> {
    report: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>,
    done: u64,
    total: u64,
    decodes: bool,
}

impl<'a> ScanProgress<'a> {
    pub(super) fn new(total: u64, report: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>) -> Self {
        Self { report, done: 0, total, decodes: false }
    }

    /// Records that the first pass has reached offset `at`.
    fn scanned(&mut self, at: u64) -> Result<()> {
        self.done = at.min(self.total);
        self.report_progress()
    }

    /// Begins the second pass, which decodes these regions.
    pub(super) fn begin_decoding<'h>(&mut self, headers: impl Iterator<Item = &'h RegionHeader>) {
        self.decodes = true;
        let bytes = headers.map(|header| u64::from(header.body_bytes)).fold(0, u64::saturating_add);
        self.total = self.total.saturating_add(bytes);
    }

    /// Records that the second pass has processed a region.
    pub(super) fn collected(&mut self, header: &RegionHeader) -> Result<()> {
        if !self.decodes {
            return Ok(());
        }
        self.done = self.done.saturating_add(header.body_bytes.into()).min(self.total);
        self.report_progress()
    }

    fn report_progress(&mut self) -> Result<()> {
        self.report.as_mut().map_or(Ok(()), |report| check_cancelled(report(self.done, self.total)))
    }
}
