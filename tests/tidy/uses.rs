//! `use` declarations, and the paths that the rest of a file names.

use super::blank::words;
use super::source::Source;

/// One path that a `use` declaration names.
#[derive(Debug, PartialEq)]
pub struct Use {
    /// As written; `*` is a segment.
    pub path: Vec<String>,
    /// The name that it has in this file.
    pub name: String,
    /// Whether others can name it through this file: any `pub`.
    pub is_reexport: bool,
    pub offset: usize,
}

/// Returns the `use` declarations of a file, and its code without them.
pub fn uses(source: &Source) -> (Vec<Use>, String) {
    let (code, mut uses) = (&source.code, Vec::new());
    let mut body = code.clone().into_bytes();
    for offset in words(code, "use") {
        let Some(end) = code[offset..].find(';').map(|length| offset + length) else { continue };
        let before = code[..offset].trim_end();
        let is_reexport = before.ends_with("pub") || (before.ends_with(')') && before.contains("pub("));
        let is_reexport = is_reexport && !before.ends_with("pub(self)");
        let is_reexport = is_reexport && (before.ends_with("pub") || visibility(before).is_some());
        for (path, name) in flatten(&code[offset + "use".len()..end]) {
            uses.push(Use { path, name, is_reexport, offset });
        }
        body[offset..=end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    (uses, String::from_utf8(body).expect("declarations are ASCII"))
}

/// Returns the `pub(...)` at the end of `before`.
fn visibility(before: &str) -> Option<&str> {
    let start = before.rfind("pub(")?;
    (before[start..].matches(')').count() == 1 && before.ends_with(')')).then(|| &before[start..])
}

/// Returns the paths of `a::{b, c::{self, d as e}}`, each with the name that it gives.
pub fn flatten(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
        let mut path = segments(path);
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let name = alias.map_or_else(|| path.last().cloned(), |alias| Some(alias.trim().to_owned()));
        return name.map(|name| (path, name)).into_iter().collect();
    };
    let prefix = segments(&tree[..open]);
    let close = tree.rfind('}').unwrap_or(tree.len());
    let mut paths = Vec::new();
    for part in split_at_commas(&tree[open + 1..close]) {
        for (path, name) in flatten(part) {
            let is_self = path.len() == 1 && path[0] == "self";
            let parent = prefix.last().cloned().unwrap_or_default();
            let name = if is_self && name == "self" { parent } else { name };
            let path = if is_self { prefix.clone() } else { [prefix.clone(), path].concat() };
            paths.push((path, name));
        }
    }
    paths
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|segment| segment.trim().to_owned()).filter(|segment| !segment.is_empty()).collect()
}

/// Splits a list at the commas that are in no braces.
fn split_at_commas(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// Returns the paths of at least two segments that code names, with their offsets. How far an item
/// is visible, as in `pub(in crate::read)`, is no use of that module.
pub fn paths(body: &str) -> Vec<(Vec<String>, usize)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let (mut paths, mut next) = (Vec::new(), 0);
    for (at, _) in body.match_indices("::") {
        if at < next {
            continue;
        }
        let start = body[..at].rfind(|c| !is_name(c)).map_or(0, |before| before + 1);
        let macro_variable = body[..start].ends_with('$');
        if start == at
            || body[..start].ends_with("::")
            || body[..start].ends_with("pub(in ")
            || (macro_variable && &body[start..at] != "crate")
        {
            continue;
        }
        let rest = &body[start..];
        let length = rest.find(|c| !is_name(c) && c != ':').unwrap_or(rest.len());
        let path = segments(&rest[..length]);
        next = start + length;
        if path.len() > 1 {
            paths.push((path, start));
        }
    }
    paths
}

#[test]
fn trees_and_paths_are_flattened() {
    let names = |tree: &str| -> Vec<String> {
        flatten(tree).iter().map(|(path, name)| format!("{} {name}", path.join("/"))).collect()
    };
    assert_eq!(names(" crate::{a, b::{self, c, d as e}}"), ["crate/a a", "crate/b b", "crate/b/c c", "crate/b/d e"]);
    assert_eq!(names("super::x::*"), ["super/x/* *"]);
    let source = Source::new(
        "x.rs",
        "pub(crate) use a::b; use c::{d, e}; pub use f; fn g() { h::i::<j>(k::l); <M as N>::o(); }".to_owned(),
    );
    let (uses, body) = uses(&source);
    let found: Vec<(&str, bool)> = uses.iter().map(|found| (found.name.as_str(), found.is_reexport)).collect();
    assert_eq!(found, [("b", true), ("d", false), ("e", false), ("f", true)]);
    let paths: Vec<String> = paths(&body).into_iter().map(|(path, _)| path.join("/")).collect();
    assert_eq!(paths, ["h/i", "k/l"]);
}
