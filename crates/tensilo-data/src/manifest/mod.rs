//! `MANIFEST.md`: the texts that list the files of a dataset.

mod broken;
mod column;
mod group;
mod json;
mod page;
mod relative_path;
mod sealed;
mod text;
mod version;

pub(crate) use broken::{Broken, need};
pub(crate) use column::{IdentifiedColumn, Layout};
pub(crate) use group::{Group, ListedFile};
pub(crate) use json::Hex;
pub(crate) use page::{MOST_BYTES as MOST_PAGE_BYTES, PageEntry, to_bytes as page_to_bytes};
pub(crate) use relative_path::{check as check_path, join};
pub(crate) use version::{MOST_BYTES as MOST_VERSION_BYTES, Version, content_ids, dataset_id, number_of, path_of};
