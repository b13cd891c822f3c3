//! Combines traces of one function at three sizes to one graph for all sizes.

use std::collections::HashMap;
use std::sync::Arc;

use mxnet_core::Result as CoreResult;
use smallvec::SmallVec;

use super::number::{Number, Polynomial, Three, fit_real, fit_whole, follows_one};
use super::template::{Comparison, Condition, Holes, Range, Symbol, Template, depends_on_values};
use super::walk::{self, SizeNumber, ViewRule};
use crate::ir::{BufferId, Graph, Node, Operand, Source, View};
use crate::random::Stream;

/// A trace of a function at certain sizes.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    /// The trace.
    pub graph: &'a Graph,
    /// The values of the symbols that are axes of arguments.
    pub sizes: &'a [i64],
    /// Axes of results whose lengths depend on values, each listed at its first occurrence.
    pub counted: &'a [(BufferId, usize)],
    /// Comparisons that the function made with lengths.
    pub decisions: &'a [Decision],
}

/// A comparison of lengths, or of numbers computed from lengths.
#[derive(Clone, Debug)]
pub struct Decision {
    /// `lt`, `le`, `gt`, `ge`, `eq`, `ne`, or `seen`: the length was converted to a plain number, whose further use is unknown. `bound ge` and `bound gt`
    /// compare a length with a bound of a slice: they are conditions where only lengths of arguments decide.
    pub comparison: String,
    /// The left side.
    pub left: f64,
    /// The right side.
    pub right: f64,
    /// Result of the comparison.
    pub outcome: bool,
}

/// A result, or the reason why there is no graph for all sizes.
type Fit<T> = Result<T, String>;

struct Fitting<'a> {
    samples: Three<Sample<'a>>,
    symbols: Vec<Symbol>,
    values: Vec<Three<i64>>,
    definitions: HashMap<BufferId, Three<View>>,
    has_input: Vec<bool>,
    inputs: Vec<Holes>,
    ranges: Vec<Range>,
}

/// Combines three traces to one graph for all sizes. `arguments` has, for each symbol of the arguments, the index of an argument and one of its axes.
///
/// # Errors
/// A message that says where the traces differ in more than numbers, or which number is not a polynomial of the sizes.
pub fn fit(samples: [Sample; 3], arguments: &[(usize, usize)]) -> Fit<Template> {
    let base = samples[0].graph;
    for other in &samples[1..] {
        same_inputs(base, other.graph)?;
        if other.graph.nodes.len() != base.nodes.len()
            || other.graph.buffers.len() != base.buffers.len()
            || other.graph.outputs.len() != base.outputs.len()
            || other.counted != samples[0].counted
        {
            return Err(format!(
                "it calls {} operators at one size and {} at another",
                base.nodes.len(),
                other.graph.nodes.len()
            ));
        }
    }
    let symbol = |&(index, axis): &(usize, usize)| Symbol::Argument { index, axis };
    let mut fitting = Fitting {
        symbols: arguments.iter().map(symbol).collect(),
        values: (0..arguments.len())
            .map(|i| samples.map(|sample| sample.sizes[i]))
            .collect(),
        definitions: HashMap::new(),
        has_input: vec![false; base.inputs.len()],
        inputs: vec![Holes::default(); base.inputs.len()],
        ranges: Vec::new(),
        samples,
    };
    for i in 0..base.inputs.len() {
        // Views that depend on computed sizes are resolved when a node reads them.
        let views = fitting.samples.map(|sample| &sample.graph.inputs[i].view);
        let dims = 0..views[0].layout.ndim();
        let is_known = |k: usize| {
            let dim = views.map(|view| view.layout.shape().get(k).map_or(-1, |&n| n as i64));
            follows_one(dim, &fitting.values)
        };
        if dims.into_iter().all(is_known) {
            fitting.add_input(i)?;
        }
    }
    let mut nodes = Vec::with_capacity(base.nodes.len());
    for at in 0..base.nodes.len() {
        nodes.push(fitting.node(at)?);
    }
    for i in 0..base.inputs.len() {
        fitting.add_input(i)?;
    }
    let mut outputs = Vec::new();
    for i in 0..base.outputs.len() {
        let views = fitting.samples.map(|sample| &sample.graph.outputs[i]);
        outputs.push(fitting.view(views, "a result")?);
    }
    let conditions = fitting.conditions()?;
    Ok(Template {
        conditions,
        graph: base.clone(),
        symbols: fitting.symbols,
        inputs: fitting.inputs,
        ranges: fitting.ranges,
        nodes,
        outputs,
    })
}

fn same_inputs(a: &Graph, b: &Graph) -> Fit<()> {
    let is_same = |a: &Source, b: &Source| match (a, b) {
        (Source::Argument(i), Source::Argument(k)) => i == k,
        (Source::Captured(x), Source::Captured(y)) => {
            Arc::ptr_eq(x.tensor().storage(), y.tensor().storage())
        }
        // Whether the constants are equal, or are arithmetic progressions, is checked later.
        (Source::Constant(_), Source::Constant(_)) => true,
        _ => false,
    };
    let same = a.inputs.len() == b.inputs.len()
        && a.inputs.iter().zip(&b.inputs).all(|(x, y)| {
            x.buffer == y.buffer && x.written == y.written && is_same(&x.source, &y.source)
        });
    let is_one = |(x, y): (&Stream, &Stream)| x.is_same(y);
    if a.streams.len() != b.streams.len() || !a.streams.iter().zip(&b.streams).all(is_one) {
        return Err("it draws from a different generator at another size".to_owned());
    }
    match same {
        true => Ok(()),
        false => Err("it uses different arrays at another size".to_owned()),
    }
}

/// The first number, the step and the count, if the bytes are an arithmetic progression of int64 numbers.
fn progression(bytes: &[u8]) -> Option<(i64, i64, i64)> {
    let (numbers, []) = bytes.as_chunks::<8>() else {
        return None;
    };
    let numbers = numbers.iter().map(|x| i64::from_ne_bytes(*x));
    let numbers: Vec<i64> = numbers.collect();
    let (first, second) = (*numbers.first()?, *numbers.get(1)?);
    let step = second.checked_sub(first)?;
    let pairs = numbers.windows(2);
    let is_even = pairs
        .into_iter()
        .all(|pair| pair[0].checked_add(step) == Some(pair[1]));
    is_even.then_some((first, step, numbers.len() as i64))
}

/// The node's name in messages.
fn named(node: &Node) -> String {
    match &node.line {
        Some(line) => format!("`{}` at {line}", node.op.name),
        None => format!("`{}`", node.op.name),
    }
}

impl Fitting<'_> {
    fn add_input(&mut self, i: usize) -> Fit<()> {
        if std::mem::replace(&mut self.has_input[i], true) {
            return Ok(());
        }
        let views = self.samples.map(|sample| &sample.graph.inputs[i].view);
        self.inputs[i] = self.view(views, "an argument")?;
        if let Source::Constant(_) = self.samples[0].graph.inputs[i].source {
            self.constant(i)?;
        }
        self.define(views, false);
        Ok(())
    }

    /// The decisions as conditions on the sizes.
    fn conditions(&self) -> Fit<Vec<Condition>> {
        let [a, b, c] = self.samples.map(|sample| sample.decisions);
        let other = || "it branches differently at another size".to_owned();
        if a.len() != b.len() || b.len() != c.len() {
            return Err(other());
        }
        let mut found: Vec<Condition> = Vec::new();
        let is_argument = |symbol: &&Symbol| matches!(symbol, Symbol::Argument { .. });
        let given = vec![Some(2); self.symbols.iter().take_while(is_argument).count()];
        for ((x, y), z) in a.iter().zip(b).zip(c) {
            let all = [x, y, z];
            let (name, is_bound) = match x.comparison.strip_prefix("bound ") {
                Some(name) => (name, true),
                None => (x.comparison.as_str(), false),
            };
            let is_alike =
                |other: &&Decision| other.comparison == x.comparison && other.outcome == x.outcome;
            let alike = all.iter().all(is_alike);
            if !alike && !is_bound {
                return Err(other());
            }
            let (left, right) = (all.map(|x| x.left), all.map(|x| x.right));
            let is_constant = |side: Three<f64>| side[0] == side[1] && side[1] == side[2];
            let gap = [0, 1, 2].map(|i| left[i] - right[i]);
            if is_bound && alike && is_constant(gap) {
                continue;
            }
            if is_constant(left) && is_constant(right) || x.comparison != "seen" && left == right {
                continue;
            }
            let Some(comparison) = Comparison::from_name(name) else {
                return Err(
                    "a length is converted to a Python integer: use `x.shape[0]`".to_owned(),
                );
            };
            let side = |side: Three<f64>| match is_constant(side) {
                true => Some(Number::Quotient(side[0], Polynomial::one())),
                false => fit_real(side, &self.values),
            };
            let (Some(left), Some(right)) = (side(left), side(right)) else {
                return Err("it compares a number that is not a polynomial of the sizes".to_owned());
            };
            let outcome = x.outcome;
            let condition = Condition {
                comparison,
                left,
                right,
                outcome,
            };
            let is_decided_later = condition.is_met(&given).is_none();
            if !alike && !is_decided_later {
                return Err(other());
            }
            if condition.left != condition.right
                && !found.contains(&condition)
                && !(is_bound && is_decided_later)
            {
                found.push(condition);
            }
        }
        Ok(found)
    }

    /// A constant is the same at all sizes, or an arithmetic progression.
    fn constant(&mut self, i: usize) -> Fit<()> {
        let mut bytes: Three<Vec<u8>> = Default::default();
        for (sample, bytes) in self.samples.iter().zip(&mut bytes) {
            if let Source::Constant(x) = &sample.graph.inputs[i].source {
                *bytes = x.to_vec::<u8>().map_err(|error| error.to_string())?;
            }
        }
        if bytes[0] == bytes[1] && bytes[1] == bytes[2] {
            return Ok(());
        }
        let differs = || "a constant that it makes depends on the size".to_owned();
        let [Some(a), Some(b), Some(c)] = bytes.each_ref().map(|bytes| progression(bytes)) else {
            return Err(differs());
        };
        let starts = fit_whole([a.0, b.0, c.0], &self.values);
        let counts = fit_whole([a.2, b.2, c.2], &self.values);
        match (starts, counts) {
            (Some(start), Some(count)) if a.1 == b.1 && b.1 == c.1 => self.ranges.push(Range {
                input: i,
                start,
                step: a.1,
                count,
            }),
            _ => return Err(differs()),
        }
        Ok(())
    }

    /// Registers a buffer. Lengths of axes that do not follow from one of the sizes so far become new symbols.
    fn define(&mut self, views: Three<&View>, by_values: bool) {
        let buffer = views[0].buffer;
        for axis in 0..views[0].layout.ndim() {
            let values = views.map(|view| view.layout.shape().get(axis).map_or(-1, |&n| n as i64));
            let is_counted = by_values && self.samples[0].counted.contains(&(buffer, axis));
            if is_counted || !follows_one(values, &self.values) {
                self.symbols.push(Symbol::Computed {
                    buffer,
                    axis,
                    depends_on_values: is_counted,
                });
                self.values.push(values);
            }
        }
        self.definitions.insert(buffer, views.map(View::clone));
    }

    /// The rule of a view, in addition to its numbers.
    fn rule(&self, views: Three<&View>, where_: &str) -> Fit<ViewRule> {
        let [a, b, c] = views;
        for other in [b, c] {
            let is_alike = other.buffer == a.buffer
                && other.dtype == a.dtype
                && other.is_read_only == a.is_read_only
                && other.layout.ndim() == a.layout.ndim();
            if !is_alike {
                return Err(format!("{where_} is a different array at another size"));
            }
        }
        if let Some(defined) = self.definitions.get(&a.buffer) {
            let is_whole = |(view, defined): (&View, &View)| {
                view.layout == defined.layout && view.dtype == defined.dtype
            };
            if views.into_iter().zip(defined).all(is_whole) {
                return Ok(ViewRule::Definition);
            }
        }
        Ok(if a.layout == b.layout && b.layout == c.layout {
            ViewRule::Fixed
        } else if views.iter().all(|view| view.layout.is_contiguous()) {
            ViewRule::Contiguous
        } else {
            ViewRule::Strided
        })
    }

    /// The positions of the numbers that differ between three walks, and their dependence on the sizes.
    fn numbers(&self, walks: Three<Vec<SizeNumber>>, where_: &str) -> Fit<Vec<(u32, Number)>> {
        let [a, b, c] = &walks;
        if a.len() != b.len() || b.len() != c.len() {
            return Err(format!("{where_} has different arguments at another size"));
        }
        let mut found = Vec::new();
        for (at, ((x, y), z)) in a.iter().zip(b).zip(c).enumerate() {
            let number = match (*x, *y, *z) {
                (SizeNumber::Whole(x), SizeNumber::Whole(y), SizeNumber::Whole(z)) => {
                    if x == y && y == z {
                        continue;
                    }
                    fit_whole([x, y, z], &self.values).map(Number::Whole)
                }
                (SizeNumber::Real(x), SizeNumber::Real(y), SizeNumber::Real(z)) => {
                    if x.to_bits() == y.to_bits() && y.to_bits() == z.to_bits() {
                        continue;
                    }
                    fit_real([x, y, z], &self.values)
                }
                _ => return Err(format!("{where_} has different arguments at another size")),
            };
            let number = number.ok_or_else(|| {
                let shown = |x: &SizeNumber| match x {
                    SizeNumber::Whole(x) => x.to_string(),
                    SizeNumber::Real(x) => x.to_string(),
                };
                format!(
                    "{where_} has a number that is not a polynomial of the sizes: {}, {} and {} for sizes {:?}, {:?} and {:?}",
                    shown(x),
                    shown(y),
                    shown(z),
                    self.samples[0].sizes,
                    self.samples[1].sizes,
                    self.samples[2].sizes,
                )
            })?;
            found.push((at as u32, number));
        }
        Ok(found)
    }

    fn view(&self, views: Three<&View>, where_: &str) -> Fit<Holes> {
        let rule = self.rule(views, where_)?;
        let mut walks: Three<Vec<SizeNumber>> = Default::default();
        for (view, walk) in views.iter().zip(&mut walks) {
            let definition = |buffer| self.definitions.get(&buffer).map(|x| x[0].clone());
            walk::view(view, rule, &definition, &mut recording_numbers(walk))
                .map_err(|e| e.to_string())?;
        }
        Ok(Holes {
            numbers: self.numbers(walks, where_)?,
            views: SmallVec::from_iter([rule]),
        })
    }

    fn node(&mut self, at: usize) -> Fit<Holes> {
        let nodes = self.samples.map(|sample| &sample.graph.nodes[at]);
        let [first, ..] = nodes;
        let where_ = named(first);
        for buffer in first.reads().collect::<Vec<_>>() {
            if let Some(i) = self.samples[0].graph.input_of(buffer) {
                self.add_input(i)?;
            }
        }
        for other in &nodes[1..] {
            if !is_alike(first, other) {
                return Err(format!("{where_} is called differently at another size"));
            }
        }
        // First the views that are read, then those that are written and that inference does not determine.
        let by_values = depends_on_values(first);
        let mut rules: SmallVec<[ViewRule; 4]> = SmallVec::new();
        let num_read = first.inputs.iter().filter_map(Operand::view).count();
        for i in 0..num_read {
            let view = |node: &&'_ Node| -> Option<View> {
                node.inputs.iter().filter_map(Operand::view).nth(i).cloned()
            };
            let found = nodes.each_ref().map(view);
            let [Some(a), Some(b), Some(c)] = &found else {
                return Err(format!("{where_} is called differently at another size"));
            };
            rules.push(self.rule([a, b, c], &where_)?);
        }
        if by_values {
            for i in 0..first.outputs.len() {
                self.define(nodes.map(|node| &node.outputs[i]), true);
                let rule = self.rule(nodes.map(|node| &node.outputs[i]), &where_)?;
                // A definition needs its numbers, so it cannot refer to itself.
                rules.push(match rule {
                    ViewRule::Definition => ViewRule::Contiguous,
                    rule => rule,
                });
            }
        } else if first.is_assignment {
            let views = nodes.map(|node| &node.outputs[0]);
            rules.push(self.rule(views, &where_)?);
        }
        let mut walks: Three<Vec<SizeNumber>> = Default::default();
        let mut bare: Vec<Node> = Vec::new();
        for (node, walk) in nodes.iter().zip(&mut walks) {
            let definition = |buffer| self.definitions.get(&buffer).map(|x| x[0].clone());
            let noted = walk::node(node, &rules, &definition, &mut recording_numbers(walk));
            noted.map_err(|error| error.to_string())?;
            // With all numbers replaced by 0, the nodes must be equal.
            let zeros = &mut |number: SizeNumber| {
                Ok(match number {
                    SizeNumber::Whole(_) => SizeNumber::Whole(1),
                    SizeNumber::Real(_) => SizeNumber::Real(0.0),
                })
            };
            let views = [ViewRule::Fixed].repeat(rules.len());
            let node = walk::node(node, &views, &definition, zeros);
            bare.push(node.map_err(|error| error.to_string())?);
        }
        let is_same = |(a, b): (&Operand, &Operand)| a.view().is_some() || a == b;
        let is_same = |node: &Node| {
            node.attrs == bare[0].attrs && node.inputs.iter().zip(&bare[0].inputs).all(is_same)
        };
        if !bare.iter().all(is_same) {
            return Err(format!("{where_} has different attributes at another size"));
        }
        let numbers = self.numbers(walks, &where_)?;
        if !by_values {
            for i in 0..first.outputs.len() {
                self.define(nodes.map(|node| &node.outputs[i]), false);
            }
        }
        Ok(Holes {
            views: rules,
            numbers,
        })
    }
}

/// A function for [`walk`](super::walk) that records the numbers.
fn recording_numbers(
    walk: &mut Vec<SizeNumber>,
) -> impl FnMut(SizeNumber) -> CoreResult<SizeNumber> + '_ {
    |number| {
        walk.push(number);
        Ok(number)
    }
}

/// Whether two nodes call the same operator in the same way, apart from numbers.
fn is_alike(a: &Node, b: &Node) -> bool {
    let same_operand = |(x, y): (&Operand, &Operand)| match (x, y) {
        (Operand::Constant(_, dtype), Operand::Constant(_, other)) => dtype == other,
        (x, y) => std::mem::discriminant(x) == std::mem::discriminant(y),
    };
    let same_output = |(x, y): (&View, &View)| {
        x.buffer == y.buffer && x.dtype == y.dtype && x.layout.ndim() == y.layout.ndim()
    };
    std::ptr::eq(a.op, b.op)
        && a.inputs.len() == b.inputs.len()
        && a.inputs.iter().zip(&b.inputs).all(same_operand)
        && a.outputs.len() == b.outputs.len()
        && a.outputs.iter().zip(&b.outputs).all(same_output)
        && a.versions == b.versions
        && a.dtype == b.dtype
        && a.training == b.training
        && a.is_assignment == b.is_assignment
        && a.attrs.values().len() == b.attrs.values().len()
}
