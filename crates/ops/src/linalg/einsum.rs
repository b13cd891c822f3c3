//! Einstein summation and what is a case of it. Pairs of operands are contracted by products of matrices.

use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Param, ParamKind};
use crate::creation;
use crate::cx::CallCx;
use crate::elementwise::comparison::EQUAL;
use crate::error::{Error, Result};
use crate::index::DIAGONAL;
use crate::invoke::invoke1;
use crate::opdef::{Cpu, Form, OpDef, Probe, Surface};

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
    doc: "Sums of products of the operands over named axes: `subscripts` has a letter for each axis of each operand, operands parted by commas, and behind `->` the \
          axes of the result; letters that are not there are summed over. `...` stands for axes that broadcast, a letter that occurs twice in an operand takes its \
          diagonal. Without `->` the result has the letters that occur once, in alphabetical order. Pairs are contracted by products of matrices, in the order that \
          keeps results small (`greedy`), from left to right, or as `path` says: pairs of positions, the result going to the end.",
    form: Form::Out,
    cpu: Cpu::Composite(|cx| {
        let operands: Vec<&Array> = cx.inputs.iter().flatten().copied().collect();
        let order = match cx.opt_ints("path") {
            Some(path) => Order::Given(path),
            None if cx.bool("greedy") => Order::Greedy,
            None => Order::LeftToRight,
        };
        cx.done(einsum_of(cx, cx.str("subscripts"), &operands, &order)?)
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

/// Sums over several axes of two arrays.
pub static TENSORDOT: OpDef = OpDef {
    name: "tensordot",
    params: &[
        Param::array("a"),
        Param::array("b"),
        Param::required("axes_a", ParamKind::Ints),
        Param::required("axes_b", ParamKind::Ints),
    ],
    doc: "Sum of products over `axes_a` of `a` and `axes_b` of `b`, pair by pair; the other axes follow one another.",
    cpu: Cpu::Composite(|cx| cx.done(tensordot(cx, cx.ints("axes_a"), cx.ints("axes_b"))?)),
    probe: Probe::calls(&[
        "f((2, 3, 4)), f((3, 4, 5)), (1, 2), (0, 1)",
        "f((2, 3)), f((4, 2)), (0,), (1,)",
        "f((2, 3)), f((4,)), (), ()",
    ])
    .against("lambda a, b, i, j: np.tensordot(a, b, (i, j))")
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Sum over the last axes.
pub static INNER: OpDef = OpDef {
    name: "inner",
    surface: &[Surface::Np("inner")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "Sum of products over the last axes of both; the other axes follow one another. A product of elements if one of them is 0-d.",
    cpu: Cpu::Composite(|cx| {
        let (a, b) = (cx.input(0), cx.input(1));
        if a.ndim() == 0 || b.ndim() == 0 {
            return cx.done(a.mul(b)?);
        }
        cx.done(tensordot(cx, &[-1], &[-1])?)
    }),
    probe: Probe::calls(&["f((3,)), f((3,))", "f((2, 3)), f((4, 3))", "f((2, 3)), 2.0"]).ulp(64),
    ..OpDef::COMPOSITE
};

/// Every product of two elements.
pub static OUTER: OpDef = OpDef {
    name: "outer",
    surface: &[Surface::Np("outer"), Surface::NpLinalg("outer")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "Products of every element of `a` with every element of `b`, of shape (a.size, b.size).",
    form: Form::Out,
    cpu: Cpu::Composite(|cx| {
        let (a, b) = (cx.input(0), cx.input(1));
        cx.done(a.reshape(&[a.len(), 1])?.mul(&b.reshape(&[1, b.len()])?)?)
    }),
    probe: Probe::calls(&["f((3,)), f((4,))", "f((2, 2)), f((3,))", "2.0, f((3,))"]),
    ..OpDef::COMPOSITE
};

/// Sum of products of all elements.
pub static VDOT: OpDef = OpDef {
    name: "vdot",
    surface: &[Surface::Np("vdot")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "Sum of products of the conjugated elements of `a` with those of `b`, both in C order.",
    cpu: Cpu::Composite(|cx| {
        let (a, b) = (cx.input(0), cx.input(1));
        if a.len() != b.len() {
            return Err(cx.shape_error(format!("`a` has {} elements, `b` {}", a.len(), b.len())));
        }
        cx.done(
            a.conj()?
                .reshape(&[a.len()])?
                .matmul(&b.reshape(&[b.len()])?)?,
        )
    }),
    probe: Probe::calls(&[
        "f((3,)), f((3,))",
        "f((2, 3)), f((3, 2))",
        "c((3,)), c((3,))",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Sum of products along one axis.
pub static VECDOT: OpDef = OpDef {
    name: "vecdot",
    surface: &[Surface::Np("vecdot"), Surface::NpLinalg("vecdot")],
    params: &[
        Param::array("x1"),
        Param::array("x2"),
        Param::int("axis", -1).keyword(),
    ],
    doc: "Sum of products of the conjugated elements of `x1` with those of `x2` along `axis`; the other axes broadcast.",
    cpu: Cpu::Composite(|cx| {
        let axis = cx.int("axis");
        let end = |i: usize| -> Result<Array> {
            let x = cx.input(i);
            if x.ndim() == 0 {
                return Err(cx.shape_error("operands of 0 axes have none to sum over"));
            }
            let at = cx.axis("axis", i)?;
            let order: SmallVec<[i64; 4]> = (0..x.ndim())
                .filter(|&a| a != at)
                .chain([at])
                .map(|a| a as i64)
                .collect();
            x.transpose(Some(&order))
        };
        let (a, b) = (end(0)?, end(1)?);
        let (n, m) = (a.shape()[a.ndim() - 1], b.shape()[b.ndim() - 1]);
        if n != m {
            return Err(cx.shape_error(format!("axis {axis} has sizes {n} and {m}")));
        }
        // (..., 1, n) @ (..., n, 1)
        let row: Dims = a.shape()[..a.ndim() - 1]
            .iter()
            .copied()
            .chain([1, n])
            .collect();
        let column: Dims = b.shape().iter().copied().chain([1]).collect();
        let y = a.conj()?.reshape(&row)?.matmul(&b.reshape(&column)?)?;
        let shape = Dims::from_slice(&y.shape()[..y.ndim() - 2]);
        cx.done(y.reshape(&shape)?)
    }),
    probe: Probe::calls(&[
        "f((3,)), f((3,))",
        "f((2, 3)), f((3,))",
        "f((4, 1, 3)), f((2, 3))",
        "f((3, 2)), f((3, 2)), axis=0",
        "c((2, 3)), c((2, 3))",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Every element of one array times the whole of the other.
pub static KRON: OpDef = OpDef {
    name: "kron",
    surface: &[Surface::Np("kron")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "Kronecker product: the elements of `a`, each replaced by itself times `b`. The array of fewer axes gets axes of length 1 in front.",
    cpu: Cpu::Composite(|cx| {
        let (a, b) = (cx.input(0), cx.input(1));
        let ndim = a.ndim().max(b.ndim());
        let full = |x: &Array| -> Dims {
            std::iter::repeat_n(1, ndim - x.ndim())
                .chain(x.shape().iter().copied())
                .collect()
        };
        let (s, t) = (full(a), full(b));
        let spread: SmallVec<[usize; 8]> = s.iter().flat_map(|&n| [n, 1]).collect();
        let inner: SmallVec<[usize; 8]> = t.iter().flat_map(|&n| [1, n]).collect();
        let shape: Dims = s.iter().zip(&t).map(|(m, n)| m * n).collect();
        cx.done(
            a.reshape(&spread)?
                .mul(&b.reshape(&inner)?)?
                .reshape(&shape)?,
        )
    }),
    probe: Probe::calls(&[
        "f((2, 3)), f((2, 2))",
        "f((2,)), f((2, 3))",
        "f((2, 2, 2)), f((3,))",
        "f(()), f((2,))",
    ]),
    ..OpDef::COMPOSITE
};

/// A chain of products in the cheapest order.
pub static MULTI_DOT: OpDef = OpDef {
    name: "multi_dot",
    surface: &[Surface::NpLinalg("multi_dot")],
    params: &[Param::arrays("arrays")],
    doc: "Product of two or more matrices, in the order that takes fewest multiplications. The first and the last may be vectors.\n\nSource: the chain order is found \
          by dynamic programming over intervals.",
    form: Form::Out,
    cpu: Cpu::Composite(|cx| cx.done(chain(cx)?)),
    probe: Probe::calls(&[
        "[f((2, 3)), f((3, 4))]",
        "[f((4, 2)), f((2, 5)), f((5, 1)), f((1, 3))]",
        "[f((3,)), f((3, 2)), f((2,))]",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// A matrix multiplied with itself.
pub static MATRIX_POWER: OpDef = OpDef {
    name: "matrix_power",
    surface: &[Surface::NpLinalg("matrix_power")],
    params: &[Param::array("a"), Param::required("n", ParamKind::Int)],
    doc: "Square matrices (..., m, m) multiplied with themselves: `n` factors, by repeated squaring; the identity for 0, powers of the inverse for negative `n`.",
    cpu: Cpu::Composite(|cx| {
        let a = cx.input(0);
        let [.., m, k] = *a.shape() else {
            return Err(cx.shape_error(format!("`a` has {} axes, needs at least 2", a.ndim())));
        };
        if m != k {
            return Err(cx.shape_error(format!("matrices must be square, found {m} x {k}")));
        }
        cx.done(power(cx, a, cx.int("n"))?)
    }),
    probe: Probe::calls(&["f((3, 3)), 0", "f((3, 3)), 1", "f((2, 3, 3)), 5"]).ulp(64),
    ..OpDef::COMPOSITE
};

fn power(cx: &CallCx, a: &Array, n: i64) -> Result<Array> {
    if n < 0 {
        let Some(inverse) = crate::registry::find("inv") else {
            return Err(Error::unsupported(
                cx.op.name,
                format!("`n` is {n}: matrix inversion is not available"),
            ));
        };
        return power(cx, &a.unary(inverse)?, n.checked_neg().unwrap_or(i64::MAX));
    }
    if n == 0 {
        let m = a.shape()[a.ndim() - 1];
        return same_index(m)?
            .astype(a.dtype())?
            .broadcast_to(a.shape())?
            .copy();
    }
    let (mut exponent, mut square) = (n, a.clone());
    let mut result: Option<Array> = None;
    loop {
        if exponent & 1 == 1 {
            result = Some(match result {
                Some(r) => r.matmul(&square)?,
                None => square.clone(),
            });
        }
        exponent >>= 1;
        match (exponent, result) {
            (0, Some(r)) => return Ok(r),
            (_, r) => result = r,
        }
        square = square.matmul(&square)?;
    }
}

fn chain(cx: &CallCx) -> Result<Array> {
    let arrays: SmallVec<[&Array; 8]> = cx.inputs.iter().flatten().copied().collect();
    let n = arrays.len();
    if n < 2 {
        return Err(cx.value_error(format!("found {n} arrays, needs at least 2")));
    }
    let mut matrices: Vec<Array> = Vec::with_capacity(n);
    for (i, x) in arrays.iter().enumerate() {
        matrices.push(match x.ndim() {
            2 => (*x).clone(),
            1 if i == 0 => x.reshape(&[1, x.len()])?,
            1 if i == n - 1 => x.reshape(&[x.len(), 1])?,
            found => {
                return Err(cx.shape_error(format!(
                    "array {i} has {found} axes, needs 2 (1 for the first and the last)"
                )));
            }
        });
    }
    for (i, pair) in matrices.windows(2).enumerate() {
        let (k, l) = (pair[0].shape()[1], pair[1].shape()[0]);
        if k != l {
            return Err(cx.shape_error(format!(
                "array {i} has {k} columns, array {} has {l} rows",
                i + 1
            )));
        }
    }
    let sizes: Vec<usize> = std::iter::once(matrices[0].shape()[0])
        .chain(matrices.iter().map(|m| m.shape()[1]))
        .collect();
    // cost[i][j]: fewest multiplications for the product of i..=j, split behind cut[i][j].
    let (mut cost, mut cut) = (vec![vec![0_u128; n]; n], vec![vec![0; n]; n]);
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            let best = (i..j)
                .map(|k| {
                    (
                        cost[i][k]
                            + cost[k + 1][j]
                            + sizes[i] as u128 * sizes[k + 1] as u128 * sizes[j + 1] as u128,
                        k,
                    )
                })
                .min();
            if let Some((least, k)) = best {
                cost[i][j] = least;
                cut[i][j] = k;
            }
        }
    }
    let y = product(&matrices, &cut, 0, n - 1)?;
    let mut shape = Dims::new();
    if arrays[0].ndim() == 2 {
        shape.push(y.shape()[0]);
    }
    if arrays[n - 1].ndim() == 2 {
        shape.push(y.shape()[1]);
    }
    y.reshape(&shape)
}

fn product(matrices: &[Array], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Array> {
    if i == j {
        return Ok(matrices[i].clone());
    }
    let k = cut[i][j];
    product(matrices, cut, i, k)?.matmul(&product(matrices, cut, k + 1, j)?)
}

fn tensordot(cx: &CallCx, axes_a: &[i64], axes_b: &[i64]) -> Result<Array> {
    let (a, b) = (cx.input(0), cx.input(1));
    if axes_a.len() != axes_b.len() {
        return Err(cx.value_error(format!(
            "{} axes of `a` are paired with {} of `b`",
            axes_a.len(),
            axes_b.len()
        )));
    }
    let normal = |x: &Array, axes: &[i64]| -> Result<Dims> {
        let axes: SmallVec<[isize; 4]> = axes.iter().map(|&a| a as isize).collect();
        Ok(mxnet_tensor::normalize_axes(&axes, x.ndim())?)
    };
    let (summed_a, summed_b) = (normal(a, axes_a)?, normal(b, axes_b)?);
    for (&i, &j) in summed_a.iter().zip(&summed_b) {
        if a.shape()[i] != b.shape()[j] {
            return Err(cx.shape_error(format!(
                "axis {i} of `a` (size {}) is paired with axis {j} of `b` (size {})",
                a.shape()[i],
                b.shape()[j]
            )));
        }
    }
    let free = |x: &Array, summed: &[usize]| -> Dims {
        (0..x.ndim()).filter(|i| !summed.contains(i)).collect()
    };
    let (free_a, free_b) = (free(a, &summed_a), free(b, &summed_b));
    let order = |first: &[usize], then: &[usize]| -> SmallVec<[i64; 4]> {
        first.iter().chain(then).map(|&i| i as i64).collect()
    };
    let size =
        |x: &Array, axes: &[usize]| -> usize { axes.iter().map(|&i| x.shape()[i]).product() };
    let k = size(a, &summed_a);
    let left = a
        .transpose(Some(&order(&free_a, &summed_a)))?
        .reshape(&[size(a, &free_a), k])?;
    let right = b
        .transpose(Some(&order(&summed_b, &free_b)))?
        .reshape(&[k, size(b, &free_b)])?;
    let shape: Dims = free_a
        .iter()
        .map(|&i| a.shape()[i])
        .chain(free_b.iter().map(|&i| b.shape()[i]))
        .collect();
    left.matmul(&right)?.reshape(&shape)
}

/// In which order pairs are contracted.
enum Order<'a> {
    LeftToRight,
    Greedy,
    Given(&'a [i64]),
}

/// An operand, and the label of each axis. No label repeats.
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

    /// With the axes in this order.
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

    /// Summed over the labels that nobody else needs.
    fn summed(&self, needed: impl Fn(Label) -> bool) -> Result<Term> {
        let axes: SmallVec<[i64; 8]> = self
            .labels
            .iter()
            .enumerate()
            .filter(|(_, l)| !needed(**l))
            .map(|(i, _)| i as i64)
            .collect();
        if axes.is_empty() {
            return Ok(self.clone());
        }
        let dtype = self.array.dtype();
        Ok(Term {
            array: self.array.sum(Some(&axes), false)?.astype(dtype)?,
            labels: self.labels.iter().copied().filter(|&l| needed(l)).collect(),
        })
    }
}

fn einsum_of(cx: &CallCx, subscripts: &str, operands: &[&Array], order: &Order) -> Result<Array> {
    let (mut terms, output) = parse(cx, subscripts, operands)?;
    let mut path: &[i64] = if let Order::Given(path) = order {
        path
    } else {
        &[]
    };
    if path.len() % 2 == 1 {
        return Err(cx.value_error(format!("`path` has {} numbers, needs pairs", path.len())));
    }
    for i in 0..terms.len() {
        let elsewhere = |l: Label| {
            output.contains(&l)
                || terms
                    .iter()
                    .enumerate()
                    .any(|(j, t)| j != i && t.labels.contains(&l))
        };
        let summed = terms[i].summed(elsewhere)?;
        terms[i] = summed;
    }
    while terms.len() > 1 {
        let (i, j) = match (order, path) {
            (Order::Given(_), [i, j, rest @ ..]) => {
                path = rest;
                let place = |p: i64| usize::try_from(p).ok().filter(|&p| p < terms.len());
                match (place(*i), place(*j)) {
                    (Some(i), Some(j)) if i != j => (i.min(j), i.max(j)),
                    _ => {
                        return Err(cx.value_error(format!(
                            "`path` contracts ({i}, {j}), there are {} operands left",
                            terms.len()
                        )));
                    }
                }
            }
            (Order::Greedy, _) => cheapest(&terms, &output),
            _ => (0, 1),
        };
        let (b, a) = (terms.remove(j), terms.remove(i));
        let kept = |l: Label| output.contains(&l) || terms.iter().any(|t| t.labels.contains(&l));
        let joined = contract(&a, &b, &kept)?;
        match order {
            Order::LeftToRight => terms.insert(0, joined),
            _ => terms.push(joined),
        }
    }
    let Some(last) = terms.pop() else {
        return Err(cx.value_error("no operands are given"));
    };
    last.summed(|l| output.contains(&l))?.arranged(&output)
}

/// The pair whose result is smallest compared with what it replaces.
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

/// One product of matrices: axes in both and kept are its batch, axes in both and not kept are summed.
fn contract(a: &Term, b: &Term, kept: &dyn Fn(Label) -> bool) -> Result<Term> {
    let (a, b) = (
        a.summed(|l| kept(l) || b.labels.contains(&l))?,
        b.summed(|l| kept(l) || a.labels.contains(&l))?,
    );
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
        let left = a
            .arranged(&joined(&[&batch, &rows]))?
            .reshape(&with([m, 1]))?;
        let right = b
            .arranged(&joined(&[&batch, &columns]))?
            .reshape(&with([1, n]))?;
        left.mul(&right)?
    } else {
        let k = sizes(&a, &summed).iter().product::<usize>();
        let left = a
            .arranged(&joined(&[&batch, &rows, &summed]))?
            .reshape(&with([m, k]))?;
        let right = b
            .arranged(&joined(&[&batch, &summed, &columns]))?
            .reshape(&with([k, n]))?;
        left.matmul(&right)?
    };
    Ok(Term {
        array: array.reshape(&shape)?,
        labels,
    })
}

/// Operands with a label for each axis (diagonals taken, unit axes that broadcast dropped), and the labels of the result.
fn parse(
    cx: &CallCx,
    subscripts: &str,
    operands: &[&Array],
) -> Result<(Vec<Term>, SmallVec<[Label; 8]>)> {
    let text: String = subscripts.chars().filter(|c| !c.is_whitespace()).collect();
    let (inputs, wanted) = match text.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (text.as_str(), None),
    };
    let parts: SmallVec<[&str; 4]> = inputs.split(',').collect();
    if parts.len() != operands.len() {
        return Err(cx.value_error(format!(
            "`subscripts` names {} operands, {} are given",
            parts.len(),
            operands.len()
        )));
    }
    let mut terms = Vec::with_capacity(parts.len());
    let mut widest = 0;
    for (i, (part, array)) in parts.iter().zip(operands).enumerate() {
        let (labels, ellipsis) = labels_of(cx, part, Some(array.ndim()))?;
        widest = widest.max(ellipsis);
        if labels.len() != array.ndim() {
            return Err(cx.shape_error(format!(
                "operand {i} has {} axes, `{part}` names {}",
                array.ndim(),
                labels.len()
            )));
        }
        let mut term = Term {
            array: (*array).clone(),
            labels,
        };
        take_diagonals(cx, &mut term, i)?;
        terms.push(term);
    }
    // The size of a label is that of any operand where it is not 1.
    let mut sizes: SmallVec<[(Label, usize); 16]> = SmallVec::new();
    for (i, term) in terms.iter().enumerate() {
        for (&label, &n) in term.labels.iter().zip(term.array.shape()) {
            match sizes.iter_mut().find(|(l, _)| *l == label) {
                None => sizes.push((label, n)),
                Some((_, size)) if *size == 1 => *size = n,
                Some((_, size)) if n != 1 && *size != n => {
                    return Err(cx.shape_error(format!(
                        "`{}` is {} elsewhere and {n} in operand {i}",
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
            let (labels, _) = labels_of(cx, part, None)?;
            // An ellipsis of the result stands for the widest of the operands'.
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
            return Err(cx.value_error(format!(
                "the result names `{}`, which no operand has",
                name(label)
            )));
        }
        if output[..i].contains(&label) {
            return Err(cx.value_error(format!("the result names `{}` twice", name(label))));
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

/// Labels of one operand, the ellipsis spelt out for so many axes; of the result (`ndim` is `None`), where the ellipsis stays one label. Also how many axes the
/// ellipsis has.
fn labels_of(
    cx: &CallCx,
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
            return Err(cx.value_error(format!(
                "`{c}` in `subscripts` is neither a letter nor an ellipsis"
            )));
        }
    }
    if seen > 1 {
        return Err(cx.value_error(format!("`{part}` has {seen} ellipses")));
    }
    Ok((labels, if seen == 1 { free } else { 0 }))
}

/// A label that stands twice takes the diagonal of its two axes.
fn take_diagonals(cx: &CallCx, term: &mut Term, i: usize) -> Result<()> {
    while let Some((p, q)) = repeated(&term.labels) {
        let (m, n) = (term.array.shape()[p], term.array.shape()[q]);
        if m != n {
            return Err(cx.shape_error(format!(
                "`{}` stands for axes of size {m} and {n} of operand {i}",
                name(term.labels[p])
            )));
        }
        let attrs = [0, p as i64, q as i64].map(crate::Value::Int);
        term.array = invoke1(&DIAGONAL, &[&term.array], &attrs.into_iter().collect())?;
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

/// The identity of size `n`, as truth values.
fn same_index(n: usize) -> Result<Array> {
    let along = creation::arange(n, DType::I64)?;
    along.reshape(&[n, 1])?.binary(&EQUAL, &along)
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
