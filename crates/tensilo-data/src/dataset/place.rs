//! The place of a file in a version.

/// A file of a group: the numbers of the page, of the group in it, and of the file in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FilePlace {
    pub page: usize,
    pub group: usize,
    pub file: usize,
}
