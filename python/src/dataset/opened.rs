//! An open dataset and its pool of readers.
//!
//! A reader has memory and open files that the next call reuses. Threads read concurrently, each
//! with its own reader from the pool. The pool is lock-free because after a fork, a lock could be
//! held by a thread that does not exist in the child. For the same reason, a forked process
//! abandons the pooled readers of its parent and reopens the view.

use crate::array::out::OutAllocator;
use crate::dataset::source::Subset;
use crate::error::{OrRaise, Result};
use crate::work::Signals;
use crossbeam_utils::atomic::AtomicCell;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::process;
use std::sync::Arc;
use tensilo::DType;
use tensilo_data::{Batch, Dataset, LoaderOptions, SampleReader, View};

/// An open dataset.
pub struct OpenDataset {
    pub dataset: Dataset,
    pub view: ProcessView,
    pool: ReaderPool,
}

impl OpenDataset {
    pub fn new(dataset: Dataset, subset: &Subset) -> Result<Arc<Self>> {
        let view = ProcessView::new(subset.view(&dataset)?);
        Ok(Arc::new(Self { dataset, view, pool: ReaderPool::default() }))
    }

    /// Reads the selected columns of samples.
    pub fn take(&self, py: Python<'_>, selection: &Selection, samples: &[u64]) -> PyResult<Batch> {
        self.pool.take(py, &self.view, selection, samples, |_| ())
    }

    /// Like [`OpenDataset::take`], but first calls `prepare`, which sets the caller's output
    /// buffers.
    pub fn take_prepared(
        &self,
        py: Python<'_>,
        selection: &Selection,
        samples: &[u64],
        prepare: impl FnOnce(&OutAllocator) + Send,
    ) -> PyResult<Batch> {
        self.pool.take(py, &self.view, selection, samples, prepare)
    }

    /// Returns the dataset for this process, which may be a fork of the one that opened it.
    pub fn for_this_process(&self) -> Dataset {
        self.view.for_this_process().datasets().first().unwrap_or(&self.dataset).clone()
    }
}

/// The columns to read, and their casts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// `None` for all columns.
    pub columns: Option<Vec<String>>,
    pub casts: Vec<(String, DType)>,
    /// Whether values are written to the caller's memory.
    pub has_out: bool,
}

/// Idle readers. A thread takes one out of its slot and puts it back after the read, without a
/// lock.
#[derive(Default)]
struct ReaderPool([AtomicCell<Option<Box<PooledReader>>>; SLOTS]);

/// The number of threads that can read from a dataset at once without having to create new readers.
const SLOTS: usize = 8;

/// A reader returns to the pool after batches of at most this size, in bytes. After a larger batch,
/// it would retain too much memory.
const MAX_POOLED_BYTES: usize = 32 << 20;

struct PooledReader {
    process: u32,
    selection: Selection,
    reader: SampleReader,
    out: Arc<OutAllocator>,
    signals: Arc<Signals>,
}

impl ReaderPool {
    /// Reads samples of a view without the GIL. A signal interrupts the read. `prepare` sets the
    /// caller's memory.
    fn take(
        &self,
        py: Python<'_>,
        view: &ProcessView,
        selection: &Selection,
        samples: &[u64],
        prepare: impl FnOnce(&OutAllocator) + Send,
    ) -> PyResult<Batch> {
        let (batch, raised) = py.detach(|| {
            let mut idle = match self.find(selection) {
                Some(idle) => idle,
                None => match PooledReader::new(&view.for_this_process(), selection) {
                    Ok(idle) => Box::new(idle),
                    Err(error) => return (Err(error), None),
                },
            };
            prepare(&idle.out);
            idle.signals.begin();
            let batch = idle.reader.take(samples);
            idle.out.clear();
            let raised = idle.signals.raised();
            if batch.as_ref().is_ok_and(is_small) {
                self.put(idle);
            }
            (batch, raised)
        });
        match raised {
            Some(raised) => Err(raised),
            None => batch.or_raise(py),
        }
    }

    /// Takes an idle reader of this process for the selection.
    fn find(&self, selection: &Selection) -> Option<Box<PooledReader>> {
        for slot in &self.0 {
            let Some(idle) = slot.take() else { continue };
            if idle.process != process::id() {
                // the reader may have been in use during the fork, so its state is arbitrary
                std::mem::forget(idle);
            } else if idle.selection == *selection {
                return Some(idle);
            } else {
                slot.store(Some(idle));
            }
        }
        None
    }

    /// Puts a reader into an empty slot; if there is none, evicts another reader.
    fn put(&self, idle: Box<PooledReader>) {
        let mut idle = Some(idle);
        for slot in &self.0 {
            // a reader that was in this slot moves to the next one
            idle = slot.swap(idle);
            if idle.is_none() {
                return;
            }
        }
    }
}

/// A view and the process that opened it.
pub struct ProcessView {
    process: u32,
    view: View,
}

impl ProcessView {
    pub fn new(view: View) -> Self {
        Self { process: process::id(), view }
    }

    /// Returns the number of samples.
    pub fn sample_count(&self) -> u64 {
        self.view.sample_count()
    }

    /// Returns the index in the dataset of sample `i` of the view.
    pub fn sample(&self, i: u64) -> Option<u64> {
        self.view.sample(i, 0).map(|(_, sample)| sample)
    }

    /// Returns the view for this process, which may be a fork of the one that opened it.
    pub fn for_this_process(&self) -> View {
        if self.process == process::id() { self.view.clone() } else { self.view.reopened() }
    }
}

impl PooledReader {
    fn new(view: &View, selection: &Selection) -> Result<Self> {
        let (out, signals) = (Arc::new(OutAllocator::default()), Arc::new(Signals::new()));
        let interrupt = signals.clone();
        let mut options = LoaderOptions::new(1)
            .decode_threads(1)
            .prefetch(1)
            .stored_elements(true)
            .interrupt(Arc::new(move || interrupt.poll()));
        if let Some(columns) = &selection.columns {
            options = options.columns(columns);
        }
        for (column, dtype) in &selection.casts {
            options = options.cast(column, *dtype);
        }
        if selection.has_out {
            options = options.allocator(out.clone());
        }
        let reader = options.reader(view)?;
        Ok(Self { process: process::id(), selection: selection.clone(), reader, out, signals })
    }
}

fn is_small(batch: &Batch) -> bool {
    batch.columns().iter().map(|column| column.bytes().len()).fold(0, usize::saturating_add) <= MAX_POOLED_BYTES
}

/// Checks the requested column names. The error for an unknown name lists all columns.
pub fn named_columns(columns: Option<Bound<'_, PyAny>>, opened: &OpenDataset) -> PyResult<Option<Vec<String>>> {
    let Some(columns) = columns else { return Ok(None) };
    let names: Vec<String> = match columns.cast::<PyString>() {
        Ok(name) => vec![name.to_str()?.to_owned()],
        Err(_) => columns.extract().map_err(|_| PyTypeError::new_err("columns must be a list of column names"))?,
    };
    for (i, name) in names.iter().enumerate() {
        find_column(opened, name)?;
        if names.iter().skip(i.saturating_add(1)).any(|other| other == name) {
            return Err(PyValueError::new_err(format!("column {name:?} is listed twice")));
        }
    }
    Ok(Some(names))
}

/// Returns the index of a column in the schema.
pub fn find_column(opened: &OpenDataset, name: &str) -> PyResult<usize> {
    let columns = &opened.dataset.schema().columns;
    columns.iter().position(|column| column.name == name).ok_or_else(|| {
        let all: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        PyKeyError::new_err(format!("no column {name:?}: the columns are {}", all.join(", ")))
    })
}
