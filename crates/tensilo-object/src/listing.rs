//! The names below a prefix.

use crate::address::{Address, Scheme};
use crate::error::io_error;
use crate::request::answer_up_to;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore};
use std::io;
use url::Url;

/// The bytes of a page of links at most.
const MOST_PAGE_BYTES: u64 = 64 << 20;

/// Returns the names directly below a prefix.
pub(crate) async fn names(store: &dyn ObjectStore, prefix: &Address) -> io::Result<Vec<String>> {
    match prefix.scheme() {
        Scheme::Http => linked(store, prefix).await,
        _ => listed(store, prefix.key()).await,
    }
}

async fn listed(store: &dyn ObjectStore, prefix: &Path) -> io::Result<Vec<String>> {
    let found = store.list_with_delimiter(Some(prefix)).await.map_err(io_error)?;
    let keys = found.objects.into_iter().map(|meta| meta.location).chain(found.common_prefixes);
    Ok(keys.filter_map(|key| key.filename().map(str::to_owned)).collect())
}

/// Returns the names that the page of a folder has links to.
async fn linked(store: &dyn ObjectStore, folder: &Address) -> io::Result<Vec<String>> {
    let answer = answer_up_to(store, folder.key(), GetOptions::default(), MOST_PAGE_BYTES).await;
    let (_, _, page) = match answer {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        answer => answer?,
    };
    let page = String::from_utf8_lossy(&page);
    let base = Url::parse(&format!("{folder}/")).map_err(io::Error::other)?;
    let mut names: Vec<String> = links(&page).filter_map(|link| name_below(&base, link)).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
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
