//! Functions whose gradient the user writes.

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::Array;
use crate::autograd::node::{Kind, Node, Spec};
use crate::error::Result;
use crate::opdef::Grads;

/// The backward half of a user's function.
pub trait CustomBackward: Send + Sync {
    /// Cotangents of the inputs, from those of the outputs.
    ///
    /// # Errors
    /// Whatever the user's code reports.
    fn backward(&self, dys: &[Array]) -> Result<Grads>;
}

/// Makes `outputs`, computed from `inputs` outside any recording, results of a user's function.
pub fn record_custom(
    name: &str,
    inputs: &[&Array],
    outputs: Vec<Array>,
    rule: Box<dyn CustomBackward>,
) -> Vec<Array> {
    if !inputs.iter().any(|x| x.entry().is_some()) {
        return outputs;
    }
    let edges = inputs.iter().map(|x| x.entry().cloned()).collect();
    let specs: SmallVec<[Spec; 1]> = outputs.iter().map(Spec::of).collect();
    let node = Node::new(
        Kind::Custom {
            rule: Mutex::new(Some(rule)),
            name: name.to_owned(),
        },
        edges,
        specs,
    );
    outputs
        .into_iter()
        .enumerate()
        .map(|(i, y)| y.detach().with_entry(node.clone(), i as u32))
        .collect()
}
