//! Keys that a store can contain but its client cannot name.
//!
//! A key can be any text, even `raw//a` or a text with a tab. The paths of `object_store` are
//! stricter: if a listing contains a key that is not a valid path, the client fails and returns no
//! keys. A single such key below a prefix would thus hide all other keys. So the response to each
//! listing is filtered here before the client parses it. Entries with such keys are removed and
//! recorded. Some tools create empty objects named `folder/` to represent folders. The entries of
//! these objects are also removed, because `object_store` would report them as objects named
//! `folder`.

use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::path::Path;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task_local;

/// The keys that no request can name, as found by the last listing of each prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnreadableKeys(Arc<Mutex<BTreeSet<String>>>);

task_local! {
    /// The unreadable keys that the listing of the current task has found so far.
    static SEEN: RefCell<Vec<String>>;
}

impl UnreadableKeys {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // no code panics while it holds the lock
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a listing of a prefix. If it succeeds, the keys that it found replace all recorded keys
    /// below the prefix, because objects may have been added or removed.
    pub(crate) async fn run_listing<T>(
        &self,
        prefix: &Path,
        listing: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let listing = async {
            let listed = listing.await?;
            Ok::<_, io::Error>((listed, SEEN.with(RefCell::take)))
        };
        let (listed, seen) = SEEN.scope(RefCell::default(), listing).await?;
        let prefix = with_slash(prefix);
        let mut known = self.lock();
        known.retain(|key| !key.starts_with(&prefix));
        known.extend(seen);
        Ok(listed)
    }

    /// Returns the recorded keys below a prefix, in order and without the prefix.
    pub(crate) fn below(&self, prefix: &Path) -> Vec<String> {
        let prefix = with_slash(prefix);
        self.lock().iter().filter_map(|key| key.strip_prefix(&prefix)).map(str::to_owned).collect()
    }

    /// Fails if there are recorded keys below a prefix.
    pub(crate) fn refuse(&self, prefix: &Path) -> io::Result<()> {
        match self.below(prefix).first() {
            Some(key) => {
                let key = with_slash(prefix) + key;
                let message =
                    format!("the key {key:?} cannot be read; remove or rename the object with the store's own tools");
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
            None => Ok(()),
        }
    }
}

fn with_slash(prefix: &Path) -> String {
    if prefix.is_root() { String::new() } else { format!("{prefix}/") }
}

/// The default connector of `object_store`, with a filter for listings.
#[derive(Debug)]
pub(super) struct ListFilter;

impl HttpConnector for ListFilter {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(Filter(client)))
    }
}

#[derive(Debug)]
struct Filter(HttpClient);

impl HttpService for Filter {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            // the listing parameters of S3 and Google, and of Azure
            let mut query = request.uri().query().unwrap_or_default().split('&');
            let is_list = query.any(|part| matches!(part, "list-type=2" | "comp=list"));
            let response = self.0.execute(request).await?;
            if !is_list || !response.status().is_success() {
                return Ok(response);
            }
            let (parts, body) = response.into_parts();
            let body = body.bytes().await?;
            let body = match str::from_utf8(&body) {
                Ok(text) => {
                    let (list, keys) = filtered(text);
                    // every listing runs in `run_listing`, which sets `SEEN`
                    let _ = SEEN.try_with(|seen| seen.borrow_mut().extend(keys));
                    list.into()
                }
                Err(_) => body.into(), // the client reports the error
            };
            Ok(HttpResponse::from_parts(parts, body))
        })
    }
}

/// The elements of a listing that have a key or a prefix, and the child elements that contain it.
const ENTRIES: [(&str, &str); 4] =
    [("Contents", "Key"), ("CommonPrefixes", "Prefix"), ("Blob", "Name"), ("BlobPrefix", "Name")];

/// Returns a listing without the entries whose keys cannot be read, and these keys.
///
/// Cost: linear in the length of the listing, whatever a server sends.
fn filtered(list: &str) -> (String, Vec<String>) {
    let mut out = String::with_capacity(list.len());
    let mut keys = Vec::new();
    let mut rest = list;
    // names of elements whose end tag does not occur in `rest`; it is not searched for again
    let mut unclosed: Vec<&str> = Vec::new();
    while let Some((before, from)) = rest.find('<').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let name = from.strip_prefix('<').and_then(|from| from.split(['<', '>', ' ', '/']).next()).unwrap_or_default();
        let entry = ENTRIES.iter().find(|(entry, _)| *entry == name && !unclosed.contains(entry));
        let Some((entry, child)) = entry else {
            let (first, after) = from.split_at_checked(1).unwrap_or((from, ""));
            out.push_str(first);
            rest = after;
            continue;
        };
        let end = format!("</{entry}>");
        let length = from.find(&end).map(|at| at.saturating_add(end.len()));
        let Some((element, after)) = length.and_then(|length| from.split_at_checked(length)) else {
            unclosed.push(entry);
            continue;
        };
        // the client handles an entry without a key
        let key = text_of(element, child);
        match key.as_deref().map_or(Kind::Readable, |key| Kind::of(key, element)) {
            Kind::Readable => out.push_str(element),
            Kind::Folder => {}
            Kind::Unreadable => keys.extend(key),
        }
        rest = after;
    }
    out.push_str(rest);
    (out, keys)
}

enum Kind {
    Readable,
    /// An empty object that stands for a folder.
    Folder,
    Unreadable,
}

impl Kind {
    fn of(key: &str, element: &str) -> Self {
        let is_object = element.starts_with("<Contents") || element.starts_with("<Blob>");
        let size = text_of(element, "Size").or_else(|| text_of(element, "Content-Length"));
        if is_object && key.ends_with('/') {
            return if size.as_deref() == Some("0") { Self::Folder } else { Self::Unreadable };
        }
        let key = key.strip_suffix('/').unwrap_or(key);
        match Path::parse(key) {
            Ok(path) if path.as_ref() == key => Self::Readable,
            _ => Self::Unreadable,
        }
    }
}

/// Returns the text of the first child element with this name.
fn text_of(element: &str, name: &str) -> Option<String> {
    let (_, from) = element.split_once(&format!("<{name}")).filter(|(_, from)| from.starts_with(['>', ' ']))?;
    let (attributes, from) = from.split_once('>')?;
    let (text, _) = from.split_once(&format!("</{name}>"))?;
    let text = unescaped(text)?;
    // Azure escapes names that XML cannot represent
    let is_encoded = attributes.contains("Encoded=\"true\"");
    Some(if is_encoded { percent_decoded(&text)? } else { text })
}

/// Returns an XML text with its references resolved.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('&');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (reference, rest) = part.split_once(';')?;
        out.push(match reference {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = reference.strip_prefix('#')?;
                let number = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16),
                    None => number.parse(),
                };
                char::from_u32(number.ok()?)?
            }
        });
        out.push_str(rest);
    }
    Some(out)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut out = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2)?;
        out.push(u8::from_str_radix(hex, 16).ok()?);
        out.extend(rest.as_bytes());
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &str, expected: &str, expected_keys: &[&str]) {
        let (found, mut keys) = filtered(list);
        assert_eq!(found, expected);
        keys.sort();
        assert_eq!(keys, expected_keys);
    }

    #[test]
    fn entries_without_a_readable_key_are_taken_out() {
        let object = |key: &str, size: u32| format!("<Contents><Key>{key}</Key><Size>{size}</Size></Contents>");
        let list =
            |entries: &[String]| format!("<?xml ?><R xmlns=\"x\"><Prefix>raw//</Prefix>{}</R>", entries.concat());
        let good = [object("raw/a b.parquet", 7), object("raw/&lt;&#9731;", 7)];
        let odd = [
            object("raw//b", 7),
            object("raw/./c", 7),
            object("raw/../d", 7),
            object("raw/e&#9;f", 7),
            object("raw/g\th", 7),
            object("/i", 7),
            object("raw/j/", 7),
            object("raw/folder/", 0),
            "<CommonPrefixes><Prefix>raw//</Prefix></CommonPrefixes>".to_owned(),
        ];
        let prefix = "<CommonPrefixes><Prefix>raw/k/</Prefix></CommonPrefixes>".to_owned();
        let all = [&good[..1], &odd[..4], &good[1..], &odd[4..], std::slice::from_ref(&prefix)].concat();
        let keys = ["/i", "raw/../d", "raw/./c", "raw//", "raw//b", "raw/e\tf", "raw/g\th", "raw/j/"];
        check(&list(&all), &list(&[&good[..], &[prefix]].concat()), &keys);
    }

    #[test]
    fn lists_of_azure_are_filtered() {
        let blob =
            |name: &str| format!("<Blob>{name}<Properties><Content-Length>0</Content-Length></Properties></Blob>");
        let good = blob("<Name>raw/a</Name>");
        let odd = [blob("<Name>raw//b</Name>"), blob("<Name Encoded=\"true\">raw/c%09%25</Name>")].concat();
        let list =
            |entries: &str| format!("<E><Blobs>{entries}<BlobPrefix><Name>raw/d/</Name></BlobPrefix></Blobs></E>");
        check(&list(&format!("{odd}{good}")), &list(&good), &["raw//b", "raw/c\t%"]);
    }

    #[test]
    fn what_is_no_list_stays() {
        for text in [
            "",
            "<",
            "<Contents>",
            "<Contents><Key>a</Key>",
            "<Contents></Contents>",
            "a<b>&c;",
            "<Blob><Name>&x;</Name></Blob>",
        ] {
            check(text, text, &[]);
        }
    }

    /// These inputs would take minutes if all remaining text were searched again for each `<`.
    #[test]
    fn a_body_that_is_no_list_takes_no_longer() {
        for part in ["<", "<a", "<Contents>", "<Blob><Name>", "<Contents><Contents>/Contents>", "</Contents>", "&"] {
            let text = part.repeat((1 << 19) / part.len());
            check(&text, &text, &[]);
        }
        let text = "<Contents>".repeat(50_000) + "</Contents>";
        check(&text, &text, &[]);
    }
}
