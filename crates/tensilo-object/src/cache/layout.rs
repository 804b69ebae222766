//! The layout of the file of a piece: checksums, and then the bytes of the object.

/// The bytes of a piece; the last one of an object may have fewer.
pub(super) const PIECE_BYTES: u64 = 1 << 20;
/// The bytes of a line, which has a checksum of its own: about a block of the format.
pub(super) const LINE_BYTES: u64 = 8 << 10;
/// A piece begins with the checksums of its lines, 4 bytes each, and these are as many as a whole
/// piece has.
pub(super) const SUMS_BYTES: u64 = 4 * PIECE_BYTES / LINE_BYTES;
