//! The size of the public interface.

use super::blank::closing_brace;
use super::items::items;
use super::source::{Source, core};
use super::uses::uses;

/// The largest number of names at the root of the core, beside its modules.
const ROOT_NAMES: usize = 31;

/// Whether an offset is in a module whose text is in this file.
fn is_in_a_module(source: &Source, offset: usize) -> bool {
    items(source).iter().filter(|item| item.kind == "mod").any(|item| {
        let open = item.offset + source.code[item.offset..].find(['{', ';']).unwrap_or(0);
        let close = closing_brace(&source.code, open).filter(|_| source.code[open..].starts_with('{'));
        close.is_some_and(|close| (open..close).contains(&offset))
    })
}

#[test]
fn the_root_of_the_core_has_few_names() {
    let core = core();
    let lib = core.source("lib.rs").expect("src/lib.rs");
    let (uses, _) = uses(lib);
    let at_root = uses.iter().filter(|found| found.is_reexport && !is_in_a_module(lib, found.offset));
    let names: Vec<&str> = at_root.map(|found| found.name.as_str()).collect();
    assert!(names.contains(&"Reader"), "the names of src/lib.rs were not understood: {names:?}");
    assert!(
        names.len() <= ROOT_NAMES,
        "src/lib.rs: {} names, more than {ROOT_NAMES}; a public module suits the rest: {names:?}",
        names.len()
    );
    let modules = items(lib).into_iter().filter(|item| item.kind == "mod" && item.is_public);
    let modules: Vec<String> = modules.map(|item| item.name).collect();
    assert!(!modules.contains(&"kernel".to_owned()), "src/lib.rs: `kernel` is public");
}
