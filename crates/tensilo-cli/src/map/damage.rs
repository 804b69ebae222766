//! The subject of a map: a file, and its damage.

use super::args::MapArgs;
use crate::failure::{Failure, Outcome};
use crate::open::{open, source, warn};
use crate::options::threads;
use crate::progress::{Progress, Unit};
use crate::terminal::warning;
use std::ops::Range;
use tensilo::error::display_path;
use tensilo::salvage::{SalvageOptions, salvage};
use tensilo::source::Source;
use tensilo::verify::{Damage, DamageKind, VerifyOptions, verify};
use tensilo::{ErrorKind, OpenOptions, Reader};

/// A file, and its damage.
pub(crate) struct Subject {
    pub(crate) reader: Reader,
    /// Whether every byte was checked.
    pub(crate) is_verified: bool,
    /// Whether the file could not be opened. Chunks that are not drawn are then lost or not found.
    pub(crate) is_salvaged: bool,
    /// In file order; empty if the file was not verified.
    pub(crate) damages: Vec<Damage>,
}

impl Subject {
    /// Opens the file, after verifying it if requested. If it cannot be opened, salvages the intact
    /// chunks.
    pub(super) fn open(args: &MapArgs, quiet: bool) -> Outcome<Self> {
        if !args.verify {
            let reader = open(&args.file, quiet)?;
            return Ok(Self { reader, is_verified: false, is_salvaged: false, damages: Vec::new() });
        }
        let about = |error| Failure::about(&args.file, error);
        let source = source(&args.file)?;
        let progress = Progress::new(Unit::Bytes, quiet);
        let mut advance = |bytes| progress.set("verifying", bytes, Some(source.byte_count()));
        let options = VerifyOptions::new().threads(threads(None)).progress(&mut advance);
        let mut damages = verify(&source, options).map_err(about)?.damages;
        damages.retain(|damage| damage.kind == DamageKind::Damaged); // `warn` tells the rest
        drop(progress);
        let mut is_salvaged = false;
        let reader = match OpenOptions::new().open(source.clone()) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let salvaged = salvage(source, SalvageOptions::new()).map_err(about)?;
                if !quiet {
                    warning(&format!(
                        "{}: the file cannot be opened; the map shows only salvaged chunks",
                        display_path(&args.file)
                    ));
                }
                is_salvaged = true;
                salvaged.reader
            }
            opened => {
                let reader = opened.map_err(about)?;
                if !quiet {
                    warn(&args.file, &reader);
                }
                reader
            }
        };
        Ok(Self { reader, is_verified: true, is_salvaged, damages })
    }
}

impl Subject {
    /// Returns the range to draw for each damage, at least one byte long.
    pub(super) fn damaged_ranges(&self) -> Vec<Range<u64>> {
        let whole = 0..self.reader.file_bytes();
        self.damages.iter().map(|damage| drawn_range(&damage.file_range, &whole)).collect()
    }

    /// Returns the name of all bytes that belong to no readable chunk.
    pub(super) fn structure_name(&self) -> &'static str {
        if self.is_salvaged { "structure, or lost" } else { "structure" }
    }

    /// Returns `3 ranges; "tensilo verify" says what is wrong`.
    pub(super) fn damage_text(&self) -> String {
        let ranges =
            if self.damages.len() == 1 { "1 range".to_owned() } else { format!("{} ranges", self.damages.len()) };
        format!("{ranges}; \"tensilo verify\" says what is wrong")
    }
}

/// Returns the bytes to draw as damaged.
fn drawn_range(range: &Range<u64>, whole: &Range<u64>) -> Range<u64> {
    /// The size of the header's region head.
    const HEAD_BYTES: u64 = 64;
    match range {
        // a damaged header makes the whole file suspect, but the salvaged chunks are intact
        range if range == whole => 0..whole.end.min(HEAD_BYTES),
        // bytes are missing at this offset
        range if range.is_empty() => range.start.saturating_sub(1)..range.start.max(1),
        range => range.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_damage_is_drawn_somewhere() {
        let whole = 0..1000;
        for (range, due) in [(64..640, 64..640), (0..1000, 0..64), (1000..1000, 999..1000), (0..0, 0..1)] {
            assert_eq!(drawn_range(&range, &whole), due);
        }
    }
}
