//! The sections of stored bytes, described for people. Nothing is read by it.

use crate::le::u64_of;

/// A section of the stored values of a chunk, such as a tier or a bit plane.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// The name, such as `tier 1` or `bit plane 7`.
    pub name: String,
    /// The content in words, such as `16384 codes of 2 bits`. May be empty.
    pub detail: String,
    /// The length in bytes.
    pub stored_bytes: u64,
}

/// The sections of the stored bytes of a part.
#[derive(Debug, Default)]
pub(crate) struct Anatomy {
    /// The transform of the elements, in words; `None` in encodings without transforms.
    pub transform: Option<String>,
    /// In the order of the file. Their lengths add up to the stored bytes. Empty ones are left out.
    pub sections: Vec<Section>,
}

impl Anatomy {
    /// Adds the next section, unless it is empty.
    pub(super) fn add(&mut self, name: impl Into<String>, detail: impl Into<String>, stored: &[u8]) {
        if !stored.is_empty() {
            let stored_bytes = u64_of(stored.len());
            self.sections.push(Section { name: name.into(), detail: detail.into(), stored_bytes });
        }
    }
}
