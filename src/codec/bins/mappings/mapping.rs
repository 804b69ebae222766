//! Any of the mappings.

use super::multiple::Multiple;
use super::palette::Palettes;
use super::quotient::Quotient;
use crate::Result;
use crate::kernel::Width;
use crate::le::Fields;

/// How elements follow from the numbers that are coded.
#[derive(Clone, Default)]
pub(in crate::codec) enum Mapping {
    /// An element is coded itself.
    #[default]
    None,
    /// A number names a value in a table.
    Palette(Palettes),
    /// A number is divided by a constant.
    Quotient(Quotient),
    /// A number is multiplied by a constant.
    Multiple(Multiple),
}

// The values of `mapping`.
const NONE: u8 = 0;
pub(in crate::codec) const PALETTE: u8 = 1;
pub(in crate::codec) const QUOTIENT: u8 = 2;
pub(in crate::codec) const MULTIPLE: u8 = 3;

/// The bytes of elements, and those of the numbers that they follow from.
#[derive(Clone, Copy)]
pub(in crate::codec) struct Widths {
    pub element: Width,
    pub number: Width,
}

impl Mapping {
    /// Returns the value of `mapping`.
    pub(in crate::codec) fn kind(&self) -> u8 {
        match self {
            Self::None => NONE,
            Self::Palette(_) => PALETTE,
            Self::Quotient(_) => QUOTIENT,
            Self::Multiple(_) => MULTIPLE,
        }
    }

    /// Returns whether a value of `mapping` is assigned.
    pub(in crate::codec::bins) fn is_known(kind: u8) -> bool {
        kind <= MULTIPLE
    }

    /// Becomes the mapping of elements of `width` that `fields` state. Reuses its memory.
    pub(in crate::codec::bins) fn set(&mut self, kind: u8, width: Width, fields: &mut Fields<'_>) -> Result<()> {
        match kind {
            PALETTE => {
                let mut palettes = match std::mem::take(self) {
                    Self::Palette(palettes) => palettes,
                    _ => Palettes::default(),
                };
                palettes.set(width, fields)?;
                *self = Self::Palette(palettes);
            }
            QUOTIENT => *self = Self::Quotient(Quotient::parse(width, fields)?),
            MULTIPLE => *self = Self::Multiple(Multiple::parse(width, fields)?),
            _ => *self = Self::None,
        }
        Ok(())
    }

    /// Appends the fields.
    pub(in crate::codec::bins) fn write(&self, tables: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Palette(palettes) => palettes.write(tables),
            Self::Quotient(quotient) => quotient.write(tables),
            Self::Multiple(multiple) => multiple.write(tables),
        }
    }

    /// Returns the bytes of elements of `width`, and of their numbers.
    pub(in crate::codec) fn widths(&self, width: Width) -> Widths {
        let number = match self {
            Self::None => width,
            Self::Palette(palettes) => palettes.number_width(),
            Self::Quotient(quotient) => quotient.number_width,
            Self::Multiple(multiple) => multiple.number_width,
        };
        Widths { element: width, number }
    }

    /// Returns whether blocks have details.
    pub(in crate::codec) fn has_details(&self) -> bool {
        matches!(self, Self::Quotient(quotient) if quotient.detail_bits > 0)
    }

    /// Returns whether numbers, counted from 0, are the upper bits of elements of `width`, and as
    /// many as bytes have.
    pub(in crate::codec) fn keeps_sign(&self, width: Width) -> bool {
        match self {
            Self::Multiple(multiple) => {
                let dropped = 8 * width.bytes().saturating_sub(multiple.number_width.bytes());
                multiple.factor.trailing_zeros() as usize == dropped // at most 64
            }
            _ => false,
        }
    }

    /// Returns whether blocks have a base, from which their numbers count.
    pub(super) fn has_base(&self) -> bool {
        matches!(self, Self::Quotient(_) | Self::Multiple(_))
    }

    /// Describes the mapping in words; `None` if there is none.
    pub(in crate::codec) fn describe(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Palette(palettes) => Some(palettes.describe()),
            Self::Quotient(quotient) => Some(quotient.describe()),
            Self::Multiple(multiple) => Some(multiple.describe()),
        }
    }
}
