//! The policy for damaged samples.

/// The way in which a loader treats samples that are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnDamage {
    /// The batch is an error, which names the sample.
    #[default]
    Fail,
    /// Other samples take their places: the same ones on every rank ([`substitute`]). Files that
    /// cannot be opened or read, or were replaced, are errors all the same.
    ///
    /// [`substitute`]: crate::substitute
    Substitute,
}
