//! Chapter 5.15: options of bins, which change what elements are coded.
//!
//! Gaps are elements that are all equal, such as missing values: only their positions are stored.
//! Outliers are integers with bits above the window, which would otherwise lie lower for all.
//! Filters predict a number from many of the last ones, in place of a transform. Each file has an
//! option's fields, how readers undo it, and how writers find it; `marks.rs` codes the positions of
//! gaps and outliers.

mod filter_fit;
mod filters;
mod gaps;
mod marks;
mod outliers;

pub(crate) use filters::FilterPlan;
pub(crate) use gaps::{Gaps, Present};
pub(crate) use marks::Marks;
pub(crate) use outliers::{OutlierBlock, OutlierPlan, low_bytes_of};

use self::filters::Filters;
use self::outliers::Outliers;
use crate::Result;
use crate::codec::bins::malformed_option;
use crate::codec::transform::Transform;
use crate::kernel::Width;
use crate::le::Fields;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub gaps: Option<Gaps>,
    pub outliers: Option<Outliers>,
    pub filters: Option<Filters>,
}

// The bits of `mapping`.
const GAPS: u8 = 16;
const OUTLIERS: u8 = 32;
const FILTERS: u8 = 64;

impl Options {
    /// Splits the field `mapping` into the mapping and the options.
    pub(in crate::codec::bins) fn split(mapping: u8) -> (u8, u8) {
        (mapping & 15, mapping & !15)
    }

    pub(in crate::codec::bins) fn are_known(bits: u8) -> bool {
        bits & !(GAPS | OUTLIERS | FILTERS) == 0
    }

    pub(in crate::codec::bins) fn bits(&self) -> u8 {
        let Self { gaps, outliers, filters } = self;
        let all = [(GAPS, gaps.is_some()), (OUTLIERS, outliers.is_some()), (FILTERS, filters.is_some())];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(bit, _)| bit).sum()
    }

    pub(crate) fn are_none(&self) -> bool {
        self.bits() == 0
    }

    /// Parses the fields of the options that are set, but for what depends on
    /// numbers.
    pub(in crate::codec::bins) fn parse(bits: u8, width: Width, fields: &mut Fields<'_>) -> Result<Self> {
        let mut options = Self::default();
        if bits & GAPS != 0 {
            options.gaps = Some(Gaps::parse(width, fields)?);
        }
        if bits & OUTLIERS != 0 {
            options.outliers = Some(Outliers::parse(fields)?);
        }
        if bits & FILTERS != 0 {
            options.filters = Some(Filters::parse(fields)?);
        }
        Ok(options)
    }

    /// Checks what depends on numbers.
    pub(in crate::codec::bins) fn check_numbers(
        &self,
        number_width: Width,
        low_bytes: usize,
        transform: Transform,
    ) -> Result<()> {
        let most = (8 * number_width.bytes()).saturating_sub(8 * low_bytes + 16);
        if let Some(outliers) = self.outliers
            && usize::from(outliers.upper_bits) > most
        {
            return Err(malformed_option(&format!("upper_bits is {}, and at most {most} fit", outliers.upper_bits)));
        }
        self.filters.map_or(Ok(()), |filters| filters.check_numbers(number_width, transform))
    }

    pub(in crate::codec::bins) fn write(&self, width: Width, tables: &mut Vec<u8>) {
        if let Some(gaps) = self.gaps {
            gaps.write(width, tables);
        }
        if let Some(outliers) = self.outliers {
            outliers.write(tables);
        }
        if let Some(filters) = self.filters {
            filters.write(tables);
        }
    }

    /// Describes the options in words, each followed by a semicolon.
    pub(crate) fn describe(&self) -> String {
        let gaps = self.gaps.map(|_| "gaps; ".to_owned());
        let outliers = self.outliers.map(|outliers| format!("outliers of {} more bits; ", outliers.upper_bits));
        let filters = self.filters.map(|filters| filters.describe());
        [gaps, outliers, filters].into_iter().flatten().collect()
    }
}
