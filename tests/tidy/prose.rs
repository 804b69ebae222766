//! Comments and the heads of files.

use super::assert_none;
use super::source::{Source, all_rust_files, core};

const COMMENT_COLUMNS: usize = 100;

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
}
