//! The JSON values of a manifest file, parsed as strictly as chapter 2 of `MANIFEST.md` requires.
//!
//! By default, `serde_json` accepts a map with a repeated key, numbers above 2^53, and `null` for
//! an optional member. Other JSON parsers may read other values from such a file, so [`unique`],
//! [`Number`] and [`present`] refuse it. Lists are written with one member per line, so people can
//! read them and `diff` can compare them.

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The maximum number (M-2.3). Every JSON parser reads integers up to this number exactly.
pub(crate) const MAX_NUMBER: u64 = (1 << 53) - 1;

/// The start of the message for a number that breaks M-2.3.
pub(super) const NOT_A_NUMBER: &str = "not a valid number";

/// An integer from 0 to [`MAX_NUMBER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(pub u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl Visitor<'_> for Numbers {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from 0 to {MAX_NUMBER}")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                if number <= MAX_NUMBER { Ok(Number(number)) } else { Err(refused(number)) }
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
                u64::try_from(number).map_err(|_| refused(number)).and_then(|number| self.visit_u64(number))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                Err(refused(number))
            }
        }
        deserializer.deserialize_u64(Numbers)
    }
}

fn refused<E: Error>(number: impl fmt::Display) -> E {
    E::custom(format!("{NOT_A_NUMBER}: found {number}, expected an integer from 0 to {MAX_NUMBER}"))
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// 16 bytes, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hex(pub [u8; 16]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Hex {
    /// Parses 32 digits. Returns `None` for anything else.
    pub(crate) fn parse(digits: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 16];
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return None;
        }
        for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(high)? << 4 | digit(low)?;
        }
        Some(Self(bytes))
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text.as_bytes()).ok_or_else(|| D::Error::custom(format!("{text:?} is not 32 hexadecimal digits")))
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Reads an object with any members. Fails if a name occurs twice.
pub(super) fn unique<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Members<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some((name, value)) = members.next_entry::<String, V>()? {
                if found.contains_key(&name) {
                    return Err(A::Error::custom(format!("duplicate member {name:?}")));
                }
                found.insert(name, value);
            }
            Ok(found)
        }
    }
    deserializer.deserialize_map(Members(PhantomData))
}

/// Reads an optional member, which must not be `null` if it is present.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Returns a value as one line of JSON.
pub(super) fn line(value: &impl Serialize) -> String {
    // this fails only for maps with keys that are not strings
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns a list as JSON, with one line for each member.
pub(super) fn lines<T: Serialize>(members: impl IntoIterator<Item = T>) -> String {
    let lines: Vec<String> = members.into_iter().map(|member| line(&member)).collect();
    if lines.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", lines.join(",\n")) }
}
