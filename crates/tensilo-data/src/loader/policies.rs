//! The policies of a loader.

use std::ops::ControlFlow;
use std::sync::Arc;

/// A function that a reader asks whether to go on.
pub type Interrupt = Arc<dyn Fn() -> ControlFlow<()> + Send + Sync>;

/// The way in which a loader treats samples that are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDamage {
    /// The batch is an error, which names the sample.
    #[default]
    Fail,
    /// Other samples take their places: the same ones on every rank ([`substitute`]). Files that
    /// cannot be opened or read, or were replaced, are errors all the same.
    ///
    /// [`substitute`]: crate::substitute()
    Substitute,
}

/// Whether a loader announces the runs of [`Mode::Windowed`](crate::Mode::Windowed) ahead of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadAhead {
    /// In the first epoch of an iterator; in later ones if the files are larger than half of the
    /// memory of the machine, or in an object store. With more than 8 ranks never: each would read
    /// all of the data.
    #[default]
    Auto,
    /// Always. If ranks are on different machines, each of these reads all of the data.
    Always,
    /// Never: only the samples that are wanted are read.
    Never,
}
