//! Objects as conversion inputs.
//!
//! A conversion works with paths. Paths that are addresses are handled here, with one connection
//! per bucket or host.

use crate::address::{Address, Scheme, UNREADABLE_KEY};
use crate::client::ObjectOptions;
use crate::error::ObjectError;
use crate::storage::ObjectStorage;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tensilo::import::InputStore;
use tensilo::source::Source;
use tensilo::{Error, Result};

/// Receives the address of a skipped object.
type Report = Box<dyn Fn(&str) + Send + Sync>;

/// Objects of all stores as conversion inputs, for
/// [`ConvertOptions::store`](tensilo::import::ConvertOptions::store). Provides the inputs whose
/// paths are addresses.
///
/// On `http` and `https` hosts, only objects directly below a prefix are found.
///
/// ```
/// use std::sync::Arc;
/// use tensilo::import::ConvertOptions;
/// use tensilo_object::{ObjectInputs, ObjectOptions};
///
/// let options = ConvertOptions::new().store(Arc::new(ObjectInputs::new(ObjectOptions::new())));
/// ```
pub struct ObjectInputs {
    options: ObjectOptions,
    /// Receives the addresses of skipped objects. `None` if such objects are errors.
    on_skip: Option<Report>,
    /// The connections, by bucket or host.
    storages: Mutex<HashMap<String, ObjectStorage>>,
}

impl ObjectInputs {
    /// Returns inputs that are read with these options. Sends no requests.
    pub fn new(options: ObjectOptions) -> Self {
        Self { options, on_skip: None, storages: Mutex::default() }
    }

    /// Skips objects with keys that cannot be read, and calls `report` with the address of each.
    /// These are keys with an empty, `.` or `..` component, or with a control character.
    /// [`UNREADABLE_KEY`] is the reason to show to the user. By default, such an object below a
    /// prefix is an error, because a conversion skips nothing silently.
    pub fn skip_unreadable(mut self, report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_skip = Some(Box::new(report));
        self
    }

    fn storage(&self, address: &Address) -> ObjectStorage {
        // no code panics while it holds the lock
        let mut storages = self.storages.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || ObjectStorage::new(address, self.options.clone());
        storages.entry(address.root().to_owned()).or_insert_with(new).clone()
    }

    fn addresses_below(&self, prefix: &Path) -> std::result::Result<Vec<Address>, ObjectError> {
        let prefix = Address::from_path(prefix)?;
        let storage = self.storage(&prefix);
        match prefix.scheme() {
            Scheme::Http => storage.names(&prefix)?.iter().map(|name| prefix.join(name)).collect(),
            _ => {
                let found = storage.objects(&prefix)?;
                for key in storage.unreadable_keys(&prefix) {
                    self.skip(format!("{prefix}/{}", shown(&key)))?;
                }
                Ok(found)
            }
        }
    }

    /// Reports a skipped address, or fails.
    fn skip(&self, address: String) -> std::result::Result<(), ObjectError> {
        match &self.on_skip {
            Some(report) => report(&address),
            None => {
                return Err(ObjectError::BadAddress { message: format!("{address}: {UNREADABLE_KEY}"), address });
            }
        }
        Ok(())
    }
}

/// Escapes control characters of a key.
fn shown(key: &str) -> String {
    let mut shown = String::new();
    for c in key.chars() {
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

impl fmt::Debug for ObjectInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectInputs").field("options", &self.options).finish_non_exhaustive()
    }
}

impl InputStore for ObjectInputs {
    fn contains(&self, input: &Path) -> bool {
        Address::is_url_path(input)
    }

    fn list_prefix(&self, prefix: &Path) -> Result<Vec<PathBuf>> {
        let found = self.addresses_below(prefix).map_err(|error| Error::io("listing the objects", error.into_io()))?;
        Ok(found.iter().map(|address| PathBuf::from(address.to_string())).collect())
    }

    fn open(&self, input: &Path) -> Result<Arc<dyn Source>> {
        let opened = Address::from_path(input).and_then(|address| self.storage(&address).open(&address));
        Ok(Arc::new(opened.map_err(|error| Error::io("opening the object", error.into_io()))?))
    }
}
