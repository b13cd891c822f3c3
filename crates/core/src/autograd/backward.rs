//! The backward pass: sends cotangents from the heads to the variables, newest node first.

use std::cell::Cell;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use crate::args::{Args, Attrs};
use crate::autograd::cotangent::Cotangent;
use crate::autograd::node::{Buffer, GradReq, Kind, Leaf, Node, Recorded, SavedArray};
use crate::autograd::{GradContext, RowSparse};
use crate::error::{Error, Result, Tuple};
use crate::mode::{self, Flags, Scope};
use crate::opdef::{Grads, Keep};
use crate::{Array, creation, eager, profiler};

/// Whether the graph is kept for another pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// The graph and the saved arrays stay.
    Yes,
    /// Saved arrays are freed as soon as the gradient rules have run.
    No,
}

/// Sends cotangents from `heads` to every variable with a gradient buffer. A missing head gradient is ones.
///
/// # Errors
/// [`Error::Autograd`] if a head was not recorded, the graph was freed, or an array a rule needs was overwritten.
pub fn backward(
    heads: &[&Array],
    head_grads: &[Option<&Array>],
    retain: Retain,
    train_mode: bool,
) -> Result<()> {
    backward_to(heads, head_grads, retain, train_mode).map(drop)
}

/// As [`backward`]. Returns the gradient buffers that were written.
///
/// # Errors
/// As [`backward`].
pub fn backward_to(
    heads: &[&Array],
    head_grads: &[Option<&Array>],
    retain: Retain,
    train_mode: bool,
) -> Result<Vec<Arc<Leaf>>> {
    let _scope = Scope::enter(false, train_mode);
    let _backward = profiler::BackwardScope::enter();
    let mut pass = Pass::start("backward", heads, head_grads, retain)?;
    let mut found: Vec<(Arc<Leaf>, Cotangent)> = Vec::new();
    pass.run(|node, index, gradient| {
        if let Some(leaf) = node.leaf(index) {
            found.push((leaf, gradient.clone()));
        }
        Ok(())
    })?;
    // Buffers are written only when the whole pass has succeeded.
    drop(pass);
    found
        .into_iter()
        .map(|(leaf, gradient)| store(&leaf, gradient).map(|()| leaf))
        .collect()
}

/// Gradients of the sum of `heads` with respect to `variables`, which may be variables or intermediate results. The gradients are dense.
///
/// # Errors
/// As [`backward`]; [`Error::Autograd`] if a variable is not part of the graph.
pub fn grad(
    heads: &[&Array],
    variables: &[&Array],
    head_grads: &[Option<&Array>],
    retain: Retain,
    create_graph: bool,
    train_mode: bool,
) -> Result<Vec<Array>> {
    let through = Through::Variables;
    grad_within(
        heads,
        variables,
        head_grads,
        retain,
        create_graph,
        train_mode,
        through,
    )
}

/// Whether a pass continues behind the variables that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// It continues: one variable may have been computed from another.
    Variables,
    /// It ends at each variable. The variables are independent inputs of a function, also if one was computed from another.
    Nothing,
}

/// [`grad`], restricted to the part of the graph that `through` names.
///
/// # Errors
/// As [`grad`].
pub fn grad_within(
    heads: &[&Array],
    variables: &[&Array],
    head_grads: &[Option<&Array>],
    retain: Retain,
    create_graph: bool,
    train_mode: bool,
    through: Through,
) -> Result<Vec<Array>> {
    let _scope = Scope::enter(create_graph, train_mode);
    let stand_ins = variables
        .iter()
        .map(|x| mode::stand_in(x))
        .collect::<Result<Vec<_>>>()?;
    let variables: Vec<&Array> = variables
        .iter()
        .zip(&stand_ins)
        .map(|(x, other)| other.as_ref().unwrap_or(x))
        .collect();
    let mut wanted: HashMap<(*const Node, u32), usize> = HashMap::new();
    for (i, x) in variables.iter().enumerate() {
        let Some((node, index)) = x.entry() else {
            let problem = format!(
                "variable {i} is not part of a recorded graph: attach a gradient to it before recording"
            );
            return Err(Error::autograd("grad", problem));
        };
        wanted.entry((Arc::as_ptr(node), *index)).or_insert(i);
    }
    let mut results: Vec<Option<Array>> = vec![None; variables.len()];
    let mut pass = Pass::start("grad", heads, head_grads, retain)?;
    let targets: Visited = variables
        .iter()
        .filter_map(|x| x.entry())
        .map(|(n, _)| Arc::as_ptr(n))
        .collect();
    pass.only = Some(pass.leading_to(&targets, through));
    if through == Through::Nothing {
        pass.ends = targets;
    }
    pass.run(|node, index, gradient| {
        if let Some(&i) = wanted.get(&(Arc::as_ptr(node), index)) {
            results[i] = Some(gradient.clone().into_dense()?);
        }
        Ok(())
    })?;
    variables
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let first = x
                .entry()
                .and_then(|(node, index)| wanted.get(&(Arc::as_ptr(node), *index)))
                .copied()
                .unwrap_or(i);
            match &results[first] {
                Some(gradient) => Ok(gradient.clone()),
                None => creation::zeros(x.shape(), x.dtype(), x.device()),
            }
        })
        .collect()
}

/// Writes or adds a gradient to a variable's buffer.
fn store(leaf: &Leaf, gradient: Cotangent) -> Result<()> {
    let mut buffer = leaf.grad.lock();
    leaf.set_fresh(true);
    let buffer = match &mut *buffer {
        _ if leaf.req == GradReq::Null => return Ok(()),
        Buffer::Rows(rows) => return store_rows(rows, leaf.req, gradient),
        Buffer::Dense(buffer) => buffer,
    };
    let gradient = gradient.into_dense()?;
    if leaf.req == GradReq::Add {
        let sum = buffer.add(&gradient)?;
        return eager::copy_into(&sum, buffer);
    }
    // If nobody else shares the buffer, take the new storage instead of copying the elements. Memory of another library is not taken.
    let private = !Flags::current().is_stacked()
        && Arc::strong_count(buffer.tensor().storage()) == 1
        && Arc::strong_count(gradient.tensor().storage()) == 1
        && !gradient.tensor().storage().is_foreign();
    if private && gradient.layout().is_contiguous() && gradient.dtype() == buffer.dtype() {
        *buffer = gradient.detach();
        return Ok(());
    }
    eager::copy_into(&gradient, buffer)
}

/// Writes or adds a gradient to a row-sparse buffer. A dense gradient becomes all rows.
fn store_rows(buffer: &mut RowSparse, req: GradReq, gradient: Cotangent) -> Result<()> {
    if mode::is_tracing() {
        return Err(in_trace(
            "backward",
            "use a variable with a dense gradient (`grad_stype='default'`), or call `backward` outside the function",
        ));
    }
    let mut rows = gradient.into_rows()?;
    if req == GradReq::Add {
        rows = buffer.clone().join(rows);
    }
    let shape = rows.shape().to_vec();
    let (indices, data) = rows.summed()?;
    // Replaces the buffer instead of writing to it: the user may hold the old arrays.
    *buffer = RowSparse::new(indices.detach(), data.detach(), &shape)?;
    Ok(())
}

/// The error for a row-sparse gradient in a trace: the number of rows depends on values.
#[cold]
fn in_trace(op: &'static str, instead: &'static str) -> Error {
    Error::unsupported(
        op,
        "a row-sparse gradient has a shape that depends on values, so it is not part of a compiled function",
    )
    .with_hint(instead)
}

/// A set of nodes.
type Visited = HashSet<*const Node, BuildHasherDefault<ByAddress>>;

/// Multiplicative hash of addresses. Nobody can choose them, so no keyed hash is needed.
#[derive(Default)]
struct ByAddress(u64);

impl Hasher for ByAddress {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(byte as usize);
        }
    }

    fn write_usize(&mut self, address: usize) {
        // The odd number nearest to 2^64 divided by the golden ratio. The hash table uses the high bits and the low ones.
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}

/// Saved inputs of a call, and its saved outputs; `None` for those that were not saved.
type Unpacked = (
    SmallVec<[Option<SavedArray>; 2]>,
    SmallVec<[Option<SavedArray>; 1]>,
);

/// Cotangents that have arrived at a node, one slot per output.
struct Arrived {
    node: Arc<Node>,
    dys: SmallVec<[Option<Cotangent>; 1]>,
}

struct Pass {
    name: &'static str,
    retain: Retain,
    arrived: HashMap<*const Node, Arrived, BuildHasherDefault<ByAddress>>,
    /// Nodes with cotangents, newest on top: all consumers of a node are newer than it.
    ready: BinaryHeap<(u64, *const Node)>,
    /// Nodes that lead to a wanted variable; `None` means all nodes are visited.
    only: Option<Visited>,
    /// Nodes at which the pass ends.
    ends: Visited,
}

impl Pass {
    fn start(
        name: &'static str,
        heads: &[&Array],
        head_grads: &[Option<&Array>],
        retain: Retain,
    ) -> Result<Pass> {
        let mut pass = Pass {
            name,
            retain,
            arrived: HashMap::default(),
            ready: BinaryHeap::new(),
            only: None,
            ends: Visited::default(),
        };
        for (i, head) in heads.iter().enumerate() {
            let stand_in = mode::stand_in(head)?;
            let head = stand_in.as_ref().unwrap_or(head);
            let Some((node, index)) = head.entry() else {
                let problem = format!(
                    "head {i} was not computed while recording from a variable with a gradient"
                );
                return Err(Error::autograd(name, problem)
                    .with_hint(
                        "call `x.attach_grad()` and compute inside `autograd.record()`; results of an earlier pass are constants unless it got `retain_graph=True`",
                    ));
            };
            if head.is_stale() {
                return Err(super::tape::stale(name, &format!("head {i}")));
            }
            let dy = match head_grads.get(i).copied().flatten() {
                Some(given) if given.shape() != head.shape() => {
                    let problem = format!(
                        "head gradient {i} has shape {}, its head {}",
                        Tuple(given.shape()),
                        Tuple(head.shape())
                    );
                    return Err(Error::shape(name, problem));
                }
                Some(given) => given.clone(),
                None => creation::ones(head.shape(), head.dtype(), head.device())?,
            };
            pass.arrive(node, *index, Cotangent::Dense(dy))?;
        }
        Ok(pass)
    }

    fn arrive(&mut self, node: &Arc<Node>, index: u32, dy: Cotangent) -> Result<()> {
        let key = Arc::as_ptr(node);
        let arrived = self.arrived.entry(key).or_insert_with(|| {
            self.ready.push((node.seq, key));
            Arrived {
                node: node.clone(),
                dys: smallvec::smallvec![None; node.outputs.len()],
            }
        });
        let slot = &mut arrived.dys[index as usize];
        *slot = Some(match slot.take() {
            Some(sum) => sum.add(dy)?,
            None => dy,
        });
        Ok(())
    }

    /// Nodes from which one of `targets` can be reached.
    fn leading_to(&self, targets: &Visited, through: Through) -> Visited {
        let mut order: Vec<&Arc<Node>> = Vec::new();
        let mut seen: Visited = Visited::default();
        let mut stack: Vec<&Arc<Node>> = self.arrived.values().map(|a| &a.node).collect();
        while let Some(node) = stack.pop() {
            if seen.insert(Arc::as_ptr(node)) {
                order.push(node);
                if through == Through::Variables || !targets.contains(&Arc::as_ptr(node)) {
                    stack.extend(node.edges.iter().flatten().map(|(n, _)| n));
                }
            }
        }
        order.sort_by_key(|node| node.seq);
        let mut leading = targets.clone();
        for node in order {
            if node
                .edges
                .iter()
                .flatten()
                .any(|(n, _)| leading.contains(&Arc::as_ptr(n)))
            {
                leading.insert(Arc::as_ptr(node));
            }
        }
        leading
    }

    /// Visits nodes newest first. `found` receives each cotangent once it is complete.
    fn run(
        &mut self,
        mut found: impl FnMut(&Arc<Node>, u32, &Cotangent) -> Result<()>,
    ) -> Result<()> {
        let _backward = profiler::BackwardScope::enter();
        if self.retain == Retain::No {
            Node::note_freeing();
        }
        while let Some((_, key)) = self.ready.pop() {
            let Some(Arrived { node, dys }) = self.arrived.remove(&key) else {
                continue;
            };
            for (i, dy) in dys.iter().enumerate() {
                if let Some(dy) = dy {
                    found(&node, i as u32, dy)?;
                }
            }
            let (grads, rows) = self.pull_back(&node, dys)?;
            let grads = grads
                .into_iter()
                .enumerate()
                .filter_map(|(i, x)| Some((i, Cotangent::Dense(x?))));
            let rows = rows.map(|(i, rows)| (i, Cotangent::Rows(Box::new(rows))));
            for (i, gradient) in grads.chain(rows) {
                let Some(Some((input, index))) = node.edges.get(i) else {
                    continue;
                };
                if self
                    .only
                    .as_ref()
                    .is_some_and(|only| !only.contains(&Arc::as_ptr(input)))
                {
                    continue;
                }
                let spec = &input.outputs[*index as usize];
                if gradient.shape() != spec.shape.as_slice() {
                    return Err(wrong_gradient_shape(
                        &node,
                        i,
                        gradient.shape(),
                        &spec.shape,
                    ));
                }
                self.arrive(input, *index, gradient.astype(spec.dtype)?)?;
            }
        }
        Ok(())
    }

    /// The saved arrays with their graph entries, so that gradients of gradients flow through them.
    fn unpack(&self, node: &Arc<Node>, call: &Recorded, keep: Keep) -> Result<Unpacked> {
        // Gradients of gradients that need a freed graph are an error: calls of the rule must not take its results for constants.
        let is_recording = Flags::current().is_recording();
        let entry =
            |x: SavedArray, node: &Arc<Node>, index: u32| match is_recording && node.is_dead() {
                true => x.with_entry(Node::in_front_of(node), index),
                false => x.with_entry(node.clone(), index),
            };
        let mut guard = call.saved.lock();
        if guard.is_none() {
            return Err(freed(self.name, node));
        }
        let is_kept = |i: usize| keep.has_input(i) && call.has_array(i);
        // The last pass moves them out of the node, earlier passes clone them.
        let taken = match self.retain {
            Retain::No => {
                call.is_freed.store(true, Ordering::Release);
                guard.take()
            }
            Retain::Yes => None,
        };
        let mut owned = taken.into_iter().flatten();
        let mut shared = guard.iter().flatten();
        let mut next = || match owned.next() {
            Some(kept) => Some(kept),
            None => shared.next().cloned(),
        };
        let inputs = (0..node.edges.len())
            .map(|i| match call.number(i) {
                Some(value) if keep.has_input(i) => {
                    Array::weak_scalar(value).map(|x| Some(SavedArray::new(x)))
                }
                _ if is_kept(i) => Ok(match (next(), &node.edges[i]) {
                    (Some(x), Some((source, index))) => Some(entry(x, source, *index)),
                    (x, _) => x,
                }),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        let outputs = (0..node.outputs.len())
            .map(|i| match keep.has_output(i) {
                true => next().map(|y| entry(y, node, i as u32)),
                false => None,
            })
            .collect();
        Ok((inputs, outputs))
    }

    /// Cotangents of a node's inputs, and the cotangent of one input if that is row-sparse.
    fn pull_back(
        &self,
        node: &Arc<Node>,
        dys: SmallVec<[Option<Cotangent>; 1]>,
    ) -> Result<(Grads, Option<(usize, RowSparse)>)> {
        if node.is_variable()
            || self.ends.contains(&Arc::as_ptr(node))
            || self.only.as_ref().is_some_and(|only| !leads_on(node, only))
        {
            return Ok((Grads::new(), None));
        }
        let given = dys.iter().enumerate().fold(0, |mask, (i, dy)| {
            mask | u32::from(dy.is_some()) << i.min(31)
        });
        let dys: SmallVec<[Array; 1]> = dys
            .into_iter()
            .zip(&node.outputs)
            .map(|(dy, spec)| {
                dy.map_or_else(
                    || creation::zeros(&spec.shape, spec.dtype, spec.device),
                    Cotangent::into_dense,
                )
            })
            .collect::<Result<_>>()?;
        match &node.kind {
            Kind::Variable => Ok((Grads::new(), None)),
            Kind::Call(call) => {
                let composes = Flags::current().is_recording() || mode::composes_gradients();
                let Some((keep, rule)) = call.op.grad.rule(composes) else {
                    return Ok((Grads::new(), None));
                };
                let (inputs, outputs) = self.unpack(node, call, keep)?;
                let none = Attrs::none();
                let mut context = GradContext {
                    op: call.op,
                    args: Args {
                        params: call.op.params,
                        attrs: call.attrs.as_deref().unwrap_or(&none),
                    },
                    training: call.training,
                    node,
                    call,
                    inputs,
                    outputs,
                    dys,
                    given,
                    by_rows: None,
                    overwritten: Cell::new(None),
                };
                let rows = rows_of(&context)?;
                context.by_rows = rows.as_ref().map(|(i, _)| *i);
                // Rules of operators with one input compute its gradient without asking `wants`.
                let mut grads = match context.by_rows.is_none()
                    || (0..node.edges.len()).any(|i| context.wants(i))
                {
                    true => rule(&context),
                    false => Ok(Grads::new()),
                };
                if let (Ok(grads), Some(i)) = (&mut grads, context.by_rows)
                    && let Some(dense) = grads.get_mut(i)
                {
                    *dense = None;
                }
                match context.overwritten.take() {
                    Some(error) => Err(error),
                    None => Ok((grads?, rows)),
                }
            }
            Kind::Custom { rule, is_freed, .. } => {
                let mut guard = rule.lock();
                let Some(body) = guard.take() else {
                    return Err(freed(self.name, node));
                };
                // A user's function may run a backward pass of its own, which takes the lock.
                drop(guard);
                let result = body.backward(node, &dys);
                match self.retain {
                    Retain::Yes => *rule.lock() = Some(body),
                    Retain::No => is_freed.store(true, Ordering::Release),
                }
                Ok((result?, None))
            }
        }
    }
}

/// The row-sparse gradient of an input, if the call asks for one.
fn rows_of(context: &GradContext) -> Result<Option<(usize, RowSparse)>> {
    let Some(row_grad) = context.op.row_grad else {
        return Ok(None);
    };
    if !context.wants(row_grad.input) || !(row_grad.applies)(context) {
        return Ok(None);
    }
    if mode::is_tracing() {
        return Err(in_trace(row_grad.name, row_grad.instead));
    }
    // Interpreters (`vmap`, checkpoints) handle only arrays, so cotangents are dense there.
    if Flags::current().is_stacked() {
        return Ok(None);
    }
    Ok(Some((row_grad.input, (row_grad.rule)(context)?)))
}

/// The error for a gradient whose shape is not its input's.
#[cold]
fn wrong_gradient_shape(node: &Node, i: usize, found: &[usize], wanted: &[usize]) -> Error {
    let (found, wanted) = (Tuple(found), Tuple(wanted));
    match &node.kind {
        Kind::Call(Recorded { op, .. }) => {
            let problem =
                format!("the gradient rule returned shape {found} for input {i} of shape {wanted}");
            Error::internal(op.name, problem)
        }
        _ => {
            let problem = format!(
                "{}.backward returned a gradient of shape {found} for input {i} of shape {wanted}",
                node.name()
            );
            Error::shape("", problem)
        }
    }
}

fn leads_on(node: &Node, only: &Visited) -> bool {
    node.edges
        .iter()
        .flatten()
        .any(|(n, _)| only.contains(&Arc::as_ptr(n)))
}

fn freed(pass: &'static str, node: &Node) -> Error {
    let problem = format!(
        "the recorded graph was already freed by an earlier pass (at `{}`{})",
        node.name(),
        match &node.line {
            Some(line) => format!(", recorded at {line}"),
            None => String::new(),
        }
    );
    Error::autograd(pass, problem).with_hint("pass retain_graph=True to the earlier pass")
}
