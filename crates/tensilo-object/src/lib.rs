//! tensilo files in object stores: S3, Google Cloud Storage, Azure, and HTTP hosts.
//!
//! * An [`Address`] names an object or a prefix: `s3://bucket/train`.
//! * An [`ObjectStorage`] is a connection to a store. It opens, lists, creates and removes objects.
//! * An [`ObjectFile`] is a [`Source`](tensilo::source::Source) for a reader, and an
//!   [`ObjectUpload`] is a [`Sink`](tensilo::sink::Sink) for a writer.
//! * A [`Cache`] keeps object data on a disk of this machine.
//! * `ObjectInputs`, with the feature `import`, provides objects as conversion inputs.
//! * [`source_at`] opens the file or the object that a path names.
//!
//! A request to a store takes milliseconds, and many concurrent requests take hardly longer than
//! one. So the crate sends the requests of a read concurrently, coalesces nearby ranges into one
//! request, and never requests bytes that are cached or that a prefetch has in flight. All bytes of
//! an open object come from one version of it.
//!
//! No function is asynchronous, so the same code reads and writes local files and objects. Threads
//! of the crate send the requests. These threads start with the first request of a process and,
//! after a fork, with the first request of the child. For datasets in stores, use `tensilo-data`
//! with the feature `object`.
//!
//! TLS uses the `rustls` `CryptoProvider` that the process has installed. If there is none, the
//! crate installs the provider of `ring`.

#![forbid(unsafe_code)]

mod address;
mod cache;
mod client;
mod error;
#[cfg(feature = "import")]
mod inputs;
mod object_file;
mod range_cache;
mod request;
mod runtime;
mod storage;
mod upload;

pub use address::{Address, UNREADABLE_KEY};
pub use cache::{Cache, CacheStats};
pub use client::ObjectOptions;
pub use error::ObjectError;
#[cfg(feature = "import")]
pub use inputs::ObjectInputs;
pub use object_file::{ObjectFile, PendingOpen, source_at, source_with};
pub use storage::ObjectStorage;
pub use upload::ObjectUpload;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
