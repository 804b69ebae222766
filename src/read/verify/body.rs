//! What a body says for itself: its checksum, and what its parts decode to. Any thread can tell, whatever the others find.

use crate::checksum::Crc;
use crate::codec::{ChunkDecoder, SideFacts};
use crate::format::chunk::ChunkHead;
use crate::format::region::{RegionHead, RegionKind};
use crate::format::schema::Layout;
use crate::le::u64_of;
use crate::open::source::{Source, fetch, read};
use crate::{Error, Result};

/// Bytes read at once where the file is not in memory and nothing is decoded.
const BLOCK_BYTES: usize = 1 << 20;

/// What was found of a body.
pub(super) enum Body {
    /// It was not looked at.
    Unread,
    /// It cannot be read, or breaks.
    Damaged(Error),
    /// Its checksum is right, and it was not decoded.
    Intact,
    /// Its checksum is right; what it holds, or what is wrong with that.
    Decoded(Result<SideFacts>),
}

/// Checks bodies, one after the other, in memory that it reuses.
pub(super) struct BodyCheck<'a> {
    source: &'a dyn Source,
    /// Of all columns.
    layouts: &'a [Layout],
    decoder: Option<ChunkDecoder>,
    buffer: Vec<u8>,
}

impl<'a> BodyCheck<'a> {
    pub(super) fn new(source: &'a dyn Source, layouts: &'a [Layout], decode: bool) -> Self {
        Self { source, layouts, decoder: decode.then(ChunkDecoder::new), buffer: Vec::new() }
    }

    /// Checks the body of a chunk or a table. (Others are small, and mean nothing alone.)
    pub(super) fn check(&mut self, head: &RegionHead) -> Body {
        let chunk = ChunkHead::parse(head, self.layouts.len()).ok().filter(|_| head.kind == RegionKind::Chunk);
        let column = chunk.as_ref().and_then(|chunk| self.layouts.get(usize::try_from(chunk.column).ok()?));
        if let (Some(decoder), Some(chunk), Some(layout)) = (&mut self.decoder, &chunk, column) {
            return match load_body(self.source, head, &mut self.buffer) {
                Ok(body) => Body::Decoded(decoder.check(layout, chunk, body)),
                Err(error) => Body::Damaged(error),
            };
        }
        let checked = match self.source.as_bytes() {
            Some(_) => load_body(self.source, head, &mut self.buffer).map(|_| ()),
            None => stream_body(self.source, head, &mut self.buffer),
        };
        checked.map_or_else(Body::Damaged, |()| Body::Intact)
    }
}

/// A body in one piece.
pub(super) fn load_body<'b>(source: &'b dyn Source, head: &RegionHead, buffer: &'b mut Vec<u8>) -> Result<&'b [u8]> {
    let length = usize::try_from(head.body_bytes).unwrap_or(usize::MAX);
    let body = fetch(source, head.body_offset(), length, buffer)?;
    head.check_body(body)?;
    Ok(body)
}

/// of a body that is not held in memory.
fn stream_body(source: &dyn Source, head: &RegionHead, buffer: &mut Vec<u8>) -> Result<()> {
    let mut crc = Crc::new();
    let mut at = head.body_offset();
    while at < head.end() {
        let length = usize::try_from(head.end() - at).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        if buffer.len() < length {
            buffer.resize(length, 0); // never shorter, or it would be filled again and again
        }
        let block = buffer.get_mut(..length).unwrap_or(&mut []);
        read(source, at, block)?;
        crc.add(block);
        at = at.saturating_add(u64_of(length));
    }
    head.check_body_crc(crc.finish())
}
