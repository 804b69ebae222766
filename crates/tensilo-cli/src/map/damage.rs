//! What is drawn: a file, and what of it is damaged.

use super::MapArgs;
use crate::exit::{Failure, Outcome};
use crate::open::{open, warn};
use crate::parse::threads;
use crate::progress::{Progress, Unit};
use crate::terminal::warning;
use std::ops::Range;
use tensilo::{
    Damage, ErrorKind, PositionedFile, Reader, SalvageOptions, Source, VerifyOptions, display_path, salvage, verify,
};

/// A file, and what of it is damaged.
pub(super) struct Subject {
    pub(super) reader: Reader,
    /// Whether every byte was checked.
    pub(super) is_verified: bool,
    /// Whether it could not be opened: chunks that are not drawn are lost, or are no longer found.
    pub(super) is_salvaged: bool,
    /// In the order of the file; none if it was not verified.
    pub(super) damages: Vec<Damage>,
}

impl Subject {
    /// Opens the file, which was verified before if that was asked for; then, if it cannot be
    /// opened, of what is intact.
    pub(super) fn open(args: &MapArgs, quiet: bool) -> Outcome<Self> {
        if !args.verify {
            let reader = open(&args.file, quiet)?;
            return Ok(Self { reader, is_verified: false, is_salvaged: false, damages: Vec::new() });
        }
        let about = |error| Failure::about(&args.file, error);
        let source = PositionedFile::open(&args.file).map_err(about)?;
        let progress = Progress::new(Unit::Bytes, quiet);
        let mut advance = |bytes| progress.set("verifying", bytes, Some(source.byte_count()));
        let options = VerifyOptions::new().threads(threads(None)).progress(&mut advance);
        let damages = verify(&source, options).map_err(about)?.damages;
        drop(progress);
        let mut is_salvaged = false;
        let reader = match Reader::open(&args.file) {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let salvaged = salvage(source, SalvageOptions::new()).map_err(about)?;
                if !quiet {
                    warning(&format!("{}: it cannot be opened; what is drawn was salvaged", display_path(&args.file)));
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
    /// Where each damage is drawn, at least a byte each.
    pub(super) fn places(&self) -> Vec<Range<u64>> {
        let whole = 0..self.reader.file_bytes();
        self.damages.iter().map(|damage| place(&damage.file_range, &whole)).collect()
    }

    /// What is no chunk that can be read.
    pub(super) fn structure_name(&self) -> &'static str {
        if self.is_salvaged { "structure, or lost" } else { "structure" }
    }

    /// `3 places; "tensilo verify" says what is wrong`
    pub(super) fn damage_text(&self) -> String {
        let places =
            if self.damages.len() == 1 { "1 place".to_owned() } else { format!("{} places", self.damages.len()) };
        format!("{places}; \"tensilo verify\" says what is wrong")
    }
}

/// The bytes that are drawn as damaged.
fn place(range: &Range<u64>, whole: &Range<u64>) -> Range<u64> {
    /// Of the region head of the header.
    const HEAD_BYTES: u64 = 64;
    match range {
        // a damaged header makes all of the file doubtful; what could be salvaged is not
        range if range == whole => 0..whole.end.min(HEAD_BYTES),
        // something is missing there
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
            assert_eq!(place(&range, &whole), due);
        }
    }
}
