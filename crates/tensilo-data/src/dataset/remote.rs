//! A place of datasets that is no folder of the system: a prefix of an object store.

use super::store::Store;
use crate::io::IoChoice;
use std::sync::Arc;

/// The options for requests to stores.
#[cfg(feature = "object")]
pub(super) type RemoteOptions = tensilo_object::ObjectOptions;
#[cfg(not(feature = "object"))]
pub(super) type RemoteOptions = ();

/// The place that an address names.
pub(super) struct Remote {
    pub store: Arc<dyn Store>,
    /// How its files are read.
    pub io: IoChoice,
    /// Whether it is the address of one file.
    pub is_file: bool,
}
