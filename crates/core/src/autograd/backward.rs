//! The backward pass: cotangents from the heads to the variables, newest node first.

use std::cell::Cell;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::args::{Args, Attrs};
use crate::autograd::GradCx;
use crate::autograd::node::{GradReq, Kept, Kind, Leaf, Node, Recorded};
use crate::error::{Error, Result, Tuple};
use crate::interp::{self, Flags, Scope};
use crate::opdef::{Grads, Keep};
use crate::{Array, creation, eager};

/// Whether the graph can be walked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// Yes: everything stays.
    Yes,
    /// No: what rules needed is dropped as they run.
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

/// [`backward`], and the buffers that it wrote.
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
    let mut pass = Pass::start("backward", heads, head_grads, retain)?;
    let mut found: Vec<(Arc<Leaf>, Array)> = Vec::new();
    pass.run(|node, index, gradient| {
        if let Some(leaf) = node.leaf(index) {
            found.push((leaf, gradient.clone()));
        }
    })?;
    // Buffers are written only when the whole pass has succeeded.
    drop(pass);
    found
        .into_iter()
        .map(|(leaf, gradient)| store(&leaf, gradient).map(|()| leaf))
        .collect()
}

/// Gradients of the sum of `heads` with respect to `variables`, which may be variables or results inside the graph.
///
/// # Errors
/// As [`backward`]; [`Error::Autograd`] if a variable has no part in the graph.
pub fn grad(
    heads: &[&Array],
    variables: &[&Array],
    head_grads: &[Option<&Array>],
    retain: Retain,
    create_graph: bool,
    train_mode: bool,
) -> Result<Vec<Array>> {
    let _scope = Scope::enter(create_graph, train_mode);
    let stand_ins = variables
        .iter()
        .map(|x| interp::stand_in(x))
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
    pass.only = Some(
        pass.leading_to(
            &variables
                .iter()
                .filter_map(|x| x.entry())
                .map(|(n, _)| Arc::as_ptr(n))
                .collect(),
        ),
    );
    pass.run(|node, index, gradient| {
        if let Some(&i) = wanted.get(&(Arc::as_ptr(node), index)) {
            results[i] = Some(gradient.clone());
        }
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

/// Puts a gradient into a variable's buffer.
fn store(leaf: &Leaf, gradient: Array) -> Result<()> {
    let mut buffer = leaf.grad.lock();
    leaf.set_fresh(true);
    match leaf.req {
        GradReq::Null => Ok(()),
        GradReq::Add => {
            let sum = buffer.add(&gradient)?;
            eager::copy_into(&sum, &buffer)
        }
        GradReq::Write => {
            // Nobody else sees the buffer: take the new elements instead of copying them.
            let private = !Flags::current().is_stacked()
                && Arc::strong_count(buffer.tensor().storage()) == 1
                && Arc::strong_count(gradient.tensor().storage()) == 1;
            if private && gradient.layout().is_contiguous() && gradient.dtype() == buffer.dtype() {
                *buffer = gradient.detach();
                return Ok(());
            }
            eager::copy_into(&gradient, &buffer)
        }
    }
}

/// A set of nodes.
type Visited = HashSet<*const Node, BuildHasherDefault<ByAddress>>;

/// Hash of addresses: nobody chooses them, and a multiplication spreads them well.
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
        // The odd number nearest to 2^64 over the golden ratio; the table looks at the high bits and the low ones.
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}

/// The kept inputs of a call, and its kept outputs.
type Unpacked = (SmallVec<[Option<Kept>; 2]>, SmallVec<[Option<Kept>; 1]>);

/// Cotangents that have arrived at a node, one slot an output.
struct Arrived {
    node: Arc<Node>,
    dys: SmallVec<[Option<Array>; 1]>,
}

struct Pass {
    name: &'static str,
    retain: Retain,
    arrived: HashMap<*const Node, Arrived, BuildHasherDefault<ByAddress>>,
    /// Nodes with cotangents, newest on top: all consumers of a node are newer than it.
    ready: BinaryHeap<(u64, *const Node)>,
    /// Nodes worth visiting; `None` means all.
    only: Option<Visited>,
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
        };
        for (i, head) in heads.iter().enumerate() {
            let stand_in = interp::stand_in(head)?;
            let head = stand_in.as_ref().unwrap_or(head);
            let Some((node, index)) = head.entry() else {
                let problem = format!(
                    "head {i} was not computed while recording from a variable with a gradient"
                );
                return Err(Error::autograd(name, problem)
                    .with_hint("call `x.attach_grad()` and compute inside `autograd.record()`"));
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
            pass.arrive(node, *index, dy)?;
        }
        Ok(pass)
    }

    fn arrive(&mut self, node: &Arc<Node>, index: u32, dy: Array) -> Result<()> {
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
            Some(sum) => sum.add(&dy)?,
            None => dy,
        });
        Ok(())
    }

    /// Nodes from which one of `targets` can be reached.
    fn leading_to(&self, targets: &Visited) -> Visited {
        let mut order: Vec<&Arc<Node>> = Vec::new();
        let mut seen: Visited = Visited::default();
        let mut stack: Vec<&Arc<Node>> = self.arrived.values().map(|a| &a.node).collect();
        while let Some(node) = stack.pop() {
            if seen.insert(Arc::as_ptr(node)) {
                order.push(node);
                stack.extend(node.edges.iter().flatten().map(|(n, _)| n));
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

    /// Visits nodes newest first; `found` sees every complete cotangent.
    fn run(&mut self, mut found: impl FnMut(&Arc<Node>, u32, &Array)) -> Result<()> {
        while let Some((_, key)) = self.ready.pop() {
            let Some(Arrived { node, dys }) = self.arrived.remove(&key) else {
                continue;
            };
            for (i, dy) in dys.iter().enumerate() {
                if let Some(dy) = dy {
                    found(&node, i as u32, dy);
                }
            }
            let grads = self.pull_back(&node, dys)?;
            for (i, (edge, gradient)) in node.edges.iter().zip(grads).enumerate() {
                let (Some((input, index)), Some(gradient)) = (edge, gradient) else {
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
                    return Err(misshapen(&node, i, gradient.shape(), &spec.shape));
                }
                let gradient = if gradient.dtype() == spec.dtype {
                    gradient
                } else {
                    gradient.astype(spec.dtype)?
                };
                self.arrive(input, *index, gradient)?;
            }
        }
        Ok(())
    }

    /// The kept arrays, at their places in the graph, so that their own gradients flow.
    fn unpack(&self, node: &Arc<Node>, call: &Recorded, keep: Keep) -> Result<Unpacked> {
        let mut guard = call.saved.lock();
        if guard.is_none() {
            return Err(freed(self.name, node));
        }
        let place_of = |i: usize| keep.has_input(i) && call.has_array(i);
        // The last pass takes them, others share them.
        let taken = match self.retain {
            Retain::No => guard.take(),
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
                    Array::weak_scalar(value).map(|x| Some(Kept::new(x)))
                }
                _ if place_of(i) => Ok(match (next(), &node.edges[i]) {
                    (Some(x), Some((source, index))) => Some(x.with_entry(source.clone(), *index)),
                    (x, _) => x,
                }),
                _ => Ok(None),
            })
            .collect::<Result<_>>()?;
        let outputs = (0..node.outputs.len())
            .map(|i| match keep.has_output(i) {
                true => next().map(|y| y.with_entry(node.clone(), i as u32)),
                false => None,
            })
            .collect();
        Ok((inputs, outputs))
    }

    /// Cotangents of a node's inputs.
    fn pull_back(&self, node: &Arc<Node>, dys: SmallVec<[Option<Array>; 1]>) -> Result<Grads> {
        if node.is_variable() || self.only.as_ref().is_some_and(|only| !leads_on(node, only)) {
            return Ok(Grads::new());
        }
        let given = dys.iter().enumerate().fold(0, |mask, (i, dy)| {
            mask | u32::from(dy.is_some()) << i.min(31)
        });
        let dys: SmallVec<[Array; 1]> = dys
            .into_iter()
            .zip(&node.outputs)
            .map(|(dy, spec)| {
                dy.map_or_else(|| creation::zeros(&spec.shape, spec.dtype, spec.device), Ok)
            })
            .collect::<Result<_>>()?;
        match &node.kind {
            Kind::Variable => Ok(Grads::new()),
            Kind::Call(call) => {
                let composes = Flags::current().is_recording() || interp::composes_gradients();
                let Some((keep, rule)) = call.op.grad.rule(composes) else {
                    return Ok(Grads::new());
                };
                let (inputs, outputs) = self.unpack(node, call, keep)?;
                let none = Attrs::none();
                let cx = GradCx {
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
                    overwritten: Cell::new(None),
                };
                let grads = rule(&cx);
                match cx.overwritten.take() {
                    Some(error) => Err(error),
                    None => grads,
                }
            }
            Kind::Custom { rule, .. } => {
                let mut guard = rule.lock();
                let Some(body) = guard.take() else {
                    return Err(freed(self.name, node));
                };
                // The user's code may run a backward pass of its own: the lock must not be held.
                drop(guard);
                let result = body.backward(node, &dys);
                if self.retain == Retain::Yes {
                    *rule.lock() = Some(body);
                }
                result
            }
        }
    }
}

/// The error for a gradient that is not of its input's shape.
#[cold]
fn misshapen(node: &Node, i: usize, found: &[usize], wanted: &[usize]) -> Error {
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
