//! The files of a crate form no cycle. A `mod.rs` that only declares and re-exports has no arrows.

use super::assert_none;
use super::graph::{Dependency, Graph};
use super::source::{crates, python_package};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn the_files_of_a_crate_form_no_cycle() {
    let mut problems = Vec::new();
    for member in crates().into_iter().chain([python_package()]) {
        let graph = Graph::new(&member);
        let dependencies = graph.dependencies();
        assert!(member.name != "tensilo" || dependencies.len() > 300, "only {} arrows were found", dependencies.len());
        let edges: Vec<(usize, usize)> =
            dependencies.iter().map(|dependency| (dependency.from, dependency.to)).collect();
        for (number, cycle) in cycles(&edges).iter().enumerate() {
            let mut inside: BTreeMap<(usize, usize), Vec<&Dependency>> = BTreeMap::new();
            for dependency in dependencies
                .iter()
                .filter(|dependency| cycle.contains(&dependency.from) && cycle.contains(&dependency.to))
            {
                inside.entry((dependency.from, dependency.to)).or_default().push(dependency);
            }
            for ((from, to), dependencies) in inside {
                let at = graph.source(from).at(dependencies[0].offset);
                let mut names: Vec<&str> = dependencies.iter().map(|dependency| dependency.path.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                let (to, names) = (&graph.source(to).path, names.join(", "));
                problems.push(format!("{at}: uses {to}: {names} (cycle {} of {})", number + 1, member.name));
            }
        }
    }
    assert_none(problems);
}

/// Returns the sets of more than one node in which each node reaches every other.
pub fn cycles<T: Copy + Ord>(edges: &[(T, T)]) -> Vec<BTreeSet<T>> {
    let reach = |start: T, forward: bool| {
        let (mut reached, mut todo) = (BTreeSet::new(), vec![start]);
        while let Some(node) = todo.pop() {
            let next = edges.iter().map(|&(from, to)| if forward { (from, to) } else { (to, from) });
            todo.extend(next.filter(|(from, _)| *from == node).map(|(_, to)| to).filter(|to| reached.insert(*to)));
        }
        reached
    };
    let nodes: BTreeSet<T> = edges.iter().map(|(from, _)| *from).collect();
    let mut found: Vec<BTreeSet<T>> = Vec::new();
    for node in nodes {
        if found.iter().any(|cycle| cycle.contains(&node)) {
            continue;
        }
        let cycle: BTreeSet<T> = reach(node, true).intersection(&reach(node, false)).copied().collect();
        if !cycle.is_empty() {
            found.push(cycle);
        }
    }
    found
}

#[test]
fn cycles_are_found() {
    assert!(cycles(&[(1, 2), (2, 3), (1, 3)]).is_empty());
    let found = cycles(&[(1, 2), (2, 3), (3, 2), (4, 5), (5, 6), (6, 4), (6, 1)]);
    assert_eq!(found, [BTreeSet::from([2, 3]), BTreeSet::from([4, 5, 6])]);
}
