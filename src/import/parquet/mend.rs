//! Mistakes of early writers of Parquet, which readers are expected to know.
//!
//! Not mended: `dict-page-offset-zero.parquet` of Apache's parquet-testing. Its footer has lists
//! where the format has numbers, and the decoder does not skip fields of another type than theirs.

use super::changed::{changed, decodable};
use super::errors::malformed;
use super::pages;
use crate::Result;
use crate::import::input_file::InputReader;
use ::parquet::arrow::arrow_reader::ArrowReaderMetadata;

/// Returns the metadata of a file without the mistakes. Its row groups have `row_count` rows.
pub(super) fn mended(metadata: ArrowReaderMetadata, row_count: u64, file: &InputReader) -> Result<ArrowReaderMetadata> {
    with_dictionary_heads(with_row_count(metadata, row_count)?, file)
}

/// Corrects a footer that counts no rows, by which the decoder would read none. Early writers of
/// Rust never filled that number in (`repeated_no_annotation.parquet` of Apache's parquet-testing).
fn with_row_count(metadata: ArrowReaderMetadata, row_count: u64) -> Result<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    if file.num_rows() != 0 || row_count == 0 {
        return Ok(metadata);
    }
    let row_count = i64::try_from(row_count).unwrap_or(i64::MAX); // a sum that no file can hold
    changed(&metadata, |footer| footer.row_count = row_count).map_err(malformed)
}

/// Corrects the lengths of columns: before 1.2.9, parquet-mr left the heads of dictionaries out of
/// them (PARQUET-816; `nation.dict-malformed.parquet` of Apache's parquet-testing).
fn with_dictionary_heads(metadata: ArrowReaderMetadata, file: &InputReader) -> Result<ArrowReaderMetadata> {
    let writer = metadata.metadata().file_metadata().created_by();
    if !writer.is_some_and(leaves_out_dictionary_heads) {
        return Ok(metadata);
    }
    let mut builder = metadata.metadata().as_ref().clone().into_builder();
    for mut group in builder.take_row_groups() {
        let columns = group.columns().iter().map(|column| {
            let length = pages::length(file, column)?;
            let column = column.clone().into_builder();
            // inside the file
            let column = column.set_total_compressed_size(i64::try_from(length).unwrap_or(i64::MAX));
            column.build().map_err(malformed)
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        group = group.into_builder().set_column_metadata(columns).build().map_err(malformed)?;
        builder = builder.add_row_group(group);
    }
    decodable(builder.build()).map_err(malformed)
}

/// Returns whether a writer is a parquet-mr before 1.2.9, or of no version.
fn leaves_out_dictionary_heads(writer: &str) -> bool {
    let Some(rest) = writer.strip_prefix("parquet-mr") else { return false };
    let version = rest.trim_start().strip_prefix("version ").unwrap_or("0");
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0_u32));
    let mut part = || parts.next().unwrap_or(0);
    [part(), part(), part()] < [1, 2, 9]
}
