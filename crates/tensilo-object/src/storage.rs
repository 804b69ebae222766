//! A connection to a store.

use crate::address::Address;
use crate::cache::{Cache, CachedObject};
use crate::client::client;
use crate::error::{ObjectError, Result};
use crate::options::ObjectOptions;
use crate::per_process::PerProcess;
use crate::pieces::Pieces;
use crate::request::Pinned;
use crate::settings::Environment;
use crate::unreadable_keys::UnreadableKeys;
use object_store::ObjectStore;
use object_store::path::Path;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, OnceLock};

/// A connection to the store of an address: a bucket, a container, a host.
///
/// A clone costs one reference count, and shares connections and memory. Any thread can keep one,
/// and it works after `fork`. No function needs an asynchronous runtime, and each can be called
/// from the threads of one.
#[derive(Clone, Debug)]
pub struct ObjectStorage(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    root: Address,
    options: ObjectOptions,
    client: PerProcess<Arc<dyn ObjectStore>>,
    unreadable: UnreadableKeys,
    pieces: PerProcess<Pieces>,
    cache: OnceLock<std::result::Result<Option<Cache>, String>>,
}

impl ObjectStorage {
    /// Returns a connection to the store of an address. Sends nothing.
    pub fn new(address: &Address, options: ObjectOptions) -> Self {
        let root = address.with_key(object_store::path::Path::default());
        Self(Arc::new(Shared {
            root,
            options,
            client: PerProcess::new(),
            unreadable: UnreadableKeys::default(),
            pieces: PerProcess::new(),
            cache: OnceLock::new(),
        }))
    }

    /// Checks that an address is one of this store.
    pub(crate) fn check(&self, address: &Address) -> Result<()> {
        let root = &self.0.root;
        if address.root() == root.root() {
            return Ok(());
        }
        Err(ObjectError::BadAddress { address: address.to_string(), message: format!("the store is {root}") })
    }

    pub(crate) fn options(&self) -> &ObjectOptions {
        &self.0.options
    }

    /// Returns the client of this process.
    pub(crate) fn client(&self) -> io::Result<&Arc<dyn ObjectStore>> {
        let new = || client(&self.0.root, &self.0.options, &Environment::of_process());
        self.0.client.get_or_try_make(new)
    }

    pub(crate) fn unreadable(&self) -> &UnreadableKeys {
        &self.0.unreadable
    }

    /// Returns the keys below a prefix that the last list of it has left out, without the prefix:
    /// see [`ObjectStorage::objects`].
    pub fn unreadable_keys(&self, prefix: &Address) -> Vec<String> {
        self.0.unreadable.below(prefix.key())
    }

    /// Returns the cache of the options, or that of the environment.
    pub(crate) fn cache(&self) -> io::Result<Option<&Cache>> {
        let found = self.0.cache.get_or_init(|| match &self.0.options.cache {
            Some(told) => Ok(told.clone()),
            None => Cache::of_environment(),
        });
        match found {
            Ok(cache) => Ok(cache.as_ref()),
            Err(message) => Err(io::Error::new(io::ErrorKind::InvalidInput, message.clone())),
        }
    }

    /// Returns the pieces of an object in the cache, if there is one.
    pub(crate) fn cached(&self, key: &Path, pinned: &Pinned) -> io::Result<Option<CachedObject>> {
        Ok(self.cache()?.and_then(|cache| CachedObject::new(cache, self.0.root.root(), key, pinned)))
    }

    /// Returns what this process keeps in memory.
    pub(crate) fn pieces(&self) -> &Pieces {
        let pieces = self.0.pieces.get_or_try_make(|| Ok::<_, Infallible>(Pieces::new(self.0.options.kept_bytes)));
        match pieces {
            Ok(pieces) => pieces,
            Err(never) => match never {},
        }
    }
}

pub(crate) fn failed(address: &Address, doing: &'static str, error: io::Error) -> ObjectError {
    ObjectError::Io { address: address.to_string(), doing, error }
}
