//! The body of a chunk, or what was read of it.

use std::ops::Range;

/// The body of a chunk; of one in blocks, perhaps only its front and some blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Body<'a> {
    /// The body up to any length.
    start: &'a [u8],
    /// Bytes from somewhere else in it.
    piece: &'a [u8],
    /// Their offset.
    piece_at: usize,
    is_mapped: bool,
}

impl<'a> Body<'a> {
    /// Returns a body that was read whole.
    pub(crate) fn whole(body: &'a [u8]) -> Self {
        Self { start: body, piece: &[], piece_at: 0, is_mapped: false }
    }

    /// Returns a body in a file that is mapped, or in memory otherwise.
    pub(crate) fn mapped(body: &'a [u8]) -> Self {
        Self { is_mapped: true, ..Self::whole(body) }
    }

    /// Returns a body of which the start was read, and a piece that is at byte `piece_at`.
    pub(crate) fn pieces(start: &'a [u8], piece_at: usize, piece: &'a [u8]) -> Self {
        Self { start, piece, piece_at, is_mapped: false }
    }

    /// Returns whether the bytes are perhaps in no cache of the processor: they were not just read.
    pub(crate) fn is_mapped(self) -> bool {
        self.is_mapped
    }

    /// Returns the start of the body; all of one that was read whole.
    pub(crate) fn start(self) -> &'a [u8] {
        self.start
    }

    /// Returns some bytes, if they were read.
    #[inline]
    pub(crate) fn get(self, range: Range<usize>) -> Option<&'a [u8]> {
        match self.start.get(range.clone()) {
            Some(bytes) => Some(bytes),
            None => {
                let start = range.start.checked_sub(self.piece_at)?;
                self.piece.get(start..range.end.checked_sub(self.piece_at)?)
            }
        }
    }
}
