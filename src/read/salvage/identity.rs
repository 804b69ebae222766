//! Identifies the file: its id and its schema, from the header or, if that is damaged, from a
//! footer.

use super::scan::FoundRegion;
use crate::format::footer::Footer;
use crate::format::header::Header;
use crate::format::region::{FileId, RegionHead, RegionKind};
use crate::format::{Schema, schema_block};
use crate::open::body;
use crate::open::source::Source;
use crate::{Error, ErrorKind, Result};
use std::collections::HashMap;

/// The properties that all regions of the file share.
pub(super) struct Identity {
    pub file_id: FileId,
    pub schema: Schema,
    pub schema_block: Vec<u8>,
    /// The alignment, unless the header is damaged.
    pub alignment: Option<u32>,
}

/// Returns the file to which most of the intact chunks belong, among those with a known schema.
///
/// Blocks of another file may have replaced some blocks of this one, even its header.
pub(super) fn identify(source: &dyn Source, regions: &[FoundRegion]) -> Result<Identity> {
    let mut chunk_counts: HashMap<FileId, u64> = HashMap::new();
    for region in regions.iter().filter(|region| region.is_intact && region.head.kind == RegionKind::Chunk) {
        *chunk_counts.entry(region.head.file_id).or_default() += 1;
    }
    let chunk_count = |id: FileId| chunk_counts.get(&id).copied().unwrap_or(0);
    let mut best: Option<Identity> = None;
    // backwards: the last footer describes the most, and the header, which comes last, more than
    // any footer
    for region in regions.iter().rev().filter(|region| region.is_intact) {
        let is_better = |found: &Identity| {
            let (new, old) = (chunk_count(region.head.file_id), chunk_count(found.file_id));
            new > old || (new == old && region.head.kind == RegionKind::Header)
        };
        let describes = matches!(region.head.kind, RegionKind::Header | RegionKind::Footer);
        if describes && best.as_ref().is_none_or(is_better) {
            match described(source, &region.head) {
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

/// Reads the identity of the file from a header or a footer.
fn described(source: &dyn Source, head: &RegionHead) -> Result<Identity> {
    let body = body(source, head)?;
    let (alignment, schema_block) = if head.kind == RegionKind::Header {
        (Some(Header::parse(head)?.alignment), body)
    } else {
        Footer::flags(head).check()?;
        (None, Footer::schema_block(&body)?.to_vec())
    };
    let schema = schema_block::parse(&schema_block)?;
    Ok(Identity { file_id: head.file_id, schema, schema_block, alignment })
}
