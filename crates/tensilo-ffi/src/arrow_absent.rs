//! The Arrow functions of a build without Arrow.

use crate::arrow_structs::{ArrowArray, ArrowArrayStream, ArrowSchema};
use crate::batch::tensilo_batch;
use crate::buffer::tensilo_buffer;
use crate::error::{Result, tensilo_error};
use crate::reader::tensilo_reader;

fn refused() -> Result<()> {
    Err(tensilo_error::not_built("arrow", "an export to Arrow"))
}

pub(crate) unsafe fn buffer(_: &tensilo_buffer, _: *mut ArrowSchema, _: *mut ArrowArray) -> Result<()> {
    refused()
}

pub(crate) unsafe fn batch(_: &tensilo_batch, _: *mut ArrowSchema, _: *mut ArrowArray) -> Result<()> {
    refused()
}

pub(crate) unsafe fn stream(_: &tensilo_reader, _: Option<&[String]>, _: u64, _: *mut ArrowArrayStream) -> Result<()> {
    refused()
}
