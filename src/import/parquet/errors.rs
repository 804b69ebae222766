//! Errors about Parquet files.

use crate::Error;
use ::parquet::errors::ParquetError;

/// Returns the error of the decoder.
pub(super) fn malformed(error: ParquetError) -> Error {
    Error::bad_input(format!("the Parquet file is malformed or damaged: {error}")).with_source(error)
}

/// Returns the error about a file that begins or ends with `PARE`.
pub(in crate::import) fn encrypted_footer() -> Error {
    Error::bad_input("the Parquet file is encrypted, its footer too; decrypt it with the program that has its keys")
}
