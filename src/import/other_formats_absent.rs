//! Builds without Arrow, in which no formats can be added.

use super::input_file::InputFile;
use super::native::NativeFile;
use super::store::OptionalStore;
use crate::Result;
use std::sync::Arc;

/// No formats.
#[derive(Clone, Debug, Default)]
pub(super) struct OtherFormats;

impl OtherFormats {
    /// Opens no file.
    #[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "builds with Arrow have formats")]
    pub(super) fn open(&self, _: &Arc<InputFile>, _: &OptionalStore) -> Result<Option<NativeFile>> {
        Ok(None)
    }

    /// Returns no names.
    #[expect(clippy::unused_self, reason = "builds with Arrow have formats")]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }
}
