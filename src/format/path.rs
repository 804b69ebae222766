//! Chapter 3.4: the paths of columns in structs and lists.

use crate::limits;

/// The metadata key of the path of a column.
pub(crate) const KEY: &str = "tensilo.path";

/// A name of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Component {
    pub name: String,
    /// The levels of lists after the name.
    pub lists: usize,
}

/// Returns the text of a name in a path.
#[cfg(feature = "import")]
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

/// Returns the paths of the structs around a column, outermost first.
#[cfg(feature = "import")]
pub(crate) fn around(path: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    let dots = path.bytes().enumerate().filter_map(move |(at, byte)| {
        let is_dot = byte == b'.' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_dot.then_some(at)
    });
    dots.take(limits::PATH_NAMES - 1).filter_map(|dot| path.get(..dot))
}

/// Returns the texts of the names of a path, each with its lists.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut is_escaped = false;
    path.split(move |c| {
        let is_dot = c == '.' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_dot
    })
}

/// Returns the names of a path; `None` if it is not well formed, or has too many.
pub(crate) fn parse(text: &str) -> Option<Vec<Component>> {
    let has_few = segments(text).nth(limits::PATH_NAMES).is_none();
    has_few.then(|| segments(text).map(component).collect())?
}

/// Returns the path of these names.
#[cfg(feature = "import")]
pub(crate) fn text(components: &[Component]) -> String {
    let segments =
        components.iter().map(|component| format!("{}{}", escaped(&component.name), "[]".repeat(component.lists)));
    segments.collect::<Vec<_>>().join(".")
}

/// Returns the name that a segment of a path has; `None` if it is not well formed.
pub(crate) fn component(segment: &str) -> Option<Component> {
    let mut component = Component::default();
    let mut rest = segment.chars().peekable();
    while let Some(c) = rest.next_if(|&c| c != '[') {
        component.name.push(if c == '\\' { rest.next().filter(|c| matches!(c, '\\' | '.' | '['))? } else { c });
    }
    while rest.next_if_eq(&'[').is_some() {
        rest.next_if_eq(&']')?;
        component.lists += 1;
    }
    rest.next().is_none().then_some(component)
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

    #[test]
    fn structs_around_a_column_are_the_starts_of_its_path() {
        let all = |path| around(path).collect::<Vec<_>>();
        assert_eq!(all(r"a\.b[].c\\.d"), [r"a\.b[]", r"a\.b[].c\\"]);
        assert_eq!(all("tags[]"), [""; 0]);
        let deep = ["a"; limits::PATH_NAMES + 1].join(".");
        assert_eq!((all(&deep).len(), parse(&deep)), (limits::PATH_NAMES - 1, None));
        assert!(parse(&["a"; limits::PATH_NAMES].join(".")).is_some());
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
