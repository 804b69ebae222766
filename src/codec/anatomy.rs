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

    /// Adds the sections of a block to those of the blocks before it, by name.
    pub(super) fn add_block(&mut self, block: Anatomy) {
        for section in block.sections {
            match self.sections.iter_mut().find(|found| found.name == section.name) {
                Some(found) => {
                    found.stored_bytes = found.stored_bytes.saturating_add(section.stored_bytes);
                    if found.detail != section.detail {
                        found.detail = without_number(&found.detail).to_owned();
                    }
                }
                None => self.sections.push(section),
            }
        }
    }
}

/// Returns a detail without the number that it begins with, which differs from block to block.
fn without_number(detail: &str) -> &str {
    detail.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()
}
