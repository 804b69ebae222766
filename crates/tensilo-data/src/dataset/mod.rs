//! A dataset: files that are read as one sequence of samples.
//!
//! | module | what it does |
//! |---|---|
//! | `options` | what a caller chooses before anything is opened |
//! | `handle` | an open dataset: finds samples, and opens the files that have them |
//! | `groups`, `versions` | the manifest, as far as it is read: which files have which samples |
//! | `without_manifest` | the same from files alone |
//! | `listed_file`, `open_files` | a data file, checked against its entry; the open ones |
//! | `store` | where all of this is kept: a folder or an object store |
//! | `changes` | new versions, and the removal of old ones |
//! | `salvage`, `table` | damaged files; the dataset as the table of an export |
//!
//! A version never changes. So readers need no lock and no server: they read files that exist, and
//! writers add files beside them.

mod changes;
mod groups;
mod handle;
mod listed_file;
mod open_files;
mod options;
mod salvage;
mod store;
#[cfg(feature = "arrow")]
mod table;
mod versions;
mod without_manifest;

pub use changes::{Changes, Garbage, JobFile, WriteJob};
pub use groups::{GroupFile, SampleGroup};
pub use handle::{Dataset, SampleLocation};
pub(crate) use handle::{FileColumns, GroupColumns, GroupHandle};
pub use options::DatasetOptions;
pub use salvage::SalvagedFile;
pub use store::DataFile;
