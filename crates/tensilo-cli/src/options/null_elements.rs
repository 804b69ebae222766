//! The option `--null-elements`.

use clap::ValueEnum;
use tensilo::import::NullElements;

/// The values of `--null-elements`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnNullElement {
    /// Store lists whose elements may be null, instead of tensors
    #[default]
    Keep,
    /// Stop, and name column and row
    Refuse,
    /// Store NaN in float columns, and stop at others
    Nan,
    /// Store zero
    Zero,
}

impl From<OnNullElement> for NullElements {
    fn from(choice: OnNullElement) -> Self {
        match choice {
            OnNullElement::Keep => Self::Keep,
            OnNullElement::Refuse => Self::Refuse,
            OnNullElement::Nan => Self::Nan,
            OnNullElement::Zero => Self::Zero,
        }
    }
}
