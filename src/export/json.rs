//! The JSON in metadata of extension types. It is checked before it is passed on, because one
//! malformed field would make readers refuse the whole file.

/// Returns whether `text` is a JSON array of `count` strings.
pub(super) fn is_string_array(text: &str, count: usize) -> bool {
    strings(text) == Some(count)
}

/// Returns the number of strings in a JSON array of strings, which is not empty.
fn strings(text: &str) -> Option<usize> {
    let mut rest = trim(text).strip_prefix('[')?;
    let mut count = 0;
    loop {
        rest = trim(after_string(trim(rest))?);
        count += 1; // at most the length of the text
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return trim(rest.strip_prefix(']')?).is_empty().then_some(count),
        }
    }
}

/// JSON's white space is narrower than Unicode's.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

fn after_string(text: &str) -> Option<&str> {
    let mut characters = text.strip_prefix('"')?.chars();
    loop {
        match characters.next()? {
            '"' => return Some(characters.as_str()),
            '\\' => after_escape(&mut characters)?,
            control if control < ' ' => return None,
            _ => {}
        }
    }
}

fn after_escape(characters: &mut std::str::Chars<'_>) -> Option<()> {
    match characters.next()? {
        'u' => {
            let mut code = 0;
            for _ in 0..4 {
                code = code * 16 + characters.next()?.to_digit(16)?; // at most 16 bits
            }
            char::from_u32(code).map(|_| ()) // surrogates are not worth their trouble
        }
        escaped => "\"\\/bfnrt".contains(escaped).then_some(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_strings() {
        assert!(is_string_array(r#" [ "C", "H\n\u00e9" ] "#, 2));
        for text in
            ["", "[]", r#"["a"]"#, r#"["a","b"#, r#"["a","b"]]"#, r#"["a","\x"]"#, r#"["a","\ud800"]"#, r#"["a",1]"#]
        {
            assert!(!is_string_array(text, 2), "{text}");
        }
    }
}
