//! The links of all documents lead somewhere, the names in the map of the source exist, and the
//! checks run what the README shows.

use super::assert_none;
use super::source::{collect, relative, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The checks run each block of shell of the README: `.ci/run` takes it from there by its name.
#[test]
fn the_commands_of_the_readme_are_run_by_the_checks() {
    let (readme, run) = (read("README.md"), read(".ci/run"));
    let names: Vec<&str> = readme.lines().filter_map(|line| line.trim().strip_prefix("```sh")).collect();
    assert!(!names.is_empty(), "README.md has no block of shell");
    let problem = |name: &str| match name.strip_prefix(',') {
        None => Some("README.md: a block of shell without a name: begin it with ```sh,NAME".to_owned()),
        Some(name) if !run.contains(&format!("run_readme {name}\n")) => {
            Some(format!(".ci/run: does not run the block {name} of README.md"))
        }
        Some(_) => None,
    };
    assert_none(names.into_iter().filter_map(problem).collect());
}

#[test]
fn relative_links_lead_to_files() {
    let mut paths = Vec::new();
    collect(root(), "md", &mut paths);
    assert!(paths.len() > 5, "the documents were not found");
    let mut problems = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("a document");
        for (line, link) in links(&text) {
            if let Err(problem) = check_link(&path, &text, link) {
                problems.push(format!("{}:{line}: {link}: {problem}", relative(&path)));
            }
        }
    }
    assert_none(problems);
}

/// In the map of the source, a name after the link to a file is in that file.
#[test]
fn names_after_links_are_in_the_files() {
    let map = root().join("docs/src/contributing.md");
    let text = fs::read_to_string(&map).expect("the map");
    let (mut problems, mut names) = (Vec::new(), 0);
    for (link, rest) in
        text.split("](").filter_map(|rest| rest.split_once("), `")).filter(|(link, _)| !link.contains(')'))
    {
        let source = map.with_file_name(link);
        if source.is_dir() {
            continue;
        }
        let name = rest.split('`').next().unwrap_or_default();
        let last = name.rsplit("::").next().unwrap_or_default();
        names += 1;
        if !fs::read_to_string(source).is_ok_and(|source| source.contains(last)) {
            problems.push(format!("{}: {link} has no {name}", relative(&map)));
        }
    }
    assert!(names > 20, "the names were not found");
    assert_none(problems);
}

/// Returns the targets of links outside code blocks, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let (mut in_code, mut found) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code {
            continue;
        }
        // outside `code`
        for part in line.split('`').step_by(2) {
            let inline = part.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
            found.extend(inline.map(|link| (number + 1, link)));
        }
        // a link whose text is code is cut by the split above
        let after_code = line.split("`](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        found.extend(after_code.map(|link| (number + 1, link)));
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        found.extend(definition.map(|(_, link)| (number + 1, link.trim())));
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn check_link(from: &Path, text: &str, link: &str) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = from.parent().unwrap_or(root()).join(file);
    if !file.is_empty() && !target.exists() {
        return Err("no such file".to_owned());
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let other = if file.is_empty() { text.to_owned() } else { fs::read_to_string(target).unwrap_or_default() };
    if anchors(&other).contains(anchor) { Ok(()) } else { Err("no such heading".to_owned()) }
}

/// Returns the anchors of the headings of a document, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || ['-', '_', ' '].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_and_anchors_are_understood() {
    let text = "# A: b `c`\n[a](b.md) and [`d`](e.md#f)\n`[not](one)`\n```\n[not](two)\n```\n[r]: s.md\n";
    assert_eq!(links(text), [(2, "b.md"), (2, "e.md#f"), (7, "s.md")]);
    assert!(anchors(text).contains("a-b-c"));
}
