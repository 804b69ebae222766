//! Chapter 3.4: the paths of columns in structs and lists.

#[cfg(feature = "arrow")]
use super::schema::Metadata;

/// The metadata key of the path of a column.
pub(crate) const KEY: &str = "tensilo.path";

/// A name of a path.
#[cfg(feature = "arrow")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    pub name: String,
    /// The levels of lists after the name.
    pub lists: usize,
}

/// Returns the text of a name in a path.
#[cfg(feature = "arrow")]
pub(crate) fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '\\' | '.' | '[') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the path that metadata have; `None` if there is none, or none that is well formed.
#[cfg(feature = "arrow")]
pub(crate) fn of(metadata: &Metadata) -> Option<Vec<Component>> {
    parse(metadata.get(KEY)?)
}

#[cfg(feature = "arrow")]
fn parse(text: &str) -> Option<Vec<Component>> {
    let mut components = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        let mut component = Component { name: String::new(), lists: 0 };
        while let Some(c) = rest.next_if(|&c| c != '.' && c != '[') {
            component.name.push(if c == '\\' { rest.next().filter(|c| matches!(c, '\\' | '.' | '['))? } else { c });
        }
        while rest.next_if_eq(&'[').is_some() {
            rest.next_if_eq(&']')?;
            component.lists += 1;
        }
        components.push(component);
        match rest.next() {
            None => return Some(components),
            Some('.') => {}
            Some(_) => return None,
        }
    }
}

#[cfg(all(test, feature = "arrow"))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_parsed_as_the_specification_says() {
        let path = |text: &str| parse(text).map(|all| all.into_iter().map(|c| (c.name, c.lists)).collect::<Vec<_>>());
        let named =
            |all: &[(&str, usize)]| Some(all.iter().map(|(name, lists)| ((*name).to_owned(), *lists)).collect());
        assert_eq!(path("messages[].role"), named(&[("messages", 1), ("role", 0)]));
        assert_eq!(path(r"a\.b[][].\[c"), named(&[("a.b", 2), ("[c", 0)]));
        assert_eq!(path("tags[]"), named(&[("tags", 1)]));
        for wrong in ["a[", "a[b]", "a[]b", r"a\", r"a\b"] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn escaped_names_are_parsed_again(names in prop::collection::vec(r"[a\\.\[\]]{0,5}", 1..4)) {
            let text: Vec<String> = names.iter().map(|name| escaped(name)).collect();
            let parsed = parse(&text.join(".")).map(|all| all.into_iter().map(|c| c.name).collect::<Vec<_>>());
            prop_assert_eq!(parsed, Some(names));
        }
    }
}
