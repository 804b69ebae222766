//! A connection to a store, and operations on whole objects: read, list, create, remove.
//!
//! An [`ObjectStorage`] holds what all objects in a store share: the client, the range cache, the
//! disk cache, and the keys that no address can have. Each process has its own client and range
//! cache, so a connection also works after a `fork`. `object_file.rs` opens objects for reading,
//! and `upload.rs` writes them.
//!
//! HTTP hosts cannot list objects. There, the names below a prefix are the links of the page that
//! the host serves for the folder.

use crate::address::{Address, Scheme};
use crate::cache::{Cache, CachedObject};
use crate::client::{Environment, ObjectOptions, UnreadableKeys, client, set_tls_provider};
use crate::error::{ObjectError, Result, io_error};
use crate::range_cache::RangeCache;
use crate::request::{self, ObjectVersion};
use crate::runtime::{PerProcess, wait};
use futures_util::{StreamExt, TryFutureExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use reqwest::{Client, StatusCode};
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::sleep;
use url::Url;

/// The default maximum size of the range cache, and the size up to which loaders raise it.
const DEFAULT_MEMORY_BYTES: u64 = 512 << 20;
const MAX_RESERVED_BYTES: u64 = 4 << 30;

/// A connection to the store of an address: a bucket, a container or a host.
///
/// A clone shares connections and caches; cloning only increments a reference count. A connection
/// can be used by any thread, and also after a `fork`. No function needs an asynchronous runtime,
/// but all of them can be called from the threads of such a runtime.
#[derive(Clone, Debug)]
pub struct ObjectStorage(Arc<StorageInner>);

#[derive(Debug)]
struct StorageInner {
    root: Address,
    options: ObjectOptions,
    client: PerProcess<Arc<dyn ObjectStore>>,
    unreadable: UnreadableKeys,
    range_cache: PerProcess<RangeCache>,
    cache: OnceLock<std::result::Result<Option<Cache>, String>>,
}

impl ObjectStorage {
    /// Returns a connection to the store of an address. Sends nothing.
    pub fn new(address: &Address, options: ObjectOptions) -> Self {
        let root = address.with_key(Path::default());
        Self(Arc::new(StorageInner {
            root,
            options,
            client: PerProcess::new(),
            unreadable: UnreadableKeys::default(),
            range_cache: PerProcess::new(),
            cache: OnceLock::new(),
        }))
    }

    /// Checks that an address is in this store.
    pub(crate) fn check(&self, address: &Address) -> Result<()> {
        let root = &self.0.root;
        if address.root() == root.root() {
            return Ok(());
        }
        Err(ObjectError::BadAddress {
            address: address.to_string(),
            message: format!("the address is not in the store {root}"),
        })
    }

    pub(crate) fn options(&self) -> &ObjectOptions {
        &self.0.options
    }

    /// Returns the client of this process.
    pub(crate) fn client(&self) -> io::Result<&Arc<dyn ObjectStore>> {
        let new = || client(&self.0.root, &self.0.options, &Environment::from_process());
        self.0.client.get_or_try_make(new)
    }

    fn unreadable(&self) -> &UnreadableKeys {
        &self.0.unreadable
    }

    /// Returns the keys below a prefix that the last listing of this prefix left out. The prefix
    /// itself is removed from the keys. See [`ObjectStorage::objects`].
    pub fn unreadable_keys(&self, prefix: &Address) -> Vec<String> {
        self.0.unreadable.below(prefix.key())
    }

    /// Returns the cache that the options set, or else the cache that the environment names.
    pub(crate) fn cache(&self) -> io::Result<Option<&Cache>> {
        let found = self.0.cache.get_or_init(|| match &self.0.options.cache {
            Some(explicit) => Ok(explicit.clone()),
            None => Cache::parse_environment(),
        });
        match found {
            Ok(cache) => Ok(cache.as_ref()),
            Err(message) => Err(io::Error::new(io::ErrorKind::InvalidInput, message.clone())),
        }
    }

    /// Returns the entries of an object in the disk cache, if there is one.
    pub(crate) fn cached(&self, key: &Path, pinned: &ObjectVersion) -> io::Result<Option<CachedObject>> {
        Ok(self.cache()?.and_then(|cache| CachedObject::new(cache, self.0.root.root(), key, pinned)))
    }

    /// Raises the maximum size of the memory for prefetched ranges to `bytes`, at most 4 GiB,
    /// unless [`ObjectOptions::memory_bytes`] is set. A loader calls this with what it prefetches.
    pub fn reserve_memory(&self, bytes: u64) {
        if self.0.options.memory_bytes.is_none() {
            self.range_cache().reserve(bytes.min(MAX_RESERVED_BYTES));
        }
    }

    /// Returns the range cache of this process.
    pub(crate) fn range_cache(&self) -> &RangeCache {
        let max_bytes = self.0.options.memory_bytes.unwrap_or(DEFAULT_MEMORY_BYTES);
        match self.0.range_cache.get_or_try_make(|| Ok::<_, Infallible>(RangeCache::new(max_bytes))) {
            Ok(range_cache) => range_cache,
            Err(never) => match never {},
        }
    }
}

pub(crate) fn failed(address: &Address, operation: &'static str, error: io::Error) -> ObjectError {
    ObjectError::Io { address: address.to_string(), operation, error }
}

/// The maximum number of removal requests in flight.
const CONCURRENT_REMOVALS: usize = 16;

impl ObjectStorage {
    /// Reads a whole object. Fails with [`FileTooLarge`](std::io::ErrorKind::FileTooLarge) if it
    /// has more than `max_bytes` bytes.
    pub fn read(&self, address: &Address, max_bytes: u64) -> Result<Vec<u8>> {
        self.check(address)?;
        let key = address.key().clone();
        let read = self.client().cloned().and_then(|client| {
            wait(async move {
                let (_, _, bytes) = request::response_up_to(&*client, &key, GetOptions::default(), max_bytes).await?;
                Ok(bytes.into())
            })
        });
        read.map_err(|error| failed(address, "reading", error))
    }

    /// Returns the names of objects and of further prefixes directly below a prefix, in no
    /// particular order. A prefix without objects has none.
    ///
    /// Leaves out keys that no address can have; see [`ObjectStorage::objects`].
    ///
    /// HTTP and HTTPS hosts cannot list objects. There, the names are the links of the page that
    /// the host serves for the folder.
    pub fn names(&self, prefix: &Address) -> Result<Vec<String>> {
        self.check(prefix)?;
        let (prefix_of_list, options) = (prefix.clone(), self.options().clone());
        let unreadable = self.unreadable().clone();
        let names = self.client().cloned().and_then(|client| {
            wait(async move {
                let names = names_below(&*client, &prefix_of_list, &options);
                unreadable.run_listing(prefix_of_list.key(), names).await
            })
        });
        names.map_err(|error| failed(prefix, "listing", error))
    }

    /// Returns a string that changes when an object is replaced. It contains the length of the
    /// object, and its ETag or the time of its last change. Returns `None` if the store reports
    /// neither an ETag nor a time.
    pub fn version(&self, address: &Address) -> Result<Option<String>> {
        self.check(address)?;
        let key = address.key().clone();
        let meta =
            self.client().cloned().and_then(|client| wait(async move { client.head(&key).await.map_err(io_error) }));
        let meta = meta.map_err(|error| failed(address, "reading its metadata", error))?;
        Ok(ObjectVersion::of(&meta).version())
    }

    /// Returns the addresses of all objects below a prefix, in no particular order. A prefix
    /// without objects has none.
    ///
    /// Leaves out keys that no address can have, because a component is empty, `.` or `..`, or
    /// because they contain a control character. [`ObjectStorage::unreadable_keys`] returns them
    /// afterwards. Also leaves out empty objects named `folder/`, which some tools create to show
    /// folders.
    ///
    /// Fails on HTTP and HTTPS hosts, which cannot list objects.
    pub fn objects(&self, prefix: &Address) -> Result<Vec<Address>> {
        self.check(prefix)?;
        let (key, unreadable) = (prefix.key().clone(), self.unreadable().clone());
        let keys =
            self.client().cloned().and_then(|client| wait(async move { keys(&*client, &unreadable, &key).await }));
        let keys = keys.map_err(|error| failed(prefix, "listing", error))?;
        Ok(keys.into_iter().map(|key| prefix.with_key(key)).collect())
    }

    /// Creates an object. The object appears only when it is complete. Fails with
    /// [`AlreadyExists`](std::io::ErrorKind::AlreadyExists) if the object exists, even if another
    /// writer creates it at the same time. Fails with
    /// [`Unsupported`](std::io::ErrorKind::Unsupported) on HTTP hosts.
    pub fn create(&self, address: &Address, bytes: &[u8]) -> Result<()> {
        self.check(address)?;
        let (key, bytes) = (address.key().clone(), PutPayload::from(bytes.to_vec()));
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let created = self.client().cloned().and_then(|client| {
            wait(async move { client.put_opts(&key, bytes, options).await.map(drop).map_err(io_error) })
        });
        created.map_err(|error| failed(address, "creating", error))
    }

    /// Returns the total size in bytes of an object, or of all objects below a prefix; 0 if there
    /// are none. Fails if keys below the prefix cannot be read.
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
                        let sum = unreadable.run_listing(&key, sum.map_err(io_error)).await?;
                        unreadable.refuse(&key)?;
                        Ok(sum)
                    }
                    Err(error) => Err(io_error(error)),
                }
            })
        });
        bytes.map_err(|error| failed(address, "reading its metadata", error))
    }

    /// Removes the object with this address, and all objects below this address. Leaves empty
    /// objects named `folder/`. If keys below the prefix cannot be read, fails and removes nothing.
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
                let mut removals = removals.buffer_unordered(CONCURRENT_REMOVALS);
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

/// Returns the keys below a prefix, and records the keys that cannot be read.
async fn keys(store: &dyn ObjectStore, unreadable: &UnreadableKeys, prefix: &Path) -> io::Result<Vec<Path>> {
    let found = store.list(Some(prefix)).map_ok(|meta| meta.location).try_collect();
    unreadable.run_listing(prefix, found.map_err(io_error)).await
}

/// The maximum size of a page of links.
const MAX_PAGE_BYTES: usize = 64 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Returns the names directly below a prefix.
async fn names_below(store: &dyn ObjectStore, prefix: &Address, options: &ObjectOptions) -> io::Result<Vec<String>> {
    match prefix.scheme() {
        Scheme::Http => linked_names(prefix, options).await,
        _ => listed_names(store, prefix.key()).await,
    }
}

async fn listed_names(store: &dyn ObjectStore, prefix: &Path) -> io::Result<Vec<String>> {
    let found = store.list_with_delimiter(Some(prefix)).await.map_err(io_error)?;
    let keys = found.objects.into_iter().map(|meta| meta.location).chain(found.common_prefixes);
    Ok(keys.filter_map(|key| key.filename().map(str::to_owned)).collect())
}

/// Returns the names that the page of a folder links to. A folder that does not exist has none.
async fn linked_names(folder: &Address, options: &ObjectOptions) -> io::Result<Vec<String>> {
    let base = Url::parse(&format!("{folder}/")).map_err(io::Error::other)?;
    set_tls_provider();
    let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(options.stall_timeout).build();
    let client = client.map_err(io::Error::other)?;
    let mut delay = Duration::from_millis(100);
    let mut retries = 0;
    let page = loop {
        match page(&client, &base).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted && retries < options.retries => {
                retries += 1;
                sleep(delay).await;
                delay = (delay * 2).min(MAX_DELAY);
            }
            page => break page?,
        }
    };
    let page = String::from_utf8_lossy(&page);
    let mut names: Vec<String> = links(&page).filter_map(|link| name_below(&base, link)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Reads a page. Fails with [`io::ErrorKind::ConnectionAborted`] if a retry may succeed.
///
/// Does not use the client of `object_store`, because that client refuses responses without a
/// length, such as the pages of folders.
async fn page(client: &Client, url: &Url) -> io::Result<Vec<u8>> {
    let transient_error = |error: reqwest::Error| io::Error::new(io::ErrorKind::ConnectionAborted, error);
    let mut response = client.get(url.clone()).send().await.map_err(transient_error)?;
    let status = response.status();
    let kind = match status {
        status if status.is_success() => None,
        StatusCode::NOT_FOUND => Some(io::ErrorKind::NotFound),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(io::ErrorKind::PermissionDenied),
        status if status.is_server_error() => Some(io::ErrorKind::ConnectionAborted),
        _ => Some(io::ErrorKind::Other),
    };
    if let Some(kind) = kind {
        return Err(io::Error::new(kind, format!("the host does not serve a page for this folder: {status}")));
    }
    let mut bytes = Vec::new();
    while let Some(received) = response.chunk().await.map_err(transient_error)? {
        if bytes.len().saturating_add(received.len()) > MAX_PAGE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the page of the folder is larger than 64 MiB"));
        }
        bytes.extend_from_slice(&received);
    }
    Ok(bytes)
}

/// Returns the link targets of a page: the values of `href`.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest.get(1..)?.split_once(quote).map(|(link, _)| link)
    })
}

/// Returns the name of the target of a link, if the target is directly below a folder.
fn name_below(folder: &Url, link: &str) -> Option<String> {
    let target = folder.join(link).ok()?;
    if target.origin() != folder.origin() {
        return None;
    }
    let name = target.path().strip_prefix(folder.path())?;
    let name = name.strip_suffix('/').unwrap_or(name);
    (!name.is_empty() && !name.contains('/')).then(|| Path::from_url_path(name).ok()).flatten().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_of_a_page_are_names() {
        let page = r#"<html><a href="../">Up</a><a href="0000000001.json">1</a> <a href='a%20b/'>b</a>
            <a href="?C=N;O=D">Name</a><a href="/train/x.tsl">x</a><a href="/other/y.tsl">y</a>
            <a href="https://elsewhere.org/train/z.tsl">z</a><a href="deep/er.tsl">e</a>"#;
        let folder = Url::parse("http://host/train/").unwrap();
        let names: Vec<_> = links(page).filter_map(|link| name_below(&folder, link)).collect();
        assert_eq!(names, ["0000000001.json", "a b", "x.tsl"]);
    }
}
