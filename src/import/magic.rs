//! Errors about files of other formats, recognised by their first bytes.

use crate::{Error, foreign};

/// The number of first bytes that are shown of a file of an unknown format.
const SHOWN: usize = 8;

/// Returns a list of the formats that are accepted, of which a program has added `others`.
pub(super) fn accepted<'a>(others: impl Iterator<Item = &'a str>) -> String {
    let own = ["Parquet files", "Arrow IPC files and streams", "tensilo files"];
    let all: Vec<&str> = own.into_iter().chain(others).collect();
    match all.split_last() {
        Some((last, rest)) => format!("inputs are {}, and {last}", rest.join(", ")),
        None => String::new(), // there are three at least
    }
}

/// Returns the error about a file with these first bytes, which are of none of the `accepted`
/// formats.
pub(super) fn unknown(first: &[u8], accepted: &str) -> Error {
    if first.is_empty() {
        return Error::bad_input(format!("the file is empty; {accepted}"));
    }
    if let Some(what) = foreign::placeholder(first) {
        return Error::bad_input(format!("the file is {what}"));
    }
    if let Some(what) = foreign::kind(first) {
        return Error::bad_input(format!("the file is {what}; {accepted}"));
    }
    let shown = first.get(..SHOWN).unwrap_or(first);
    let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    let is_text = shown.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    let text = if is_text { format!(" ({:?})", String::from_utf8_lossy(shown)) } else { String::new() };
    Error::bad_input(format!(
        "the file begins with the bytes {}{text}, which are of no known format; {accepted}",
        hex.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_or_how_it_begins() {
        let cases = [
            (&b""[..], "the file is empty"),
            (b"\x1f\x8b\x08", "compressed with gzip"),
            (b"\x93NUMPY\x01\x00", "a NumPy array"),
            (b"id,name\n1,a", "perhaps CSV"),
            (b"id:name\n1,a", "69 64 3a 6e 61 6d 65 0a, which"),
            (b"hello, world", "68 65 6c 6c 6f 2c 20 77 (\"hello, w\"), which"),
        ];
        for (first, text) in cases {
            let error = unknown(first, &accepted(["x files"].into_iter())).to_string();
            assert!(error.contains(text) && error.contains("Parquet"), "{error}");
            assert!(error.ends_with("tensilo files, and x files"), "{error}");
        }
    }
}
