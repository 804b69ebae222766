//! Text in lines of a given width. The unit is one column of a terminal; a character takes 0, 1 or
//! 2.

use unicode_width::UnicodeWidthStr;

const ELLIPSIS: char = '…';

/// Returns the width of a text, which contains no control characters.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns the text if it fits, otherwise its beginning and an ellipsis.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    match width.checked_sub(1) {
        None => String::new(),
        Some(kept) => format!("{}{ELLIPSIS}", beginning(text, kept)),
    }
}

/// Returns the text if it fits, otherwise its beginning, an ellipsis and its end. Column names
/// often differ at only one end.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    match width.checked_sub(1) {
        None => String::new(),
        Some(kept) => format!("{}{ELLIPSIS}{}", beginning(text, kept.div_ceil(2)), end(text, kept / 2)),
    }
}

/// Returns the longest beginning of at most this width.
fn beginning(text: &str, width: usize) -> &str {
    let ends = text.char_indices().map(|(at, character)| at.saturating_add(character.len_utf8()));
    let fitting = ends.map_while(|end| text.get(..end)).take_while(|beginning| columns(beginning) <= width);
    fitting.last().unwrap_or("")
}

/// Returns the longest end of at most this width.
fn end(text: &str, width: usize) -> &str {
    let starts = text.char_indices().rev().map(|(at, _)| at);
    let fitting = starts.map_while(|start| text.get(start..)).take_while(|end| columns(end) <= width);
    let end = fitting.last().unwrap_or("");
    // a combining mark would attach to the ellipsis
    end.trim_start_matches(|character: char| columns(character.encode_utf8(&mut [0; 4])) == 0)
}

/// Wraps a text in lines of at most `width`, which is at least 4. All lines but the first are
/// indented. Only a word wider than a line is broken.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let indent = " ".repeat(indent.min(width / 2));
    let free = width.saturating_sub(indent.len()).max(2); // no character is wider than 2
    let mut lines = vec![String::new()];
    for (number, word) in text.split(' ').enumerate() {
        let mut rest = word;
        loop {
            let fitting = beginning(rest, free);
            match lines.last_mut().filter(|_| rest.len() == word.len()) {
                Some(line) if number == 0 => line.push_str(fitting),
                Some(line) if columns(line).saturating_add(1).saturating_add(columns(fitting)) <= width => {
                    line.push(' ');
                    line.push_str(fitting);
                }
                _ => lines.push(format!("{indent}{fitting}")),
            }
            rest = rest.strip_prefix(fitting).filter(|_| !fitting.is_empty()).unwrap_or("");
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 7] = [
        "",
        "a",
        "encoder.layers.11.attention.weight",
        "日本語のとても長い列の名前",
        "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
        "❤\u{fe0f}👩\u{200d}👩\u{200d}👧 family 👩\u{200d}👩\u{200d}👧",
        "a  word, another wooooooooooooooord and the end",
    ];

    #[test]
    fn what_is_cut_is_as_wide_as_it_may_be() {
        for text in TEXTS {
            for width in 0..60 {
                for cut in [cut_end(text, width), cut_middle(text, width)] {
                    assert!(columns(&cut) <= width, "{cut:?} in {width}");
                    let is_whole = columns(text) <= width;
                    assert_eq!(is_whole, cut == text, "{cut:?} in {width}");
                    assert_eq!(is_whole || width == 0, !cut.contains(ELLIPSIS), "{cut:?} in {width}");
                    // two characters of width 2, and marks that stay with their character, may
                    // leave some columns empty
                    assert!(is_whole || width - columns(&cut) <= 6, "{cut:?} in {width}");
                }
            }
        }
    }

    #[test]
    fn names_keep_both_ends() {
        assert_eq!(cut_middle("encoder.layers.11.weight", 11), "encod…eight");
        assert_eq!(cut_middle("encoder.layers.11.weight", 10), "encod…ight");
        assert_eq!(cut_middle("日本語の名前", 8), "日本…前");
        assert_eq!(cut_middle("aaaaae\u{301}", 2), "a…");
        assert_eq!(cut_end("encoder.layers.11.weight", 8), "encoder…");
    }

    #[test]
    fn wrapped_lines_fit_and_lose_nothing() {
        for text in TEXTS {
            for (width, indent) in (4..60).flat_map(|width| [0, 2].map(|indent| (width, indent))) {
                let lines = wrap(text, width, indent);
                assert!(lines.iter().all(|line| columns(line) <= width), "{lines:?} in {width}");
                let letters = |text: &str| text.split(' ').collect::<String>();
                assert_eq!(letters(&lines.concat()), letters(text), "{width}");
            }
        }
        assert_eq!(wrap("a  b", 9, 2), ["a  b"]);
        assert_eq!(wrap("one two three four", 9, 2), ["one two", "  three", "  four"]);
        assert_eq!(wrap("/a/very/long/path: 5 samples", 12, 2), ["/a/very/lo", "  ng/path: 5", "  samples"]);
    }
}
