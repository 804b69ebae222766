//! Inputs of conversions that are objects.

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

/// Takes the address of an object that is passed over.
type Report = Box<dyn Fn(&str) + Send + Sync>;

/// The objects of all stores as inputs of conversions, for
/// [`ConvertOptions::store`](tensilo::import::ConvertOptions::store): those whose paths are
/// addresses.
///
/// Of hosts of `http` and `https`, only the objects directly below a prefix are found.
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
    /// Takes the addresses that are passed over; `None` if they are errors.
    on_skip: Option<Report>,
    /// The connections, by the bucket or host.
    storages: Mutex<HashMap<String, ObjectStorage>>,
}

impl ObjectInputs {
    /// Returns the objects that are read with these options. Sends nothing.
    pub fn new(options: ObjectOptions) -> Self {
        Self { options, on_skip: None, storages: Mutex::default() }
    }

    /// Passes over objects below a prefix whose keys cannot be read, because they have an empty
    /// component, `.`, `..` or a control character, and calls a function with what each is called.
    /// [`UNREADABLE_KEY`] is the reason to show. By default they are errors:
    /// a conversion leaves nothing out in silence.
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

    /// Passes over an address, or fails.
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

/// Returns a key with escapes for control characters.
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
