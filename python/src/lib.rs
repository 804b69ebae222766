//! The compiled part of the Python package: PyO3 classes over the tensilo crates.
//!
//! The crates do the work. This crate shares their memory with Python without a copy, turns errors
//! into exceptions, and keeps long work interruptible. Code that only concerns other Python
//! libraries (NumPy, PyTorch, JAX, Ray) is in `tensilo/*.py`.
//!
//! Two requirements shape every class. First, any number of threads can use an object at once
//! without the GIL, so classes are frozen and mutable state is behind locks. Second, a forked
//! process inherits objects, and a lock in them can be held by a thread that exists only in the
//! parent. Waiting for such a lock would never end, so the child must not wait for it.
//!
//! Bottom-up: `array` is typed memory, `batch` has samples column by column, `dataset` and `loader`
//! read them, `write` writes them, and `commands` runs the commands of the CLI.
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
    use crate::loader::iterator::{DeviceIterator, PyBatchIterator};
    #[pymodule_export]
    use crate::loader::resident::{PendingGathers, ResidentDataset};
    #[pymodule_export]
    use crate::loader::{Loader, PySampleReader};
    #[pymodule_export]
    use crate::schema::{_column_type, _schema, ColumnType, Schema, binary, list_, tensor, utf8};
    #[pymodule_export]
    use crate::write::convert::{_append, _convert, add_columns};
    #[pymodule_export]
    use crate::write::job::{_has_manifest, _object_version, _plan, _plan_append, _publish, _run_task, _write_task};
    #[pymodule_export]
    use crate::write::writer::Writer;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for the version")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
