//! A dataset: files that are read as one sequence of samples.

mod changes;
mod column_changes;
mod data_file;
mod data_folder;
mod dataset_place;
mod facts;
mod folder;
mod found;
mod garbage;
mod group_changes;
mod group_samples;
mod groups;
mod handle;
#[cfg(feature = "import")]
mod import;
mod job;
mod layouts;
mod listed_reader;
mod location;
#[cfg(feature = "object")]
mod objects;
mod open;
mod open_files;
mod options;
mod other_handles;
mod pattern;
mod place;
mod publish;
mod remote;
mod repack;
mod salvage;
mod store;
#[cfg(feature = "arrow")]
mod table;
#[cfg(test)]
mod tests;
mod without_manifest;

pub use changes::Changes;
pub use data_file::DataFile;
pub(crate) use found::{FoundColumns, FoundFile, FoundGroup};
pub use garbage::Garbage;
pub use handle::{Dataset, FoundSample, GroupFile, SampleGroup};
pub use job::{JobFile, WriteJob};
pub use options::DatasetOptions;
pub use salvage::SalvagedFile;
