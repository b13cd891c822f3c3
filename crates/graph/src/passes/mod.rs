//! Passes: make a graph that computes the same bits in fewer steps or with less memory.

mod common;
mod copies;
mod dead_code;
mod epilogues;
mod fold;
mod forward;
mod gather;
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
pub use gather::gather_independent_nodes;
pub(crate) use gather::side_by_side;
pub use recompute::{Training, within_budget};
pub use registered::{
    OutsidePass, Runs, generation, register, register_from, registered, switch_off, unregister,
};
pub use repeat::repeat_cheap_nodes;
pub use simplify::simplify;

use mxnet_core::{Error, Result};

use crate::ir::Graph;
use crate::verify::verify;

/// A pass changes a graph in place. Returns the number of nodes or operands that it removed or changed.
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
    ("gather_independent_nodes", gather_independent_nodes),
];

/// Options of a function's compilation.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Passes to skip, in addition to those in [`switch_off`].
    pub off: Vec<String>,
    /// The registered pass to run as the function's backend.
    pub backend: Option<String>,
    /// Limit for intermediate results in bytes; above it, results are recomputed.
    pub memory_budget: Option<usize>,
}

impl Choice {
    /// Whether a pass is skipped.
    pub fn is_off(&self, name: &str) -> bool {
        self.off.iter().any(|off| off == name) || registered::is_off(name)
    }
}

/// Runs all passes that are not skipped: registered ones first, then those of this crate. A registered pass that fails leaves the graph as it was.
///
/// # Errors
/// Errors of registered passes; [`Error::Value`] that names the pass if it leaves an inconsistent graph.
pub fn optimise(graph: &mut Graph, choice: &Choice) -> Result<()> {
    for (name, module, pass) in registered::chosen(choice.backend.as_deref()) {
        if choice.is_off(&name) {
            continue;
        }
        let mut changed = graph.clone();
        pass(&mut changed)?;
        verify(&changed).map_err(|error| {
            let of = module.map_or(String::new(), |module| format!(" of the module `{module}`"));
            let problem = format!("pass `{name}`{of} left an inconsistent graph: {error}");
            Error::value("optimise", problem)
        })?;
        *graph = changed;
    }
    for (name, pass) in PASSES {
        if !choice.is_off(name) {
            pass(graph);
        }
    }
    // Removes what the other passes have made superfluous.
    if !choice.is_off("remove_dead_nodes") {
        remove_dead_nodes(graph);
    }
    Ok(())
}
