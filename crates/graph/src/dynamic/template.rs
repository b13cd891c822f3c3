//! Templates: graphs whose numbers depend on sizes. Graphs for certain sizes are made from them.

use std::collections::HashMap;

use mxnet_core::mode::Scope;
use mxnet_core::{Array, Call, Cpu, Known, Result, eager};
use mxnet_tensor::{DType, Layout, Tensor};
use smallvec::SmallVec;

use super::number::{Number, Polynomial};
use super::walk::{self, SizeNumber, ViewRule, wrong_size};
use crate::ir::{BufferId, Graph, Node, Operand, Source, View};

/// A size that is unknown when a function is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// The length of an axis of an argument.
    Argument {
        /// Which argument.
        index: usize,
        /// Which axis.
        axis: usize,
    },
    /// The length of an axis of a node's result. The operator's rule determines it, or, if `depends_on_values`, it is known after the node has run.
    Computed {
        /// The buffer that the node defines.
        buffer: BufferId,
        /// Which axis.
        axis: usize,
        /// Whether the length depends on values.
        depends_on_values: bool,
    },
}

/// The numbers of a node or a view that depend on sizes: positions in the order of [`walk`], and the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Holes {
    pub(super) views: SmallVec<[ViewRule; 4]>,
    pub(super) numbers: Vec<(u32, Number)>,
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

/// All comparisons with their names.
pub(super) const COMPARISONS: [(Comparison, &str); 6] = [
    (Comparison::Lt, "lt"),
    (Comparison::Le, "le"),
    (Comparison::Gt, "gt"),
    (Comparison::Ge, "ge"),
    (Comparison::Eq, "eq"),
    (Comparison::Ne, "ne"),
];

impl Comparison {
    /// The comparison of this name.
    pub(super) fn from_name(name: &str) -> Option<Comparison> {
        let mut all = COMPARISONS.iter();
        all.find(|(_, known)| *known == name).map(|(x, _)| *x)
    }

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Lt => left < right,
            Comparison::Le => left <= right,
            Comparison::Gt => left > right,
            Comparison::Ge => left >= right,
            Comparison::Eq => left == right,
            Comparison::Ne => left != right,
        }
    }
}

/// A comparison that the function made with sizes. The graph is valid for sizes with the same result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) comparison: Comparison,
    pub(super) left: Number,
    pub(super) right: Number,
    pub(super) outcome: bool,
}

impl Condition {
    /// Whether it holds; `None` if a length that it needs is computed.
    pub(super) fn is_met(&self, sizes: &[Option<i64>]) -> Option<bool> {
        let (left, right) = (self.left.real_at(sizes)?, self.right.real_at(sizes)?);
        Some(self.comparison.holds(left, right) == self.outcome)
    }
}

/// A constant that depends on sizes: an arithmetic progression of int64 numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    /// Which input it is.
    pub(super) input: usize,
    pub(super) start: Polynomial,
    pub(super) step: i64,
    pub(super) count: Polynomial,
}

impl Range {
    /// The constant as an array of bytes.
    fn bytes(&self, sizes: &[Option<i64>]) -> Result<Array> {
        /// Longer constants are refused.
        const MAX_COUNT: i64 = 1 << 32;
        let (start, count) = (self.start.at(sizes), self.count.at(sizes));
        let (Some(start), Some(count @ 0..MAX_COUNT)) = (start, count) else {
            return Err(wrong_size("the length of a constant is not known"));
        };
        let number = |i: i64| start.wrapping_add(i.wrapping_mul(self.step));
        let bytes: Vec<u8> = (0..count).flat_map(|i| number(i).to_ne_bytes()).collect();
        Array::from_slice(&bytes, &[bytes.len()])
    }
}

/// A graph for all sizes.
#[derive(Clone, Debug)]
pub struct Template {
    /// The graph as it was traced first.
    pub(super) graph: Graph,
    pub(super) symbols: Vec<Symbol>,
    pub(super) conditions: Vec<Condition>,
    pub(super) inputs: Vec<Holes>,
    pub(super) ranges: Vec<Range>,
    pub(super) nodes: Vec<Holes>,
    pub(super) outputs: Vec<Holes>,
}

/// A graph for certain sizes, under construction.
struct Instance<'a> {
    template: &'a Template,
    graph: Graph,
    sizes: Vec<Option<i64>>,
    definitions: HashMap<BufferId, View>,
    has_input: Vec<bool>,
}

/// Replaces the numbers that depend on sizes by their values.
pub(super) fn filled<R>(
    numbers: &[(u32, Number)],
    sizes: &[Option<i64>],
    walk: impl FnOnce(&mut walk::Change) -> Result<R>,
) -> Result<R> {
    let (mut at, mut rest) = (0_u32, numbers.iter().peekable());
    let mut change = |number: SizeNumber| {
        at += 1;
        let Some((_, number)) = rest.next_if(|(position, _)| position + 1 == at) else {
            return Ok(number);
        };
        let value = match number {
            Number::Whole(x) => x.at(sizes).map(SizeNumber::Whole),
            Number::Real(x) => x.at(sizes).map(|x| SizeNumber::Real(x as f64)),
            Number::Quotient(constant, x) => {
                x.at(sizes).map(|x| SizeNumber::Real(constant / x as f64))
            }
        };
        value.ok_or_else(|| wrong_size("a number depends on a size that is not known or too large"))
    };
    walk(&mut change)
}

impl Template {
    /// The graph as it was traced first.
    pub fn traced(&self) -> &Graph {
        &self.graph
    }

    /// Whether the function made a comparison with a computed length.
    pub(super) fn decides_by_results(&self) -> bool {
        let given = vec![Some(2); self.num_sizes()];
        self.conditions
            .iter()
            .any(|condition| condition.is_met(&given).is_none())
    }

    fn check_conditions(&self, sizes: &[Option<i64>]) -> Result<()> {
        let is_wrong = |condition: &Condition| condition.is_met(sizes) == Some(false);
        match self.conditions.iter().any(is_wrong) {
            true => Err(wrong_size("the function branches differently for them")),
            false => Ok(()),
        }
    }

    /// The symbols.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Number of sizes that are known at the call: those of arguments.
    pub fn num_sizes(&self) -> usize {
        let is_argument = |symbol: &&Symbol| matches!(symbol, Symbol::Argument { .. });
        self.symbols.iter().take_while(is_argument).count()
    }

    /// The sizes of a call with arguments of these shapes.
    ///
    /// # Errors
    /// [`mxnet_core::Error::Shape`] if an argument has too few axes.
    pub fn sizes_of(&self, shapes: &[&[usize]]) -> Result<Vec<i64>> {
        let symbols = self.symbols.iter().take(self.num_sizes());
        let sizes = symbols.map(|symbol| match *symbol {
            Symbol::Argument { index, axis } => shapes
                .get(index)
                .and_then(|shape| shape.get(axis))
                .map(|&n| n as i64)
                .ok_or_else(|| wrong_size(&format!("argument {index} has no axis {axis}"))),
            Symbol::Computed { .. } => Err(wrong_size("a size is computed")),
        });
        sizes.collect()
    }

    /// The view of argument `index` for these sizes; `None` if nothing reads the argument.
    ///
    /// # Errors
    /// [`mxnet_core::Error::Shape`] if a size does not fit.
    pub fn argument_view(&self, index: usize, sizes: &[i64]) -> Result<Option<View>> {
        let is_it = |source: &Source| matches!(source, Source::Argument(i) if *i == index);
        let found = (self.graph.inputs.iter()).position(|input| is_it(&input.source));
        let known: Vec<Option<i64>> = sizes.iter().copied().map(Some).collect();
        let Some(i) = found else { return Ok(None) };
        self.view(&self.graph.inputs[i].view, &self.inputs[i], &known, &|_| {
            None
        })
        .map(Some)
    }

    /// Axes of argument `index` that may have any length.
    pub fn dynamic_axes(&self, index: usize) -> Vec<usize> {
        let is_it = |source: &Source| matches!(source, Source::Argument(i) if *i == index);
        let found = (self.graph.inputs.iter()).position(|input| is_it(&input.source));
        let Some(i) = found else { return Vec::new() };
        let ndim = self.graph.inputs[i].view.layout.ndim();
        let positions = self.inputs[i].numbers.iter().map(|(at, _)| *at as usize);
        positions.filter(|&at| at < ndim).collect()
    }

    fn view(
        &self,
        view: &View,
        holes: &Holes,
        sizes: &[Option<i64>],
        definition: &dyn Fn(BufferId) -> Option<View>,
    ) -> Result<View> {
        let rule = holes.views.first().copied().unwrap_or(ViewRule::Fixed);
        filled(&holes.numbers, sizes, |f| {
            walk::view(view, rule, definition, f)
        })
    }

    /// The graph for these sizes: sizes of arguments, then sizes that depend on values, in order. Every node is checked against the rule of its
    /// operator.
    ///
    /// # Errors
    /// [`mxnet_core::Error::Shape`] if the graph is not valid for these sizes; errors of the operators' rules.
    pub fn at(&self, sizes: &[i64]) -> Result<Graph> {
        let mut instance = self.instance(sizes, self.graph.nodes.len())?;
        for i in 0..self.graph.inputs.len() {
            instance.add_input(i)?;
        }
        for (view, holes) in self.graph.outputs.iter().zip(&self.outputs) {
            let definitions = &instance.definitions;
            let definition = |buffer: BufferId| definitions.get(&buffer).cloned();
            let view = self.view(view, holes, &instance.sizes, &definition)?;
            instance.check(&view)?;
            for rule in &holes.views {
                instance.check_order(&view, *rule)?;
            }
            instance.graph.outputs.push(view);
        }
        self.check_conditions(&instance.sizes)?;
        Ok(instance.graph)
    }

    /// The first `end` nodes of the graph for these sizes, without results. If results of the last node depend on values, they have the shapes of the
    /// trace.
    ///
    /// # Errors
    /// As [`Template::at`].
    pub(super) fn up_to(&self, sizes: &[i64], end: usize) -> Result<Graph> {
        self.instance(sizes, end).map(|instance| instance.graph)
    }

    fn instance(&self, sizes: &[i64], end: usize) -> Result<Instance<'_>> {
        let mut known = vec![None; self.symbols.len()];
        let is_given = |symbol: &Symbol| match symbol {
            Symbol::Argument { .. } => true,
            Symbol::Computed {
                depends_on_values, ..
            } => *depends_on_values,
        };
        let slots = known.iter_mut().zip(&self.symbols);
        let slots = slots.filter(|(_, symbol)| is_given(symbol));
        for ((slot, _), &size) in slots.zip(sizes) {
            *slot = Some(size);
        }
        self.check_conditions(&known)?;
        let mut instance = Instance {
            template: self,
            graph: Graph {
                nodes: Vec::with_capacity(end),
                outputs: Vec::new(),
                num_rng_blocks: 0,
                ..self.graph.clone()
            },
            sizes: known,
            definitions: HashMap::new(),
            has_input: vec![false; self.graph.inputs.len()],
        };
        for stream in &mut instance.graph.streams {
            stream.num_blocks = 0;
        }
        for i in 0..self.graph.inputs.len() {
            // Views that depend on computed sizes are resolved when a node reads them.
            let needs = |number: &Number| match number {
                Number::Whole(x) | Number::Real(x) | Number::Quotient(_, x) => {
                    x.at(&instance.sizes).is_none()
                }
            };
            if !self.inputs[i].numbers.iter().any(|(_, x)| needs(x)) {
                instance.add_input(i)?;
            }
        }
        for at in 0..end {
            instance.add_node(at, at + 1 == end)?;
        }
        Ok(instance)
    }
}

impl Instance<'_> {
    fn set_len(&mut self, buffer: BufferId, len_bytes: usize) {
        self.graph.buffers[buffer.0 as usize].len_bytes = len_bytes;
    }

    /// Refuses a view that leaves its buffer.
    fn check(&self, view: &View) -> Result<()> {
        let end = view.layout.span().map_or(Some(0), |(_, high)| {
            high.checked_add(1)?.checked_mul(view.dtype.size())
        });
        match end.is_some_and(|end| end <= self.graph.buffer(view.buffer).len_bytes) {
            true => Ok(()),
            false => Err(wrong_size("a view exceeds its buffer")),
        }
    }

    /// Refuses a view with strides of its own if its buffer has the axes in another order in memory than in the trace: an array with an axis of length
    /// 1 may have.
    fn check_order(&self, view: &View, rule: ViewRule) -> Result<()> {
        if !matches!(rule, ViewRule::Strided | ViewRule::Contiguous) {
            return Ok(());
        }
        let mut made = self.template.graph.nodes.iter().flat_map(|x| &x.outputs);
        let traced = made.find(|traced| traced.buffer == view.buffer);
        match (traced, self.definitions.get(&view.buffer)) {
            (Some(traced), Some(found)) if !is_ordered_as(&traced.layout, &found.layout) => Err(
                wrong_size("an array has its axes in another order in memory"),
            ),
            _ => Ok(()),
        }
    }

    fn add_input(&mut self, i: usize) -> Result<()> {
        if std::mem::replace(&mut self.has_input[i], true) {
            return Ok(());
        }
        let template = self.template;
        let input = &template.graph.inputs[i];
        let holes = &template.inputs[i];
        let view = template.view(&input.view, holes, &self.sizes, &|_| None)?;
        if !holes.numbers.is_empty() {
            self.set_len(input.buffer, view.len_bytes());
            self.check(&view)?;
        }
        for range in template.ranges.iter().filter(|range| range.input == i) {
            let numbers = range.bytes(&self.sizes)?;
            if numbers.len() != view.len_bytes() || !matches!(input.source, Source::Constant(_)) {
                return Err(wrong_size("a constant has another length"));
            }
            self.graph.inputs[i].source = Source::Constant(numbers);
        }
        self.define(&view);
        self.graph.inputs[i].view = view;
        Ok(())
    }

    /// Registers a buffer and the sizes that follow from its view.
    fn define(&mut self, view: &View) {
        for (symbol, size) in self.template.symbols.iter().zip(&mut self.sizes) {
            if let Symbol::Computed { buffer, axis, .. } = *symbol
                && buffer == view.buffer
                && let Some(&n) = view.layout.shape().get(axis)
            {
                *size = Some(n as i64);
            }
        }
        self.definitions.insert(view.buffer, view.clone());
    }

    fn add_node(&mut self, at: usize, is_last: bool) -> Result<()> {
        let template = self.template;
        let (traced, holes) = (&template.graph.nodes[at], &template.nodes[at]);
        let mut rules = &holes.views[..];
        if is_last && depends_on_values(traced) && self.is_counted(traced) {
            // The views of its results are not known yet.
            let num_read = traced.inputs.iter().filter_map(Operand::view).count();
            rules = &rules[..num_read.min(rules.len())];
        }
        for buffer in traced.reads() {
            if let Some(i) = template.graph.input_of(buffer) {
                self.add_input(i)?;
            }
        }
        let definitions = &self.definitions;
        let definition = |buffer: BufferId| definitions.get(&buffer).cloned();
        let mut node = filled(&holes.numbers, &self.sizes, |f| {
            walk::node(traced, rules, &definition, f)
        })?;
        for (view, rule) in node.inputs.iter().filter_map(Operand::view).zip(rules) {
            self.check(view)?;
            self.check_order(view, *rule)?;
        }
        for version in &node.versions {
            let len_bytes = self.graph.buffer(version.old).len_bytes;
            self.set_len(version.new, len_bytes);
        }
        if node.is_assignment {
            let output = node.outputs[0].clone();
            if node.versions.is_empty() {
                self.set_len(output.buffer, output.len_bytes());
            }
            self.check(&output)?;
            self.check_assignment(&node)?;
            self.define(&output);
        } else if depends_on_values(&node) {
            let is_known = rules.len() == holes.views.len();
            for view in node.outputs.clone().into_iter().filter(|_| is_known) {
                self.set_len(view.buffer, view.len_bytes());
                self.check(&view)?;
                self.define(&view);
            }
        } else {
            let results = self.inferred(&node)?;
            for (view, result) in node.outputs.iter_mut().zip(&results) {
                if view.dtype != result.dtype() || view.layout.ndim() != result.ndim() {
                    return Err(wrong_size("an operator gives another kind of array"));
                }
                view.layout = result.layout().clone();
                let len_bytes = result.tensor().storage().len_bytes();
                self.graph.buffers[view.buffer.0 as usize].len_bytes = len_bytes;
            }
            for view in node.outputs.clone() {
                self.define(&view);
            }
        }
        self.graph.reserve(&mut node);
        self.graph.nodes.push(node);
        Ok(())
    }

    /// Whether a length of a node's results depends on values and is not known.
    fn is_counted(&self, node: &Node) -> bool {
        let mut symbols = self.template.symbols.iter().zip(&self.sizes);
        symbols.any(|(symbol, size)| match symbol {
            Symbol::Computed { buffer, .. } => {
                size.is_none() && node.outputs.iter().any(|view| view.buffer == *buffer)
            }
            Symbol::Argument { .. } => false,
        })
    }

    fn check_assignment(&self, node: &Node) -> Result<()> {
        let shape = match &node.inputs[0] {
            Operand::View(view) => view.layout.shape(),
            _ => &[],
        };
        let target = node.outputs[0].layout.shape();
        match mxnet_tensor::broadcast_shapes(&[shape, target])?.as_slice() == target {
            true => Ok(()),
            false => Err(wrong_size("an assigned value does not fit")),
        }
    }

    /// The results of a node by its operator's rule.
    fn inferred(&self, node: &Node) -> Result<mxnet_core::Outputs> {
        let mut arrays: SmallVec<[Option<Array>; 4]> = SmallVec::new();
        for operand in &node.inputs {
            arrays.push(match operand {
                Operand::Absent => None,
                Operand::View(view) => {
                    let buffer = self.graph.buffer(view.buffer);
                    let bytes =
                        Array::without_values(&[buffer.len_bytes], DType::U8, buffer.device)?;
                    let storage = bytes.tensor().storage().clone();
                    let tensor = Tensor::new(storage, view.layout.clone(), view.dtype)?;
                    Some(Array::from_tensor(tensor.locked(view.is_read_only)))
                }
                Operand::Number(value) => Some(Array::weak_scalar(*value)?),
                Operand::Constant(value, dtype) => Some(Array::constant(*value, *dtype)?),
            });
        }
        let inputs: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
        let _scope = Scope::enter(false, node.training);
        eager::without_values(&Call {
            op: node.op,
            inputs: &inputs,
            attrs: &node.attrs,
            outs: &[],
            dtype: node.dtype,
        })
    }
}

/// Whether the axes of two layouts that are longer than 1 in both have the same order in memory.
fn is_ordered_as(a: &Layout, b: &Layout) -> bool {
    let is_long = |i: &usize| a.shape()[*i] > 1 && b.shape()[*i] > 1;
    let axes: SmallVec<[usize; 8]> = (0..a.ndim().min(b.ndim())).filter(is_long).collect();
    let order = |x: &Layout, i: usize, j: usize| {
        let strides = x.strides();
        strides[i].unsigned_abs().cmp(&strides[j].unsigned_abs())
    };
    let mut pairs = axes
        .iter()
        .enumerate()
        .flat_map(|(k, &i)| axes[k + 1..].iter().map(move |&j| (i, j)));
    pairs.all(|(i, j)| order(a, i, j) == order(b, i, j))
}

/// Whether the shape of a node's result depends on values.
pub(crate) fn depends_on_values(node: &Node) -> bool {
    matches!(node.op.cpu, Cpu::Eager(_, Known::FromValues))
}
