//! Tensilo files in object stores: S3, Google Cloud Storage, Azure, and hosts of `http`.
//!
//! * An [`Address`] names an object or a prefix: `s3://bucket/train`.
//! * An [`ObjectStorage`] is a connection to a store. It opens, lists, creates and removes objects.
//! * An [`ObjectFile`] is a [`Source`](tensilo::source::Source) for a reader, and an
//!   [`ObjectUpload`] a [`Sink`](tensilo::sink::Sink) for a writer.
//! * A [`Cache`] keeps bytes of objects on a disk of this machine.
//! * `ObjectInputs`, with the feature `import`, are objects as inputs of conversions.
//! * [`source_at`] opens what a path of an argument names, a file or an object.
//!
//! No function is asynchronous. Requests are sent by threads of the crate, which the first request
//! of a process starts, also in one that was forked. Datasets in stores are `tensilo-data` with the
//! feature `object`.
//!
//! TLS uses the `CryptoProvider` of `rustls` that the process has installed, and installs that of
//! `ring` if there is none.

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
