//! Names of types, and the size of the public interface.

use super::assert_none;
use super::blank::closing_brace;
use super::items::{Item, items};
use super::source::{Crate, Source, core, crates};
use super::uses::uses;
use std::collections::BTreeMap;

/// The largest number of names at the root of the core, beside its modules.
const ROOT_NAMES: usize = 30;

/// A type and where it is declared.
struct Declared<'a> {
    source: &'a Source,
    item: Item,
}

/// Returns the types that a crate declares, by name.
fn types(member: &Crate) -> BTreeMap<String, Vec<Declared<'_>>> {
    let mut types: BTreeMap<String, Vec<Declared<'_>>> = BTreeMap::new();
    for source in &member.sources {
        for item in items(source).into_iter().filter(Item::is_type) {
            types.entry(item.name.clone()).or_default().push(Declared { source, item });
        }
    }
    types
}

/// Whether two declarations exclude each other: one is in a file for a missing feature, or both
/// are under a `cfg`, or in an inline module under one.
fn are_alternatives(types: &[Declared<'_>]) -> bool {
    let is_absent = |found: &Declared<'_>| found.source.path.ends_with("absent.rs");
    types.len() == 2 && (types.iter().any(is_absent) || types.iter().all(is_conditional))
}

fn is_conditional(found: &Declared<'_>) -> bool {
    let of_item = |item: &Item| {
        let before = found.source.code[..item.offset].trim_end();
        before.rsplit('\n').take_while(|line| line.trim().starts_with("#[")).any(|line| line.contains("#[cfg("))
    };
    let is_around = |item: &Item| item.kind == "mod" && found.item.inline.contains(&item.name);
    of_item(&found.item) || items(found.source).iter().filter(|item| is_around(item)).any(of_item)
}

/// Whether all declarations are of kernels: the families of these look alike, down to the names.
fn are_kernels(types: &[Declared<'_>]) -> bool {
    types.iter().all(|found| found.source.path.starts_with("src/kernel/"))
}

#[test]
fn a_type_name_is_declared_once_in_a_crate() {
    let mut problems = Vec::new();
    for member in crates() {
        for (name, declared) in types(&member) {
            if declared.len() > 1 && !are_alternatives(&declared) && !are_kernels(&declared) {
                let at = declared.iter().map(|found| format!("{}: {name}", found.source.at(found.item.offset)));
                problems.extend(at);
            }
        }
    }
    assert_none(problems);
}

#[test]
fn a_public_type_name_is_declared_once_in_the_workspace() {
    let members = crates();
    let mut public: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for member in &members {
        for (name, declared) in types(member) {
            if let Some(found) = declared.iter().find(|found| found.item.is_public) {
                public.entry(name).or_default().push(found.source.at(found.item.offset));
            }
        }
    }
    let twice = public.into_iter().filter(|(_, at)| at.len() > 1);
    assert_none(twice.map(|(name, at)| format!("{name}: {}", at.join(", "))).collect());
}

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
