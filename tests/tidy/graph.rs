//! Which file of a crate uses which other, and where.

use super::blank::words;
use super::items::{Item, items};
use super::source::{Crate, Source};
use super::uses::{Use, paths, uses};
use std::collections::BTreeMap;

type Path = Vec<String>;

/// A file with what it declares and names.
struct File<'a> {
    source: &'a Source,
    module: Path,
    items: Vec<Item>,
    uses: Vec<Use>,
    /// The code without its `use` declarations.
    body: String,
}

/// The files of a crate.
pub struct Graph<'a> {
    files: Vec<File<'a>>,
    by_module: BTreeMap<Path, usize>,
}

/// An arrow from one file to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    pub from: usize,
    pub to: usize,
    pub offset: usize,
    /// The path as it is written.
    pub path: String,
}

impl<'a> Graph<'a> {
    pub fn new(member: &'a Crate) -> Self {
        let renamed = renamed_modules(member);
        let mut files: Vec<File<'_>> = member
            .sources
            .iter()
            .map(|source| {
                let (uses, body) = uses(source);
                let path = source.path.strip_prefix(&member.folder).expect("a file of the crate");
                let module = renamed.get(&source.path).cloned().unwrap_or_else(|| module(path));
                File { source, module, items: items(source), uses, body }
            })
            .collect();
        // one that another replaces if a feature is missing comes first, and is overwritten below
        files.sort_by_key(|file| !renamed.contains_key(&file.source.path));
        let by_module = files.iter().enumerate().map(|(i, file)| (file.module.clone(), i)).collect();
        Self { files, by_module }
    }

    pub fn source(&self, file: usize) -> &'a Source {
        self.files[file].source
    }

    /// Returns the module directly below the root that a file belongs to; `""` for the root.
    pub fn top_module(&self, file: usize) -> &str {
        self.files[file].module.first().map_or("", String::as_str)
    }

    /// Returns all arrows between different files, sorted. A re-export is none.
    pub fn dependencies(&self) -> Vec<Dependency> {
        let mut dependencies: Vec<Dependency> =
            (0..self.files.len()).flat_map(|file| self.dependencies_from(file)).collect();
        dependencies.sort();
        dependencies.dedup();
        dependencies
    }

    fn dependencies_from(&self, from: usize) -> Vec<Dependency> {
        let file = &self.files[from];
        let mut named: Vec<(&[String], usize)> = Vec::new();
        for found in &file.uses {
            match found.is_reexport {
                false => named.push((&found.path, found.offset)),
                // a re-export that the file itself names, too, is an arrow
                true => named.extend(words(&file.body, &found.name).take(1).map(|at| (found.path.as_slice(), at))),
            }
        }
        let in_body = paths(&file.body);
        named.extend(in_body.iter().map(|(path, offset)| (path.as_slice(), *offset)));
        let dependency = |(path, offset): (&[String], usize)| {
            let to = self.resolve(&self.module_at(file, offset), path, 8)?;
            (to != from).then(|| Dependency { from, to, offset, path: path.join("::") })
        };
        named.into_iter().filter_map(dependency).collect()
    }

    /// Returns the module that an offset of a file is in: that of the file, or one in its text.
    fn module_at(&self, file: &File<'_>, offset: usize) -> Path {
        let code = &file.source.code;
        let inline = file.items.iter().filter(|item| item.kind == "mod" && item.offset < offset);
        let mut module = file.module.clone();
        for item in inline {
            let rest = &code[item.offset..];
            let Some(open) = rest.find(['{', ';']).filter(|open| rest.as_bytes()[*open] == b'{') else { continue };
            let close = super::blank::closing_brace(code, item.offset + open);
            if close.is_some_and(|close| offset < close) {
                module.push(item.name.clone());
            }
        }
        module
    }

    /// Returns the file that declares what a path in `module` names, or `None` if that is not in
    /// this crate. Follows `use` declarations at most `depth` times.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.descend(Vec::new(), rest, depth),
            "self" => self.descend(module.to_vec(), rest, depth),
            "super" => {
                let mut module = module.to_vec();
                module.pop()?;
                let end = rest.iter().position(|segment| segment != "super").unwrap_or(rest.len());
                for _ in 0..end {
                    module.pop()?;
                }
                self.descend(module, &rest[end..], depth)
            }
            _ if self.declares(module, first) => self.descend(module.to_vec(), path, depth),
            _ => {
                let file = &self.files[self.file_of(module)?];
                let found = file.uses.iter().find(|found| found.name == *first)?;
                let path = [found.path.as_slice(), rest].concat();
                if found.path.first() == Some(first) { None } else { self.resolve(module, &path, depth) }
            }
        }
    }

    fn descend(&self, mut module: Path, path: &[String], depth: usize) -> Option<usize> {
        for (i, segment) in path.iter().enumerate() {
            module.push(segment.clone());
            if self.by_module.contains_key(&module) {
                continue;
            }
            module.pop();
            let file = self.file_of(&module)?;
            if segment == "*" || self.declares(&module, segment) {
                return Some(file);
            }
            let uses = &self.files[file].uses;
            let named = uses.iter().find(|found| found.name == *segment).map(|found| found.path.clone());
            if let Some(named) = named {
                return self.resolve(&module, &[named.as_slice(), &path[i + 1..]].concat(), depth).or(Some(file));
            }
            let globs = uses.iter().filter(|found| found.name == "*");
            let mut through_glob = globs.filter_map(|glob| {
                let path = [&glob.path[..glob.path.len() - 1], &path[i..]].concat();
                self.resolve(&module, &path, depth).filter(|found| *found != file)
            });
            return through_glob.next_back().or(Some(file));
        }
        self.file_of(&module)
    }

    /// Returns the file that contains a module.
    fn file_of(&self, module: &[String]) -> Option<usize> {
        (0..=module.len()).rev().find_map(|length| self.by_module.get(&module[..length]).copied())
    }

    /// Whether a module declares an item of this name: in its file, or as a file.
    fn declares(&self, module: &[String], name: &str) -> bool {
        if self.by_module.contains_key(&[module, &[name.to_owned()]].concat()) {
            return true;
        }
        let Some(file) = self.file_of(module).map(|file| &self.files[file]) else { return false };
        let inline = &module[file.module.len().min(module.len())..];
        file.items.iter().any(|item| item.name == name && item.inline == inline)
    }
}

/// Returns the module of a file from its path below the root of the crate.
fn module(path: &str) -> Path {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    match path {
        "lib" => Vec::new(),
        _ => path.split('/').map(str::to_owned).collect(),
    }
}

/// Returns the files that a `#[path = "..."]` makes a module of another name, and that module.
fn renamed_modules(member: &Crate) -> BTreeMap<String, Path> {
    let mut renamed = BTreeMap::new();
    for source in &member.sources {
        for (at, _) in source.code.match_indices("#[path") {
            let Some(path) = source.text[at..].split('"').nth(1) else { continue };
            let Some(name) = source.code[at..].split(" mod ").nth(1).or(source.code[at..].split("\nmod ").nth(1))
            else {
                continue;
            };
            let name = name.split(';').next().unwrap_or_default().trim().to_owned();
            let (folder, _) = source.path.rsplit_once('/').expect("a folder");
            let parent = module(source.path.strip_prefix(&member.folder).expect("a file of the crate"));
            renamed.insert(format!("{folder}/{path}"), [parent, vec![name]].concat());
        }
    }
    renamed
}

#[test]
fn arrows_lead_to_the_file_that_declares() {
    let source = |path: &str, text: &str| Source::new(&format!("src/{path}"), text.to_owned());
    let sources = vec![
        source("lib.rs", "mod a; mod b; pub use b::Deep;"),
        source("a.rs", "use crate::{Deep, b}; fn f() { b::inner::g(); other::h(); }"),
        source("b/mod.rs", "mod deep; mod inner; pub use deep::Deep; pub use inner::Used; struct S(Used);"),
        source("b/deep.rs", "pub struct Deep; mod m { fn f() { super::super::S; } }"),
        source("b/inner.rs", "pub(super) fn g() {} pub struct Used;"),
    ];
    let member = Crate { name: "x".to_owned(), folder: "src/".to_owned(), sources };
    let graph = Graph::new(&member);
    let name = |file: usize| graph.source(file).path.trim_start_matches("src/").to_owned();
    let dependencies: Vec<String> = graph
        .dependencies()
        .iter()
        .map(|dependency| format!("{} {} {}", name(dependency.from), name(dependency.to), dependency.path))
        .collect();
    let expected = [
        "a.rs b/mod.rs crate::b",
        "a.rs b/deep.rs crate::Deep",
        "a.rs b/inner.rs b::inner::g",
        "b/mod.rs b/inner.rs inner::Used",
        "b/deep.rs b/mod.rs super::super::S",
    ];
    assert_eq!(
        dependencies.iter().collect::<std::collections::BTreeSet<_>>(),
        expected.map(str::to_owned).iter().collect()
    );
}
