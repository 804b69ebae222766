//! A footer with changes, as the decoder is to take it.

use ::parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use ::parquet::errors::Result;
use ::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use ::parquet::schema::types::SchemaDescPtr;
use std::sync::Arc;

/// The parts of a footer that changes are for.
pub(super) struct Changeable {
    pub row_count: i64,
    pub entries: Option<Vec<KeyValue>>,
    pub schema: SchemaDescPtr,
}

/// Returns the metadata of a file with changes to its footer.
pub(super) fn changed(
    metadata: &ArrowReaderMetadata,
    change: impl FnOnce(&mut Changeable),
) -> Result<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    let entries = file.key_value_metadata().cloned();
    let mut parts = Changeable { row_count: file.num_rows(), entries, schema: file.schema_descr_ptr() };
    change(&mut parts);
    let Changeable { row_count, entries, schema } = parts;
    let (writer, orders) = (file.created_by().map(str::to_owned), file.column_orders().cloned());
    let file = FileMetaData::new(file.version(), row_count, writer, entries, schema, orders);
    decodable(ParquetMetaData::new(file, metadata.metadata().row_groups().to_vec()))
}

/// Returns the metadata as the decoder takes them.
pub(super) fn decodable(metadata: ParquetMetaData) -> Result<ArrowReaderMetadata> {
    ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())
}
