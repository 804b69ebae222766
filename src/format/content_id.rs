//! The content id of a commit (chapter 7.5): the first 16 bytes of a SHA-256 (FIPS 180-4).

use super::hex::hex;
use sha2::{Digest, Sha256};
use std::fmt;

/// The 16 bytes that identify the content of a file up to a commit.
///
/// They are a hash of schema, index and footer of every commit so far, and thereby of all values:
/// the index has the CRC-32 of each chunk. Files with the same id hold the same values in the same
/// chunks, as surely as CRC-32 tells; their [`FileId`](crate::format::FileId)s may differ. Equal
/// values that were encoded or committed in another way have another id. The id is no signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContentId(pub [u8; 16]);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

/// Computes the content id of a commit from its parts, in the order of the file.
pub(crate) struct ContentHasher(Sha256);

impl ContentHasher {
    /// Begins a commit after the one with this id; the first commit follows [`ContentId::default`].
    pub(crate) fn after(previous: ContentId) -> Self {
        Self(Sha256::new_with_prefix(previous.0))
    }

    /// Adds the body of the next index page.
    pub(crate) fn add_page(&mut self, body: &[u8]) {
        self.0.update(body);
    }

    /// Returns the id, given the body of the footer after its own content id.
    pub(crate) fn finish(mut self, footer: &[u8]) -> ContentId {
        self.0.update(footer);
        let digest: [u8; 32] = self.0.finalize().into();
        let mut id = ContentId::default();
        id.0.copy_from_slice(&digest[..16]); // in bounds, and as long as an id
        id
    }
}
