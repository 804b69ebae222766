//! Whole objects: reading, listing, creating, removing.

use crate::address::Address;
use crate::error::{Result, io_error};
use crate::request::Pinned;
use crate::runtime::wait;
use crate::storage::{ObjectStorage, failed};
use crate::unreadable_keys::UnreadableKeys;
use crate::{listing, request};
use futures_util::{StreamExt, TryFutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::io;
use std::sync::Arc;

/// Requests to remove objects that are in flight at the same time.
const REMOVALS: usize = 16;

impl ObjectStorage {
    /// Reads a whole object. Fails with [`FileTooLarge`](std::io::ErrorKind::FileTooLarge) if it is
    /// longer than `most` bytes.
    pub fn read(&self, address: &Address, most: u64) -> Result<Vec<u8>> {
        self.check(address)?;
        let key = address.key().clone();
        let read = self.client().cloned().and_then(|client| {
            wait(async move {
                let (_, _, bytes) = request::answer_up_to(&*client, &key, GetOptions::default(), most).await?;
                Ok(bytes.into())
            })
        });
        read.map_err(|error| failed(address, "reading", error))
    }

    /// Returns the names directly below a prefix: of objects, and of further prefixes, in no order.
    /// A prefix without objects has none.
    ///
    /// Keys that no address can have are left out, see [`ObjectStorage::objects`].
    ///
    /// Hosts of `http` and `https` have no list; the links of the page that they serve for the
    /// folder are the names.
    pub fn names(&self, prefix: &Address) -> Result<Vec<String>> {
        self.check(prefix)?;
        let (prefix_of_list, options) = (prefix.clone(), self.options().clone());
        let unreadable = self.unreadable().clone();
        let names = self.client().cloned().and_then(|client| {
            wait(async move {
                let names = listing::names(&*client, &prefix_of_list, &options);
                unreadable.of_listing(prefix_of_list.key(), names).await
            })
        });
        names.map_err(|error| failed(prefix, "listing", error))
    }

    /// Returns a text that changes when an object is replaced: its length, and its ETag or the time
    /// of its last change. `None`: the store says neither.
    pub fn version(&self, address: &Address) -> Result<Option<String>> {
        self.check(address)?;
        let key = address.key().clone();
        let meta =
            self.client().cloned().and_then(|client| wait(async move { client.head(&key).await.map_err(io_error) }));
        let meta = meta.map_err(|error| failed(address, "looking at the object", error))?;
        Ok(Pinned::of(&meta).version())
    }

    /// Returns the addresses of all objects below a prefix, in no order. A prefix without objects
    /// has none.
    ///
    /// Keys that no address can have, with an empty component, `.`, `..` or a control character,
    /// are left out. [`ObjectStorage::unreadable_keys`] returns them afterwards. Empty objects
    /// `folder/`, which some tools create to show folders, are left out, too.
    ///
    /// Fails on hosts of `http` and `https`, which have no list.
    pub fn objects(&self, prefix: &Address) -> Result<Vec<Address>> {
        self.check(prefix)?;
        let (key, unreadable) = (prefix.key().clone(), self.unreadable().clone());
        let keys =
            self.client().cloned().and_then(|client| wait(async move { keys(&*client, &unreadable, &key).await }));
        let keys = keys.map_err(|error| failed(prefix, "listing", error))?;
        Ok(keys.into_iter().map(|key| prefix.with_key(key)).collect())
    }

    /// Creates an object, which appears as a whole. Fails with
    /// [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) if there is one, also if another writer
    /// creates it at the same time, and with [`Unsupported`](std::io::ErrorKind::Unsupported) on
    /// hosts of `http`.
    pub fn create(&self, address: &Address, bytes: &[u8]) -> Result<()> {
        self.check(address)?;
        let (key, bytes) = (address.key().clone(), PutPayload::from(bytes.to_vec()));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let created = self.client().cloned().and_then(|client| {
            wait(async move { client.put_opts(&key, bytes, options).await.map(drop).map_err(io_error) })
        });
        created.map_err(|error| failed(address, "creating", error))
    }

    /// Returns the bytes of an object, or of all objects below a prefix; 0 if there are none. Fails
    /// if keys below the prefix cannot be read.
    pub fn bytes(&self, address: &Address) -> Result<u64> {
        self.check(address)?;
        let (key, unreadable) = (address.key().clone(), self.unreadable().clone());
        let bytes = self.client().cloned().and_then(|client| {
            wait(async move {
                match client.head(&key).await {
                    Ok(meta) => Ok(meta.size),
                    Err(object_store::Error::NotFound { .. }) => {
                        let found = client.list(Some(&key));
                        let sum = found.try_fold(0_u64, async |sum, meta| Ok(sum.saturating_add(meta.size)));
                        let sum = unreadable.of_listing(&key, sum.map_err(io_error)).await?;
                        unreadable.refuse(&key)?;
                        Ok(sum)
                    }
                    Err(error) => Err(io_error(error)),
                }
            })
        });
        bytes.map_err(|error| failed(address, "looking at the object", error))
    }

    /// Removes an object, and all objects below the address as a prefix. Empty objects `folder/`
    /// stay. Fails, and removes nothing, if keys below the prefix cannot be read.
    pub fn remove(&self, address: &Address) -> Result<()> {
        self.check(address)?;
        let (key, unreadable) = (address.key().clone(), self.unreadable().clone());
        let removed = self.client().cloned().and_then(|client| {
            wait(async move {
                let mut keys = keys(&*client, &unreadable, &key).await?;
                unreadable.refuse(&key)?;
                keys.push(key);
                let removals = futures_util::stream::iter(keys).map(|key| {
                    let client = Arc::clone(&client);
                    async move { client.delete(&key).await }
                });
                let mut removals = removals.buffer_unordered(REMOVALS);
                while let Some(removed) = removals.next().await {
                    match removed {
                        Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                        Err(error) => return Err(io_error(error)),
                    }
                }
                Ok(())
            })
        });
        removed.map_err(|error| failed(address, "removing", error))
    }
}

/// Returns the keys below a prefix, and notes those that are not readable.
async fn keys(store: &dyn ObjectStore, unreadable: &UnreadableKeys, prefix: &Path) -> io::Result<Vec<Path>> {
    let found = store.list(Some(prefix)).map_ok(|meta| meta.location).try_collect();
    unreadable.of_listing(prefix, found.map_err(io_error)).await
}
