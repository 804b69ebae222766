//! The fields of options in the tables.

use super::gaps::Gaps;
use super::marks::malformed;
use super::outliers::Outliers;
use super::transposed::Transposed;
use crate::Result;
use crate::kernel::Width;
use crate::le::Fields;

/// The options of a part.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::codec) struct Options {
    pub gaps: Option<Gaps>,
    pub outliers: Option<Outliers>,
    pub transposed: Option<Transposed>,
}

// The bits of `mapping`.
const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
const TRANSPOSED: u8 = 64;

impl Options {
    /// Splits the field `mapping` into the mapping and the options.
    pub(in crate::codec::bins) fn split(mapping: u8) -> (u8, u8) {
        (mapping & 15, mapping & !15)
    }

    /// Returns whether no option is set that has no meaning.
    pub(in crate::codec::bins) fn are_known(bits: u8) -> bool {
        bits & !(GAPS | OUTLIERS | TRANSPOSED) == 0
    }

    /// Returns the bits of the options in `mapping`.
    pub(in crate::codec::bins) fn bits(&self) -> u8 {
        let all = [(GAPS, self.gaps.is_some()), (OUTLIERS, self.outliers.is_some()), (TRANSPOSED, self.has_rows())];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum()
    }

    fn has_rows(&self) -> bool {
        self.transposed.is_some()
    }

    /// Returns whether no option is set.
    pub(in crate::codec) fn are_none(&self) -> bool {
        self.bits() == 0
    }

    /// Parses the fields of the options that are set, but for the greatest `upper_bits`.
    pub(in crate::codec::bins) fn parse(bits: u8, width: Width, fields: &mut Fields<'_>) -> Result<Self> {
        let mut options = Self::default();
        if bits & GAPS != 0 {
            options.gaps = Some(Gaps::parse(width, fields)?);
        }
        if bits & OUTLIERS != 0 {
            options.outliers = Some(Outliers::parse(fields)?);
        }
        if bits & TRANSPOSED != 0 {
            options.transposed = Some(Transposed::parse(fields)?);
        }
        Ok(options)
    }

    /// Checks the greatest `upper_bits` of numbers of these bytes.
    pub(in crate::codec::bins) fn check_uppers(&self, number_bytes: usize, low_bytes: usize) -> Result<()> {
        let most = (8 * number_bytes).saturating_sub(8 * low_bytes + 16);
        match self.outliers {
            Some(outliers) if usize::from(outliers.upper_bits) > most => {
                Err(malformed(&format!("upper_bits is {}, and at most {most} fit", outliers.upper_bits)))
            }
            _ => Ok(()),
        }
    }

    /// Appends the fields.
    pub(in crate::codec::bins) fn write(&self, width: Width, tables: &mut Vec<u8>) {
        if let Some(gaps) = self.gaps {
            gaps.write(width, tables);
        }
        if let Some(outliers) = self.outliers {
            outliers.write(tables);
        }
        if let Some(transposed) = self.transposed {
            transposed.write(tables);
        }
    }

    /// Describes the options in words, each followed by a semicolon.
    pub(in crate::codec) fn describe(&self) -> String {
        let gaps = self.gaps.map(|_| "gaps; ".to_owned());
        let outliers = self.outliers.map(|outliers| format!("outliers of {} more bits; ", outliers.upper_bits));
        let transposed = self.transposed.map(|transposed| format!("transposed rows of {}; ", transposed.row));
        [gaps, outliers, transposed].into_iter().flatten().collect()
    }
}
