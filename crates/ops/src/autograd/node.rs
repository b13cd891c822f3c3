//! The recorded graph: one node an operation, edges towards its inputs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mxnet_tensor::{DType, Device, Dims};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::Array;
use crate::args::Attrs;
use crate::autograd::CustomBackward;
use crate::error::{Error, Result};
use crate::opdef::OpDef;

/// Which output of which node an array is.
pub(crate) type Edge = (Arc<Node>, u32);

/// What happens to a variable's gradient buffer in `backward`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradReq {
    /// It is overwritten.
    Write,
    /// The gradient is added to it.
    Add,
    /// No gradient is computed.
    Null,
}

/// A variable's gradient buffer.
pub struct Leaf {
    pub(crate) grad: Mutex<Array>,
    pub(crate) req: GradReq,
}

impl Leaf {
    pub(crate) fn new(grad: Array, req: GradReq) -> Arc<Leaf> {
        Arc::new(Leaf {
            grad: Mutex::new(grad),
            req,
        })
    }

    /// The gradient, sharing its elements.
    pub fn gradient(&self) -> Array {
        self.grad.lock().clone()
    }

    /// What `backward` does with it.
    pub fn req(&self) -> GradReq {
        self.req
    }
}

/// Shape, dtype and device of an array that may be gone.
#[derive(Clone)]
pub(crate) struct Spec {
    pub shape: Dims,
    pub dtype: DType,
    pub device: Device,
}

impl Spec {
    pub fn of(x: &Array) -> Spec {
        Spec {
            shape: Dims::from_slice(x.shape()),
            dtype: x.dtype(),
            device: x.device(),
        }
    }
}

/// An array kept for a gradient rule, and the version its elements had.
pub(crate) struct Kept {
    array: Array,
    version: u64,
}

impl Kept {
    pub fn new(array: Array) -> Kept {
        let version = array.tensor().storage().version();
        Kept { array, version }
    }

    /// The array, if its elements are still those that were recorded.
    pub fn get(&self, op: &'static str, what: &str) -> Result<Array> {
        let now = self.array.tensor().storage().version();
        if now == self.version {
            return Ok(self.array.clone());
        }
        let problem = format!(
            "{what}, needed for its gradient, was overwritten in place: it had version {} when recorded and has {now}",
            self.version
        );
        Err(Error::autograd(op, problem)
            .with_hint("copy the array before changing it, or compute out of place"))
    }
}

/// Arrays kept by one node.
pub(crate) struct Saved {
    pub inputs: SmallVec<[Option<Kept>; 2]>,
    pub outputs: SmallVec<[Option<Kept>; 1]>,
}

/// What a node stands for.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all nodes are calls, and a box for them would be one more allocation a call"
)]
pub(crate) enum Kind {
    /// A marked variable.
    Variable,
    /// A recorded operator call.
    Call {
        op: &'static OpDef,
        attrs: Attrs,
        training: bool,
        inputs: SmallVec<[Option<Spec>; 2]>,
        /// Cleared when the graph is freed.
        saved: Mutex<Option<Saved>>,
    },
    /// A recorded call of a user's function.
    Custom {
        rule: Mutex<Option<Box<dyn CustomBackward>>>,
        name: String,
    },
}

/// Gradient buffers, and the outputs they belong to.
pub(crate) type Watchers = SmallVec<[(u32, Arc<Leaf>); 1]>;

/// One recorded operation, or a variable.
pub struct Node {
    /// Larger than that of every node it depends on.
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    /// Where the gradients of its inputs go; `None` for constants.
    pub(crate) edges: SmallVec<[Option<Edge>; 2]>,
    pub(crate) outputs: SmallVec<[Spec; 1]>,
    /// Gradient buffers attached to outputs.
    pub(crate) watchers: Mutex<Watchers>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Node {
    pub(crate) fn new(
        kind: Kind,
        edges: SmallVec<[Option<Edge>; 2]>,
        outputs: SmallVec<[Spec; 1]>,
    ) -> Arc<Node> {
        let seq = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Node {
            seq,
            kind,
            edges,
            outputs,
            watchers: Mutex::new(SmallVec::new()),
        })
    }

    /// Name of what it stands for.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Variable => "variable",
            Kind::Call { op, .. } => op.name,
            Kind::Custom { name, .. } => name,
        }
    }

    /// The gradient buffer attached to output `index`.
    pub fn leaf(&self, index: u32) -> Option<Arc<Leaf>> {
        self.watchers
            .lock()
            .iter()
            .find(|(i, _)| *i == index)
            .map(|(_, leaf)| leaf.clone())
    }

    /// Whether it is a marked variable.
    pub fn is_variable(&self) -> bool {
        matches!(self.kind, Kind::Variable)
    }

    /// Takes out everything that may own further nodes.
    fn dismantle(&mut self, owned: &mut Vec<Arc<Node>>) {
        owned.extend(self.edges.drain(..).flatten().map(|(node, _)| node));
        if let Kind::Call { saved, .. } = &mut self.kind
            && let Some(saved) = saved.get_mut().take()
        {
            let kept = saved.inputs.into_iter().chain(saved.outputs).flatten();
            owned.extend(kept.filter_map(|k| k.array.entry().map(|(node, _)| node.clone())));
        }
    }
}

impl Drop for Node {
    /// Frees a chain of any length without recursion, which would overflow the stack.
    fn drop(&mut self) {
        let mut owned = Vec::new();
        self.dismantle(&mut owned);
        while let Some(node) = owned.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                node.dismantle(&mut owned);
            }
        }
    }
}
