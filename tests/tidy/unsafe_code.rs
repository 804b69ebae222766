//! Unsafe code is only in modules that are made for it, so that a review of it has an end.

use super::assert_none;
use super::blank::words;
use super::source::{Crate, crates};

/// Whether a file below `folder` may contain `unsafe` code. All functions of the C library take
/// pointers of C.
fn may_be_unsafe(folder: &str, path: &str) -> bool {
    if folder == "crates/tensilo-ffi/src/" {
        return true;
    }
    let path = path.strip_prefix(folder).unwrap_or(path);
    let modules: &[&str] = if folder == "src/" { &["kernel", "mmap", "sys"] } else { &["sys"] };
    modules.iter().any(|module| path == format!("{module}.rs") || path.starts_with(&format!("{module}/")))
}

#[test]
fn unsafe_code_is_only_in_its_modules() {
    let (mut problems, mut inside) = (Vec::new(), 0);
    for Crate { folder, sources, .. } in crates() {
        for source in &sources {
            let at = words(&source.code, "unsafe").map(|offset| format!("{}: unsafe", source.at(offset)));
            if may_be_unsafe(&folder, &source.path) { inside += at.count() } else { problems.extend(at) }
        }
    }
    assert!(inside > 5, "the unsafe code of the kernels was not seen");
    assert_none(problems);
}
