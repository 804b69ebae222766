//! The library's advice, as flags of the command line.

use crate::terminal;
use tensilo::error::Advice;
use tensilo::import::FoundShape;
use tensilo::{ColumnSchema, DType, Error, Extent, LogicalType, Schema};

/// Returns the text of an error, with flags instead of the library's options.
pub(crate) fn text(error: &Error) -> String {
    let advice: Vec<String> =
        error.advice().iter().map(|advice| format!("{} ({})", advice.action(), flag(advice, error.column()))).collect();
    let separator = if advice.is_empty() { "" } else { "; " };
    format!("{}{separator}{}", error.plain(), advice.join(", or "))
}

fn flag(advice: &Advice, column: Option<&str>) -> String {
    let name = column.unwrap_or("NAME");
    match advice {
        Advice::SkipColumns => format!("--skip {}", word(name)),
        Advice::RenameColumns => format!("--rename {}", word(&format!("{name}=NEW"))),
        Advice::SkipOthers => "--skip-others".to_owned(),
        Advice::ReplaceNulls => "--null-elements nan|zero".to_owned(),
        Advice::ReplaceNullsWithZero => "--null-elements zero".to_owned(),
        Advice::DeclareShape(extents) => shape_flag(name, extents),
        Advice::ConvertAgain(extents) => format!("convert {}", shape_flag(name, extents)),
        Advice::Cast(dtype) => format!("convert {}", cast_flag(name, *dtype)),
        Advice::StoredTypes => "--stored-types".to_owned(),
        Advice::DistrustStatistics => "--distrust-statistics".to_owned(),
        Advice::DiscardTail => "--discard-tail".to_owned(),
        other => other.to_string(), // advice newer than this program
    }
}

/// Returns `--shape NAME=*,80`.
fn shape_flag(name: &str, extents: &[Option<u32>]) -> String {
    let extents: Vec<String> =
        extents.iter().map(|extent| extent.map_or("*".to_owned(), |extent| extent.to_string())).collect();
    format!("--shape {}", word(&format!("{name}={}", extents.join(","))))
}

/// Returns `--cast NAME=f64`.
fn cast_flag(name: &str, dtype: DType) -> String {
    format!("--cast {}", word(&format!("{name}={dtype}")))
}

/// Returns a text as one word of a shell. Characters that a terminal does not show are written as
/// escapes, which bash, zsh and ksh know.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:@%+,=".contains(c);
    let is_hidden = |c: char| !matches!(c, '\'' | '"' | '\\') && c.escape_debug().len() > 1;
    if text.chars().all(is_plain) && !text.is_empty() {
        return text.to_owned();
    }
    if !text.chars().any(is_hidden) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let escaped = text.chars().map(|c| match c {
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        '\'' | '\\' => format!(r"\{c}"),
        c if is_hidden(c) => format!(r"\U{:08x}", u32::from(c)),
        c => c.to_string(),
    });
    format!("$'{}'", escaped.collect::<String>())
}

/// Describes what is surprising in the columns that a conversion has written.
pub(crate) fn notes(schema: &Schema) -> impl Iterator<Item = String> {
    schema.columns.iter().flat_map(|column| odd_samples(column).into_iter().chain(no_values(column)))
}

/// Prints a note about each column whose elements are not its values.
pub(crate) fn note_values(schema: &Schema) {
    schema.columns.iter().filter_map(no_values).for_each(|note| terminal::note(&note));
}

/// Describes elements that are not the values of a column, such as scaled integers; `None` if they
/// are.
fn no_values(column: &ColumnSchema) -> Option<String> {
    LogicalType::check_values(column)
        .err()
        .map(|error| format!("{}; loaders and array files refuse this column", text(&error)))
}

/// Describes the samples whose shape differs from that of all others; `None` if no sample does.
fn odd_samples(column: &ColumnSchema) -> Option<String> {
    let found = FoundShape::of(column)?;
    if found.odd_count == 0 {
        return None;
    }
    let extent = |extent: &Extent| match extent {
        Extent::Fixed(extent) => Some(*extent),
        Extent::Varying => None,
    };
    let extents: Vec<Option<u32>> = found.shape.extents().iter().map(extent).collect();
    let odd: Vec<String> = found.odd.iter().map(|odd| format!("sample {} has {}", odd.sample, odd.shape)).collect();
    // exact: usize has at most 64 bits
    let more = if found.odd_count > odd.len() as u64 { ", ..." } else { "" };
    let (flag, refused) = (shape_flag(&column.name, &extents), if odd.len() == 1 { "it" } else { "them" });
    Some(format!(
        "column {:?}: {} of {} samples have the shape {}, {}{more}; {flag} refuses {refused}",
        column.name,
        found.agreeing_count(),
        found.sample_count,
        found.shape,
        odd.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_can_be_copied_into_a_shell() {
        assert_eq!(flag(&Advice::SkipColumns, Some("a.b")), "--skip a.b");
        assert_eq!(flag(&Advice::SkipColumns, Some("a b")), "--skip 'a b'");
        assert_eq!(flag(&Advice::SkipColumns, None), "--skip NAME");
        assert_eq!(flag(&Advice::DeclareShape(vec![None, Some(80)]), Some("x")), "--shape 'x=*,80'");
        assert_eq!(flag(&Advice::ConvertAgain(vec![Some(3)]), Some("x")), "convert --shape x=3");
        assert_eq!(flag(&Advice::Cast(DType::F64), Some("a b")), "convert --cast 'a b=f64'");
        for (name, due) in [
            ("a=b", "--rename a=b=NEW"),
            ("it's", r"--rename 'it'\''s=NEW'"),
            (r"a\b", r"--rename 'a\b=NEW'"),
            ("a\tb'c\\d\u{1}", r"--rename $'a\tb\'c\\d\U00000001=NEW'"),
            ("$x", "--rename '$x=NEW'"),
            ("é", "--rename é=NEW"),
            ("\u{202e}", r"--rename $'\U0000202e=NEW'"),
        ] {
            assert_eq!(flag(&Advice::RenameColumns, Some(name)), due);
        }
        assert_eq!(word(""), "''");
    }
}
