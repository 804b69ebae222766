//! A mapped tensilo file: its reader, sample by sample, `verify` and `salvage`.

use super::super::outcome::ReadOutcome;
use super::Format;
use crate::data::Dataset;
use crate::peers::{Peer, tensilo as peer};
use anyhow::Result;
use half::bf16;
use std::path::Path;
use tensilo::Reader;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::MappedFile;
use tensilo::verify::{VerifyOptions, verify};

pub struct Tensilo(pub peer::Tensilo);

impl Format for Tensilo {
    fn name(&self) -> String {
        peer::name(self.0.0)
    }

    fn about(&self) -> String {
        format!(
            "{}; read sample by sample; each chunk's checksum is checked when it is first read",
            peer::about(self.0.0)
        )
    }

    fn write(&self, data: &Dataset, file: &Path) -> Result<()> {
        self.0.encode(data, file)
    }

    fn read(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        // SAFETY: the file is this process's own, and is not changed while it is read.
        read(&unsafe { Reader::map(file) }?, data, outcome)
    }

    fn finds_damage(&self, file: &Path) -> Option<bool> {
        // SAFETY: as above.
        let report = unsafe { MappedFile::open(file) }.and_then(|file| verify(&file, VerifyOptions::new()));
        Some(!report.is_ok_and(|report| report.findings.is_empty()))
    }

    fn salvage(&self, data: &Dataset, file: &Path, outcome: &mut ReadOutcome) -> Result<()> {
        // SAFETY: as above.
        let file = unsafe { MappedFile::open(file) }?;
        read(&salvage(file, SalvageOptions::new())?.reader, data, outcome)
    }
}

fn read(reader: &Reader, data: &Dataset, outcome: &mut ReadOutcome) -> Result<()> {
    let mut cursor = reader.column(peer::COLUMN)?.cursor();
    let mut sample = vec![bf16::ZERO; data.elements()];
    for i in 0..data.samples() {
        match cursor.read_slice(i as u64, &mut sample) {
            Ok(Some(_)) => outcome.samples(i, &sample),
            _ => outcome.error(),
        }
    }
    if reader.sample_count() != data.samples() as u64 {
        outcome.error();
    }
    Ok(())
}
