//! Parses JSON values from a stream.
//!
//! `serde_json` does not accept the extensions that Python writes (`NaN`, `Infinity`), and it
//! silently rounds integers beyond 64 bits. It also holds a whole value in memory, so an array with
//! all objects of a file would have to fit in memory. This parser reads one value at a time. It
//! preserves every integer exactly, or returns [`Json::Refused`] for it, so that the other members
//! of the object can still be read.

use crate::stream::MAX_VALUE_BYTES;
use indexmap::IndexMap;
use std::io::{self, BufRead};

/// The maximum depth of nested arrays and objects.
const MAX_DEPTH: usize = 128;

/// The maximum number of values in an object. Each value takes 32 bytes of memory.
const MAX_VALUES: u64 = 1 << 27;

/// The members of an object, in order. If a name is repeated, the last value wins, as in Python.
pub(super) type Object = IndexMap<String, Json>;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// An integer in the range of `i64` or `u64`.
    Integer(i128),
    /// A number with a fraction or an exponent, rounded to the nearest `f64`; a larger integer that
    /// an `f64` represents exactly; NaN or an infinity.
    Float(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Box<Object>),
    /// A value that cannot be stored, and why.
    Refused(String),
}

impl Json {
    pub(super) fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(super) fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Array(values) => Some(values),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_integer<T: TryFrom<i128>>(&self) -> Option<T> {
        match self {
            Self::Integer(value) => T::try_from(*value).ok(),
            _ => None,
        }
    }

    /// Returns a number as a float. The first pass has checked that an `f64` represents every
    /// integer among floats exactly.
    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            Self::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }
}

/// Returns whether an `f64` represents the integer exactly.
pub(super) fn is_exact_f64(integer: i128) -> bool {
    // no integer here exceeds 2^64, so converting back cannot saturate
    (integer as f64) as i128 == integer
}

/// Why no further value can be read.
#[derive(Debug)]
pub(super) enum ParseError {
    /// The bytes cannot be read.
    Stream(io::Error),
    /// The text is not JSON.
    Syntax(String),
    /// The text is valid JSON, but not an object that can be read.
    Value(String),
}

impl From<io::Error> for ParseError {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}

/// Reads values that follow one another.
pub(super) struct Parser<R> {
    stream: R,
    /// The number of the current line, from 1.
    pub line: u64,
    /// The number of bytes read so far for the current value.
    pub value_bytes: u64,
    /// The number of values parsed so far in the current value, including itself.
    value_count: u64,
}

impl<R: BufRead> Parser<R> {
    pub(super) fn new(stream: R) -> Self {
        Self { stream, line: 1, value_bytes: 0, value_count: 0 }
    }

    /// Returns the next bytes, at least one unless the stream has ended.
    fn chunk(&mut self) -> Result<&[u8], ParseError> {
        loop {
            match self.stream.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.stream.fill_buf()?)
    }

    /// Returns the next byte without consuming it.
    pub(super) fn peek(&mut self) -> Result<Option<u8>, ParseError> {
        Ok(self.chunk()?.first().copied())
    }

    /// Consumes bytes that [`Parser::chunk`] has returned.
    fn consume(&mut self, count: usize) -> Result<(), ParseError> {
        self.stream.consume(count);
        self.value_bytes = self.value_bytes.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
        match self.value_bytes <= MAX_VALUE_BYTES {
            true => Ok(()),
            false => Err(ParseError::Value(format!("a value has more than {MAX_VALUE_BYTES} bytes"))),
        }
    }

    /// Consumes the next byte if it is `byte`. Returns whether it was.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, ParseError> {
        let is_next = self.peek()? == Some(byte);
        if is_next {
            self.consume(1)?;
        }
        Ok(is_next)
    }

    pub(super) fn skip_whitespace(&mut self) -> Result<(), ParseError> {
        loop {
            let chunk = self.chunk()?;
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
            let count = chunk.iter().take_while(|byte| is_space(byte)).count();
            let lines = chunk.iter().take(count).filter(|byte| **byte == b'\n').count();
            let is_done = count < chunk.len() || chunk.is_empty();
            self.stream.consume(count);
            self.line = self.line.saturating_add(u64::try_from(lines).unwrap_or(u64::MAX));
            if is_done {
                return Ok(());
            }
        }
    }

    /// Skips a byte order mark, which Windows tools write at the start of a file.
    pub(super) fn skip_byte_order_mark(&mut self) -> Result<(), ParseError> {
        if self.take(0xEF)? && !(self.take(0xBB)? && self.take(0xBF)?) {
            return Err(ParseError::Syntax("expected a value, found the byte 0xef".to_owned()));
        }
        Ok(())
    }

    /// Reads the value that begins with the next byte.
    pub(super) fn value(&mut self) -> Result<Json, ParseError> {
        (self.value_bytes, self.value_count) = (0, 0);
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Result<Json, ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError::Value(format!("arrays and objects are nested more than {MAX_DEPTH} levels deep")));
        }
        self.value_count = self.value_count.saturating_add(1);
        if self.value_count > MAX_VALUES {
            return Err(ParseError::Value(format!("more than {MAX_VALUES} values in one object")));
        }
        match self.peek()? {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(self.text()?.map_or_else(Json::Refused, Json::Text)),
            Some(byte) if is_in_word(byte) => self.word(),
            _ => Err(self.unexpected("a value")?),
        }
    }

    /// Returns the error for an unexpected next byte.
    pub(super) fn unexpected(&mut self, expected: &str) -> Result<ParseError, ParseError> {
        let found = match self.peek()? {
            None => "the end of the file".to_owned(),
            Some(byte) if byte.is_ascii_graphic() => format!("'{}'", char::from(byte)),
            Some(byte) => format!("the byte {byte:#04x}"),
        };
        Ok(ParseError::Syntax(format!("expected {expected}, found {found}")))
    }

    fn object(&mut self, depth: usize) -> Result<Json, ParseError> {
        self.consume(1)?;
        let mut object = Object::new();
        self.skip_whitespace()?;
        if self.take(b'}')? {
            return Ok(Json::Object(Box::new(object)));
        }
        loop {
            self.skip_whitespace()?;
            if self.peek()? != Some(b'"') {
                return Err(self.unexpected("the name of a member")?);
            }
            let name = self.text()?.map_err(|what| ParseError::Value(format!("the name of a member: {what}")))?;
            self.skip_whitespace()?;
            if !self.take(b':')? {
                return Err(self.unexpected(&format!("':' after {name:?}"))?);
            }
            self.skip_whitespace()?;
            object.insert(name, self.value_at(depth + 1)?);
            self.skip_whitespace()?;
            if self.take(b'}')? {
                return Ok(Json::Object(Box::new(object)));
            }
            if !self.take(b',')? {
                return Err(self.unexpected("',' or '}' in an object")?);
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json, ParseError> {
        self.consume(1)?;
        let mut values = Vec::new();
        self.skip_whitespace()?;
        if self.take(b']')? {
            return Ok(Json::Array(values));
        }
        loop {
            self.skip_whitespace()?;
            values.push(self.value_at(depth + 1)?);
            self.skip_whitespace()?;
            if self.take(b']')? {
                return Ok(Json::Array(values));
            }
            if !self.take(b',')? {
                return Err(self.unexpected("',' or ']' in an array")?);
            }
        }
    }

    /// Reads a string, or returns the reason why it cannot be stored.
    fn text(&mut self) -> Result<Result<String, String>, ParseError> {
        self.consume(1)?;
        let (mut bytes, mut lone_surrogate) = (Vec::new(), None);
        loop {
            let chunk = self.chunk()?;
            let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
            let count = chunk.iter().position(is_special).unwrap_or(chunk.len());
            let special = chunk.get(count).copied();
            bytes.extend_from_slice(chunk.get(..count).unwrap_or_default());
            let is_done = chunk.is_empty();
            self.consume(count)?;
            match special {
                Some(b'"') => {
                    self.consume(1)?;
                    return Ok(match lone_surrogate {
                        Some(half) => Err(format!("\\u{half:04x} is an unpaired surrogate")),
                        None => String::from_utf8(bytes).map_err(|_| "the string is not UTF-8".to_owned()),
                    });
                }
                Some(b'\\') => {
                    self.consume(1)?;
                    lone_surrogate = lone_surrogate.or(self.escape(&mut bytes)?);
                }
                Some(b'\n' | b'\r') => return Err(ParseError::Syntax("unterminated string".to_owned())),
                Some(byte) => {
                    return Err(ParseError::Syntax(format!(
                        "a string contains the control character {byte:#04x}, expected the escape \\u{byte:04x}"
                    )));
                }
                None if is_done => return Err(self.unexpected("the end of a string")?),
                None => {}
            }
        }
    }

    /// Reads an escape after its backslash. Returns half of a surrogate pair if the other half is
    /// missing.
    fn escape(&mut self, out: &mut Vec<u8>) -> Result<Option<u32>, ParseError> {
        if !self.take(b'u')? {
            self.simple_escape(out)?;
            return Ok(None);
        }
        let first = self.four_digits()?;
        let code = match first {
            0xD800..0xDC00 if self.take(b'\\')? => {
                if !self.take(b'u')? {
                    self.simple_escape(out)?;
                    return Ok(Some(first));
                }
                match self.four_digits()? {
                    second @ 0xDC00..0xE000 => 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                    _ => return Ok(Some(first)),
                }
            }
            _ => first,
        };
        let Some(character) = char::from_u32(code) else { return Ok(Some(first)) };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(None)
    }

    fn simple_escape(&mut self, out: &mut Vec<u8>) -> Result<(), ParseError> {
        out.push(match self.peek()? {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            _ => return Err(self.unexpected("an escape such as \\n")?),
        });
        self.consume(1)
    }

    fn four_digits(&mut self) -> Result<u32, ParseError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek()?.and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.unexpected("a hexadecimal digit after \\u")?) };
            code = code << 4 | digit;
            self.consume(1)?;
        }
        Ok(code)
    }

    /// Reads a number or a name such as `null`.
    fn word(&mut self) -> Result<Json, ParseError> {
        let mut word = String::new();
        loop {
            let chunk = self.chunk()?;
            let part = chunk.iter().take_while(|byte| is_in_word(**byte));
            word.extend(part.map(|byte| char::from(*byte)));
            let count = chunk.iter().take_while(|byte| is_in_word(**byte)).count();
            let is_done = count < chunk.len() || chunk.is_empty();
            self.consume(count)?;
            if is_done {
                return parse_word(&word);
            }
        }
    }
}

fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

fn parse_word(word: &str) -> Result<Json, ParseError> {
    Ok(match word {
        "null" => Json::Null,
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        // as Python's `json` writes and reads them
        "NaN" => Json::Float(f64::NAN),
        "Infinity" => Json::Float(f64::INFINITY),
        "-Infinity" => Json::Float(f64::NEG_INFINITY),
        number => return parse_number(number),
    })
}

/// Returns the value of a number: an integer if it has neither a fraction nor an exponent.
fn parse_number(text: &str) -> Result<Json, ParseError> {
    let excerpt = || match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    };
    let without_sign = text.strip_prefix('-').unwrap_or(text);
    let (digits, rest) = digits_and_rest(without_sign);
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
    if digits.is_empty() || has_leading_zero || !is_fraction_and_exponent(rest) {
        return Err(ParseError::Syntax(format!("{} is neither a number nor true, false, null or NaN", excerpt())));
    }
    let is_integer = rest.is_empty();
    if let Some(integer) = text.parse::<i128>().ok().filter(|_| is_integer)
        && (i64::try_from(integer).is_ok() || u64::try_from(integer).is_ok())
    {
        return Ok(Json::Integer(integer));
    }
    let float = text.parse::<f64>().unwrap_or(f64::INFINITY); // Rust's grammar includes JSON's
    if float.is_infinite() {
        return Ok(Json::Refused(format!("the number {} is beyond the range of f64", excerpt())));
    }
    // with `.0`, Rust prints all digits before the decimal point
    if is_integer && format!("{float:.0}") != text {
        return Ok(Json::Refused(format!(
            "the integer {} has more than 64 bits, and no f64 represents it exactly",
            excerpt()
        )));
    }
    Ok(Json::Float(float))
}

fn digits_and_rest(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn is_fraction_and_exponent(mut text: &str) -> bool {
    if let Some(fraction) = text.strip_prefix('.') {
        let (digits, rest) = digits_and_rest(fraction);
        if digits.is_empty() {
            return false;
        }
        text = rest;
    }
    let Some(exponent) = text.strip_prefix(['e', 'E']) else { return text.is_empty() };
    let (digits, rest) = digits_and_rest(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    !digits.is_empty() && rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;
    use std::io::BufReader;

    fn parsed(text: &str) -> Result<Json, String> {
        // the buffer has only a few bytes, so every token is split somewhere
        let mut parser = Parser::new(BufReader::with_capacity(3, text.as_bytes()));
        let value = parser.value().and_then(|value| {
            parser.skip_whitespace()?;
            if parser.peek()?.is_none() { Ok(value) } else { Err(ParseError::Syntax("more".to_owned())) }
        });
        match value {
            Ok(Json::Refused(what)) | Err(ParseError::Syntax(what) | ParseError::Value(what)) => Err(what),
            Ok(value) => Ok(value),
            Err(ParseError::Stream(error)) => Err(error.to_string()),
        }
    }

    #[test]
    fn numbers_are_equal_to_their_texts() {
        let cases = [
            ("0", Json::Integer(0)),
            ("-0", Json::Integer(0)),
            ("-9223372036854775808", Json::Integer(i64::MIN.into())),
            ("18446744073709551615", Json::Integer(u64::MAX.into())),
            ("18446744073709551616", Json::Float(2f64.powi(64))),
            ("-9223372036854775808.0", Json::Float(-(2f64.powi(63)))),
            ("1.0", Json::Float(1.0)),
            ("1e20", Json::Float(1e20)),
            ("100000000000000000000", Json::Float(1e20)),
            ("-1E-2", Json::Float(-0.01)),
            ("1e-400", Json::Float(0.0)),
            ("Infinity", Json::Float(f64::INFINITY)),
            ("-Infinity", Json::Float(f64::NEG_INFINITY)),
        ];
        for (text, value) in cases {
            assert_eq!(parsed(text), Ok(value), "{text}");
        }
        assert!(matches!(parsed("NaN"), Ok(Json::Float(value)) if value.is_nan()));
        let long = "1".repeat(400);
        for text in ["18446744073709551617", "-9223372036854775809", "1e400", "-1e400", &long] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains("no f64 represents it exactly") || error.contains("beyond the range"), "{error}");
            assert!(error.len() < 100, "{error}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "nan",
            "-NaN",
            "tru",
            "\"",
            "\"\\x\"",
            "\"a\nb\"",
            "{",
            "{\"a\"}",
            "{\"a\":1,}",
            "[1,]",
            "[1 2]",
            "{a:1}",
            "'a'",
            "\"\\u12g4\"",
            "\"\u{1}\"",
            "1 2",
        ] {
            assert!(parsed(text).is_err(), "{text}");
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
        }
        assert!(parsed(&"[".repeat(100_000)).unwrap_err().contains("more than 128"));
    }

    #[test]
    fn the_values_of_an_object_are_counted() {
        for (before, fits) in [(MAX_VALUES - 4, true), (MAX_VALUES - 3, false)] {
            let mut parser = Parser::new(&b"{\"a\": [0, {}]}"[..]);
            parser.value_count = before;
            let found = parser.value_at(0);
            assert_eq!(found.is_ok(), fits, "{found:?}");
            assert!(fits || matches!(found, Err(ParseError::Value(what)) if what.contains("values in one object")));
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_refused_and_what_follows_is_read() {
        for text in
            [r"\ud83d", r"\ud83d\u0041", r"\ud83dx", r"\ud83d\n", r#"\ud83d\""#, r"\ud83d\\", r"\ud83d\ud83d\ude00"]
        {
            let value = parsed(&format!(r#"["{text}", 1]"#)).unwrap();
            let [Json::Refused(reason), Json::Integer(1)] = value.as_array().unwrap() else {
                panic!("{text}: {value:?}")
            };
            assert!(reason.starts_with("\\ud83d is an unpaired surrogate"), "{reason}");
            let error = parsed(&format!(r#"{{"{text}": 1}}"#)).unwrap_err();
            assert!(error.starts_with("the name of a member: \\ud83d is an unpaired surrogate"), "{error}");
        }
        assert_eq!(parsed(r#""\ud83d\ude00\u00e9\/\t""#), Ok(Json::Text("😀é/\t".to_owned())));
    }

    #[test]
    fn of_equal_names_the_last_counts() {
        let value = parsed(r#"{"a": 1, "b": 2, "a": 3}"#).unwrap();
        let object = value.as_object().unwrap();
        assert_eq!(object.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(object.get("a"), Some(&Json::Integer(3)));
    }

    fn same(found: &Json, expected: &Value) -> bool {
        match (found, expected) {
            (Json::Null, Value::Null) => true,
            (Json::Bool(found), Value::Bool(expected)) => found == expected,
            (Json::Integer(found), Value::Number(expected)) => found.to_string() == expected.to_string(),
            (Json::Float(found), Value::Number(expected)) => Some(*found) == expected.as_f64(),
            (Json::Text(found), Value::String(expected)) => found == expected,
            (Json::Array(found), Value::Array(expected)) => {
                found.len() == expected.len()
                    && found.iter().zip(expected).all(|(found, expected)| same(found, expected))
            }
            (Json::Object(found), Value::Object(expected)) => {
                let pairs = found.iter().zip(expected);
                found.len() == expected.len() && pairs.into_iter().all(|(f, d)| f.0 == d.0 && same(f.1, d.1))
            }
            _ => false,
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn values_are_those_that_serde_json_reads(value in any_value(), is_pretty in any::<bool>()) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let expected: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(same(&parsed(&text).unwrap(), &expected), "{}", text);
        }
    }
}
