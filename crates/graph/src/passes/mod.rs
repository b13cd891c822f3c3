//! Passes: from a graph to a smaller one that computes the same bits.

mod common;
mod copies;
mod dead_code;

pub use common::merge_common_nodes;
pub use copies::remove_copies;
pub use dead_code::remove_dead_nodes;

use crate::ir::Graph;

/// A pass: changes a graph in place and returns how many nodes it removed.
pub type Pass = fn(&mut Graph) -> usize;

/// The passes in the order in which they run, by name.
pub const PASSES: &[(&str, Pass)] = &[
    ("remove_dead_nodes", remove_dead_nodes),
    ("merge_common_nodes", merge_common_nodes),
    ("remove_copies", remove_copies),
];

/// Runs all passes but those that `is_off` names.
pub fn optimise(graph: &mut Graph, is_off: impl Fn(&str) -> bool) {
    for (name, pass) in PASSES {
        if !is_off(name) {
            pass(graph);
        }
    }
}
