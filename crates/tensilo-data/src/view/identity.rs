//! The identity of a view.

use crate::order::{Purpose, key};

/// The kind of a view.
#[derive(Clone, Copy)]
pub(super) enum ViewKind {
    List = 1,
    Split = 2,
    Mixture = 3,
}

/// Returns the identity of a view.
pub(super) fn identity(kind: ViewKind, words: impl IntoIterator<Item = u64>) -> u64 {
    // a number below 4
    key(Purpose::View, std::iter::once(kind as u64).chain(words))
}
