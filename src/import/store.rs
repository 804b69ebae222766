//! Inputs that are not files of this machine.

use crate::Result;
use crate::open::Source;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place of inputs beside the file system, such as an object store, see
/// [`ConvertOptions::store`](super::ConvertOptions::store).
///
/// The paths of its inputs are addresses, whose components end in `/`. Patterns, prefixes and names
/// `key=value` in them mean what they mean in paths of files.
///
/// Errors need no path: the conversion adds it.
pub trait InputStore: Send + Sync {
    /// Returns whether an input is in the store.
    fn has(&self, input: &Path) -> bool;

    /// Returns the addresses of all inputs below a prefix, in any order; none if there are none.
    fn below(&self, prefix: &Path) -> Result<Vec<PathBuf>>;

    /// Opens an input. Its bytes do not change: if the input is replaced, reads fail.
    fn open(&self, input: &Path) -> Result<Arc<dyn Source>>;
}

/// The store of a conversion, if it has one.
#[derive(Clone, Default)]
pub(super) struct OptionalStore(pub Option<Arc<dyn InputStore>>);

impl OptionalStore {
    /// Returns the store, if an input is in it.
    pub(super) fn of(&self, input: &Path) -> Option<&Arc<dyn InputStore>> {
        self.0.as_ref().filter(|store| store.has(input))
    }
}

impl fmt::Debug for OptionalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(InputStore)" } else { "None" })
    }
}
