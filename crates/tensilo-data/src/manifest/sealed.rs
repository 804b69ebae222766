//! Sealed texts: JSON objects that end with their own digest (chapter 2 of `MANIFEST.md`).
//!
//! The digest covers all bytes before it, and is checked before anything is parsed. The format and
//! the required features are checked next, because a newer format may have changed any of the other
//! members. The digest detects damage; it is not a signature.

use super::json::{Hex, NOT_A_NUMBER};
use super::{RuleViolation, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

const MEMBER: &[u8] = b"\"digest\": \"";
const END: &[u8] = b"\"}\n";
/// The total length of [`MEMBER`], the digits and [`END`].
const SEAL_BYTES: usize = 46;

/// Returns the first 16 bytes of the SHA-256 digest.
pub(crate) fn digest(bytes: &[u8]) -> Hex {
    let mut first = Hex::default();
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    first.0.copy_from_slice(&whole[..16]); // in bounds, and of equal lengths
    first
}

/// Seals a text: a JSON object without its closing brace, with a comma after its last member.
pub(super) fn seal(text: String) -> (Vec<u8>, Hex) {
    let digest = digest(text.as_bytes());
    let mut bytes = text.into_bytes();
    bytes.extend(MEMBER);
    bytes.extend(digest.to_string().bytes());
    bytes.extend(END);
    (bytes, digest)
}

/// The members that are checked first, because a newer format or a feature may have changed the
/// meaning of the other members.
#[derive(Deserialize)]
struct Format {
    #[serde(default)]
    format: Option<serde_json::Value>,
    #[serde(default)]
    requires: Option<serde_json::Value>,
}

/// The features that this program supports (M-3.6). None are defined yet.
const FEATURES: [&str; 0] = [];

/// Checks the seal and format of a text, and parses it.
pub(super) fn open<T: DeserializeOwned>(bytes: &[u8], format: &str) -> Result<(T, Hex), RuleViolation> {
    let digest = check(bytes)?;
    let found: Format = serde_json::from_slice(bytes).map_err(|error| wrong(&error))?;
    ensure(found.format.as_ref().and_then(|found| found.as_str()) == Some(format), "M-3.1", || {
        let found = found.format.unwrap_or_default();
        format!("the format is {found}, but this program reads {format:?}; update the program")
    })?;
    let required = found.requires.as_ref().and_then(serde_json::Value::as_array).into_iter().flatten();
    let unknown = required.filter_map(serde_json::Value::as_str).find(|feature| !FEATURES.contains(feature));
    ensure(unknown.is_none(), "M-3.6", || {
        let feature = unknown.unwrap_or_default();
        format!("the file requires the feature {feature:?}, which this program does not support; update the program")
    })?;
    let value = serde_json::from_slice(bytes).map_err(|error| wrong(&error))?;
    Ok((value, digest))
}

/// Checks the seal, and returns the digest.
fn check(bytes: &[u8]) -> Result<Hex, RuleViolation> {
    let seal = bytes.len().checked_sub(SEAL_BYTES).and_then(|at| bytes.split_at_checked(at));
    let parts = seal.and_then(|(text, seal)| {
        let digits = seal.strip_prefix(MEMBER)?.strip_suffix(END)?;
        Some((text, Hex::parse(digits)?))
    });
    let (text, stated) = parts.ok_or_else(|| {
        RuleViolation::new("M-2.1", "the file does not end with a digest: it is truncated, or it is not a manifest")
    })?;
    let found = digest(text);
    ensure(found == stated, "M-2.1", || format!("the file is damaged: its digest is {found}, but it states {stated}"))?;
    Ok(stated)
}

fn wrong(error: &serde_json::Error) -> RuleViolation {
    let message = error.to_string();
    RuleViolation::new(if message.starts_with(NOT_A_NUMBER) { "M-2.3" } else { "M-2.2" }, message)
}
