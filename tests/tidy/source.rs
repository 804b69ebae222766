//! The crates of the workspace and their source files.

use super::blank::{without_comments_and_strings, without_tests};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A Rust file.
pub struct Source {
    /// From the root of the repository, such as `src/read/mod.rs`.
    pub path: String,
    pub text: String,
    /// The text without comments, literals and what is compiled only for tests. Offsets and lines
    /// are those of the text.
    pub code: String,
}

impl Source {
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a source file");
        let path = relative(path);
        Self::new(&path, text)
    }

    pub fn new(path: &str, text: String) -> Self {
        let code = without_tests(&without_comments_and_strings(&text, false));
        Self { path: path.to_owned(), text, code }
    }

    pub fn line_of(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }

    /// Returns `path:line` of an offset.
    pub fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.line_of(offset))
    }

    /// Whether the file is compiled only for tests, which its parent says.
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// A crate of the workspace: its name, its folder and the sources that are no tests.
pub struct Crate {
    pub name: String,
    /// From the root of the repository, with a slash at the end: `src/`.
    pub folder: String,
    pub sources: Vec<Source>,
}

impl Crate {
    fn read(name: &str, folder: &str) -> Self {
        let mut sources = rust_files(&root().join(folder));
        sources.retain(|source| !source.is_test());
        Self { name: name.to_owned(), folder: folder.to_owned(), sources }
    }
}

/// Returns all crates of the workspace; the core is the first.
pub fn crates() -> Vec<Crate> {
    let mut crates = vec![Crate::read("tensilo", "src/")];
    assert!(crates[0].sources.len() > 30, "the sources of the core were not found");
    let entries = fs::read_dir(root().join("crates")).expect("the folder of crates");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    crates.extend(names.iter().map(|name| Crate::read(name, &format!("crates/{name}/src/"))));
    crates.retain(|member| !member.sources.is_empty());
    crates
}

/// Returns the extension of Python, a workspace of its own.
pub fn python_package() -> Crate {
    let package = Crate::read("tensilo-python", "python/src/");
    assert!(package.sources.len() > 20, "the sources of the Python package were not found");
    package
}

/// Returns the core.
pub fn core() -> Crate {
    crates().swap_remove(0)
}

/// Returns the Rust files below a folder, sorted by path.
fn rust_files(folder: &Path) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(folder, "rs", &mut paths);
    paths.sort();
    paths.iter().map(|path| Source::read(path)).collect()
}

/// Collects the files below a folder that have this extension; skips what Cargo writes.
pub fn collect(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            collect(&path, extension, paths);
        } else if path.is_file() && path.extension().is_some_and(|is| is == extension) {
            paths.push(path);
        }
    }
}

/// Returns a path from the root of the repository, with slashes.
pub fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).expect("below the root");
    path.to_str().expect("UTF-8").replace('\\', "/")
}
