//! Pages of groups (chapter 6 of `MANIFEST.md`).
//!
//! A page is a JSON file that lists groups, and its name is its digest. So a page never changes,
//! several versions can list it, and a reader can check whether it got the right page. Opening a
//! version reads no pages.

use super::group::{self, Columns, Group, GroupJson};
use super::json::{Hex, Number, lines};
use super::{RuleViolation, ensure, sealed};
use serde::{Deserialize, Serialize};

const FORMAT: &str = "tensilo dataset page 1";
/// The maximum length of a page in bytes (M-2.4).
pub(crate) const MAX_BYTES: u64 = 4 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PageJson {
    #[serde(rename = "format")]
    _format: String,
    groups: Vec<GroupJson>,
    #[serde(rename = "digest")]
    _digest: Hex,
}

/// The entry of a page in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PageEntry {
    pub digest: Hex,
    pub bytes: u64,
    pub groups: u64,
    pub samples: u64,
}

/// The JSON of a page entry.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageEntryJson {
    digest: Hex,
    bytes: Number,
    groups: Number,
    samples: Number,
}

impl PageEntryJson {
    pub(super) fn of(entry: &PageEntry) -> Self {
        let PageEntry { digest, bytes, groups, samples } = *entry;
        Self { digest, bytes: Number(bytes), groups: Number(groups), samples: Number(samples) }
    }

    pub(super) fn parse(self) -> Result<PageEntry, RuleViolation> {
        let entry =
            PageEntry { digest: self.digest, bytes: self.bytes.0, groups: self.groups.0, samples: self.samples.0 };
        ensure(entry.groups > 0 && entry.samples > 0, "M-2.3", || format!("the page {} is empty", entry.digest))?;
        Ok(entry)
    }
}

impl PageEntry {
    /// Returns the path of the page in the dataset (M-6.1).
    pub(crate) fn path(&self) -> String {
        format!("manifest/pages/{}.json", self.digest)
    }

    /// Parses a page, and checks M-6.1 and M-6.2.
    pub(crate) fn parse(&self, bytes: &[u8], columns: Columns<'_>) -> Result<Vec<Group>, RuleViolation> {
        ensure(u64::try_from(bytes.len()) == Ok(self.bytes), "M-6.1", || {
            format!("the page has {} bytes, but the version states {}", bytes.len(), self.bytes)
        })?;
        let (page, digest): (PageJson, Hex) = sealed::open(bytes, FORMAT)?;
        ensure(digest == self.digest, "M-6.1", || {
            format!("the page has the digest {digest}, but its name is a different digest")
        })?;
        let (groups, samples) = group::parse(page.groups, columns)?;
        let found = u64::try_from(groups.len()).map(|count| (count, samples));
        ensure(found == Ok((self.groups, self.samples)), "M-6.1", || {
            let (count, expected, expected_samples) = (groups.len(), self.groups, self.samples);
            format!(
                "the page has {count} groups with {samples} samples, but the version states {expected} groups with \
                 {expected_samples} samples"
            )
        })?;
        Ok(groups)
    }
}

/// Encodes groups as a page. Returns its bytes and its entry.
pub(crate) fn to_bytes(groups: &[Group]) -> (Vec<u8>, PageEntry) {
    let texts = lines(groups.iter().map(GroupJson::of));
    let (bytes, digest) = sealed::seal(format!("{{\n\"format\": \"{FORMAT}\",\n\"groups\": {texts},\n"));
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    let samples = groups.iter().map(|group| group.samples).fold(0, u64::saturating_add);
    let entry = PageEntry { digest, bytes: count(bytes.len()), groups: count(groups.len()), samples };
    (bytes, entry)
}
