//! Einstein summation. Pairs of operands are contracted by matrix products.

use std::borrow::Cow;
use std::sync::Arc;

use mxnet_tensor::Dims;
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Param, ParamKind};
use crate::context::CallContext;
use crate::error::Result;
use crate::index::WRITABLE_DIAGONAL;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, OpDef, Probe};

/// A summation index: a letter, or an axis of the ellipsis counted from the right.
type Label = u32;

const ELLIPSIS: Label = 1 << 24;

/// Sums of products over named axes.
pub static EINSUM: OpDef = OpDef {
    name: "einsum",
    params: &[
        Param::required("subscripts", ParamKind::Str),
        Param::arrays("operands"),
        Param::bool("greedy", true),
        Param::optional("path", ParamKind::Ints),
    ],
    doc: "Sums of products of the operands over named axes. `subscripts` has a letter for each axis of each operand, with commas between operands, \
        and after `->` the axes of the result; the other letters are summed over. `...` stands for axes that broadcast; a letter that occurs twice \
        in an operand takes its diagonal. Without `->` the result has the letters that occur once, in alphabetical order. Operands are contracted in \
        pairs, by matrix products: in the order that keeps results small (`greedy`), from left to right, or as `path` says. `path` has pairs of \
        positions; each result is appended to the operands.",
    form: Form::Out,
    cpu: Cpu::Composite(|context| {
        let operands: SmallVec<[&Array; 4]> = context.inputs.iter().flatten().copied().collect();
        let order = match context.opt_ints("path") {
            Some(path) => Order::Given(path),
            None if context.bool("greedy") => Order::Greedy,
            None => Order::LeftToRight,
        };
        context.done(einsum_of(
            context,
            context.str("subscripts"),
            &operands,
            &order,
        )?)
    }),
    probe: Probe::calls(&[
        "'ij,jk->ik', [f((2, 3)), f((3, 4))]",
        "'ij->', [f((2, 3))]",
        "'ii->i', [f((3, 3))]",
        "'ii', [f((3, 3))]",
        "'ba', [f((2, 3))]",
        "'i,j->ji', [f((2,)), f((3,))]",
        "'...ij,...jk->...ik', [f((2, 1, 2, 3)), f((4, 3, 2))]",
        "'bij,bjk,kl->bl', [f((2, 3, 4)), f((2, 4, 5)), f((5, 3))]",
        "'ij,ij->i', [f((2, 3)), f((2, 3))]",
        "'i...->...', [f((2, 3, 4))]",
        "'ij,jk', [f((2, 3)), f((3, 2))], False",
        "'ab,bc,cd->ad', [f((2, 3)), f((3, 2)), f((2, 4))], True, (1, 2, 0, 1)",
    ])
    .against("lambda subscripts, operands, *rest: np.einsum(subscripts, *operands)")
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Order in which pairs are contracted.
enum Order<'a> {
    LeftToRight,
    Greedy,
    Given(&'a [i64]),
}

/// An operand, and the label of each of its axes. No label repeats.
#[derive(Clone)]
struct Term {
    array: Array,
    labels: SmallVec<[Label; 8]>,
}

impl Term {
    fn size(&self, label: Label) -> Option<usize> {
        self.labels
            .iter()
            .position(|&l| l == label)
            .map(|i| self.array.shape()[i])
    }

    /// The operand with its axes in the order of `labels`.
    fn arranged(&self, labels: &[Label]) -> Result<Array> {
        let order: SmallVec<[i64; 8]> = labels
            .iter()
            .map(|l| {
                self.labels
                    .iter()
                    .position(|m| m == l)
                    .map_or(0, |i| i as i64)
            })
            .collect();
        if order.iter().enumerate().all(|(i, &a)| i as i64 == a) {
            return Ok(self.array.clone());
        }
        self.array.transpose(Some(&order))
    }

    /// The operand with its axes in the order of `labels`, reshaped to `shape`.
    fn shaped(&self, labels: &[Label], shape: &[usize]) -> Result<Array> {
        if labels != self.labels.as_slice() {
            self.arranged(labels)?.reshape(shape)
        } else if shape == self.array.shape() {
            Ok(self.array.clone())
        } else {
            self.array.reshape(shape)
        }
    }

    /// The term summed over the labels for which `needed` is false.
    fn summed(self, needed: impl Fn(Label) -> bool) -> Result<Term> {
        let axes = self.surplus(needed);
        self.summed_over(&axes)
    }

    /// The axes whose labels are not needed.
    fn surplus(&self, needed: impl Fn(Label) -> bool) -> SmallVec<[i64; 8]> {
        let axes = self.labels.iter().enumerate();
        axes.filter(|(_, l)| !needed(**l))
            .map(|(i, _)| i as i64)
            .collect()
    }

    fn summed_over(mut self, axes: &[i64]) -> Result<Term> {
        if axes.is_empty() {
            return Ok(self);
        }
        let dtype = self.array.dtype();
        self.array = self.array.sum(Some(axes), false)?.astype(dtype)?;
        for &axis in axes.iter().rev() {
            self.labels.remove(axis as usize);
        }
        Ok(self)
    }
}

fn einsum_of(
    context: &CallContext,
    subscripts: &str,
    operands: &[&Array],
    order: &Order,
) -> Result<Array> {
    let (mut terms, output) = parse(context, subscripts, operands)?;
    let mut path: &[i64] = if let Order::Given(path) = order {
        path
    } else {
        &[]
    };
    if path.len() % 2 == 1 {
        return Err(context.value_error(format!("`path` has {} numbers, needs pairs", path.len())));
    }
    for i in 0..terms.len() {
        let elsewhere = |l: Label| {
            output.contains(&l)
                || terms
                    .iter()
                    .enumerate()
                    .any(|(j, t)| j != i && t.labels.contains(&l))
        };
        let axes = terms[i].surplus(elsewhere);
        if !axes.is_empty() {
            let summed = terms[i].clone().summed_over(&axes)?;
            terms[i] = summed;
        }
    }
    while terms.len() > 1 {
        let (i, j) = match (order, path) {
            (Order::Given(_), [i, j, rest @ ..]) => {
                path = rest;
                let term_index = |p: i64| usize::try_from(p).ok().filter(|&p| p < terms.len());
                match (term_index(*i), term_index(*j)) {
                    (Some(i), Some(j)) if i != j => (i.min(j), i.max(j)),
                    _ => {
                        return Err(context.value_error(format!(
                            "`path` contracts ({i}, {j}), there are {} operands left",
                            terms.len()
                        )));
                    }
                }
            }
            (Order::Greedy, _) if terms.len() > 2 => cheapest(&terms, &output),
            _ => (0, 1),
        };
        let (b, a) = (terms.remove(j), terms.remove(i));
        let kept = |l: Label| output.contains(&l) || terms.iter().any(|t| t.labels.contains(&l));
        // The operand whose own axes come first in the result is the left factor of the last product, so that the result needs no transpose.
        let own = |l: &&Label| a.labels.contains(l) != b.labels.contains(l);
        let swapped =
            terms.is_empty() && (output.iter().find(own)).is_some_and(|l| b.labels.contains(l));
        let joined = match swapped {
            true => contract(b, a, &kept)?,
            false => contract(a, b, &kept)?,
        };
        match order {
            Order::LeftToRight => terms.insert(0, joined),
            _ => terms.push(joined),
        }
    }
    let Some(last) = terms.pop() else {
        return Err(context.value_error("no operands are given"));
    };
    let result = last.summed(|l| output.contains(&l))?.arranged(&output)?;
    // A single operand with transposed axes is returned as a view; any other result is a new array in C order.
    let is_view = operands
        .iter()
        .any(|x| Arc::ptr_eq(x.tensor().storage(), result.tensor().storage()));
    if is_view {
        Ok(result)
    } else {
        result.contiguous()
    }
}

/// The pair whose result is smallest, relative to the size of both operands.
fn cheapest(terms: &[Term], output: &[Label]) -> (usize, usize) {
    let mut best = ((0, 1), f64::INFINITY);
    for i in 0..terms.len() {
        for j in i + 1..terms.len() {
            let needed = |l: Label| {
                output.contains(&l)
                    || terms
                        .iter()
                        .enumerate()
                        .any(|(k, t)| k != i && k != j && t.labels.contains(&l))
            };
            let own = terms[i].labels.iter().chain(
                terms[j]
                    .labels
                    .iter()
                    .filter(|l| !terms[i].labels.contains(l)),
            );
            let size: f64 = own
                .filter(|l| needed(**l))
                .map(|&l| terms[i].size(l).or_else(|| terms[j].size(l)).unwrap_or(1) as f64)
                .product();
            let gain = size - terms[i].array.len() as f64 - terms[j].array.len() as f64;
            if gain < best.1 {
                best = ((i, j), gain);
            }
        }
    }
    best.0
}

/// One matrix product: shared labels that are kept become batch axes, other shared labels are summed.
fn contract(a: Term, b: Term, kept: &dyn Fn(Label) -> bool) -> Result<Term> {
    let (of_a, of_b) = (
        a.surplus(|l| kept(l) || b.labels.contains(&l)),
        b.surplus(|l| kept(l) || a.labels.contains(&l)),
    );
    let (a, b) = (a.summed_over(&of_a)?, b.summed_over(&of_b)?);
    let split = |x: &Term, y: &Term, shared: bool, keep: bool| -> SmallVec<[Label; 8]> {
        x.labels
            .iter()
            .copied()
            .filter(|&l| y.labels.contains(&l) == shared && (!shared || kept(l) == keep))
            .collect()
    };
    let (batch, summed) = (split(&a, &b, true, true), split(&a, &b, true, false));
    let (rows, columns) = (split(&a, &b, false, false), split(&b, &a, false, false));
    let sizes =
        |x: &Term, labels: &[Label]| -> Dims { labels.iter().filter_map(|&l| x.size(l)).collect() };
    let joined = |parts: &[&[Label]]| -> SmallVec<[Label; 8]> {
        parts.iter().flat_map(|p| p.iter().copied()).collect()
    };
    let (b_sizes, r_sizes, c_sizes) = (sizes(&a, &batch), sizes(&a, &rows), sizes(&b, &columns));
    let labels = joined(&[&batch, &rows, &columns]);
    let shape: Dims = b_sizes
        .iter()
        .chain(&r_sizes)
        .chain(&c_sizes)
        .copied()
        .collect();
    let with = |tail: [usize; 2]| -> Dims { b_sizes.iter().copied().chain(tail).collect() };
    let (m, n) = (
        r_sizes.iter().product::<usize>(),
        c_sizes.iter().product::<usize>(),
    );
    let array = if summed.is_empty() {
        let left = a.shaped(&joined(&[&batch, &rows]), &with([m, 1]))?;
        let right = b.shaped(&joined(&[&batch, &columns]), &with([1, n]))?;
        left.mul(&right)?
    } else {
        let k = sizes(&a, &summed).iter().product::<usize>();
        let left = a.shaped(&joined(&[&batch, &rows, &summed]), &with([m, k]))?;
        let right = b.shaped(&joined(&[&batch, &summed, &columns]), &with([k, n]))?;
        left.matmul(&right)?
    };
    let array = if shape.as_slice() == array.shape() {
        array
    } else {
        array.reshape(&shape)?
    };
    Ok(Term { array, labels })
}

/// Operands with one label for each axis (diagonals taken, broadcast axes of length 1 dropped), and the labels of the result.
fn parse(
    context: &CallContext,
    subscripts: &str,
    operands: &[&Array],
) -> Result<(Vec<Term>, SmallVec<[Label; 8]>)> {
    let text = match subscripts.contains(char::is_whitespace) {
        true => Cow::Owned(subscripts.chars().filter(|c| !c.is_whitespace()).collect()),
        false => Cow::Borrowed(subscripts),
    };
    let (inputs, wanted) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (&*text, None),
    };
    let parts: SmallVec<[&str; 4]> = inputs.split(',').collect();
    if parts.len() != operands.len() {
        return Err(context.value_error(format!(
            "`subscripts` names {} operands, {} are given",
            parts.len(),
            operands.len()
        )));
    }
    let mut terms = Vec::with_capacity(parts.len());
    let mut widest = 0;
    for (i, (part, array)) in parts.iter().zip(operands).enumerate() {
        let (labels, ellipsis) = labels_of(context, part, Some(array.ndim()))?;
        widest = widest.max(ellipsis);
        if labels.len() != array.ndim() {
            return Err(context.shape_error(format!(
                "operand {i} has {} axes, `{part}` names {}",
                array.ndim(),
                labels.len()
            )));
        }
        let mut term = Term {
            array: (*array).clone(),
            labels,
        };
        take_diagonals(context, &mut term, i)?;
        terms.push(term);
    }
    // The size of a label is its size in any operand where that is not 1.
    let mut sizes: SmallVec<[(Label, usize); 16]> = SmallVec::new();
    for (i, term) in terms.iter().enumerate() {
        for (&label, &n) in term.labels.iter().zip(term.array.shape()) {
            match sizes.iter_mut().find(|(l, _)| *l == label) {
                None => sizes.push((label, n)),
                Some((_, size)) if *size == 1 => *size = n,
                Some((_, size)) if n != 1 && *size != n => {
                    return Err(context.shape_error(format!(
                        "'{}' is {} elsewhere and {n} in operand {i}",
                        name(label),
                        *size
                    )));
                }
                Some(_) => {}
            }
        }
    }
    for term in &mut terms {
        let full =
            |l: Label, n: usize| n != 1 || sizes.iter().any(|&(m, size)| m == l && size == 1);
        let kept: SmallVec<[(Label, usize); 8]> = term
            .labels
            .iter()
            .copied()
            .zip(term.array.shape().iter().copied())
            .filter(|&(l, n)| full(l, n))
            .collect();
        if kept.len() != term.labels.len() {
            let shape: Dims = kept.iter().map(|k| k.1).collect();
            term.array = term.array.reshape(&shape)?;
            term.labels = kept.iter().map(|k| k.0).collect();
        }
    }
    let output = match wanted {
        Some(part) => {
            let (labels, _) = labels_of(context, part, None)?;
            // The result's ellipsis has as many axes as the longest ellipsis of the operands.
            let mut all = SmallVec::new();
            for label in labels {
                if label == ELLIPSIS {
                    all.extend((0..widest).rev().map(|k| ELLIPSIS + k as Label));
                } else {
                    all.push(label);
                }
            }
            all
        }
        None => {
            let letters: SmallVec<[char; 16]> =
                inputs.chars().filter(|c| c.is_ascii_alphabetic()).collect();
            let mut once: SmallVec<[Label; 8]> = letters
                .iter()
                .filter(|c| letters.iter().filter(|d| d == c).count() == 1)
                .map(|&c| c as Label)
                .collect();
            once.sort_unstable();
            (0..widest)
                .rev()
                .map(|k| ELLIPSIS + k as Label)
                .chain(once)
                .collect()
        }
    };
    for (i, &label) in output.iter().enumerate() {
        if !sizes.iter().any(|&(l, _)| l == label) {
            return Err(context.value_error(format!(
                "the result names '{}', which no operand has",
                name(label)
            )));
        }
        if output[..i].contains(&label) {
            return Err(context.value_error(format!("the result names '{}' twice", name(label))));
        }
    }
    Ok((terms, output))
}

fn name(label: Label) -> String {
    match char::from_u32(label) {
        Some(c) if label < ELLIPSIS => c.to_string(),
        _ => "...".to_owned(),
    }
}

/// Labels of one operand, with the ellipsis spelt out for `ndim` axes; for the result (`ndim` is `None`) the ellipsis stays one label. Also the
/// number of axes of the ellipsis.
fn labels_of(
    context: &CallContext,
    part: &str,
    ndim: Option<usize>,
) -> Result<(SmallVec<[Label; 8]>, usize)> {
    let letters = part.chars().filter(char::is_ascii_alphabetic).count();
    let free = ndim.map_or(0, |n| n.saturating_sub(letters));
    let mut labels = SmallVec::new();
    let mut seen = 0;
    let mut rest = part;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            seen += 1;
            match ndim {
                Some(_) => labels.extend((0..free).rev().map(|k| ELLIPSIS + k as Label)),
                None => labels.push(ELLIPSIS),
            }
            rest = after;
        } else if c.is_ascii_alphabetic() {
            labels.push(c as Label);
            rest = &rest[1..];
        } else {
            return Err(context.value_error(format!(
                "`{c}` in `subscripts` is neither a letter nor an ellipsis"
            )));
        }
    }
    if seen > 1 {
        return Err(context.value_error(format!("`{part}` has {seen} ellipses")));
    }
    Ok((labels, if seen == 1 { free } else { 0 }))
}

/// A label that occurs twice in an operand takes the diagonal of its two axes.
fn take_diagonals(context: &CallContext, term: &mut Term, i: usize) -> Result<()> {
    while let Some((p, q)) = repeated(&term.labels) {
        let (m, n) = (term.array.shape()[p], term.array.shape()[q]);
        if m != n {
            return Err(context.shape_error(format!(
                "'{}' stands for axes of size {m} and {n} of operand {i}",
                name(term.labels[p])
            )));
        }
        let attrs = [0, p as i64, q as i64].map(crate::Value::Int);
        term.array = invoke1(
            &WRITABLE_DIAGONAL,
            &[&term.array],
            &attrs.into_iter().collect(),
        )?;
        // The diagonal becomes the last axis.
        let label = term.labels.remove(q);
        term.labels.remove(p);
        term.labels.push(label);
    }
    Ok(())
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    labels.iter().enumerate().find_map(|(p, l)| {
        labels[p + 1..]
            .iter()
            .position(|m| m == l)
            .map(|q| (p, p + 1 + q))
    })
}

/// Sums of products over named axes, for Rust callers; see [`EINSUM`].
///
/// # Errors
/// Subscripts that do not fit the operands.
pub fn einsum(subscripts: &str, operands: &[&Array]) -> Result<Array> {
    let attrs = [
        crate::Value::Str(subscripts.into()),
        crate::Value::Bool(true),
        crate::Value::None,
    ];
    crate::invoke1(&EINSUM, operands, &attrs.into_iter().collect())
}
