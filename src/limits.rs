//! The limits of chapter 8 of the format specification. Writers and readers enforce the same
//! limits. If only readers enforced them, writers could make files that no reader opens. If only
//! writers enforced them, readers would not be protected against malformed files.

/// The maximum number of columns in a file.
pub const COLUMNS: usize = 65_536;
/// The maximum size of a column name in bytes.
pub const NAME_BYTES: usize = 1_024;
/// The maximum number of dimensions of an item. An item is a sample, or a member of an innermost
/// list.
pub const DIMENSIONS: usize = 16;
/// The maximum number of levels of lists in a nested column.
pub const LEVELS: usize = 16;
/// The maximum number of names in a path, and therefore the maximum depth of structs. A column with
/// a longer path is not placed in a struct, because deeper structs would take too much stack.
pub const PATH_NAMES: usize = 128;
/// The maximum extent in a shape.
pub const EXTENT: u32 = u32::MAX - 1;
/// The maximum size of a metadata key in bytes.
pub const METADATA_KEY_BYTES: usize = 1_024;
/// The maximum size of a metadata value in bytes. The schema block, which contains all values, has
/// the same limit.
pub const METADATA_VALUE_BYTES: usize = 16 << 20;
/// The maximum number of entries in one metadata map.
pub const METADATA_ENTRIES: usize = 65_536;
/// The maximum size of a schema block in bytes.
pub const SCHEMA_BYTES: u32 = 16 << 20;
/// The maximum number of samples in a chunk.
pub const CHUNK_SAMPLES: u32 = 1 << 24;
/// The maximum size of a chunk's body, and of its decoded parts together, in bytes.
pub const CHUNK_BYTES: u32 = u32::MAX - 0xFFFF;
/// The maximum decoded size, in bytes, of a chunk that holds more than one sample.
pub const SHARED_CHUNK_BYTES: u32 = 64 << 20;
/// The maximum decoded size, in bytes, of the validity and shape of a chunk of a nested column.
/// These parts have the lengths and nulls of its lists and items. The limit also applies to a chunk
/// of one sample, so it limits what a list can contain: 16,777,215 texts without nulls, for
/// example.
pub const VALIDITY_AND_SHAPE_BYTES: u32 = 64 << 20;
/// The maximum number of items in a chunk of a nested column, if the items have a fixed shape
/// without elements. The limit also applies to a chunk of one sample.
pub const EMPTY_ITEMS: u32 = 1 << 24;
/// The maximum number of elements in a block, or of bytes if the block has texts or byte strings.
pub const BLOCK_ELEMENTS: usize = 65_535;
/// The maximum size of a table's body in bytes.
pub const TABLE_BYTES: u32 = 16 << 20;
/// The maximum size of a Zstandard dictionary in bytes.
pub const ZSTD_DICTIONARY_BYTES: u32 = 1 << 20;
/// The maximum size of an index page's body in bytes.
pub(crate) const INDEX_PAGE_BYTES: u32 = 4_032;
/// The maximum number of tables in a file.
pub const TABLES: usize = 65_536;
/// The maximum size of a footer's body in bytes.
pub const FOOTER_BYTES: u32 = 256 << 20;
/// The maximum number of runs of a column, and therefore of commits of a file. A run lists the
/// chunks of a column that one commit added.
pub const CHUNK_RUNS: usize = 65_536;
/// The maximum number of samples in a file.
pub const SAMPLES: u64 = i64::MAX as u64; // exact: 2^63 - 1
