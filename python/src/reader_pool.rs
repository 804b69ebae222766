//! Readers of samples, kept for the next call.

use crate::error::Result;
use crate::out::OutAllocator;
use crossbeam_utils::atomic::AtomicCell;
use std::process;
use std::sync::Arc;
use tensilo::DType;
use tensilo_data::{Batch, LoaderOptions, SampleReader, View};

/// The columns that are read, and the types they become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// All, if `None`.
    pub columns: Option<Vec<String>>,
    pub casts: Vec<(String, DType)>,
    /// Whether values go to memory of the caller.
    pub has_out: bool,
}

/// A reader that waits for work. Each thread takes one of its own, without a lock: a lock could be
/// held by a thread that a forked process does not have.
#[derive(Default)]
pub struct ReaderPool([AtomicCell<Option<Box<Idle>>>; SLOTS]);

/// As many threads can read from one dataset without making readers anew.
const SLOTS: usize = 8;

struct Idle {
    process: u32,
    selection: Selection,
    reader: SampleReader,
    out: Arc<OutAllocator>,
}

impl ReaderPool {
    /// Reads samples of a view. `prepare` sets the memory of the caller.
    pub fn take(
        &self,
        view: &ProcessView,
        selection: &Selection,
        samples: &[u64],
        prepare: impl FnOnce(&OutAllocator),
    ) -> Result<Batch> {
        let mut idle = match self.find(selection) {
            Some(idle) => idle,
            None => Box::new(Idle::new(&view.here(), selection)?),
        };
        prepare(&idle.out);
        let batch = idle.reader.take(samples);
        idle.out.clear();
        self.put(idle);
        batch
    }

    /// Takes a reader of this process for the selection out of its slot.
    fn find(&self, selection: &Selection) -> Option<Box<Idle>> {
        for slot in &self.0 {
            let Some(idle) = slot.take() else { continue };
            if idle.process != process::id() {
                // what it had in hand when the process was forked is in any state
                std::mem::forget(idle);
            } else if idle.selection == *selection {
                return Some(idle);
            } else {
                slot.store(Some(idle));
            }
        }
        None
    }

    /// Puts a reader into an empty slot, or in the place of another.
    fn put(&self, idle: Box<Idle>) {
        let mut idle = Some(idle);
        for slot in &self.0 {
            // whatever another thread has put there meanwhile moves on
            idle = slot.swap(idle);
            if idle.is_none() {
                return;
            }
        }
    }
}

/// A view, and the process that has opened it.
pub struct ProcessView {
    process: u32,
    view: View,
}

impl ProcessView {
    pub fn new(view: View) -> Self {
        Self { process: process::id(), view }
    }

    /// Returns the number of samples.
    pub fn n(&self) -> u64 {
        self.view.n()
    }

    /// Returns the view for this process, which may be forked from the one that has opened it.
    pub fn here(&self) -> View {
        if self.process == process::id() { self.view.clone() } else { self.view.reopened() }
    }
}

impl Idle {
    fn new(view: &View, selection: &Selection) -> Result<Self> {
        let out = Arc::new(OutAllocator::default());
        let mut options = LoaderOptions::new(1);
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
        Ok(Self { process: process::id(), selection: selection.clone(), reader, out })
    }
}
