//! The Python package of tensilo: what it needs of the crates, as classes of Python.
//!
//! Memory is shared and errors become exceptions here; what only concerns other libraries of Python
//! is in `tensilo/*.py`.
#![warn(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![deny(unsafe_op_in_unsafe_fn)]

mod array;
mod arrow;
mod arrow_data;
mod batch;
mod batch_column;
mod batch_parts;
mod buffer;
mod column;
mod convert;
mod dataset;
mod dlpack;
mod dtype;
mod elements;
mod error;
mod gpu;
mod indices;
mod input;
mod input_data;
mod job;
mod loader;
mod loader_iterator;
mod loader_options;
mod loader_place;
mod memory;
mod options;
mod out;
mod part;
mod program;
mod reader_pool;
mod resident;
mod samples;
mod schema;
mod source;
mod verify;
mod widen;
mod work;
mod writer;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule(gil_used = false)]
mod _tensilo {
    #[pymodule_export]
    use crate::array::{_array_of_bytes, Array};
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::batch_column::BatchColumn;
    #[pymodule_export]
    use crate::batch_parts::_batch;
    #[pymodule_export]
    use crate::column::Column;
    #[pymodule_export]
    use crate::convert::{_append, _convert, add_columns};
    #[pymodule_export]
    use crate::dataset::{_reopened, Dataset, open};
    #[pymodule_export]
    use crate::gpu::{DeviceArray, DeviceMemory, Gpu};
    #[pymodule_export]
    use crate::job::{_has_manifest, _object_version, _plan, _plan_append, _publish, _run_task, _write_task};
    #[pymodule_export]
    use crate::loader::{Loader, LoaderReader};
    #[pymodule_export]
    use crate::loader_iterator::{DeviceIterator, LoaderIterator};
    #[pymodule_export]
    use crate::program::{_draw_layout, _inspect, _main, _salvage};
    #[pymodule_export]
    use crate::resident::{PendingGathers, Resident};
    #[pymodule_export]
    use crate::schema::{_column_type, _schema, ColumnType, Schema, binary, list_, tensor, utf8};
    #[pymodule_export]
    use crate::verify::_verify;
    #[pymodule_export]
    use crate::writer::Writer;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python gives a version")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
