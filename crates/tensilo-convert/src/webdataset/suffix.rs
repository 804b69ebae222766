//! The types of columns, by the last part of their suffixes: those that the library decodes them
//! to.

/// The content of files with a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuffixKind {
    /// UTF-8.
    Text,
    /// A decimal integer.
    Integer,
    /// An array of NumPy.
    Npy,
    /// Anything else.
    Bytes,
}

/// Returns the kind of a suffix, such as `seg.npy`.
pub(crate) fn kind_of(suffix: &str) -> SuffixKind {
    match suffix.rsplit('.').next().unwrap_or(suffix) {
        "txt" | "text" | "transcript" | "json" | "jsonl" => SuffixKind::Text,
        "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => SuffixKind::Integer,
        "npy" => SuffixKind::Npy,
        _ => SuffixKind::Bytes,
    }
}
