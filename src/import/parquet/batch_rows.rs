//! Chooses the number of rows that a Parquet decoder yields at a time.
//!
//! A decoder uses the same number of rows for all its batches. To change the number, another
//! decoder must be started. It skips the rows that were already read, and decompresses their pages
//! again. So the number must not change often in a row group whose rows have very different sizes.
//!
//! The number also bounds the memory of a batch before its rows are known. A few bytes can expand
//! to very many: a row can have a long text from a dictionary, or a null whose type has fixed-size
//! lists. If a row has a text from a dictionary, it is assumed to have the longest text of that
//! dictionary. So a dictionary of short texts imposes no limit, even if it is large. A text that is
//! stored individually is at most as long as its page. If the pages of the row group together
//! exceed the limit of a batch, each row is assumed to be as large as the largest page. A row of
//! lists is assumed to have the mean number of values per row.

use super::pages::TextBytes;
use crate::bytes::le::u64_of;
use crate::import::arrow::decode::SLICE_BYTES;
use ::parquet::arrow::ProjectionMask;
use ::parquet::basic::Type;
use ::parquet::file::metadata::RowGroupMetaData;
use ::parquet::schema::types::ColumnDescriptor;

/// The number of rows in the first batch of a row group, from which the size of rows is estimated.
const FIRST_ROWS: usize = 64;
/// The maximum number of rows in a batch.
const MAX_ROWS: u64 = 8192;
/// The maximum total size, in bytes, of the texts in a batch that rows can share, such as texts of
/// a dictionary. The same maximum applies to the other texts. Together, they stay below the maximum
/// of Arrow's 32-bit text offsets.
const MAX_TEXT_BYTES: u64 = 1 << 30;
/// The size of a batch above which later batches get fewer rows. Smaller batches are cut into
/// slices.
const MAX_BATCH_BYTES: usize = 8 * SLICE_BYTES;
/// The maximum factor by which the number of rows grows at once, because later rows can be larger.
const MAX_GROWTH: usize = 16;
/// The minimum factor by which the number of rows must grow to justify another decoder, if that
/// decoder would have to skip more rows than the first batch of the row group has.
const MIN_GROWTH: usize = 8;

/// The number of rows in the batches of one row group.
pub(super) struct BatchRows {
    rows: usize,
    /// The maximum that the footer suggests. It is only an estimate, because dictionaries can make
    /// a file much smaller than its rows.
    max_rows: usize,
    /// The number of rows that the decoder skipped when it started.
    skipped: usize,
    /// The number of rows that the decoder has read since it started.
    read: usize,
    /// The size of these rows in bytes.
    bytes: usize,
}

impl BatchRows {
    /// Chooses the number of rows in the first batch of a row group.
    ///
    /// `texts` has the bounds for the texts of each column, with the mean number of values in a
    /// row. A row whose fields are null takes `null_bytes`.
    pub(super) fn of(
        group: &RowGroupMetaData,
        mask: &ProjectionMask,
        texts: &[(TextBytes, u64)],
        null_bytes: usize,
    ) -> Self {
        let by_nulls = SLICE_BYTES / null_bytes.max(1);
        Self::with_max(estimate_rows(group, mask).min(rows_of_texts(texts)).min(by_nulls).max(1))
    }

    fn with_max(max_rows: usize) -> Self {
        Self { rows: max_rows.min(FIRST_ROWS), max_rows, skipped: 0, read: 0, bytes: 0 }
    }

    pub(super) fn get(&self) -> usize {
        self.rows
    }

    /// Adapts the number to a batch that was read. Returns whether another decoder must be started.
    ///
    /// The number shrinks at once if the batch is too large. It grows only after the decoder has
    /// read as many rows as it skipped. So in total, growth causes at most twice as many rows to be
    /// skipped as the row group has.
    pub(super) fn adapt(&mut self, rows: usize, bytes: usize) -> bool {
        self.read = self.read.saturating_add(rows);
        self.bytes = self.bytes.saturating_add(bytes);
        let Some(next_rows) = self.fewer(rows, bytes).or_else(|| self.more()) else { return false };
        let skipped = self.skipped.saturating_add(self.read);
        *self = Self { rows: next_rows, max_rows: self.max_rows, skipped, read: 0, bytes: 0 };
        true
    }

    /// Returns whether another decoder would skip only a few rows.
    fn is_beginning(&self) -> bool {
        self.skipped == 0 && self.read <= FIRST_ROWS
    }

    fn fewer(&self, rows: usize, bytes: usize) -> Option<usize> {
        let fitting = fitting_rows(rows, bytes);
        let is_too_large = self.is_beginning() || bytes > MAX_BATCH_BYTES;
        (is_too_large && fitting <= self.rows / 2).then_some(fitting)
    }

    fn more(&self) -> Option<usize> {
        let max_rows = self.rows.saturating_mul(MAX_GROWTH).min(self.max_rows);
        let next_rows = fitting_rows(self.read, self.bytes).min(max_rows);
        let min_rows = self.rows.saturating_mul(if self.is_beginning() { 2 } else { MIN_GROWTH });
        (self.read >= self.skipped && next_rows >= min_rows).then_some(next_rows)
    }
}

/// Returns the number of rows that take about [`SLICE_BYTES`] if they are as large as the given
/// rows.
fn fitting_rows(rows: usize, bytes: usize) -> usize {
    (SLICE_BYTES / (bytes / rows.max(1)).max(1)).max(1)
}

/// Returns the number of rows that decode to about [`SLICE_BYTES`], estimated from the metadata of
/// the row group.
fn estimate_rows(group: &RowGroupMetaData, mask: &ProjectionMask) -> usize {
    let columns = group.columns().iter().enumerate().filter(|(i, _)| mask.leaf_included(*i));
    let bytes = columns.fold(1_u64, |sum, (_, column)| {
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        let decoded = positive(column.num_values()).saturating_mul(decoded_bytes(column.column_descr()));
        let text = column.unencoded_byte_array_data_bytes().map_or(0, positive);
        sum.saturating_add(decoded.saturating_add(text).max(positive(column.uncompressed_size())))
    });
    let rows = u64::try_from(group.num_rows()).unwrap_or(1).max(1);
    let target = u64_of(SLICE_BYTES);
    let rows = target / bytes.div_ceil(rows).max(1);
    usize::try_from(rows.clamp(1, MAX_ROWS)).unwrap_or(1)
}

/// Returns the number of rows whose texts are guaranteed to take at most [`MAX_TEXT_BYTES`].
fn rows_of_texts(texts: &[(TextBytes, u64)]) -> usize {
    let sum = |bytes: fn(&TextBytes) -> u64| {
        let all = texts.iter().map(|(texts, values)| bytes(texts).saturating_mul(*values));
        all.fold(0, u64::saturating_add)
    };
    let plain = texts.iter().map(|(texts, _)| texts.plain).fold(0, u64::saturating_add);
    let page = if plain > MAX_TEXT_BYTES { sum(|texts| texts.largest_page) } else { 0 };
    let row = sum(|texts| texts.repeated).saturating_add(page);
    usize::try_from(MAX_TEXT_BYTES / row.max(1)).unwrap_or(usize::MAX)
}

/// Returns the size in bytes of a decoded value and its levels of nesting, without the content of
/// byte arrays.
fn decoded_bytes(column: &ColumnDescriptor) -> u64 {
    const LEVEL_BYTES: u64 = 4;
    LEVEL_BYTES
        + match column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 | Type::BYTE_ARRAY => 16,
            Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.type_length()).unwrap_or(0),
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::input::file::InputFile;
    use crate::import::parquet::pages;
    use ::parquet::arrow::ArrowWriter;
    use ::parquet::basic::Compression;
    use ::parquet::file::metadata::ParquetMetaDataReader;
    use ::parquet::file::properties::WriterProperties;
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use std::path::Path;
    use std::sync::Arc;

    const ROWS: usize = 100_000;

    struct Outcome {
        batches: usize,
        /// The number of rows that decoders skipped.
        skipped: usize,
        /// The size in bytes of the largest batch except the first.
        largest: usize,
    }

    fn read(max_rows: usize, row_bytes: impl Fn(usize) -> usize) -> Outcome {
        let mut batch_rows = BatchRows::with_max(max_rows);
        let mut outcome = Outcome { batches: 0, skipped: 0, largest: 0 };
        let mut start = 0;
        while start < ROWS {
            let end = ROWS.min(start + batch_rows.get());
            let bytes = (start..end).map(&row_bytes).sum();
            outcome.batches += 1;
            outcome.largest = if start == 0 { 0 } else { outcome.largest.max(bytes) };
            outcome.skipped += if batch_rows.adapt(end - start, bytes) { end } else { 0 };
            start = end;
        }
        outcome
    }

    /// Returns 4 KiB for half of the rows, 8 KiB for a quarter, and so on, up to 64 MiB. The mean
    /// is 30 KiB.
    fn heavy_tailed(row: usize) -> usize {
        let mixed = (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        1 << (12 + mixed.leading_zeros()).min(26)
    }

    #[test]
    fn batches_of_even_rows_have_about_2_mib() {
        let small = read(8192, |_| 100);
        assert!(small.batches < 20 && small.skipped < 2 * 1100, "{} {}", small.batches, small.skipped);
        // a dictionary hides the size of the rows
        let large = read(8192, |_| 100_000);
        assert_eq!((large.skipped, large.largest), (64, 20 * 100_000));
        // the number of rows grows by a factor between two and eight
        let medium = read(8192, |_| 8000);
        assert_eq!((medium.skipped, medium.largest), (64, 262 * 8000));
    }

    #[test]
    fn a_long_text_of_a_dictionary_limits_the_rows_and_so_does_a_wide_null() {
        let texts = (0..9000).map(|row| if row == 8999 { "x".repeat(2 << 20) } else { format!("{}", row % 20) });
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let batch = RecordBatch::try_from_iter([("x", texts)]).unwrap();
        let properties = WriterProperties::builder().set_dictionary_page_size_limit(8 << 20);
        let properties = properties.set_compression(Compression::SNAPPY).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let file = InputFile::copied(Path::new("x"), bytes.as_slice()).unwrap().reader().unwrap();
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        let group = metadata.row_group(0);
        let texts = pages::check(&file, group.column(0), 9000, &metadata).unwrap();
        assert_eq!(texts.repeated, 2 << 20);
        let rows =
            |texts: &[(TextBytes, u64)], null_bytes| BatchRows::of(group, &ProjectionMask::all(), texts, null_bytes);
        assert_eq!(rows(&[], 0).max_rows, 8192);
        assert_eq!(rows(&[(texts, 1)], 0).max_rows, 512);
        assert_eq!(rows(&[], 1 << 20).get(), 2);
        assert_eq!(rows(&[], 1 << 30).get(), 1);
    }

    #[test]
    fn texts_limit_the_rows_only_if_they_can_be_very_long() {
        let texts = |repeated, plain, largest_page| (TextBytes { repeated, plain, largest_page }, 1);
        let max_rows = MAX_ROWS as usize;
        assert!(
            rows_of_texts(&[]) >= max_rows && rows_of_texts(&[texts(1 << 17, MAX_TEXT_BYTES, 16 << 20)]) >= max_rows
        );
        assert_eq!(rows_of_texts(&[texts(16 << 20, 0, 0)]), 64);
        assert_eq!(rows_of_texts(&[texts(16 << 20, 0, 0), texts(48 << 20, 9, 9)]), 16);
        assert_eq!(rows_of_texts(&[texts(1 << 20, MAX_TEXT_BYTES, 1 << 20), texts(0, 1, 1 << 20)]), 341);
        assert_eq!(rows_of_texts(&[texts(2 << 30, 0, 0)]), 0);
    }

    #[test]
    fn rows_that_become_larger_shrink_the_batches() {
        let found = read(8192, |row| if row < 50_000 { 100 } else { 50_000 });
        assert!(found.batches > 1000 && found.skipped < 60_000, "{} {}", found.batches, found.skipped);
    }

    #[test]
    fn uneven_rows_are_not_skipped_often() {
        for max_rows in [1, 6, 40, 600, 8192] {
            let found = read(max_rows, heavy_tailed);
            assert!(found.skipped <= 6 * ROWS, "{max_rows}: {}", found.skipped);
            // tiny rows, and occasionally a huge one
            for period in [100, 1000, 30_000] {
                let found = read(max_rows, |row| if row % period == 99 { 40 << 20 } else { 10 });
                assert!(found.skipped <= 12 * ROWS, "{max_rows}, {period}: {}", found.skipped);
            }
        }
    }
}
