//! Passes: from a graph to one that computes the same bits in fewer steps, or with less memory.

mod common;
mod copies;
mod dead_code;
mod epilogues;
mod fold;
mod forward;
mod recompute;
mod registered;
mod repeat;
mod simplify;

pub use common::merge_common_nodes;
pub use copies::remove_copies;
pub use dead_code::remove_dead_nodes;
pub use epilogues::fuse_epilogues;
pub use fold::fold_constants;
pub use forward::forward_copies;
pub use recompute::{Training, within_budget};
pub use registered::{OutsidePass, Runs, generation, register, registered, switch_off, unregister};
pub use repeat::repeat_cheap_nodes;
pub use simplify::simplify;

use mxnet_core::{Error, Result};

use crate::ir::Graph;
use crate::verify::verify;

/// A pass: changes a graph in place and returns how many nodes or operands it removed or changed.
pub type Pass = fn(&mut Graph) -> usize;

/// The passes in the order in which they run, by name.
pub const PASSES: &[(&str, Pass)] = &[
    ("remove_dead_nodes", remove_dead_nodes),
    ("fold_constants", fold_constants),
    ("simplify", simplify),
    ("merge_common_nodes", merge_common_nodes),
    ("forward_copies", forward_copies),
    ("remove_copies", remove_copies),
    ("fuse_epilogues", fuse_epilogues),
    ("repeat_cheap_nodes", repeat_cheap_nodes),
];

/// What a function asks of its compilation.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Passes to leave out, beside those that [`switch_off`] names.
    pub off: Vec<String>,
    /// The registered pass that runs because the function chose it.
    pub backend: Option<String>,
    /// The most bytes of intermediate results; more are recomputed.
    pub memory_budget: Option<usize>,
}

impl Choice {
    /// Whether a pass is left out.
    pub fn is_off(&self, name: &str) -> bool {
        self.off.iter().any(|off| off == name) || registered::is_off(name)
    }
}

/// Runs all passes but those that are off: those that were registered first, then those of this crate.
///
/// # Errors
/// What a registered pass reports; [`Error::Value`] that names the pass if it leaves a graph that contradicts itself.
pub fn optimise(graph: &mut Graph, choice: &Choice) -> Result<()> {
    for (name, pass) in registered::chosen(choice.backend.as_deref()) {
        if choice.is_off(&name) {
            continue;
        }
        pass(graph)?;
        verify(graph).map_err(|error| {
            let problem = format!("pass `{name}` left a graph that contradicts itself: {error}");
            Error::value("optimise", problem)
        })?;
    }
    for (name, pass) in PASSES {
        if !choice.is_off(name) {
            pass(graph);
        }
    }
    // What the others have made superfluous.
    if !choice.is_off("remove_dead_nodes") {
        remove_dead_nodes(graph);
    }
    Ok(())
}
