//! The rules of the source itself: layers, unsafe code, what may panic, and that specification, vectors and code speak of the
//! same rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A source file of the core, or of a crate above it.
struct Source {
    /// Below `src/`, such as `read/mod.rs`; `crates/NAME/lib.rs` for `crates/NAME/src/lib.rs`.
    path: String,
    text: String,
    /// The text with comments, strings and what is compiled only for tests blanked out; lines stay where they are.
    code: String,
}

impl Source {
    fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// The top-level module, such as `read`; `""` for `lib.rs` and `"crates"` for the crates above.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or("");
        match first.strip_suffix(".rs").unwrap_or(first) {
            "lib" => "",
            module => module,
        }
    }
}

fn sources() -> Vec<Source> {
    let mut sources = sources_of(&root().join("src"), "");
    for folder in fs::read_dir(root().join("crates")).expect("the folder of crates") {
        let folder = folder.expect("a crate");
        let prefix = format!("crates/{}/", folder.file_name().to_str().expect("plain characters"));
        sources.extend(sources_of(&folder.path().join("src"), &prefix));
    }
    assert!(sources.len() > 30, "the sources were not found");
    // kernel/tests.rs and its like are compiled only for tests, which their parent says
    sources
        .into_iter()
        .filter(|source| !source.path.ends_with("/tests.rs") && !source.path.contains("/tests/"))
        .collect()
}

/// The source files below a folder, with paths that begin with `prefix`.
fn sources_of(folder: &Path, prefix: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    paths.sort();
    let source = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source file");
        let path = path.strip_prefix(folder).expect("below it").to_str().expect("plain characters");
        let code = without_tests(&without_comments_and_strings(&text));
        Source { path: format!("{prefix}{}", path.replace('\\', "/")), text, code }
    };
    paths.into_iter().map(source).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// Replaces all but the line breaks of comments, strings and character literals by spaces.
fn without_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match &bytes[at..] {
            [b'/', b'/', ..] => find(bytes, at, b"\n").unwrap_or(bytes.len()),
            [b'/', b'*', ..] => end_of_block_comment(bytes, at),
            [b'r', b'"' | b'#', ..] if !continues_name(bytes, at) => end_of_raw_string(bytes, at),
            [b'"', ..] => end_of_quoted(bytes, at, b'"'),
            // a lifetime has no second quote after one character
            [b'\'', b'\\', ..] => end_of_quoted(bytes, at, b'\''),
            [b'\'', ..] if is_character(text, at) => end_of_quoted(bytes, at, b'\''),
            _ => at,
        };
        for byte in out[at..end].iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).expect("whole literals were replaced")
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    bytes[from..].windows(needle.len()).position(|window| window == needle).map(|at| from + at)
}

fn continues_name(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') && bytes[at - 1] != b'b'
}

fn end_of_block_comment(bytes: &[u8], at: usize) -> usize {
    find(bytes, at + 2, b"*/").map_or(bytes.len(), |end| end + 2)
}

/// The end of `r#"..."#`; `at` itself if none begins there (`r#name`).
fn end_of_raw_string(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    if bytes.get(at + 1 + hashes) != Some(&b'"') {
        return at;
    }
    let close = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    find(bytes, at + 2 + hashes, &close).map_or(bytes.len(), |end| end + close.len())
}

fn end_of_quoted(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn is_character(text: &str, at: usize) -> bool {
    let mut chars = text[at + 1..].chars();
    chars.next();
    chars.next() == Some('\'')
}

/// Blanks out the items that follow a `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    while let Some(start) = out.find("#[cfg(test)]") {
        let open = out[start..].find(['{', ';']).map_or(out.len(), |at| start + at);
        let mut depth = 0;
        let mut end = open + 1;
        if out.as_bytes().get(open) == Some(&b'{') {
            end = out.len();
            for (at, byte) in out.bytes().enumerate().skip(open) {
                depth += i32::from(byte == b'{') - i32::from(byte == b'}');
                if depth == 0 {
                    end = at + 1;
                    break;
                }
            }
        }
        let blank: String = out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        out.replace_range(start..end, &blank);
    }
    out
}

/// Places where `word` stands as a whole word.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| !is_name(code[..at].chars().next_back()) && !is_name(code[at + word.len()..].chars().next()))
}

fn assert_none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n  {}\n", problems.join("\n  "));
}

// ---- layers

const LAYERS: [&[&str]; 7] = [
    &["error", "limits", "le", "dtype", "memory", "names", "threads"],
    &["kernel", "checksum", "pod", "cast"],
    &["format", "batch"],
    &["codec"],
    &["open"],
    &["read", "write"],
    &["import", "export", "rewrite", "mmap", "file", "arrow_type"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The name each public item of the crate root has, and the module it comes from, from the `pub use` of `lib.rs`.
fn exports(lib: &Source) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for use_tree in lib.code.split("pub use ").skip(1) {
        let use_tree = use_tree.split(';').next().unwrap_or("");
        for path in flatten(use_tree) {
            let (module, name) = (path.first().cloned(), path.last().cloned());
            exports.insert(name.expect("a path"), module.expect("a path"));
        }
    }
    exports
}

/// `a::{b, c::{d, e as f}}` as the paths it names; the part after `as` is dropped.
fn flatten(use_tree: &str) -> Vec<Vec<String>> {
    let use_tree = use_tree.trim();
    let Some(open) = use_tree.find('{') else {
        let path = use_tree.split(" as ").next().unwrap_or("");
        return vec![path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()];
    };
    let prefix: Vec<String> =
        use_tree[..open].split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let close = use_tree.rfind('}').unwrap_or(use_tree.len());
    let mut paths = Vec::new();
    for item in split_top_level(&use_tree[open + 1..close]) {
        for path in flatten(item) {
            paths.push([prefix.clone(), path].concat());
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

fn split_top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                items.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&list[start..]);
    items.into_iter().filter(|item| !item.trim().is_empty()).collect()
}

/// The modules that a file names by `crate::...`, or by enough `super::` to leave its own, and where.
fn used_modules(source: &Source, exports: &BTreeMap<String, String>) -> Vec<(String, usize)> {
    let mut used = Vec::new();
    // how many `super` lead from the module of this file to the root
    let is_folder = source.path.ends_with("/mod.rs");
    let depth = source.path.matches('/').count() + usize::from(!is_folder);
    let to_root = "super::".repeat(depth);
    for start in ["crate::", to_root.as_str()] {
        for (at, _) in source.code.match_indices(start) {
            let before = source.code[..at].chars().next_back();
            let inside_path = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$');
            if inside_path || (start != "crate::" && source.code[at..].starts_with(&format!("{start}super::"))) {
                continue;
            }
            let rest = &source.code[at + start.len()..];
            let end = match rest.starts_with('{') {
                true => rest.find(';').unwrap_or(rest.len()),
                false => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
            };
            for path in flatten(&rest[..end]) {
                let name = path.first().expect("flatten gives no empty paths");
                let module = if layer(name).is_some() { Some(name) } else { exports.get(name) };
                match module {
                    Some(module) => used.push((module.clone(), source.line_of(at))),
                    None => used.push((name.clone(), source.line_of(at))),
                }
            }
        }
    }
    used
}

#[test]
fn arrows_between_layers_only_go_down() {
    let sources = sources();
    let lib = sources.iter().find(|source| source.path == "lib.rs").expect("lib.rs");
    let exports = exports(lib);
    assert_eq!(exports.get("Reader").map(String::as_str), Some("read"), "the exports of lib.rs were not understood");
    let (mut problems, mut arrows) = (Vec::new(), 0);
    for source in &sources {
        let module = source.module();
        if module.is_empty() || module == "crates" {
            continue;
        }
        let Some(from) = layer(module) else {
            problems.push(format!("src/{}: module {module} is in no layer; add it to LAYERS", source.path));
            continue;
        };
        for (used, line) in used_modules(source, &exports) {
            arrows += usize::from(used != module);
            let place = format!("src/{}:{line}: {module} (layer {from}) uses {used}", source.path);
            match layer(&used) {
                None => problems.push(format!("{place}, which is in no layer")),
                Some(to) if to > from => problems.push(format!("{place} (layer {to}): an arrow up")),
                Some(5) if from == 5 && used != module => {
                    problems.push(format!("{place}: they never import each other"))
                }
                Some(_) => {}
            }
        }
    }
    assert!(arrows > 100, "only {arrows} arrows: the sources were not understood");
    assert_none(problems);
}

#[test]
fn crates_above_use_only_the_public_interface() {
    let sources = sources();
    let lib = sources.iter().find(|source| source.path == "lib.rs").expect("lib.rs");
    // the compiler sees to it, as long as no crate includes the core's sources
    let above: Vec<&Source> = sources.iter().filter(|source| source.module() == "crates").collect();
    assert!(!above.is_empty());
    let included = |source: &&Source| source.code.contains("#[path") || source.code.contains("include!");
    assert_none(above.into_iter().filter(included).map(|source| source.path.clone()).collect());
    // and nothing is public for their sake alone
    assert!(!lib.code.contains("#[doc(hidden)]"), "lib.rs hides a part of its public interface");
}

// ---- unsafe code and panics

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let allowed = |path: &str| {
        path.starts_with("kernel/")
            || ["pod.rs", "mmap.rs", "crates/tensilo-cli/sys.rs", "crates/tensilo-testing/sys.rs"].contains(&path)
    };
    let sources = sources();
    let places = sources.iter().flat_map(|source| {
        words(&source.code, "unsafe").map(|at| (source.path.clone(), source.line_of(at))).collect::<Vec<_>>()
    });
    let (inside, outside): (Vec<_>, Vec<_>) = places.partition(|(path, _)| allowed(path));
    assert!(inside.len() > 5, "the unsafe code of the kernels was not seen");
    assert_none(outside.iter().map(|(path, line)| format!("src/{path}:{line}: unsafe")).collect());
}

#[test]
fn library_code_that_is_no_test_does_not_panic_on_purpose() {
    let forbidden =
        [".unwrap()", "todo!", "unimplemented!", "panic!", "unreachable!", ".unwrap_err()", "process::exit"];
    let mut problems = Vec::new();
    for source in sources().iter().filter(|source| source.module() != "crates") {
        for what in forbidden {
            let places = source.code.match_indices(what).map(|(at, _)| source.line_of(at));
            problems.extend(places.map(|line| format!("src/{}:{line}: {what}", source.path)));
        }
        // that of Option and Result takes one argument; RegionHead::expect, which returns a Result, takes two
        let calls = source
            .code
            .match_indices(".expect(")
            .filter(|(at, call)| argument_count(&source.code, at + call.len()) < 2);
        problems.extend(calls.map(|(at, call)| format!("src/{}:{}: {call}", source.path, source.line_of(at))));
    }
    assert_none(problems);
}

/// The arguments of a call whose opening parenthesis stands before `at`; strings are blank.
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
fn no_source_file_is_longer_than_450_lines() {
    let long = |source: &Source| {
        let lines = source.text.lines().count();
        (lines > 450).then(|| format!("src/{}: {lines} lines", source.path))
    };
    assert_none(sources().iter().filter_map(long).collect());
}

// ---- specification, vectors, code

/// The `R-x.y` in a text.
fn rules(text: &str) -> BTreeSet<String> {
    let rule = |at: usize| {
        let rest = &text[at + 2..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        let (chapter, rule) = number.split_once('.')?;
        (!chapter.is_empty() && !rule.is_empty()).then(|| format!("R-{number}"))
    };
    words_starting(text, "R-").filter_map(rule).collect()
}

fn words_starting<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(start).map(|(at, _)| at).filter(|&at| !text[..at].ends_with(|c: char| c.is_alphanumeric()))
}

/// The rules that the specification defines, which stand there as `**R-x.y**`.
fn defined_rules() -> BTreeSet<String> {
    let spec = fs::read_to_string(root().join("format-spec/SPEC.md")).expect("the specification");
    let definitions = spec.split("**R-").skip(1).filter_map(|rest| Some(format!("R-{}", rest.split_once("**")?.0)));
    let mut rules = BTreeSet::new();
    for rule in definitions {
        assert!(rules.insert(rule.clone()), "{rule} is defined twice");
    }
    assert!(rules.len() > 40, "the rules of the specification were not found");
    rules
}

#[test]
fn every_rule_of_the_specification_has_a_vector_that_breaks_it() {
    let path = root().join("format-spec/vectors/manifest.json");
    let manifest = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("format-spec/vectors/manifest.json, which lists the vectors: {error}"));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let vectors = manifest["vectors"].as_array().expect("a list of vectors");
    let mut broken = BTreeSet::new();
    let mut problems = Vec::new();
    for vector in vectors {
        let file = vector["file"].as_str().expect("the file of a vector");
        if !root().join("format-spec/vectors").join(file).is_file() {
            problems.push(format!("{file} is in the manifest and not in the folder"));
        }
        if vector["valid"] == false {
            broken.insert(vector["rule"].as_str().expect("the rule that a vector breaks").to_owned());
        }
    }
    let defined = defined_rules();
    problems.extend(defined.difference(&broken).map(|rule| format!("no vector breaks {rule}")));
    problems.extend(broken.difference(&defined).map(|rule| format!("a vector breaks {rule}, which is not defined")));
    assert_none(problems);
}

#[test]
fn every_rule_that_the_code_names_is_defined_and_every_rule_is_named() {
    let defined = defined_rules();
    let mut named = BTreeSet::new();
    let mut problems = Vec::new();
    for source in sources() {
        for rule in rules(&source.text) {
            if !defined.contains(&rule) {
                problems.push(format!("src/{}: {rule} is not defined by the specification", source.path));
            }
            named.insert(rule);
        }
    }
    assert!(named.len() > 30, "the rules that the code names were not found");
    problems.extend(defined.difference(&named).map(|rule| format!("nothing in src names {rule}")));
    assert_none(problems);
}

/// The cross-references of the specification itself. Its last chapter lists the numbers that are
/// retired.
#[test]
fn every_rule_that_the_specification_refers_to_is_defined() {
    let spec = fs::read_to_string(root().join("format-spec/SPEC.md")).expect("the specification");
    let (text, retired) = spec.split_once("\n## 15. Retired numbers\n").expect("the chapter of retired numbers");
    let defined = defined_rules();
    assert_none(rules(text).difference(&defined).cloned().collect());
    let rows: String = retired
        .lines()
        .filter_map(|line| line.strip_prefix("| R-"))
        .fold(String::new(), |rows, row| rows + "R-" + row.split(' ').next().expect("a number") + " ");
    let retired = rules(&rows);
    assert!(!retired.is_empty(), "the retired numbers were not found");
    assert_none(retired.intersection(&defined).map(|rule| format!("{rule} is retired and defined")).collect());
}

#[test]
fn lines_of_the_specification_have_at_most_100_columns() {
    let spec = fs::read_to_string(root().join("format-spec/SPEC.md")).expect("the specification");
    let long = spec.lines().enumerate().filter(|(_, line)| line.chars().count() > 100);
    assert_none(long.map(|(number, line)| format!("SPEC.md:{}: {line}", number + 1)).collect());
}

// ---- this test itself

#[test]
fn the_scanner_sees_code_and_nothing_else() {
    let text =
        "let a = \"unsafe \\\" unsafe\"; // unsafe\n/* unsafe */ unsafe { b'\"' } '\"' r#\"unsafe\"# 'a unsafe_code";
    let code = without_comments_and_strings(text);
    assert_eq!(words(&code, "unsafe").count(), 1, "{code}");
    assert_eq!(code.matches('\n').count(), text.matches('\n').count());
    let code = without_tests("fn a() {} #[cfg(test)] mod tests { fn b() { panic!() } } fn c() {}");
    assert!(code.contains("fn a") && code.contains("fn c") && !code.contains("panic!"), "{code}");
    assert_eq!(
        flatten("crate::{a, b::{c, d as e}, f::g}"),
        [vec!["crate", "a"], vec!["crate", "b", "c"], vec!["crate", "b", "d"], vec!["crate", "f", "g"]]
    );
    assert_eq!(
        ["a.expect(       )", "a.expect(f(b, c),\n)", "a.expect(b, c)"].map(|call| argument_count(call, 9)),
        [1, 1, 2]
    );
    assert_eq!(rules("R-2.1, (R-7.10). R-x PR-1.2"), ["R-2.1", "R-7.10"].map(str::to_owned).into());
    let source = Source {
        path: "read/cursor.rs".to_owned(),
        text: String::new(),
        code: "use crate::{Error, le};\nuse super::super::write::Sink;\nuse super::lookup::Located;".to_owned(),
    };
    let exports = BTreeMap::from([("Error".to_owned(), "error".to_owned())]);
    let due = [("error", 1), ("le", 1), ("write", 2)].map(|(module, line)| (module.to_owned(), line));
    assert_eq!(used_modules(&source, &exports), due);
}
