//! Checks a body alone: its checksum, and the content of its parts. Any thread can do that,
//! whatever the others find.

use crate::checksum::Crc;
use crate::codec::{ChunkDecoder, SideFacts};
use crate::format::chunk::ChunkHead;
use crate::format::region::{RegionHead, RegionKind};
use crate::format::schema::Layout;
use crate::open::source::{Source, check_inside, fetch};
use crate::read::fetch::{FetchScratch, fetch_one};
use crate::{Error, Result};

/// The most bytes that are fetched at once if nothing is decoded.
const BLOCK_BYTES: u64 = 1 << 20;

/// The result of the check of a body.
pub(super) enum Body {
    /// Not read.
    Unread,
    /// Unreadable, or in breach of.
    Damaged(Error),
    /// Not decoded; the checksum is right.
    Intact,
    /// Decoded; the checksum is right. Contains the facts of the content, or its error.
    Decoded(Result<SideFacts>),
}

/// Checks bodies, one after the other, in memory that it reuses.
pub(super) struct BodyCheck<'a> {
    source: &'a dyn Source,
    /// Of all columns.
    layouts: &'a [Layout],
    decoder: Option<ChunkDecoder>,
    scratch: FetchScratch,
}

impl<'a> BodyCheck<'a> {
    pub(super) fn new(source: &'a dyn Source, layouts: &'a [Layout], decode: bool) -> Self {
        Self { source, layouts, decoder: decode.then(ChunkDecoder::new), scratch: FetchScratch::default() }
    }

    /// Checks the body of a chunk or a table. (Others are small, and mean nothing alone.)
    pub(super) fn check(&mut self, head: &RegionHead) -> Body {
        let Self { source, layouts, decoder, scratch } = self;
        let chunk = ChunkHead::parse(head, layouts.len()).ok().filter(|_| head.kind == RegionKind::Chunk);
        let column = chunk.as_ref().and_then(|chunk| layouts.get(usize::try_from(chunk.column).ok()?));
        if let (Some(decoder), Some(chunk), Some(layout)) = (decoder, &chunk, column) {
            let decoded = fetch_one(*source, &(head.body_offset()..head.end()), scratch, |body| {
                head.check_body(body)?;
                Ok(decoder.check(layout, chunk, body))
            });
            return decoded.map_or_else(Body::Damaged, Body::Decoded);
        }
        check_sum(*source, head, scratch).map_or_else(Body::Damaged, |()| Body::Intact)
    }
}

/// Reads a whole body and checks.
pub(super) fn load_body<'b>(source: &'b dyn Source, head: &RegionHead, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
    let body = fetch(source, head.body_offset(), length, buffer)?;
    head.check_body(body)?;
    Ok(body)
}

/// Checks of a body, which is fetched in blocks.
fn check_sum(source: &dyn Source, head: &RegionHead, scratch: &mut FetchScratch) -> Result<()> {
    check_inside(source, head.body_offset(), usize::try_from(head.body_bytes).unwrap_or(usize::MAX))?;
    let mut crc = Crc::new();
    let mut at = head.body_offset();
    while at < head.end() {
        let end = head.end().min(at.saturating_add(BLOCK_BYTES));
        fetch_one(source, &(at..end), scratch, |block| {
            crc.add(block);
            Ok(())
        })?;
        at = end;
    }
    head.check_body_crc(crc.finish())
}
