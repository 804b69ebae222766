//! The rules of the specification: each has a vector that breaks it and code that names it.

use super::assert_none;
use super::source::{core, root};
use std::collections::BTreeSet;
use std::fs;
use tensilo_testing::vector_files;

/// Returns the `R-x.y` in a text.
fn rules(text: &str) -> BTreeSet<String> {
    let rule = |at: usize| {
        let rest = &text[at + 2..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = rest[..end].trim_end_matches('.');
        let (chapter, rule) = number.split_once('.')?;
        (!chapter.is_empty() && !rule.is_empty()).then(|| format!("R-{number}"))
    };
    words_starting(text, "R-").filter_map(rule).collect()
}

fn words_starting<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(start).map(|(at, _)| at).filter(|&at| !text[..at].ends_with(|c: char| c.is_alphanumeric()))
}

/// The documents of the specification. Each rule is defined in one of them.
const DOCUMENTS: [&str; 4] = ["SPEC.md", "TIERS.md", "BINS.md", "EXAMPLES.md"];

/// Returns the text of a document of the specification.
fn document(name: &str) -> String {
    fs::read_to_string(root().join("format-spec").join(name)).expect("the specification")
}

/// Returns the rules that the specification defines: those in bold, `**R-x.y**`.
fn defined_rules() -> BTreeSet<String> {
    let text = DOCUMENTS.map(document).join("\n");
    let definitions = text.split("**R-").skip(1).filter_map(|rest| Some(format!("R-{}", rest.split_once("**")?.0)));
    let mut rules = BTreeSet::new();
    for rule in definitions {
        assert!(rules.insert(rule.clone()), "{rule} is defined twice");
    }
    assert!(rules.len() > 40, "the rules of the specification were not found");
    rules
}

#[test]
fn every_rule_of_the_specification_has_a_vector_that_breaks_it() {
    let path = root().join("format-spec/vectors/manifest.json");
    let manifest = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("format-spec/vectors/manifest.json, which lists the vectors: {error}"));
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let vectors = manifest["vectors"].as_array().expect("a list of vectors");
    let mut broken = BTreeSet::new();
    let mut problems = Vec::new();
    for vector in vectors {
        let file = vector["file"].as_str().expect("the file of a vector");
        if !vector_files().contains_key(file) {
            problems.push(format!("{file} is in the manifest and not in the archives"));
        }
        if vector["valid"] == false {
            broken.insert(vector["rule"].as_str().expect("the rule that a vector breaks").to_owned());
        }
    }
    let defined = defined_rules();
    problems.extend(defined.difference(&broken).map(|rule| format!("no vector breaks {rule}")));
    problems.extend(broken.difference(&defined).map(|rule| format!("a vector breaks {rule}, which is not defined")));
    assert_none(problems);
}

#[test]
fn every_rule_that_the_code_names_is_defined_and_every_rule_is_named() {
    let defined = defined_rules();
    let mut named = BTreeSet::new();
    let mut problems = Vec::new();
    for source in core().sources {
        for rule in rules(&source.text) {
            if !defined.contains(&rule) {
                problems.push(format!("{}: {rule} is not defined by the specification", source.path));
            }
            named.insert(rule);
        }
    }
    assert!(named.len() > 30, "the rules that the code names were not found");
    problems.extend(defined.difference(&named).map(|rule| format!("nothing in src names {rule}")));
    assert_none(problems);
}

/// Checks the cross-references of the specification. One chapter lists the retired numbers.
#[test]
fn every_rule_that_the_specification_refers_to_is_defined() {
    let [spec, others @ ..] = DOCUMENTS.map(document);
    let (text, retired) = spec.split_once("\n## 15. Retired numbers\n").expect("the chapter of retired numbers");
    let defined = defined_rules();
    let text = format!("{text}\n{}", others.join("\n"));
    assert_none(rules(&text).difference(&defined).cloned().collect());
    let (retired, _) = retired.split_once("\n## ").unwrap_or((retired, ""));
    let rows: String = retired
        .lines()
        .filter_map(|line| line.strip_prefix("| R-"))
        .fold(String::new(), |rows, row| rows + "R-" + row.split(' ').next().expect("a number") + " ");
    let retired = rules(&rows);
    assert!(!retired.is_empty(), "the retired numbers were not found");
    assert_none(retired.intersection(&defined).map(|rule| format!("{rule} is retired and defined")).collect());
}

#[test]
fn rules_are_found() {
    assert_eq!(rules("R-2.1, (R-7.10). R-x PR-1.2"), ["R-2.1", "R-7.10"].map(str::to_owned).into());
}
