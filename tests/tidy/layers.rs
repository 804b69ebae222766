//! Arrows between the modules of the core only go down.

use super::assert_none;
use super::cycles::cycles;
use super::graph::Graph;
use super::source::{core, root};
use std::fs;

/// A layer of the core: its modules, and what they are about.
struct Layer {
    modules: &'static [&'static str],
    about: &'static str,
}

/// The layers, the lowest first. Modules of one layer may use each other, but not in a cycle.
const LAYERS: [Layer; 7] = [
    Layer { modules: &["element", "error", "limits", "names", "threads"], about: "basics" },
    Layer { modules: &["bytes", "kernel"], about: "memory, and loops over elements" },
    Layer { modules: &["format", "batch", "value"], about: "bytes to structures and back" },
    Layer { modules: &["codec"], about: "chunks to stored bytes and back, and the choice of encodings" },
    Layer { modules: &["open"], about: "sources of bytes, and the last commit of a file" },
    Layer { modules: &["read", "write"], about: "samples from chunks, chunks from samples; neither uses the other" },
    Layer { modules: &["import", "export", "rewrite", "mmap", "logical"], about: "formats" },
];

/// Modules of one layer that never use each other.
const INDEPENDENT: [&str; 2] = ["read", "write"];

/// The variable that makes the test write the table instead of comparing it.
const WRITE: &str = "TENSILO_WRITE_LAYERS";

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.modules.contains(&module))
}

#[test]
fn arrows_between_layers_only_go_down() {
    let core = core();
    let graph = Graph::new(&core);
    let (mut problems, mut between) = (Vec::new(), Vec::new());
    for dependency in graph.dependencies() {
        let (from, to) = (graph.top_module(dependency.from), graph.top_module(dependency.to));
        if from == to || from.is_empty() {
            continue;
        }
        between.push((from, to));
        let at = graph.source(dependency.from).at(dependency.offset);
        match (layer(from), layer(to)) {
            (Some(upper), Some(lower)) if upper > lower => {}
            (Some(upper), Some(lower)) if upper == lower && !INDEPENDENT.contains(&from) => {}
            (Some(_), Some(_)) => {
                problems.push(format!("{at}: {from} uses {to} (`{}`): not a layer below", dependency.path))
            }
            _ => {
                problems.push(format!("{at}: {from} or {to} (`{}`) is in no layer: add it to LAYERS", dependency.path))
            }
        }
    }
    assert!(between.len() > 100, "only {} arrows: the sources were not understood", between.len());
    problems.extend(cycles(&between).iter().map(|cycle| format!("a cycle of modules: {cycle:?}")));
    assert_none(problems);
}

#[test]
fn each_module_is_in_one_layer() {
    let core = core();
    let graph = Graph::new(&core);
    let mut modules: Vec<&str> = (0..core.sources.len()).map(|file| graph.top_module(file)).collect();
    modules.retain(|module| !module.is_empty());
    modules.sort_unstable();
    modules.dedup();
    let mut listed: Vec<&str> = LAYERS.iter().flat_map(|layer| layer.modules).copied().collect();
    listed.sort_unstable();
    assert_eq!(modules, listed, "LAYERS in {} lists other modules than src has", file!());
}

#[test]
fn the_table_of_layers_is_in_the_documentation() {
    let path = root().join("src/lib.rs");
    let text = fs::read_to_string(&path).expect("src/lib.rs");
    let (before, rest) = text.split_once("//! # Layers\n").expect("a section `# Layers` in src/lib.rs");
    let end = rest.find("//! # ").expect("a section behind the layers in src/lib.rs");
    let expected = format!("{before}//! # Layers\n{}{}", table(), &rest[end..]);
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, expected).expect("src/lib.rs was written");
    } else {
        let hint = format!("src/lib.rs: the table of layers differs; write it by `{WRITE}=1 cargo test --test tidy`");
        assert!(text == expected, "{hint}\n{}", table());
    }
}

/// Returns the section's text, with the table.
fn table() -> String {
    let mut text =
        "//!\n//! A module uses only modules of its own layer and of the layers below. `tests/tidy` checks this,\n"
            .to_owned();
    text += "//! and writes the table.\n//!\n";
    text += "//! | | modules | |\n//! |---|---|---|\n";
    for (number, Layer { modules, about }) in LAYERS.iter().enumerate().rev() {
        let modules: Vec<String> = modules.iter().map(|module| format!("`{module}`")).collect();
        text += &format!("//! | {number} | {} | {about} |\n", modules.join(", "));
    }
    text + "//!\n"
}
