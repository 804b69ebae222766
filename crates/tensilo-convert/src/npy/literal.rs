//! The part of Python's literals that headers of arrays are made of: texts, integers, booleans,
//! tuples, lists and dictionaries.
//!
//! `npyz` and `py_literal` read the same. They need a grammar's parser and big integers, and
//! allocate what a header claims.

/// A value of a literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Integer(u64),
    Bool(bool),
    /// A tuple or a list.
    Sequence(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

/// Nested sequences are at most this deep: `descr` of records is 3.
const MOST_DEPTH: usize = 8;

/// Parses a literal, with nothing but spaces behind it. `None`: it is malformed, or of another
/// kind.
pub(super) fn parse(text: &str) -> Option<Literal> {
    let mut rest = text;
    let literal = value(&mut rest, 0)?;
    rest.trim_start().is_empty().then_some(literal)
}

fn value(rest: &mut &str, depth: usize) -> Option<Literal> {
    *rest = rest.trim_start();
    let first = rest.chars().next()?;
    match first {
        _ if depth > MOST_DEPTH => None,
        '\'' | '"' => {
            let (text, after) = rest.get(1..)?.split_once(first)?;
            *rest = after;
            (!text.contains('\\')).then(|| Literal::Text(text.to_owned()))
        }
        '0'..='9' => {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at_checked(end)?;
            // Python 2 wrote long integers so
            *rest = after.strip_prefix('L').unwrap_or(after);
            digits.parse().ok().map(Literal::Integer)
        }
        'T' => after(rest, "True").then_some(Literal::Bool(true)),
        'F' => after(rest, "False").then_some(Literal::Bool(false)),
        '(' => sequence(rest, ")", depth),
        '[' => sequence(rest, "]", depth),
        '{' => dict(rest, depth),
        _ => None,
    }
}

/// Goes behind a token, if it follows.
fn after(rest: &mut &str, token: &str) -> bool {
    *rest = rest.trim_start();
    match rest.strip_prefix(token) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

fn sequence(rest: &mut &str, close: &str, depth: usize) -> Option<Literal> {
    *rest = rest.get(1..)?;
    let mut members = Vec::new();
    while !after(rest, close) {
        members.push(value(rest, depth + 1)?);
        if !after(rest, ",") {
            return after(rest, close).then_some(Literal::Sequence(members));
        }
    }
    Some(Literal::Sequence(members))
}

fn dict(rest: &mut &str, depth: usize) -> Option<Literal> {
    *rest = rest.get(1..)?;
    let mut members = Vec::new();
    while !after(rest, "}") {
        let Literal::Text(key) = value(rest, depth + 1)? else { return None };
        if !after(rest, ":") {
            return None;
        }
        members.push((key, value(rest, depth + 1)?));
        if !after(rest, ",") {
            return after(rest, "}").then_some(Literal::Dict(members));
        }
    }
    Some(Literal::Dict(members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_headers_are_parsed() {
        let literal = parse("{'descr': '<f4', \"order\": False, 'shape': (3, 4L,), 'n': [(1), True], }\n").unwrap();
        let Literal::Dict(members) = literal else { panic!() };
        assert_eq!(members[0], ("descr".to_owned(), Literal::Text("<f4".to_owned())));
        assert_eq!(members[1].1, Literal::Bool(false));
        assert_eq!(members[2].1, Literal::Sequence(vec![Literal::Integer(3), Literal::Integer(4)]));
        assert_eq!(parse("()"), Some(Literal::Sequence(Vec::new())));
    }

    #[test]
    fn other_texts_are_refused() {
        let deep = "(".repeat(1 << 16);
        for text in
            ["", "{", "{'a'}", "{'a': }", "(1", "(1 2)", "'a", "'\\x41'", "-1", "99999999999999999999", "() x", &deep]
        {
            assert_eq!(parse(text), None, "{}", text.get(..20).unwrap_or(text));
        }
    }
}
