//! What stands in for Parquet where the crate is built without it.

use super::input::InputFile;
use super::source::Source;
use crate::{Error, Result};
use std::rc::Rc;

pub(super) fn encrypted_footer() -> Error {
    Error::not_built("parquet", "reading Parquet files")
}

pub(super) fn open(_file: &Rc<InputFile>) -> Result<(Box<dyn Source>, Vec<u8>)> {
    Err(Error::not_built("parquet", "reading Parquet files"))
}
