//! Replaces comments, literals and test code by spaces, so that the rest can be searched as text.
//! The result has the length and the line breaks of the input.

use std::ops::Range;

/// Replaces comments, strings and character literals by spaces.
pub fn without_comments_and_strings(text: &str, python: bool) -> String {
    let mut out = text.as_bytes().to_vec();
    for (range, _) in comments_and_literals(text, python) {
        blank(&mut out[range]);
    }
    String::from_utf8(out).expect("whole literals were replaced")
}

/// Returns the ranges of the comments and literals of a source, with their marks, and whether each
/// is a comment. The source is Rust, C or, if `python` is set, Python.
pub fn comments_and_literals(text: &str, python: bool) -> Vec<(Range<usize>, bool)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (end, is_comment) = if python { python_token(text.as_bytes(), at) } else { token(text, at) };
        if end > at {
            found.push((at..end, is_comment));
        }
        at = end.max(at + 1);
    }
    found
}

/// Returns the end of the comment or literal at `at`, or `at` if there is none, and whether it is a
/// comment.
fn token(text: &str, at: usize) -> (usize, bool) {
    let bytes = text.as_bytes();
    match &bytes[at..] {
        [b'/', b'/', ..] => (end_of_line(bytes, at), true),
        [b'/', b'*', ..] => (end_of_block_comment(bytes, at), true),
        [b'r', b'"' | b'#', ..] if !continues_name(bytes, at) => (end_of_raw_string(bytes, at), false),
        [b'"', ..] => (end_of_quoted(bytes, at, b'"'), false),
        [b'\'', b'\\', ..] => (end_of_quoted(bytes, at, b'\''), false),
        // a lifetime has no second quote after one character
        [b'\'', ..] if is_character(text, at) => (end_of_quoted(bytes, at, b'\''), false),
        _ => (at, false),
    }
}

/// Does the same for Python.
fn python_token(bytes: &[u8], at: usize) -> (usize, bool) {
    match &bytes[at..] {
        [b'#', ..] => (end_of_line(bytes, at), true),
        [b'"', b'"', b'"', ..] | [b'\'', b'\'', b'\'', ..] => {
            (find(bytes, at + 3, &bytes[at..at + 3]).map_or(bytes.len(), |end| end + 3), false)
        }
        [quote @ (b'"' | b'\''), ..] => (end_of_quoted(bytes, at, *quote), false),
        _ => (at, false),
    }
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, b"\n").unwrap_or(bytes.len())
}

/// Replaces all but the line breaks by spaces.
fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
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

/// Returns the end of `r#"..."#`, or `at` if none begins there (`r#name`).
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
    (at + 1).min(bytes.len())
}

fn is_character(text: &str, at: usize) -> bool {
    let mut chars = text[at + 1..].chars();
    chars.next();
    chars.next() == Some('\'')
}

/// Replaces each item that follows `#[cfg(test)]` or `#[cfg(doctest...)]` by spaces.
pub fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    for attribute in ["#[cfg(test)]", "#[cfg(all(doctest", "#[cfg(all(test"] {
        while let Some(start) = out.find(attribute) {
            let end = end_of_item(&out, start);
            let spaces: String = out[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
            out.replace_range(start..end, &spaces);
        }
    }
    out
}

/// Returns the end of the item that begins at `start`: its `;` or its closing brace.
fn end_of_item(code: &str, start: usize) -> usize {
    let Some(open) = code[start..].find(['{', ';']).map(|at| start + at) else { return code.len() };
    if code.as_bytes()[open] == b';' {
        return open + 1;
    }
    closing_brace(code, open).map_or(code.len(), |at| at + 1)
}

/// Returns the offset of the brace that closes the one at `open`.
pub fn closing_brace(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    code.bytes().enumerate().skip(open).find_map(|(at, byte)| {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        (depth == 0).then_some(at)
    })
}

/// Returns the offsets at which `word` occurs as a whole word.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| !is_name(code[..at].chars().next_back()) && !is_name(code[at + word.len()..].chars().next()))
}

#[test]
fn only_code_remains() {
    let text =
        "let a = \"unsafe \\\" unsafe\"; // unsafe\n/* unsafe */ unsafe { b'\"' } '\"' r#\"unsafe\"# 'a unsafe_code";
    let code = without_comments_and_strings(text, false);
    assert_eq!(words(&code, "unsafe").count(), 1, "{code}");
    assert_eq!(code.len(), text.len());
    assert_eq!(code.matches('\n').count(), text.matches('\n').count());
    let code = without_tests("fn a() {} #[cfg(test)] mod tests { fn b() { panic!() } } fn c() {}");
    assert!(code.contains("fn a") && code.contains("fn c") && !code.contains("panic!"), "{code}");
}
