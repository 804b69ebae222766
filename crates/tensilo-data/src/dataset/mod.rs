//! A dataset: files that are read as one sequence of samples.
//!
//! A version of a dataset is immutable: it lists its files, and neither the list nor the listed
//! bytes ever change. So readers need no lock and no server. They read existing files, while
//! writers add new files next to them and publish a new version in one atomic step. A dataset can
//! be a folder, a prefix of an object store, or a plain list of files.
//!
//! | module | purpose |
//! |---|---|
//! | `options` | what a caller chooses before anything is opened |
//! | `handle` | an open dataset: finds samples, and opens the files that have them |
//! | `groups`, `versions` | the manifest, read on demand: which files have which samples |
//! | `without_manifest` | the same information, derived from the files |
//! | `listed_file`, `open_files` | a data file, checked against its entry; a cache of open files |
//! | `store` | where the dataset is: a folder or an object store |
//! | `changes` | new versions, and the removal of old ones |
//! | `salvage`, `table` | damaged files; the dataset as a table to export |

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
