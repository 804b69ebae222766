//! The options for requests to a store: coalescing, retries, memory, the disk cache, and settings
//! that take precedence over the environment.

use crate::cache::Cache;
use std::time::Duration;
use tensilo::source::CoalesceConfig;

/// The options for requests to a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObjectOptions {
    pub(crate) coalesce: CoalesceConfig,
    /// The maximum size of the range cache; `None` lets a loader raise the default.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) retries: usize,
    pub(crate) retry_timeout: Duration,
    pub(crate) stall_timeout: Duration,
    /// Settings of the store, which take precedence over the environment.
    pub(crate) settings: Vec<(String, String)>,
    /// The disk cache; `None` selects the cache that the environment names.
    pub(crate) cache: Option<Option<Cache>>,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self {
            coalesce: CoalesceConfig::OBJECT_STORE,
            memory_bytes: None,
            retries: 10,
            retry_timeout: Duration::from_secs(120),
            stall_timeout: Duration::from_secs(15),
            settings: Vec::new(),
            cache: None,
        }
    }
}

impl ObjectOptions {
    /// Returns the defaults, which suit a store in the same region.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how ranges are coalesced into requests, and how many requests one read can have in
    /// flight. Long ranges are divided into requests of `max_request_bytes`, which is raised to 64
    /// KiB if it is lower. The default is [`CoalesceConfig::OBJECT_STORE`]; for a store that is
    /// farther away, use a larger gap. All reads of a process together have at most 256 requests in
    /// flight.
    pub fn coalesce(mut self, config: CoalesceConfig) -> Self {
        self.coalesce = config;
        self.coalesce.max_request_bytes = config.max_request_bytes.max(crate::range_cache::LINE_BYTES);
        self.coalesce.max_in_flight = config.max_in_flight.max(1);
        self
    }

    /// Sets the maximum number of bytes in memory for all open objects of the store: small
    /// structures of files, and prefetched ranges.
    ///
    /// The default is 512 MiB, or the size of two windows of all streams from which a loader takes
    /// samples, up to 4 GiB. If you set fewer bytes than the loader needs, it reads some runs
    /// again.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Sets how many times a request is retried if a retry can succeed, and the maximum total time.
    /// The delay between retries grows from 0.1 s to 15 s. The default is 10 retries within 120 s.
    pub fn retries(mut self, count: usize, timeout: Duration) -> Self {
        (self.retries, self.retry_timeout) = (count, timeout);
        self
    }

    /// Sets how long a request waits for the next bytes before it fails. The default is 15 s.
    pub fn stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }

    /// Sets the disk cache, or disables it with `None`. The default is the cache that the
    /// environment names; see [`Cache::from_environment`].
    pub fn cache(mut self, cache: Option<Cache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Adds a setting of the store, such as a credential or an endpoint, which takes precedence
    /// over the environment. A setting has the name of its variable in lower case, such as
    /// `aws_endpoint_url`. An empty value unsets the variable; a profile in `~/.aws` then applies.
    /// If the store does not support the setting, the first use of the store fails.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}
