//! The samples that are compared: texts of three kinds, and jagged lists of numbers.
//!
//! * `chat`: messages of a user and an assistant in turn, 2 to 6 of them. A message is a paragraph.
//! * `captions`: five consecutive sentences of 20 to 300 bytes.
//! * `web`: consecutive paragraphs, joined to 0.2 to 8 kB.
//! * `jagged`: 1 to 20 consecutive frames of mel spectra; of each frame, the values above its mean.
//!
//! If a folder is given, texts come from its files. Otherwise they are generated, the same on every
//! machine with the same version of this repository. Each data set states its origin, which the
//! reports repeat.

mod chain;
mod jagged;
pub mod texts;

use super::columns::{Columns, Element, IndexedColumns, Layout};
use anyhow::{Result, bail};
use std::path::Path;

/// The names of the data sets, in the order of the reports.
pub const NAMES: [&str; 4] = ["chat", "captions", "web", "jagged"];

pub struct Dataset {
    pub name: &'static str,
    /// The origin of the samples.
    pub origin: String,
    pub samples: IndexedColumns,
}

/// The folders with real data, if given.
#[derive(Clone, Copy)]
pub struct Folders<'a> {
    pub tensors: Option<&'a Path>,
    pub texts: Option<&'a Path>,
}

impl Dataset {
    pub fn raw_bytes(&self) -> usize {
        self.samples.columns.raw_bytes()
    }
}

const TEXT: Layout = Layout { name: "text", is_list: false, fields: &[], element: Element::Text };
pub const CHAT: Layout =
    Layout { name: "messages", is_list: true, fields: &["role", "content"], element: Element::Text };
const CAPTIONS: Layout = Layout { name: "captions", is_list: true, fields: &[], element: Element::Text };
const JAGGED: Layout = Layout { name: "frames", is_list: true, fields: &[], element: Element::F32 };

/// Loads the data set of this name. For texts, takes samples up to `bytes` of raw data.
pub fn load(name: &str, folders: Folders<'_>, bytes: usize) -> Result<Dataset> {
    let (name, origin, samples) = match name {
        "chat" => texts(&CHAT, "chat", folders, bytes)?,
        "captions" => texts(&CAPTIONS, "captions", folders, bytes)?,
        "web" => texts(&TEXT, "web", folders, bytes)?,
        "jagged" => {
            let (columns, origin) = jagged::frames(folders.tensors)?;
            ("jagged", origin, IndexedColumns::new(JAGGED, columns))
        }
        _ => bail!("there is no data set {name}"),
    };
    Ok(Dataset { name, origin, samples })
}

fn texts(
    layout: &Layout,
    name: &'static str,
    folders: Folders<'_>,
    bytes: usize,
) -> Result<(&'static str, String, IndexedColumns)> {
    let mut source = texts::Samples::new(name, folders.texts)?;
    let mut columns = Columns::new(layout);
    while columns.raw_bytes() < bytes && source.append(&mut columns)? {}
    if columns.raw_bytes() == 0 {
        bail!("{name}: the texts do not suffice for a sample");
    }
    Ok((name, source.origin(), IndexedColumns::new(*layout, columns)))
}
