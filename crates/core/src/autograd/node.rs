//! The recorded graph: one node per operation, edges towards its inputs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mxnet_tensor::{DType, Device, Dims, Scalar};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::Array;
use crate::args::Attrs;
use crate::autograd::{CustomBackward, RowSparse};
use crate::error::{Error, Result, Tuple};
use crate::invoke::Call;
use crate::opdef::OpDef;

/// A node and the number of one of its outputs.
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

/// A variable's gradient.
pub(crate) enum Buffer {
    /// All elements.
    Dense(Array),
    /// The rows that cotangents flowed into: ascending and without duplicates.
    Rows(RowSparse),
}

/// A variable's gradient buffer.
pub struct Leaf {
    pub(crate) grad: Mutex<Buffer>,
    pub(crate) req: GradReq,
    /// Set by `backward` when it stores a gradient, cleared by [`Leaf::set_fresh`].
    is_fresh: AtomicBool,
}

impl Leaf {
    pub(crate) fn new(grad: Buffer, req: GradReq) -> Arc<Leaf> {
        Arc::new(Leaf {
            grad: Mutex::new(grad),
            req,
            is_fresh: AtomicBool::new(false),
        })
    }

    /// Whether `backward` has stored a gradient since `set_fresh(false)` was last called; false for a new buffer.
    pub fn is_fresh(&self) -> bool {
        self.is_fresh.load(Ordering::Acquire)
    }

    /// Sets whether the gradient counts as new. Optimizers clear it when they have used the gradient.
    pub fn set_fresh(&self, fresh: bool) {
        self.is_fresh.store(fresh, Ordering::Release);
    }

    /// The gradient. The result shares its elements. For a row-sparse gradient these are the values of its rows.
    pub fn gradient(&self) -> Array {
        match &*self.grad.lock() {
            Buffer::Dense(x) => x.clone(),
            Buffer::Rows(rows) => rows.part().1.clone(),
        }
    }

    /// Indices and values of the rows, if the gradient is row-sparse.
    pub fn rows(&self) -> Option<(Array, Array)> {
        match &*self.grad.lock() {
            Buffer::Dense(_) => None,
            Buffer::Rows(rows) => Some(rows.part().clone()),
        }
    }

    /// Whether the gradient is row-sparse.
    pub fn is_row_sparse(&self) -> bool {
        matches!(&*self.grad.lock(), Buffer::Rows(_))
    }

    /// Replaces the rows of a row-sparse gradient. A row that occurs several times gets the sum of its values.
    ///
    /// # Errors
    /// [`Error::Autograd`] if the gradient is dense; [`Error::Shape`] or [`Error::DType`] if the rows are not like those of the gradient.
    pub fn set_rows(&self, indices: &Array, data: &Array) -> Result<()> {
        const NAME: &str = "set_row_gradient";
        let mut buffer = self.grad.lock();
        let Buffer::Rows(rows) = &mut *buffer else {
            return Err(Error::autograd(NAME, "the gradient is dense"));
        };
        if data.dtype() != rows.dtype() || indices.dtype() != DType::I64 {
            let problem = format!(
                "rows of {} at int64 indices are needed, found {} at {}",
                rows.dtype().name(),
                data.dtype().name(),
                indices.dtype().name()
            );
            return Err(Error::dtype(NAME, problem));
        }
        if indices.ndim() != 1
            || data.shape().first() != indices.shape().first()
            || data.shape()[1..] != rows.shape()[1..]
        {
            let problem = format!(
                "rows of shape {} at {} indices do not fit a gradient of shape {}",
                Tuple(data.shape()),
                indices.len(),
                Tuple(rows.shape())
            );
            return Err(Error::shape(NAME, problem));
        }
        let shape = Dims::from_slice(rows.shape());
        let (indices, data) = RowSparse::new(indices.detach(), data.detach(), &shape)?.summed()?;
        *rows = RowSparse::new(indices, data, &shape)?;
        Ok(())
    }

    /// What `backward` does with the buffer.
    pub fn req(&self) -> GradReq {
        self.req
    }
}

/// Shape, dtype and device of an array that may have been freed.
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

/// An array saved for a gradient rule, with the version of its storage at that time.
#[derive(Clone)]
pub(crate) struct SavedArray {
    array: Array,
    version: u64,
}

/// Which array of a call a saved array is, for messages.
#[derive(Clone, Copy)]
pub(crate) enum SavedAs {
    Input(usize),
    Output(usize),
}

impl SavedArray {
    pub fn new(array: Array) -> SavedArray {
        let version = array.tensor().storage().version();
        SavedArray { array, version }
    }

    /// The array.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The same array as output `index` of `node`.
    pub fn with_entry(mut self, node: Arc<Node>, index: u32) -> SavedArray {
        self.array.set_entry(node, index);
        self
    }

    /// Whether its elements have not been overwritten since they were recorded.
    #[inline]
    pub fn is_intact(&self) -> bool {
        self.array.tensor().storage().version() == self.version
    }

    /// The error if a rule needs it although it was overwritten.
    #[cold]
    pub fn overwritten(&self, op: &'static str, node: &Node, saved_as: SavedAs) -> Error {
        let now = self.array.tensor().storage().version();
        let what = match saved_as {
            SavedAs::Input(i) => format!("input {i}"),
            SavedAs::Output(i) => format!("output {i}"),
        };
        let problem = format!(
            "{what}, needed for its gradient, was overwritten in place: it had version {} when recorded{} and has {now}",
            self.version,
            node.recorded_at()
        );
        Error::autograd(op, problem)
            .with_hint("copy the array before changing it, or compute out of place")
    }
}

/// Where the gradients of a node's inputs go; `None` for constants.
pub(crate) type Edges = SmallVec<[Option<Edge>; 2]>;

/// Arrays saved by one call: inputs before outputs, without graph entries. Only those that `Keep` names and that the call has; a Python number
/// among the inputs is not stored here.
pub(crate) type Saved = SmallVec<[SavedArray; 2]>;

/// Shapes, dtypes and devices of a call's inputs.
pub(crate) enum Inputs {
    /// All have the shape, dtype and device of the first output, except for at most one Python number.
    LikeOutput {
        /// Position and value of the Python number.
        number: Option<(u8, Scalar)>,
    },
    /// One entry per input; `None` for absent ones.
    Each(Box<[Option<Spec>]>),
}

impl Inputs {
    /// One entry for each input of a call.
    pub fn each(call: &Call) -> Inputs {
        Inputs::Each(call.inputs.iter().map(|x| x.map(Spec::of)).collect())
    }

    /// The Python number among the inputs: its position and value.
    pub fn number(&self) -> Option<(u8, Scalar)> {
        match *self {
            Inputs::LikeOutput { number } => number,
            Inputs::Each(_) => None,
        }
    }
}

/// A recorded operator call.
pub(crate) struct Recorded {
    pub op: &'static OpDef,
    pub training: bool,
    /// `None` for no attributes.
    pub attrs: Option<Box<Attrs>>,
    pub inputs: Inputs,
    /// `None` once the graph is freed.
    pub saved: Mutex<Option<Saved>>,
    /// Whether a pass has taken the saved arrays, or those of all nodes behind it.
    pub is_freed: AtomicBool,
}

impl Recorded {
    /// The value of input `i` if it is a Python number.
    pub fn number(&self, i: usize) -> Option<Scalar> {
        match self.inputs {
            Inputs::LikeOutput {
                number: Some((at, value)),
            } if at as usize == i => Some(value),
            _ => None,
        }
    }

    /// Whether input `i` was given as an array.
    pub fn has_array(&self, i: usize) -> bool {
        match &self.inputs {
            Inputs::LikeOutput { .. } => self.number(i).is_none(),
            Inputs::Each(specs) => specs[i].is_some(),
        }
    }
}

/// What a node stands for.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all nodes are calls, and a box for them would be one more allocation a call"
)]
pub(crate) enum Kind {
    /// A variable: an array with a gradient buffer.
    Variable,
    /// A recorded operator call.
    Call(Recorded),
    /// A recorded call of a user's function.
    Custom {
        rule: Mutex<Option<Box<dyn CustomBackward>>>,
        name: String,
        /// Whether a pass has taken the rule for good, or those of all nodes behind it.
        is_freed: AtomicBool,
    },
}

/// Gradient buffers, and the outputs they belong to.
pub(crate) type Watchers = SmallVec<[(u32, Arc<Leaf>); 1]>;

/// One recorded operation, or a variable.
pub struct Node {
    /// Sequence number, larger than those of the nodes it depends on.
    pub(crate) seq: u64,
    pub(crate) kind: Kind,
    pub(crate) edges: Edges,
    pub(crate) outputs: SmallVec<[Spec; 1]>,
    /// Gradient buffers attached to outputs.
    pub(crate) watchers: Mutex<Watchers>,
    /// The source line that recorded it, if source lines are tracked.
    pub(crate) line: Option<Arc<str>>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

/// No node with this sequence number or a larger one is freed: the number of the next node when a pass that frees nodes last began.
static FREED_BELOW: AtomicU64 = AtomicU64::new(0);

impl Node {
    #[inline(always)]
    pub(crate) fn new(kind: Kind, edges: Edges, outputs: SmallVec<[Spec; 1]>) -> Arc<Node> {
        let seq = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Node {
            seq,
            kind,
            edges,
            outputs,
            watchers: Mutex::new(SmallVec::new()),
            line: crate::call_site::current(),
        })
    }

    /// The sequence number that the next node will get. All existing nodes have smaller ones.
    pub(crate) fn next_seq() -> u64 {
        NEXT.load(Ordering::Relaxed)
    }

    /// Its sequence number, which is unique.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The source line that recorded it, for messages.
    pub(crate) fn recorded_at(&self) -> String {
        match &self.line {
            Some(line) => format!(" at {line}"),
            None => String::new(),
        }
    }

    /// Name of the operator or function, for messages.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Variable => "variable",
            Kind::Call(call) => call.op.name,
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

    /// Whether it is a variable.
    pub fn is_variable(&self) -> bool {
        matches!(self.kind, Kind::Variable)
    }

    /// Says that a pass is about to free nodes.
    pub(crate) fn note_freeing() {
        FREED_BELOW.fetch_max(Node::next_seq(), Ordering::AcqRel);
    }

    /// Whether no gradient can reach a variable through it: a pass has freed it, or all nodes that it was computed from. Looks at no more than
    /// `MAX_NODES` nodes, so it may return false for the end of a long chain.
    #[inline]
    pub(crate) fn is_dead(&self) -> bool {
        /// Number of nodes that are looked at.
        const MAX_NODES: u32 = 64;
        !self.is_variable()
            && self.seq < FREED_BELOW.load(Ordering::Acquire)
            && self.leads_nowhere(&mut MAX_NODES.clone())
    }

    fn leads_nowhere(&self, left: &mut u32) -> bool {
        let (Kind::Call(Recorded { is_freed, .. }) | Kind::Custom { is_freed, .. }) = &self.kind
        else {
            return false;
        };
        if is_freed.load(Ordering::Acquire) {
            return true;
        }
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let is_dead = self
            .edges
            .iter()
            .flatten()
            .all(|(node, _)| node.watchers.lock().is_empty() && node.leads_nowhere(left));
        if is_dead {
            is_freed.store(true, Ordering::Release);
        }
        is_dead
    }

    /// A node in front of one that is freed, at which a pass stops with an error. Recorded calls take it for one that is not freed.
    pub(crate) fn in_front_of(freed: &Arc<Node>) -> Arc<Node> {
        let kind = Kind::Custom {
            rule: Mutex::new(None),
            name: freed.name().to_owned(),
            is_freed: AtomicBool::new(false),
        };
        let edges = SmallVec::from_iter([Some((freed.clone(), 0))]);
        Node::new(kind, edges, freed.outputs.clone())
    }

    /// The operator, if it is a recorded call.
    pub fn op(&self) -> Option<&'static OpDef> {
        match &self.kind {
            Kind::Call(call) => Some(call.op),
            _ => None,
        }
    }

    /// Drops the edges. Nodes behind them that nobody else owns are moved to `orphans`.
    fn dismantle(&mut self, orphans: &mut Orphans) {
        let mut release = |node: Arc<Node>| {
            if Arc::strong_count(&node) == 1 {
                orphans.push(node);
            }
        };
        for (node, _) in self.edges.drain(..).flatten() {
            release(node);
        }
    }
}

/// Nodes that are about to be freed.
type Orphans = SmallVec<[Arc<Node>; 8]>;

impl Drop for Node {
    /// Frees a chain of any length without recursion, which would overflow the stack.
    fn drop(&mut self) {
        let mut orphans = Orphans::new();
        self.dismantle(&mut orphans);
        while let Some(mut node) = orphans.pop() {
            // The node's edges are taken out first, so that its own `drop`, at the end of this iteration, does not recurse.
            if let Some(node) = Arc::get_mut(&mut node) {
                node.dismantle(&mut orphans);
            }
        }
    }
}
