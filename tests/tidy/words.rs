//! Prose and identifiers use the words of the glossary.
//!
//! The tables of `docs/src/glossary.md` that begin with "not" list phrases that comments, messages,
//! help and documents do not contain, and words that identifiers are not made of. A phrase is found
//! across line breaks; quotations in `backticks` and code blocks of documents are not searched.

use super::assert_none;
use super::blank::{comments_and_literals, without_comments_and_strings};
use super::source::{collect, relative, root};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

/// Stands for what is not prose, so that no phrase is found across it.
const NOT_PROSE: u8 = 1;

/// A row of the glossary: what is not written, and where it is written nevertheless.
struct Entry {
    words: Vec<String>,
    exceptions: Vec<String>,
}

/// Returns the rows of the table below a heading, whose columns are not, but, except.
fn entries(heading: &str) -> Vec<Entry> {
    let text = fs::read_to_string(root().join("docs/src/glossary.md")).expect("the glossary");
    let section = text.split(&format!("\n## {heading}\n")).nth(1).expect("the section of the glossary");
    let rows = section.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| "));
    let list = |cell: &str| -> Vec<String> {
        cell.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    let entries: Vec<Entry> = rows
        .skip(1)
        .map(|row| {
            let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
            Entry { words: list(cells[0]), exceptions: cells.get(2).map_or_else(Vec::new, |cell| list(cell)) }
        })
        .collect();
    assert!(entries.len() > 5, "the table {heading} was not found");
    entries
}

/// Returns the files whose prose and names are checked: those that people write.
fn files() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for extension in ["rs", "py", "pyi", "md", "h", "c", "cpp"] {
        collect(root(), extension, &mut paths);
    }
    paths.retain(|path| {
        let path = relative(path);
        path != "docs/src/glossary.md" && !path.starts_with("tests/tidy/") && !path.starts_with("fuzz/corpus/")
    });
    paths
}

#[test]
fn prose_has_no_forbidden_phrase() {
    let entries = entries("Phrases");
    let mut problems = Vec::new();
    for path in files() {
        let text = fs::read_to_string(&path).expect("a text");
        let prose = prose(&text, path.extension().is_some_and(|extension| extension == "md"), is_python(&path));
        for Entry { words, exceptions } in &entries {
            for phrase in words {
                let at = phrases(&prose, phrase).filter(|found| !is_exception(&prose, found, exceptions));
                problems
                    .extend(at.map(|found| format!("{}:{}: {phrase}", relative(&path), line_of(&text, found.start))));
            }
        }
    }
    assert_none(problems);
}

#[test]
fn names_have_no_forbidden_word() {
    let entries = entries("Names");
    let mut problems = BTreeSet::new();
    for path in files().into_iter().filter(|path| path.extension().is_some_and(|extension| extension != "md")) {
        let text = fs::read_to_string(&path).expect("a text");
        let code = without_comments_and_strings(&text, is_python(&path));
        for (offset, name) in names(&code) {
            let words = words(name);
            // the name of a test is a sentence
            if words.len() > 4 {
                continue;
            }
            for entry in &entries {
                if entry.words.iter().any(|word| words.contains(word)) && !entry.exceptions.iter().any(|is| is == name)
                {
                    problems.insert(format!("{}:{}: {name}", relative(&path), line_of(&text, offset)));
                }
            }
        }
    }
    assert_none(problems.into_iter().collect());
}

fn is_python(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py" || extension == "pyi")
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Returns the prose of a file in lower case, at the same offsets: of a source its comments and
/// literals, of a document all but code. The marks of comments are spaces.
fn prose(text: &str, document: bool, python: bool) -> Vec<u8> {
    let mut out: Vec<u8> = text.bytes().map(|byte| byte.to_ascii_lowercase()).collect();
    if document {
        let (mut fence, mut at) = (false, 0);
        for line in text.split_inclusive('\n') {
            fence ^= line.trim_start().starts_with("```");
            if fence {
                out[at..at + line.len()].fill(NOT_PROSE);
            }
            at += line.len();
        }
    } else {
        let mut before = 0;
        for (range, comment) in comments_and_literals(text, python) {
            hide(&mut out[before..range.start]);
            before = range.end;
            if comment {
                let marks = if python { b"#".as_slice() } else { b"/!*".as_slice() };
                let marks = out[range.clone()].iter().take_while(|byte| marks.contains(byte)).count();
                out[range.start..range.start + marks].fill(b' ');
            } else {
                out[range.start] = NOT_PROSE;
                out[range.end - 1] = NOT_PROSE;
                out[range].iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b' ');
            }
        }
        hide(&mut out[before..]);
    }
    let mut quoted = false;
    for at in 0..out.len() {
        match out[at] {
            b'`' => quoted = !quoted,
            // a quotation ends with its paragraph
            b'\n' if out[at + 1..].first() == Some(&b'\n') => quoted = false,
            NOT_PROSE => quoted = false,
            b'\n' => {}
            _ if quoted => out[at] = NOT_PROSE,
            _ => {}
        }
    }
    out
}

/// Hides code; the spaces between two lines of a comment stay.
fn hide(code: &mut [u8]) {
    code.iter_mut().filter(|byte| !byte.is_ascii_whitespace()).for_each(|byte| *byte = NOT_PROSE);
}

/// Returns where a phrase occurs as whole words; a space stands for any white space.
fn phrases<'a>(prose: &'a [u8], phrase: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let is_word =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 128);
    let first = phrase.as_bytes()[0].to_ascii_lowercase();
    (0..prose.len()).filter(move |&at| prose[at] == first && (at == 0 || !is_word(prose.get(at - 1)))).filter_map(
        move |start| {
            let end = end_of_phrase(prose, start, phrase)?;
            (!is_word(prose.get(end))).then_some(start..end)
        },
    )
}

fn end_of_phrase(prose: &[u8], start: usize, phrase: &str) -> Option<usize> {
    let mut at = start;
    for byte in phrase.bytes().map(|byte| byte.to_ascii_lowercase()) {
        if byte == b' ' {
            let spaces = prose[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            at += (spaces > 0).then_some(spaces)?;
        } else {
            at += (prose.get(at) == Some(&byte)).then_some(1)?;
        }
    }
    Some(at)
}

/// Whether a phrase that was found is part of one of the exceptions.
fn is_exception(prose: &[u8], found: &Range<usize>, exceptions: &[String]) -> bool {
    let start = found.start.saturating_sub(24);
    let around = &prose[start..(found.end + 24).min(prose.len())];
    exceptions.iter().any(|exception| {
        phrases(around, exception).any(|range| start + range.start <= found.start && found.end <= start + range.end)
    })
}

/// Returns the names in code, with their offsets.
fn names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    code.split(move |c| !is_name(c)).filter(|name| !name.is_empty()).map(|name| {
        let offset = name.as_ptr() as usize - code.as_ptr() as usize;
        (offset, name)
    })
}

/// Returns the words of a name in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut word = String::new();
        let mut lower = false;
        for c in part.chars() {
            if c.is_uppercase() && lower {
                words.push(std::mem::take(&mut word));
            }
            lower = c.is_lowercase();
            word.push(c.to_ascii_lowercase());
        }
        words.push(word);
    }
    words
}

#[test]
fn phrases_and_names_are_found() {
    let text = "/// The size is that\n/// of a chunk.\nfn that_of(most: u8) { let a = \"those \\\n  of\"; let b = 'a'; } // `that of`\n";
    let prose = prose(text, false, false);
    let lines =
        |phrase: &str| -> Vec<usize> { phrases(&prose, phrase).map(|found| line_of(text, found.start)).collect() };
    assert_eq!(lines("that of"), [1]);
    assert_eq!(lines("those of"), [3]);
    assert!(lines("that a").is_empty());
    let found = phrases(&prose, "is that").next().expect("found");
    assert!(
        is_exception(&prose, &found, &["size is that".to_owned()]) && !is_exception(&prose, &found, &["no".to_owned()])
    );
    let code = without_comments_and_strings(text, false);
    let names: Vec<&str> = names(&code).map(|(_, name)| name).collect();
    assert!(names.contains(&"that_of") && names.contains(&"most") && !names.contains(&"chunk"));
    assert_eq!(words("MostTaps_ofF64"), ["most", "taps", "of", "f64"]);
    let document = self::prose("a `that of` b that of\n```\nthat of\n```\n", true, false);
    assert_eq!(phrases(&document, "that of").count(), 1);
}
