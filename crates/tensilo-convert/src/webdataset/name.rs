//! The names of files in an archive.

/// The column of the keys.
pub(crate) const KEY: &str = "__key__";

/// Splits a path at the first dot of its last component: the key of the sample, and the suffix, in
/// lower case. Returns `None` if the file is not part of a sample, as in the library: its name
/// begins with a dot or has none, or it describes the archive.
pub(crate) fn key_and_suffix(path: &str) -> Option<(&str, String)> {
    let name_start = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = name_start + path.get(name_start..)?.find('.')?;
    let (key, suffix) = (path.get(..dot)?, path.get(dot + 1..)?);
    (dot > name_start && !suffix.is_empty() && !is_metadata(path)).then(|| (key, suffix.to_lowercase()))
}

/// Returns whether a file describes the archive, as in the library: the first component of its path
/// is `__name__`.
pub(super) fn is_metadata(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    first.len() >= 4 && first.starts_with("__") && first.ends_with("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_the_first_dot_of_the_last_component() {
        let split = |path| key_and_suffix(path).map(|(key, suffix)| (key.to_owned(), suffix));
        assert_eq!(split("a/b.c/d.Seg.PNG"), Some(("a/b.c/d".to_owned(), "seg.png".to_owned())));
        assert_eq!(split("000001.cls"), Some(("000001".to_owned(), "cls".to_owned())));
        for path in ["", "a", "a/.hidden", "a.b/c", "x.", "__worker.info__", "__meta__/info.json", "____/a.b"] {
            assert_eq!(split(path), None, "{path}");
        }
        for path in ["__x/y.z__", "__a.b_", "___/a.b", "a/__b.c__", "a__/b.c"] {
            assert!(split(path).is_some(), "{path}");
        }
    }
}
