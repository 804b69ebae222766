//! Helpers that the tests of several crates share.
//!
//! They provide reproducible random numbers, data that is hard to encode, archives of test vectors,
//! temporary folders, HTTP servers with faults and delays, and a counting allocator. Nothing here
//! uses tensilo's types, so unit tests of the core can also use these helpers.

mod archive;
mod delay_proxy;
mod environment;
mod fault_proxy;
mod folder;
mod http;
mod http_server;
mod patterns;
mod random;
mod sys;

pub use archive::{Files, archive, vector, vector_files};
pub use delay_proxy::DelayProxy;
pub use environment::{available, env_or, python, repository};
pub use fault_proxy::FaultProxy;
pub use folder::Folder;
pub use http::{HttpFault, HttpRequest, random_faults};
pub use http_server::HttpServer;
pub use patterns::Pattern;
pub use random::{Random, mix};
#[cfg(unix)]
pub use sys::Child;
pub use sys::{Allocations, CountingAllocator, ExclusiveTest, allocations_of, exclusive_test};
