//! Versions (chapter 3 of `MANIFEST.md`).
//!
//! A version is a JSON file that describes the columns and files of a dataset at one point in time.
//! It refers to its parent, the version that it was made from, by number and digest. So a chain of
//! versions can be checked, but no reader needs the older versions.

use super::column::{self, ColumnJson, DatasetColumn, Layout, LayoutJson};
use super::group::{self, Columns, Group, GroupJson};
use super::json::{Hex, Number, line, lines, present, unique};
use super::page::{PageEntry, PageEntryJson};
use super::{RuleViolation, ensure, sealed};
use crate::order::WindowSizes;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use tensilo::Metadata;

const FORMAT: &str = "tensilo dataset 1";
/// The maximum length of the file of a version in bytes (M-2.4).
pub(crate) const MAX_BYTES: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionJson {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "requires", default, deserialize_with = "present")]
    _requires: Option<Vec<String>>,
    dataset_id: Hex,
    version: Number,
    #[serde(deserialize_with = "Option::deserialize")] // may be null, but not missing
    parent: Option<ParentJson>,
    #[serde(default, deserialize_with = "present")]
    time: Option<Number>,
    change: String,
    samples: Number,
    order: OrderJson,
    #[serde(deserialize_with = "unique")]
    metadata: Metadata,
    column_ids: Number,
    columns: Vec<ColumnJson>,
    layouts: Vec<LayoutJson>,
    pages: Vec<PageEntryJson>,
    groups: Vec<GroupJson>,
    #[serde(rename = "digest")]
    _digest: Hex,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct ParentJson {
    version: Number,
    digest: Hex,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct OrderJson {
    run: Number,
    window: Number,
    streams: Number,
}

/// A version of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub dataset_id: [u8; 16],
    pub number: u64,
    /// The number and the digest of the version that this one was made from.
    pub parent: Option<(u64, Hex)>,
    /// Seconds since 1970.
    pub time: Option<u64>,
    pub change: String,
    pub samples: u64,
    pub order: WindowSizes,
    pub metadata: Metadata,
    pub column_ids: u64,
    pub columns: Vec<DatasetColumn>,
    pub layouts: Vec<Layout>,
    pub pages: Vec<PageEntry>,
    pub groups: Vec<Group>,
}

impl Version {
    /// Parses the file of version `number`, and checks the rules of chapters 2 to 5. Returns the
    /// version and its digest.
    pub(crate) fn parse(bytes: &[u8], number: u64) -> Result<(Self, Hex), RuleViolation> {
        let (text, digest): (VersionJson, Hex) = sealed::open(bytes, FORMAT)?;
        ensure(text.version.0 == number, "M-3.2", || {
            format!("the file states version {}, but its name states version {number}", text.version.0)
        })?;
        let parent = text.parent.map(|parent| (parent.version.0, parent.digest));
        let before = number.checked_sub(1).filter(|before| *before > 0);
        ensure(parent.is_none_or(|(parent, _)| Some(parent) == before), "M-3.2", || {
            format!("the parent of version {number} is not the previous version")
        })?;
        let columns = column::parse(text.columns, text.column_ids.0, &text.metadata)?;
        let layouts = text.layouts.into_iter().map(|layout| layout.parse(text.column_ids.0));
        let layouts = layouts.collect::<Result<Vec<_>, _>>()?;
        let pages = text.pages.into_iter().map(PageEntryJson::parse).collect::<Result<Vec<_>, _>>()?;
        let (groups, last) = group::parse(text.groups, Columns { columns: &columns, layouts: &layouts })?;
        let samples = group::sum(pages.iter().map(|page| page.samples).chain([last]))?;
        ensure(samples == text.samples.0, "M-3.3", || {
            format!("the version states {} samples, but its groups have {samples}", text.samples.0)
        })?;
        let version = Self {
            dataset_id: text.dataset_id.0,
            number,
            parent,
            time: text.time.map(|time| time.0),
            change: text.change,
            samples,
            order: text.order.parse()?,
            metadata: text.metadata,
            column_ids: text.column_ids.0,
            columns,
            layouts,
            pages,
            groups,
        };
        Ok((version, digest))
    }

    /// Encodes the file of the version. Returns its bytes and its digest.
    pub(crate) fn to_bytes(&self) -> (Vec<u8>, Hex) {
        let parent = self.parent.map(|(version, digest)| ParentJson { version: Number(version), digest });
        let sizes = self.order;
        let [run, window, streams] =
            [sizes.run_samples(), sizes.window_runs(), sizes.streams()].map(|number| Number(number.into()));
        let order = OrderJson { run, window, streams };
        let mut text = String::from("{\n");
        let mut put = |name: &str, value: String| {
            let _ = writeln!(text, "\"{name}\": {value},"); // a write to a string cannot fail
        };
        put("format", line(&FORMAT));
        put("dataset_id", line(&Hex(self.dataset_id)));
        put("version", self.number.to_string());
        put("parent", line(&parent));
        if let Some(time) = self.time {
            put("time", time.to_string());
        }
        put("change", line(&self.change));
        put("samples", self.samples.to_string());
        put("order", line(&order));
        put("metadata", line(&self.metadata));
        put("column_ids", self.column_ids.to_string());
        put("columns", lines(self.columns.iter().map(ColumnJson::of)));
        put("layouts", lines(self.layouts.iter().map(LayoutJson::of)));
        put("pages", lines(self.pages.iter().map(PageEntryJson::of)));
        put("groups", lines(self.groups.iter().map(GroupJson::of)));
        sealed::seal(text)
    }

    /// Returns version 0 of a new dataset, without samples or columns.
    pub(crate) fn empty() -> Self {
        Self {
            dataset_id: [0; 16],
            number: 0,
            parent: None,
            time: None,
            change: String::new(),
            samples: 0,
            order: WindowSizes::for_dataset(0, 0, WindowSizes::FILE_RUN_BYTES),
            metadata: Metadata::new(),
            column_ids: 0,
            columns: Vec::new(),
            layouts: Vec::new(),
            pages: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Returns the default sizes for runs of about `run_bytes` stored bytes, from the groups that
    /// are not in pages.
    pub(crate) fn default_sizes(&self, run_bytes: u64) -> WindowSizes {
        let files = self.groups.iter().flat_map(|group| &group.files);
        let stored_bytes = files.map(|file| file.bytes).fold(0, u64::saturating_add);
        WindowSizes::for_dataset(self.samples, stored_bytes, run_bytes)
    }

    /// Returns the columns and layouts that groups refer to.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns { columns: &self.columns, layouts: &self.layouts }
    }
}

impl OrderJson {
    fn parse(self) -> Result<WindowSizes, RuleViolation> {
        let [Number(run), Number(window), Number(streams)] = [self.run, self.window, self.streams];
        let [run_samples, window_runs, stream_count] = [run, window, streams].map(|number| u32::try_from(number).ok());
        let sizes = run_samples.zip(window_runs).and_then(|(run, window)| WindowSizes::new(run, window).ok());
        let sizes = sizes.zip(stream_count).and_then(|(sizes, streams)| sizes.with_streams(streams).ok());
        sizes.ok_or_else(|| {
            let message = format!(
                "windows of {window} runs of {run} samples, in {streams} streams: expected two numbers from 1 to \
                 2^32 - 1, and a power of two up to {}",
                WindowSizes::MAX_STREAMS
            );
            RuleViolation::new("M-2.3", message)
        })
    }
}

/// Returns the path of the file of a version (M-1.1).
pub(crate) fn path_of(version: u64) -> String {
    format!("manifest/{version:010}.json")
}

/// Returns the version whose file has this name in the folder of the manifest. Returns `None` for
/// any other name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json").filter(|digits| digits.len() == 10)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&version| is_number && version > 0)
}

/// Returns the content ids of all files of the groups as bytes, in order.
pub(crate) fn content_ids(groups: &[Group]) -> impl Iterator<Item = u8> {
    groups.iter().flat_map(|group| &group.files).flat_map(|file| file.content_id.0)
}

/// Returns the id of a dataset, given the content ids of the files in its first version (M-3.5).
pub(crate) fn dataset_id(content_ids: impl Iterator<Item = u8>) -> [u8; 16] {
    sealed::digest(&content_ids.collect::<Vec<_>>()).0
}
