//! Encoded samples that stay in GPU memory.
//!
//! If the encoded training set fits in GPU memory, epochs read no files and transfer no data. The
//! samples of a loader are sent to the GPU once. After that, the GPU gathers and decodes batches in
//! the order that `tensilo/cuda.py` requests. The errors of a gather are known only when the GPU
//! has finished it, so [`PendingGathers`] keeps unfinished gathers.

use crate::arguments::{ByteCount, Natural};
use crate::loader::Loader;
use crate::loader::gpu::gpu_exception;
use crate::work;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::sync::{Mutex, PoisonError};
use tensilo_cuda::{BatchMemory, PendingGather};
use tensilo_data::{ResidentColumn, ResidentSamples};

/// Encoded samples in GPU memory, column by column.
#[pyclass(frozen, module = "tensilo._tensilo")]
pub struct ResidentDataset(ResidentSamples);

/// Gathers that may still be running on the GPU.
#[pyclass(frozen, module = "tensilo._tensilo")]
pub struct PendingGathers(Mutex<Vec<PendingGather>>);

impl ResidentDataset {
    fn column(&self, number: usize) -> PyResult<&ResidentColumn> {
        self.0.columns().get(number).ok_or_else(|| PyIndexError::new_err("the column index is out of range"))
    }
}

#[pymethods]
impl ResidentDataset {
    /// Sends samples ``start`` to ``end`` of a loader to its GPU, as many as fit in ``max_bytes``.
    #[new]
    fn new(
        py: Python<'_>,
        loader: &Bound<'_, Loader>,
        start: Natural<u64>,
        end: Natural<u64>,
        max_bytes: Option<ByteCount>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let loader = loader.get();
        let view = loader.view();
        let max_bytes = max_bytes.map_or(usize::MAX, |bytes| usize::try_from(bytes.0).unwrap_or(usize::MAX));
        work::run(py, progress.as_ref(), |progress| {
            let update = |done, total| progress.update("sending", done, Some(total));
            loader.options.clone().resident(&view, start.0..end.0, max_bytes, update)
        })
        .map(Self)
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(usize::try_from(self.0.sample_count())?)
    }

    /// The GPU memory that the samples occupy, in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.byte_count()
    }

    /// Returns a tuple for each column: its name, its dtype, the shape of a row, the bytes of the
    /// padding element, whether the column is nullable, and which samples are null.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let column = |column: &ResidentColumn| {
            let schema = column.schema();
            let shape = PyTuple::new(py, column.extents())?;
            let filler = PyBytes::new(py, column.filler());
            let nulls = column.nulls().to_vec();
            (&schema.name, schema.dtype.name(), shape, filler, schema.nullable, nulls).into_pyobject(py)
        };
        self.0.columns().iter().map(column).collect()
    }

    /// Enqueues work that decodes samples into rows, after the work that ``stream`` already has.
    /// ``indices`` is the device address of ``count`` 8-byte indices, and ``rows`` the device
    /// address of ``count`` rows of ``row_bytes`` bytes each.
    #[expect(clippy::too_many_arguments, reason = "the parameters of a kernel launch")]
    fn gather(
        &self,
        py: Python<'_>,
        column: usize,
        indices: u64,
        count: usize,
        rows: u64,
        row_bytes: usize,
        stream: u64,
        pending: &Bound<'_, PendingGathers>,
    ) -> PyResult<()> {
        let column = self.column(column)?;
        let bytes = count.saturating_mul(row_bytes);
        let rows = BatchMemory { address: rows, bytes, stream };
        // SAFETY: the caller in `tensilo/cuda.py` passes tensors on this GPU and their stream. It
        // keeps the tensors until it has waited for `pending` or used the stream again.
        let gathered = unsafe { column.samples().gather(indices, count, rows, row_bytes) };
        let gathered = gathered.map_err(|error| gpu_exception(py, error))?;
        let mut pending = pending.get().0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(gathered);
        Ok(())
    }
}

#[pymethods]
impl PendingGathers {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    /// Waits for the GPU. Returns the first row that the GPU could not decode because its sample
    /// does not exist or is invalid; None if it decoded all rows.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let pending = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut first: Option<usize> = None;
        for gathered in pending {
            let (refusal, _) = py.detach(|| gathered.finish()).map_err(|error| gpu_exception(py, error))?;
            let row = refusal.map(|refusal| refusal.block);
            first = first.into_iter().chain(row).min();
        }
        Ok(first)
    }
}
