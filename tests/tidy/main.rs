//! Rules that the sources, the docs and the specification obey and that no compiler checks.
//!
//! Each test lists every violation with its file and line.

mod blank;
mod cycles;
mod docs;
mod graph;
mod items;
mod layers;
mod rules;
mod source;
mod unsafe_code;
mod uses;
mod words;

/// Fails if there are problems, and lists them.
#[track_caller]
fn assert_none(problems: Vec<String>) {
    assert!(problems.is_empty(), "{} problems:\n  {}\n", problems.len(), problems.join("\n  "));
}
