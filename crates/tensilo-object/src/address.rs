//! Addresses of objects: scheme, bucket or host, and key.
//!
//! An address is checked when it is parsed, so every [`Address`] can be used in a request. This
//! matters because the client library panics on some bucket names, and its paths cannot have empty
//! components. Wherever a path is expected, an address can be passed instead: no file path begins
//! with one of the schemes, so the two cannot be confused.

use crate::error::{ObjectError, Result};
use object_store::path::Path;
use std::fmt;
use std::path::Path as FilePath;
use url::Url;

/// The address of an object or of a dataset's prefix: `s3://bucket/key`, `gs://`, `az://`,
/// `https://host/path` and others.
///
/// The key of an object in a bucket is written without escapes. The path of an `http` or `https`
/// URL uses percent-encoding, as usual.
///
/// ```
/// use tensilo_object::Address;
///
/// let train = Address::parse("s3://bucket/train/")?;
/// assert_eq!(train.join("manifest")?.to_string(), "s3://bucket/train/manifest");
/// assert!(Address::is_url("https://example.org/x.tsl") && !Address::is_url("train/x.tsl"));
/// # Ok::<(), tensilo_object::ObjectError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    scheme: Scheme,
    /// The scheme as the caller wrote it, and the bucket or host: `s3://bucket`.
    root: String,
    key: Path,
}

/// Why a key cannot be read, and what to do.
pub const UNREADABLE_KEY: &str = "a key with an empty component, a \".\" or \"..\" component, or a control \
                                     character cannot be read; copy the object to another key";

/// The kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    S3,
    Google,
    Azure,
    Http,
}

/// The schemes of URLs, with the spellings that other tools use.
const SCHEMES: [(&str, Scheme); 10] = [
    ("s3", Scheme::S3),
    ("s3a", Scheme::S3),
    ("gs", Scheme::Google),
    ("gcs", Scheme::Google),
    ("az", Scheme::Azure),
    ("azure", Scheme::Azure),
    ("abfs", Scheme::Azure),
    ("abfss", Scheme::Azure),
    ("http", Scheme::Http),
    ("https", Scheme::Http),
];

impl Address {
    /// Returns whether a text is an address and not the path of a file, that is, whether it begins
    /// with a known scheme.
    pub fn is_url(text: &str) -> bool {
        scheme_of(text).is_some()
    }

    /// Parses an address. Fails if the scheme is unknown, the bucket or host is missing, or the key
    /// is not a valid path. No component of a key may be empty, `.` or `..`.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = |message: String| ObjectError::BadAddress { address: text.to_owned(), message };
        let (scheme, rest) = scheme_of(text).ok_or_else(|| {
            let known = SCHEMES.map(|(name, _)| format!("{name}://")).join(", ");
            refused(format!("not an object address: expected a URL that starts with one of {known}"))
        })?;
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(refused("the address has no bucket or host".to_owned()));
        }
        if scheme == Scheme::Http && key.contains(['?', '#']) {
            let message =
                "the address has a query or a fragment, which is not supported; remove it, or download the file";
            return Err(refused(message.to_owned()));
        }
        // the client panics on a bucket name that cannot be in a URL; it encodes host names itself
        let odd = host.chars().find(|c| !c.is_ascii_alphanumeric() && !"-._~@:".contains(*c));
        if let Some(c) = odd.filter(|_| scheme != Scheme::Http) {
            return Err(refused(format!("the bucket name contains the character {c:?}, which is not allowed")));
        }
        let parsed = match scheme {
            Scheme::Http => Path::from_url_path(key),
            _ => Path::parse(key),
        };
        let key = parsed.map_err(|error| refused(format!("{error}; {UNREADABLE_KEY}")))?;
        let root = text.get(..text.len() - rest.len() + host.len()).unwrap_or(text); // a character boundary
        Ok(Self { scheme, root: root.to_owned(), key })
    }

    /// Returns whether a path is an address and not the path of a file.
    pub fn is_url_path(path: &FilePath) -> bool {
        path.to_str().is_some_and(Self::is_url)
    }

    /// Parses a path that is an address, like [`Address::parse`].
    pub fn from_path(path: &FilePath) -> Result<Self> {
        Self::parse(&path.to_string_lossy())
    }

    /// Returns whether a path is an address that can name a dataset: any address except the address
    /// of a `*.tsl` file.
    pub fn is_dataset_prefix(path: &FilePath) -> bool {
        Self::is_url_path(path) && path.extension().is_none_or(|extension| extension != "tsl")
    }

    /// Returns the address of an object below this prefix. `path` is part of a key: its components
    /// are separated by `/` and have no escapes. Fails if a component is `.`, `..` or empty.
    pub fn join(&self, path: &str) -> Result<Self> {
        let key = match (self.key.as_ref(), path) {
            (key, "") => key.to_owned(),
            ("", path) => path.to_owned(),
            (key, path) => format!("{key}/{path}"),
        };
        let refused = |message| ObjectError::BadAddress { address: format!("{self}/{path}"), message };
        let key = Path::parse(key).map_err(|error| refused(error.to_string()))?;
        Ok(Self { key, ..self.clone() })
    }

    /// Returns the last component of the key; `None` if the key is empty.
    pub fn name(&self) -> Option<&str> {
        self.key.filename()
    }

    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the bucket or host, with the scheme as the caller wrote it.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    pub(crate) fn key(&self) -> &Path {
        &self.key
    }

    /// Returns the address of another object of the same store.
    pub(crate) fn with_key(&self, key: Path) -> Self {
        Self { key, ..self.clone() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, root, key } = self;
        match (scheme, Url::parse(root)) {
            _ if key.is_root() => f.write_str(root),
            (Scheme::Http, Ok(mut url)) => {
                // fails only for a URL that cannot have a path, and `http` URLs can have one
                if let Ok(mut path) = url.path_segments_mut() {
                    path.extend(key.as_ref().split('/'));
                }
                write!(f, "{url}")
            }
            _ => write!(f, "{root}/{key}"),
        }
    }
}

/// Returns the scheme of an address, and the text after its `://`.
fn scheme_of(text: &str) -> Option<(Scheme, &str)> {
    let (name, rest) = text.split_once("://")?;
    let (_, scheme) = SCHEMES.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    Some((scheme, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_printed() {
        for (text, expected) in [
            ("s3://bucket/a/b.tsl", "s3://bucket/a/b.tsl"),
            ("s3://bucket", "s3://bucket"),
            ("gs://bucket/a b/%20/", "gs://bucket/a b/%20"),
            ("abfss://container@account.dfs.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/x"),
            ("HTTPS://host:8080/a%20b/%25", "https://host:8080/a%20b/%25"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for (text, finding) in [
            ("train/x.tsl", "not an object address"),
            ("ftp://host/x", "not an object address"),
            ("s3:///x", "no bucket"),
            ("s3://my bucket/x", "the character ' '"),
            ("s3://bucket/a//b", "empty"),
            ("s3://bucket/a/../b", ".."),
            ("https://host/x.tsl?token=1", "query"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(finding) && error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn joined_paths_stay_below_the_prefix() {
        let train = Address::parse("s3://bucket/train").unwrap();
        let joined = |path| train.join(path).unwrap().to_string();
        assert_eq!(joined("data/0000000001/000000.tsl"), "s3://bucket/train/data/0000000001/000000.tsl");
        assert_eq!(joined("100%/#1"), "s3://bucket/train/100%/#1");
        assert_eq!(joined(""), "s3://bucket/train");
        assert!(train.join("../x").is_err() && train.join("a//b").is_err());
        assert_eq!(train.name(), Some("train"));
    }
}
