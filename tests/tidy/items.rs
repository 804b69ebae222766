//! The items that a file declares at module level.

use super::source::Source;

/// An item that a file declares, outside functions and `impl` blocks.
#[derive(Debug, PartialEq)]
pub struct Item {
    /// Such as `struct` or `fn`.
    pub kind: &'static str,
    pub name: String,
    /// The modules of the file that contain it, outermost first.
    pub inline: Vec<String>,
    pub offset: usize,
    /// Whether it is `pub`, not `pub(crate)` and the like.
    pub is_public: bool,
}

const KINDS: [&str; 10] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod", "macro_rules!"];

/// Returns the items of a file in their order. `mod name;` is one of them.
pub fn items(source: &Source) -> Vec<Item> {
    let code = source.code.as_str();
    let (mut items, mut inline) = (Vec::new(), Vec::new());
    // for each open brace, whether it is that of a module
    let mut braces = Vec::new();
    let mut start = 0; // of the present item
    for (at, byte) in code.bytes().enumerate() {
        let at_module_level = braces.iter().all(|is_module| *is_module);
        match byte {
            b'{' => {
                let item = at_module_level.then(|| item(code, start, at, &inline)).flatten();
                let is_module = item.as_ref().is_some_and(|item| item.kind == "mod");
                if let (Some(item), true) = (&item, is_module) {
                    inline.push(item.name.clone());
                }
                items.extend(item);
                braces.push(is_module);
                start = at + 1;
            }
            b'}' => {
                if braces.pop() == Some(true) {
                    inline.pop();
                }
                start = at + 1;
            }
            b';' if at_module_level => {
                items.extend(item(code, start, at, &inline));
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

/// Parses the head of an item, from the end of the one before to its brace or semicolon.
fn item(code: &str, start: usize, end: usize, inline: &[String]) -> Option<Item> {
    let offset = start + end_of_attributes(&code[start..end]);
    let declaration = code[offset..end].trim_start();
    let offset = end - declaration.len();
    let is_public = declaration.starts_with("pub ");
    let mut words = declaration.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || ["unsafe", "async", "extern", "auto", "crate)", "super)"].contains(word)
    });
    let mut first = words.next()?;
    if first == "const" && declaration.contains("fn ") && !declaration.contains('=') {
        first = words.find(|word| *word == "fn")?;
    }
    let kind = KINDS.into_iter().find(|kind| *kind == first)?;
    let name = words.next()?;
    let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(Item { kind, name, inline: inline.to_vec(), offset, is_public })
}

/// Returns the length of the attributes that precede an item.
fn end_of_attributes(declaration: &str) -> usize {
    let mut end = 0;
    loop {
        let rest = declaration[end..].trim_start();
        if !rest.starts_with("#[") && !rest.starts_with("#![") {
            return end;
        }
        let begin = declaration.len() - rest.len();
        let mut depth = 0;
        let close = rest.bytes().position(|byte| {
            depth += i32::from(byte == b'[') - i32::from(byte == b']');
            byte == b']' && depth == 0
        });
        end = close.map_or(declaration.len(), |close| begin + close + 1);
    }
}

#[test]
fn items_are_those_of_the_modules() {
    let text = "#![allow(x)] use a::b; #[cfg(feature = \"x\")]\npub mod tiers; pub(crate) struct A<T>(u8);
        impl A { pub const fn of() { struct Local; } } mod inner { pub enum B { C } } const fn d() {} type E = u8;";
    let items = items(&Source::new("x.rs", text.to_owned()));
    let found: Vec<(&str, &str, bool)> =
        items.iter().map(|item| (item.kind, item.name.as_str(), item.is_public)).collect();
    let expected = [
        ("mod", "tiers", true),
        ("struct", "A", false),
        ("mod", "inner", false),
        ("enum", "B", true),
        ("fn", "d", false),
        ("type", "E", false),
    ];
    assert_eq!(found, expected);
    assert_eq!(items[3].inline, ["inner"]);
}
