//! Datasets in real servers: one that speaks as S3 does (moto), one as Azure (Azurite), and a host
//! of files (nginx). Each is started on the loopback address, and ends with its test.
//!
//! `TENSILO_SERVERS` is the folder with a virtual environment `venv` that has moto, and with
//! `node_modules` that have Azurite. A server that is absent is not tested, unless
//! `TENSILO_REQUIRE_SERVERS=1`.

mod datasets;
mod faults;
#[cfg(feature = "parquet")]
mod inputs;
mod server;
