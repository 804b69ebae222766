//! A competitor with the best of several settings: those that make the smallest file of a data set.
//!
//! All settings are tried on all of the data before the clock starts.

use super::{Family, Peer, Peers, Store};
use crate::data::{Dataset, Element};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

pub struct Best<T: Element> {
    name: &'static str,
    about: String,
    chosen: Box<dyn Peer<Dataset<T>>>,
}

impl<T: Element> Best<T> {
    /// Writes a file with each candidate, and chooses the candidate with the smallest.
    pub fn of(
        name: &'static str,
        about: String,
        candidates: Peers<T>,
        data: &Dataset<T>,
        folder: &Path,
    ) -> Result<Self> {
        let file = folder.join("candidate");
        let mut best = None;
        for candidate in candidates {
            eprint!("\r{}: {name}: {:<100.100}", data.name, candidate.about());
            candidate.encode(data, &file).with_context(|| format!("{} on {}", candidate.about(), data.name))?;
            let bytes = candidate.stored_bytes(data, &file)?;
            fs::remove_file(&file)?;
            if best.as_ref().is_none_or(|(min_bytes, _)| bytes < *min_bytes) {
                best = Some((bytes, candidate));
            }
        }
        eprint!("\r{:<120}\r", "");
        let (_, chosen) = best.with_context(|| format!("{name} has no settings for {}", data.name))?;
        Ok(Self { name, about, chosen })
    }
}

impl<T: Element> Peer<Dataset<T>> for Best<T> {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn about(&self) -> String {
        self.about.clone()
    }

    fn choice(&self) -> Option<String> {
        Some(self.chosen.about())
    }

    fn stays_decoded(&self) -> bool {
        self.chosen.stays_decoded()
    }

    fn family(&self) -> Family {
        self.chosen.family()
    }

    fn encode(&self, data: &Dataset<T>, file: &Path) -> Result<()> {
        self.chosen.encode(data, file)
    }

    fn open(&self, data: &Dataset<T>, file: &Path) -> Result<Box<dyn Store<T>>> {
        self.chosen.open(data, file)
    }
}
