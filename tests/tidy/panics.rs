//! `unsafe` code, and code that panics on purpose.

use super::assert_none;
use super::blank::words;
use super::source::{Crate, Source, core, crates};

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

#[test]
fn library_code_does_not_panic_on_purpose() {
    let forbidden =
        [".unwrap()", "todo!", "unimplemented!", "panic!", "unreachable!", ".unwrap_err()", "process::exit"];
    let mut problems = Vec::new();
    for source in &core().sources {
        for what in forbidden {
            let found = source.code.match_indices(what);
            problems.extend(found.map(|(offset, _)| format!("{}: {what}", source.at(offset))));
        }
        problems.extend(expectations(source).map(|offset| format!("{}: .expect(", source.at(offset))));
    }
    assert_none(problems);
}

/// Returns where `expect` of an `Option` or a `Result` is called. These take one argument;
/// `RegionHead::expect`, which returns a `Result`, takes two.
fn expectations(source: &Source) -> impl Iterator<Item = usize> {
    let calls = source.code.match_indices(".expect(");
    calls.filter(|(at, call)| argument_count(&source.code, at + call.len()) < 2).map(|(at, _)| at)
}

/// Counts the arguments of a call whose opening parenthesis ends at `at`. Strings are blank.
fn argument_count(code: &str, at: usize) -> usize {
    let (mut depth, mut commas, mut after_comma) = (0, 0, false);
    for byte in code[at..].bytes() {
        match byte {
            b')' if depth == 0 => break,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => commas += 1,
            _ => {}
        }
        after_comma = byte == b',' || (after_comma && byte.is_ascii_whitespace());
    }
    commas + usize::from(!after_comma)
}

#[test]
fn crates_above_the_core_use_only_its_public_interface() {
    let mut problems = Vec::new();
    for member in crates() {
        for source in &member.sources {
            // the compiler checks it, unless a crate includes sources of the core
            let of_core = if member.folder == "src/" { "include!" } else { "#[path" };
            for forbidden in ["include!", "#[doc(hidden)]", of_core] {
                let found = source.code.match_indices(forbidden);
                problems.extend(found.map(|(offset, found)| format!("{}: {found}", source.at(offset))));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn arguments_are_counted() {
    let calls = ["a.expect(       )", "a.expect(f(b, c),\n)", "a.expect(b, c)"];
    assert_eq!(calls.map(|call| argument_count(call, 9)), [1, 1, 2]);
}
