//! The names below a prefix.

use crate::address::{Address, Scheme};
use crate::error::io_error;
use crate::options::ObjectOptions;
use object_store::ObjectStore;
use object_store::path::Path;
use reqwest::{Client, StatusCode};
use std::io;
use std::time::Duration;
use tokio::time::sleep;
use url::Url;

/// The bytes of a page of links at most.
const MOST_PAGE_BYTES: usize = 64 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// Returns the names directly below a prefix.
pub(crate) async fn names(
    store: &dyn ObjectStore,
    prefix: &Address,
    options: &ObjectOptions,
) -> io::Result<Vec<String>> {
    match prefix.scheme() {
        Scheme::Http => linked(prefix, options).await,
        _ => listed(store, prefix.key()).await,
    }
}

async fn listed(store: &dyn ObjectStore, prefix: &Path) -> io::Result<Vec<String>> {
    let found = store.list_with_delimiter(Some(prefix)).await.map_err(io_error)?;
    let keys = found.objects.into_iter().map(|meta| meta.location).chain(found.common_prefixes);
    Ok(keys.filter_map(|key| key.filename().map(str::to_owned)).collect())
}

/// Returns the names that the page of a folder has links to. A folder that does not exist has none.
async fn linked(folder: &Address, options: &ObjectOptions) -> io::Result<Vec<String>> {
    let base = Url::parse(&format!("{folder}/")).map_err(io::Error::other)?;
    let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(options.stall_timeout).build();
    let client = client.map_err(io::Error::other)?;
    let mut delay = Duration::from_millis(100);
    let mut retries = 0;
    let page = loop {
        match page(&client, &base).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted && retries < options.retries => {
                retries += 1;
                sleep(delay).await;
                delay = (delay * 2).min(LONGEST_DELAY);
            }
            page => break page?,
        }
    };
    let page = String::from_utf8_lossy(&page);
    let mut names: Vec<String> = links(&page).filter_map(|link| name_below(&base, link)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Reads a page. Fails with [`io::ErrorKind::ConnectionAborted`] if that may pass.
///
/// The client of `object_store` refuses pages that say no length, as those of folders do.
async fn page(client: &Client, url: &Url) -> io::Result<Vec<u8>> {
    let may_pass = |error: reqwest::Error| io::Error::new(io::ErrorKind::ConnectionAborted, error);
    let mut answer = client.get(url.clone()).send().await.map_err(may_pass)?;
    let status = answer.status();
    let kind = match status {
        status if status.is_success() => None,
        StatusCode::NOT_FOUND => Some(io::ErrorKind::NotFound),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(io::ErrorKind::PermissionDenied),
        status if status.is_server_error() => Some(io::ErrorKind::ConnectionAborted),
        _ => Some(io::ErrorKind::Other),
    };
    if let Some(kind) = kind {
        return Err(io::Error::new(kind, format!("the host has no page for this folder: {status}")));
    }
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(may_pass)? {
        if bytes.len().saturating_add(part.len()) > MOST_PAGE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the page of the folder is too long"));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Returns the targets of the links of a page: the values of `href`.
fn links(page: &str) -> impl Iterator<Item = &str> {
    page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest.get(1..)?.split_once(quote).map(|(link, _)| link)
    })
}

/// Returns the name that a link has directly below a folder.
fn name_below(folder: &Url, link: &str) -> Option<String> {
    let target = folder.join(link).ok()?;
    if target.origin() != folder.origin() {
        return None;
    }
    let name = target.path().strip_prefix(folder.path())?;
    let name = name.strip_suffix('/').unwrap_or(name);
    (!name.is_empty() && !name.contains('/')).then(|| Path::from_url_path(name).ok()).flatten().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_of_a_page_are_names() {
        let page = r#"<html><a href="../">Up</a><a href="0000000001.json">1</a> <a href='a%20b/'>b</a>
            <a href="?C=N;O=D">Name</a><a href="/train/x.tsl">x</a><a href="/other/y.tsl">y</a>
            <a href="https://elsewhere.org/train/z.tsl">z</a><a href="deep/er.tsl">e</a>"#;
        let folder = Url::parse("http://host/train/").unwrap();
        let names: Vec<_> = links(page).filter_map(|link| name_below(&folder, link)).collect();
        assert_eq!(names, ["0000000001.json", "a b", "x.tsl"]);
    }
}
