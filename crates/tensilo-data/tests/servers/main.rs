//! Datasets on real servers: moto with the protocol of S3, Azurite with the protocol of Azure, and
//! nginx as a host of files. Each is started on the loopback address, and ends with its test.
//!
//! `TENSILO_SERVERS` is a folder with a virtual environment `venv` that has moto, and
//! `node_modules` that have Azurite. If a server is not installed, its tests are skipped, unless
//! `TENSILO_REQUIRE_SERVERS=1`.

mod datasets;
mod faults;
#[cfg(feature = "parquet")]
mod inputs;
mod server;
