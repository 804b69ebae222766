//! The Python package of tensilo: what it needs of the crates, as classes of Python.
//!
//! Memory is shared and errors become exceptions here; what only concerns other libraries of Python
//! is in `tensilo/*.py`. Several threads may use an object at the same time, without the GIL, so
//! classes are frozen; and an object may find itself in a process that was forked.
//!
//! From below: `array` is memory with a type, `batch` samples side by side, `dataset` and `loader`
//! read them, `write` writes them, and `commands` has the commands of the program.
#![warn(clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![deny(unsafe_op_in_unsafe_fn)]

mod arguments;
mod array;
mod batch;
mod commands;
mod dataset;
mod error;
mod loader;
mod schema;
mod work;
mod write;

use pyo3::prelude::*;

/// The compiled part of the package.
#[pymodule(gil_used = false)]
mod _tensilo {
    #[pymodule_export]
    use crate::array::{_array_of_bytes, Array};
    #[pymodule_export]
    use crate::batch::column::{_batch_column, BatchColumn};
    #[pymodule_export]
    use crate::batch::{_batch, Batch};
    #[pymodule_export]
    use crate::commands::{_draw_layout, _inspect, _main, _salvage, _verify};
    #[pymodule_export]
    use crate::dataset::column::Column;
    #[pymodule_export]
    use crate::dataset::{_reopened, Dataset, open};
    #[pymodule_export]
    use crate::loader::gpu::{DeviceArray, DeviceMemory, Gpu};
    #[pymodule_export]
    use crate::loader::iterator::{DeviceIterator, LoaderIterator};
    #[pymodule_export]
    use crate::loader::resident::{PendingGathers, ResidentDataset};
    #[pymodule_export]
    use crate::loader::{Loader, LoaderReader};
    #[pymodule_export]
    use crate::schema::{_column_type, _schema, ColumnType, Schema, binary, list_, tensor, utf8};
    #[pymodule_export]
    use crate::write::convert::{_append, _convert, add_columns};
    #[pymodule_export]
    use crate::write::job::{_has_manifest, _object_version, _plan, _plan_append, _publish, _run_task, _write_task};
    #[pymodule_export]
    use crate::write::writer::Writer;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "the name that Python gives a version")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
