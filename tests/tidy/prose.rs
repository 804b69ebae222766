//! Comments, documentation comments and the length of files.

use super::assert_none;
use super::source::{Source, all_rust_files, core, crates};

const COMMENT_COLUMNS: usize = 100;
const FILE_LINES: usize = 400;

/// Words with which the documentation of an item does not begin: it says what the item is or does.
const NO_FIRST_WORDS: [&str; 10] = ["What", "That", "There", "Those", "These", "Such", "Where", "Which", "Who", "It"];

/// Verbs with which the documentation of a function does not begin: `Returns`, not `Return`.
const IMPERATIVES: [&str; 19] = [
    "Add", "Build", "Check", "Compute", "Convert", "Create", "Decode", "Encode", "Find", "Get", "Give", "Make", "Open",
    "Parse", "Read", "Return", "Set", "Verify", "Write",
];

/// Returns the offset of the comment in a line of source, where the code of the line ends.
fn comment_in<'a>(text: &'a str, code: &str) -> Option<&'a str> {
    let start = code.trim_end().len();
    let rest = text.get(start..)?.trim_start();
    (rest.starts_with("//") || (rest.starts_with('*') && code.trim().is_empty())).then_some(rest)
}

/// Whether a comment can be broken: no link definition or address.
fn can_be_wrapped(comment: &str) -> bool {
    let text = comment.trim_start_matches(['/', '!']).trim();
    let is_link = text.starts_with('[') && text.contains("]: ");
    !(is_link || !text.contains(' ') || text.contains("://"))
}

#[test]
fn comments_have_at_most_100_columns() {
    let mut problems = Vec::new();
    for source in all_rust_files() {
        // what is compiled for tests has comments, too
        let code = super::blank::without_comments_and_strings(&source.text);
        for (number, (line, code)) in source.text.lines().zip(code.lines()).enumerate() {
            let columns = line.chars().count();
            if columns > COMMENT_COLUMNS && comment_in(line, code).is_some_and(can_be_wrapped) {
                problems.push(format!("{}:{}: {columns} columns", source.path, number + 1));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn files_have_at_most_400_lines() {
    let long = |source: &Source| {
        let lines = source.text.lines().count();
        (lines > FILE_LINES).then(|| format!("{}:{FILE_LINES}: {lines} lines", source.path))
    };
    assert_none(all_rust_files().iter().filter_map(long).collect());
}

/// Returns the first line of each documentation comment with its line number, and the line of
/// code that follows the comment.
fn documented(source: &Source) -> Vec<(usize, &str, &str)> {
    let lines: Vec<&str> = source.text.lines().collect();
    let is_doc = |line: &str| line.trim_start().starts_with("///");
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let begins = is_doc(line) && (number == 0 || !is_doc(lines[number - 1]));
        if !begins {
            continue;
        }
        let mut rest = lines[number..].iter().map(|line| line.trim());
        let item = rest.find(|line| !line.starts_with("//") && !line.starts_with("#["));
        found.push((number + 1, line.trim_start().trim_start_matches('/').trim(), item.unwrap_or_default()));
    }
    found
}

#[test]
fn documentation_begins_with_a_verb_or_a_noun() {
    let mut problems = Vec::new();
    for source in crates().iter().flat_map(|member| &member.sources) {
        for (line, text, item) in documented(source) {
            let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let is_function = item.contains("fn ");
            if NO_FIRST_WORDS.contains(&first) || (is_function && IMPERATIVES.contains(&first)) {
                problems.push(format!("{}:{line}: begins with `{first}`: {text}", source.path));
            }
        }
        for (number, line) in source.text.lines().enumerate().take(1) {
            let first = line.trim_start_matches("//!").split_whitespace().next().unwrap_or_default();
            if NO_FIRST_WORDS.contains(&first) {
                problems.push(format!("{}:{}: begins with `{first}`: {line}", source.path, number + 1));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn every_file_of_the_core_says_what_is_in_it() {
    let mute = |source: &&Source| !source.text.starts_with("//! ");
    assert_none(core().sources.iter().filter(mute).map(|source| format!("{}:1: no `//!`", source.path)).collect());
}

#[test]
fn comments_are_found_and_wrapped_only_where_they_can_be() {
    let found = |line: &'static str| {
        let code = super::blank::without_comments_and_strings(line);
        comment_in(line, &code).map(can_be_wrapped)
    };
    assert_eq!(found("let a = \"// no comment\";"), None);
    assert_eq!(found("let a = 1; // a comment"), Some(true));
    assert_eq!(found("/// | a | table |"), Some(true));
    assert_eq!(found("//! [a]: https://example.org"), Some(false));
    let source = Source::new("x.rs", "/// What is it.\n#[inline]\npub fn a() {}\n".to_owned());
    assert_eq!(documented(&source), [(1, "What is it.", "pub fn a() {}")]);
}
