//! The limits of chapter 8 of the format specification. Writers and readers have the same ones: a
//! limit of readers only would make files that no reader opens, and a limit of writers only would
//! not protect readers.

/// Columns of a file.
pub const COLUMNS: usize = 65_536;
/// Bytes of a column name.
pub const NAME_BYTES: usize = 1_024;
/// Dimensions of an item: a sample, or a member of a list of the last level.
pub const RANK: usize = 16;
/// Levels of lists in a nested column.
pub const LEVELS: usize = 16;
/// Names of a path that is followed: the depth of structs. Deeper ones would take too much stack.
pub const PATH_NAMES: usize = 128;
/// One extent of a shape.
pub const EXTENT: u32 = u32::MAX - 1;
/// Bytes of a metadata key.
pub const METADATA_KEY_BYTES: usize = 1_024;
/// Bytes of a metadata value. The schema block, which contains all values, has the same limit.
pub const METADATA_VALUE_BYTES: usize = 16 << 20;
/// Entries of one metadata map.
pub const METADATA_ENTRIES: usize = 65_536;
/// Bytes of a schema block.
pub const SCHEMA_BYTES: u32 = 16 << 20;
/// Samples in a chunk.
pub const CHUNK_SAMPLES: u32 = 1 << 24;
/// Bytes of a chunk's body, and of its decoded parts together.
pub const CHUNK_BYTES: u32 = u32::MAX - 0xFFFF;
/// Decoded bytes of a chunk that holds more than one sample.
pub const SHARED_CHUNK_BYTES: u32 = 64 << 20;
/// Decoded bytes of validity and shape of a chunk of a nested column: the lengths and nulls of its
/// lists and items. Applies to chunks of one sample too, so it bounds what a list can contain:
/// 16,777,215 texts without nulls, for example.
pub const VALIDITY_AND_SHAPE_BYTES: u32 = 64 << 20;
/// Items in a chunk of a nested column, if they have a fixed shape without elements. Applies to
/// chunks of one sample too.
pub const EMPTY_ITEMS: u32 = 1 << 24;
/// Elements of a block of a chunk; bytes of a block of text or bytes.
pub const BLOCK_ELEMENTS: usize = 65_535;
/// Bytes of a table's body.
pub const TABLE_BYTES: u32 = 16 << 20;
/// Bytes of a table that is a Zstandard dictionary.
pub const ZSTD_DICTIONARY_BYTES: u32 = 1 << 20;
/// Bytes of an index page's body.
pub(crate) const INDEX_PAGE_BYTES: u32 = 4_032;
/// Tables in a file.
pub const TABLES: usize = 65_536;
/// Bytes of a footer's body.
pub const FOOTER_BYTES: u32 = 256 << 20;
/// Runs of a column, and so commits of a file.
pub const RUNS: usize = 65_536;
/// Samples in a file.
pub const SAMPLES: u64 = i64::MAX as u64; // exact: 2^63 - 1
