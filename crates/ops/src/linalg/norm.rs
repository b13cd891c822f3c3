//! Norms, the rank, and least squares.

use mxnet_tensor::{DType, Dims, Scalar, default_float, promote, promotion};

use crate::Array;
use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::context::CallContext;
use crate::creation::zeros;
use crate::elementwise::arithmetic::ABSOLUTE;
use crate::elementwise::comparison::{GREATER, NOT_EQUAL};
use crate::elementwise::explog::SQRT;
use crate::error::Result;
use crate::invoke::{invoke, invoke1};
use crate::linalg::{EIGVALSH_OF, PINV, SVDVALS};
use crate::opdef::{Amp, Cpu, OpDef, Probe, Surface};
use crate::reduce::{ANY, COUNT_NONZERO, EUCLIDEAN_NORM, MAX, MIN, SUM_SQUARES};
use crate::shape::narrow;

/// Values that a norm's `ord` may have.
const ORDER: ParamKind = ParamKind::FloatOrWord(&["fro", "f", "nuc"]);

/// Norms of vectors or matrices.
pub static NORM: OpDef = OpDef {
    name: "norm",
    surface: &[Surface::NpLinalg("norm")],
    params: &[
        Param::array("x"),
        Param::optional("ord", ORDER),
        Param::axes("axis"),
        Param::bool("keepdims", false),
    ],
    doc: "Norm of vectors or matrices.",
    about: &[
        (
            "ord",
            "The order of the norm. None gives the 2-norm of all elements as one vector, or the 2-norm along `axis`. Orders of matrix norms are 1, \
                -1, 2, -2, inf, -inf, 'fro' and 'nuc'.",
        ),
        (
            "axis",
            "An axis of vectors, the two axes of matrices, or all axes for None.",
        ),
    ],
    returns: &[("ndarray", "Real, of the shape of `x` without the axes.")],
    raises: &[(
        "ValueError",
        "If there is no norm of this order over so many axes.",
    )],
    example: "
        >>> np.linalg.norm([3.0, 4.0])
        array(5.)
        >>> np.linalg.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)
        array([ 5., 10.])
    ",
    cpu: Cpu::Composite(|context| {
        let keepdims = context.bool("keepdims");
        if context.is_none("ord") && context.is_none("axis") {
            let attrs: Attrs = [Value::Bool(keepdims)].into_iter().collect();
            return context.done(invoke1(&EUCLIDEAN_NORM, &[context.input(0)], &attrs)?);
        }
        let axes = context.axes("axis", 0)?;
        let result = match (&axes[..], Order::of(context)) {
            ([_], Order::Word(word)) => {
                return Err(context.value_error(format!("a vector has no norm of order '{word}'")));
            }
            ([axis], Order::Number(order)) => vector(context, order, &[*axis])?,
            ([axis], Order::Euclidean) => vector(context, 2.0, &[*axis])?,
            ([row, column], order) => matrix(context, order, (*row, *column))?,
            _ => {
                return Err(context.value_error(format!(
                    "there are norms over 1 or 2 axes, found {} axes",
                    axes.len()
                )));
            }
        };
        context.done(result)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((4,)), 3.0",
        "f((3, 4)), 1, 0",
        "f((3, 4)), 0, 1",
        "f((2, 3, 4)), -np.inf, (0, 2)",
        "f((2, 3, 4)), 'nuc', (1, 2), True",
        "c((3, 4)), 'fro'",
        "i((5,), 9), np.inf",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Norms of vectors.
pub static VECTOR_NORM: OpDef = OpDef {
    name: "vector_norm",
    surface: &[Surface::NpLinalg("vector_norm")],
    params: &[
        Param::array("x"),
        Param::axes("axis").keyword(),
        Param::bool("keepdims", false).keyword(),
        Param::float("ord", 2.0).keyword(),
    ],
    doc: "Norm of vectors.",
    about: &[
        (
            "axis",
            "The axes that make up a vector; None takes all elements.",
        ),
        ("ord", "The order."),
    ],
    returns: &[("ndarray", "Real, of the shape of `x` without the axes.")],
    example: "
        >>> np.linalg.vector_norm([[3.0, 4.0], [6.0, 8.0]], axis=1)
        array([ 5., 10.])
        >>> np.linalg.vector_norm([3.0, -4.0], ord=1)
        array(7.)
    ",
    cpu: Cpu::Composite(|context| {
        let axes = context.axes("axis", 0)?;
        context.done(vector(context, context.float("ord"), &axes)?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((3, 4)), axis=1, ord=3.0",
        "f((2, 3, 4)), axis=(0, 2), ord=np.inf, keepdims=True",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Norms of matrices.
pub static MATRIX_NORM: OpDef = OpDef {
    name: "matrix_norm",
    surface: &[Surface::NpLinalg("matrix_norm")],
    params: &[
        Param::array("x"),
        Param::bool("keepdims", false).keyword(),
        Param::required("ord", ORDER)
            .or(Default::Str("fro"))
            .keyword(),
        Param::ints("axis", &[-2, -1]).keyword(),
    ],
    doc: "Norm of the matrices in two axes.",
    about: &[
        ("x", "Of shape (..., m, n)."),
        ("ord", "The order: 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'."),
        (
            "axis",
            "The axes of rows and of columns. NumPy's function has no such argument.",
        ),
    ],
    returns: &[("ndarray", "Real, of shape (...).")],
    raises: &[(
        "ValueError",
        "If there is no norm of this order, or `axis` does not name two axes.",
    )],
    example: "
        >>> np.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]])
        array(5.)
        >>> np.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]], ord=2)
        array(4.)
    ",
    cpu: Cpu::Composite(|context| {
        let &[row, column] = &context.axes("axis", 0)?[..] else {
            return Err(context.value_error(format!(
                "`axis` must be two axes, found {:?}",
                context.ints("axis")
            )));
        };
        context.done(matrix(context, Order::of(context), (row, column))?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 4)), ord=2",
        "f((2, 3, 4)), ord=-1.0, keepdims=True",
        "c((3, 3)), ord='nuc'",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// The order of a norm.
enum Order {
    /// `ord` was not given.
    Euclidean,
    Number(f64),
    Word(&'static str),
}

impl Order {
    fn of(context: &CallContext) -> Order {
        match context.get("ord") {
            Value::Float(order) => Order::Number(*order),
            Value::Word(word) => Order::Word(word),
            _ => Order::Euclidean,
        }
    }
}

/// The array `x` of the call; integers are converted to floats.
fn inexact(context: &CallContext) -> Result<Array> {
    let x = context.input(0);
    match x.dtype().is_inexact() {
        true => Ok(x.clone()),
        false => x.scale(1.0),
    }
}

/// A reduction of real elements over axes.
fn fold(op: &'static OpDef, x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    let attrs: Attrs = [Value::from(&axes[..]), Value::Bool(keepdims)]
        .into_iter()
        .collect();
    invoke1(op, &[x], &attrs)
}

fn sum(x: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
    x.sum(Some(&axes), keepdims)
}

/// The largest absolute value; 0 without elements.
fn largest(size: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    match size.is_empty() {
        true => sum(size, axes, keepdims),
        false => fold(&MAX, size, axes, keepdims),
    }
}

/// The norm of the vectors along `axes`.
fn vector(context: &CallContext, order: f64, axes: &[usize]) -> Result<Array> {
    let (x, keepdims) = (inexact(context)?, context.bool("keepdims"));
    if order == 2.0 {
        return fold(&SUM_SQUARES, &x, axes, keepdims)?.unary(&SQRT);
    }
    let size = x.unary(&ABSOLUTE)?;
    if order == f64::INFINITY {
        return largest(&size, axes, keepdims);
    }
    if order == f64::NEG_INFINITY {
        return fold(&MIN, &size, axes, keepdims);
    }
    if order == 0.0 {
        return fold(&COUNT_NONZERO, &size, axes, keepdims)?.astype(size.dtype());
    }
    if order == 1.0 {
        return sum(&size, axes, keepdims);
    }
    sum(&size.power_of(order)?, axes, keepdims)?.power_of(1.0 / order)
}

/// The norm of the matrices in two axes.
fn matrix(context: &CallContext, order: Order, (row, column): (usize, usize)) -> Result<Array> {
    if row == column {
        return Err(context.value_error(format!(
            "the axes of a matrix are two, found {row} and {column}"
        )));
    }
    let order = match order {
        Order::Euclidean | Order::Word("fro" | "f") => return vector(context, 2.0, &[row, column]),
        Order::Word(_) => None,
        Order::Number(order) => Some(order),
    };
    let x = inexact(context)?;
    let is = |size: f64| order.is_some_and(|order| order.abs() == size);
    let folded = if is(1.0) || is(f64::INFINITY) {
        let (summed, kept) = if is(1.0) {
            (row, column)
        } else {
            (column, row)
        };
        let sums = sum(&x.unary(&ABSOLUTE)?, &[summed], false)?;
        // The remaining axis has moved if the summed one was before it.
        let kept = [kept - usize::from(kept > summed)];
        match order {
            Some(order) if order < 0.0 => fold(&MIN, &sums, &kept, false)?,
            _ => largest(&sums, &kept, false)?,
        }
    } else if order.is_none() || is(2.0) {
        let rest = (0..x.ndim()).filter(|&axis| axis != row && axis != column);
        let axes: Vec<i64> = rest.chain([row, column]).map(|axis| axis as i64).collect();
        let values = x.transpose(Some(&axes))?.unary(&SVDVALS)?;
        let last = [values.ndim() - 1];
        match order {
            None => sum(&values, &last, false)?,
            Some(order) if order < 0.0 => fold(&MIN, &values, &last, false)?,
            _ => largest(&values, &last, false)?,
        }
    } else {
        let order = order.unwrap_or_default();
        return Err(context.value_error(format!("a matrix has no norm of order {order}")));
    };
    if !context.bool("keepdims") {
        return Ok(folded);
    }
    let mut shape = Dims::from_slice(x.shape());
    (shape[row], shape[column]) = (1, 1);
    folded.reshape(&shape)
}

/// Machine epsilon of a dtype.
fn epsilon(dtype: DType) -> f64 {
    match dtype.real() {
        DType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    }
}

/// The number of singular values above the tolerance.
pub static MATRIX_RANK: OpDef = OpDef {
    name: "matrix_rank",
    surface: &[Surface::NpLinalg("matrix_rank")],
    params: &[
        Param::array("A"),
        Param::optional_array("tol"),
        Param::bool("hermitian", false),
        Param::optional_array("rtol").keyword(),
    ],
    doc: "The number of singular values above a tolerance.",
    about: &[
        (
            "A",
            "Of shape (..., m, n). An array of fewer than two axes has rank 1 if any element is not zero.",
        ),
        (
            "tol",
            "Singular values up to this count as zero: a number, or an array of shape (...).",
        ),
        (
            "hermitian",
            "Whether `A` is Hermitian: then its eigenvalues are used, of the lower triangle.",
        ),
        (
            "rtol",
            "Singular values up to this times the largest count as zero. Default: max(m, n) times the spacing of the dtype.",
        ),
    ],
    returns: &[("ndarray", "Of shape (...), int64.")],
    raises: &[
        ("LinAlgError", "If a matrix holds infinities or NaNs."),
        ("ValueError", "If both `tol` and `rtol` are given."),
    ],
    example: "
        >>> np.linalg.matrix_rank(np.ones((3, 3)))
        array(1)
    ",
    cpu: Cpu::Composite(|context| {
        let x = context.input(0);
        if context.opt(1).is_some() && context.opt(2).is_some() {
            return Err(context.value_error("`tol` and `rtol` can't be both set."));
        }
        let [lead @ .., m, n] = x.shape() else {
            let zero = Array::weak_scalar(Scalar::I64(0))?;
            let attrs: Attrs = [Value::None, Value::Bool(false)].into_iter().collect();
            let any = invoke1(&ANY, &[&x.binary(&NOT_EQUAL, &zero)?], &attrs)?;
            return context.done(any.astype(DType::I64)?);
        };
        if m * n == 0 {
            return context.done(zeros(lead, DType::I64, x.device())?);
        }
        let values = match context.bool("hermitian") {
            true => {
                let lower: Attrs = [Value::Word("L")].into_iter().collect();
                invoke1(&EIGVALSH_OF, &[x], &lower)?.unary(&ABSOLUTE)?
            }
            false => x.unary(&SVDVALS)?,
        };
        let last = values.ndim() - 1;
        // (...) -> (..., 1), to broadcast against an axis of singular values.
        let beside = |x: &Array| {
            let shape: Dims = x.shape().iter().copied().chain([1]).collect();
            x.reshape(&shape)
        };
        let least = match (context.opt(1), context.opt(2)) {
            (Some(tolerance), _) => beside(tolerance)?,
            (None, given) => {
                let largest = fold(&MAX, &values, &[last], true)?;
                match given {
                    Some(relative) => largest.mul(&beside(relative)?)?,
                    None => largest.scale(*m.max(n) as f64 * epsilon(values.dtype()))?,
                }
            }
        };
        context.done(fold(
            &COUNT_NONZERO,
            &values.binary(&GREATER, &least)?,
            &[last],
            false,
        )?)
    }),
    probe: Probe::calls(&[
        "f((3, 4))",
        "f((2, 3, 3)), 0.5",
        "f((2, 3, 3)), rtol=0.3",
        "f((3,))",
    ]),
    ..OpDef::COMPOSITE
};

/// Least squares.
pub static LSTSQ: OpDef = OpDef {
    name: "lstsq",
    surface: &[Surface::NpLinalg("lstsq")],
    params: &[
        Param::array("a"),
        Param::array("b"),
        Param::optional("rcond", ParamKind::Float),
    ],
    doc: "The x for which `a @ x` is closest to `b` in the 2-norm, and of these the shortest (that of the Moore-Penrose inverse). Waits for the \
        rank.\n\n\
          *Differs from NumPy*: the rank is an array.",
    about: &[
        ("a", "Of shape (m, n)."),
        ("b", "Of shape (m,) or (m, k)."),
        (
            "rcond",
            "Singular values up to this times the largest count as zero. Default: max(m, n) times the spacing of the dtype; negative: half the spacing.",
        ),
    ],
    returns: &[
        ("x", "Of shape (n,) or (n, k)."),
        (
            "residuals",
            "Squared lengths of `b - a @ x`, of shape (1,) or (k,); empty if the rank is below n or m <= n.",
        ),
        (
            "rank",
            "The number of singular values that do not count as zero, int32.",
        ),
        ("s", "Singular values of `a`, of shape (min(m, n),)."),
    ],
    raises: &[(
        "LinAlgError",
        "If the shapes do not fit, or `a` holds infinities or NaNs.",
    )],
    example: "
        >>> x, *_ = np.linalg.lstsq(np.array([[1.0], [1.0]]), np.array([1.0, 2.0]))
        >>> x.round(3)
        array([1.5])
    ",
    cpu: Cpu::Composite(|context| {
        let (a, b) = (factored(context, 0)?, factored(context, 1)?);
        let &[m, n] = a.shape() else {
            return Err(context.linalg_error(format!("`a` has {} axes, must have 2", a.ndim())));
        };
        if b.ndim() != 1 && b.ndim() != 2 {
            return Err(
                context.linalg_error(format!("`b` has {} axes, must have 1 or 2", b.ndim()))
            );
        }
        if b.shape()[0] != m {
            return Err(context.linalg_error(format!(
                "Incompatible dimensions: `a` has {m} rows, `b` has {}",
                b.shape()[0]
            )));
        }
        let dtype = promote(a.dtype(), b.dtype(), promotion());
        let (a, b) = (a.astype(dtype)?, b.astype(dtype)?);
        let rcond = match context.opt_float("rcond") {
            None => epsilon(dtype) * m.max(n) as f64,
            Some(rcond) if rcond < 0.0 => epsilon(dtype) / 2.0,
            Some(rcond) => rcond,
        };
        let general: Attrs = [Value::Bool(false)].into_iter().collect();
        let rcond = Array::constant(Scalar::F64(rcond), dtype.real())?;
        let mut found = invoke(&PINV, &[&a, &rcond], &general)?;
        let (s, inverse) = (found.remove(1), found.remove(0));
        let counted = s.detach();
        let rank = match counted.is_empty() {
            true => zeros(&[], DType::I32, a.device())?,
            false => {
                let first = narrow(&counted, 0, 0, 1)?;
                // The singular values of matrices with at most 2 rows or columns may be NaN; for larger ones the factorisation fails by itself.
                if m.min(n) <= 2 && is_nan(first.reshape(&[])?.item()?) {
                    return Err(context.linalg_error(
                        "SVD did not converge in Linear Least Squares: `a` holds infinities",
                    ));
                }
                let counts = counted.binary(&GREATER, &first.mul(&rcond)?)?;
                fold(&COUNT_NONZERO, &counts, &[0], false)?.astype(DType::I32)?
            }
        };
        let x = inverse.matmul(&b)?;
        let has_residuals = m > n && matches!(rank.item()?, Scalar::I64(r) if r == n as i64);
        let residuals = match has_residuals {
            false => zeros(&[0], s.dtype(), a.device())?,
            true => {
                let sums = fold(&SUM_SQUARES, &b.sub(&a.matmul(&x)?)?, &[0], false)?;
                sums.reshape(&[sums.len()])?
            }
        };
        Ok([x, residuals, rank, s].into_iter().collect())
    }),
    probe: Probe::calls(&[
        "f((4, 2)), f((4,))",
        "f((4, 2)), f((4, 3))",
        "f((2, 3)), f((2,))",
    ]),
    amp: Amp::WidenToF32,
    ..OpDef::COMPOSITE
};

fn is_nan(value: Scalar) -> bool {
    matches!(value, Scalar::F64(x) if x.is_nan())
}

/// Argument `i` in a dtype that can be factored; integers become the default float.
fn factored(context: &CallContext, i: usize) -> Result<Array> {
    let x = context.input(i);
    match x.dtype() {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => Ok(x.clone()),
        dtype if dtype.is_inexact() => Err(context.dtype_error(format!(
            "no kernel for dtype {dtype}; it takes float32, float64, complex64, complex128"
        ))),
        _ => x.astype(default_float()),
    }
}

/// Products of stacks of matrices.
pub static BATCH_DOT: OpDef = OpDef {
    name: "batch_dot",
    surface: &[Surface::Npx("batch_dot")],
    params: &[
        Param::array("a"),
        Param::array("b"),
        Param::bool("transpose_a", false),
        Param::bool("transpose_b", false),
        Param::choice("forward_stype", &["default"], "default").or_none(),
    ],
    doc: "Matrix product over the last two axes, batch by batch.",
    about: &[
        (
            "a",
            "Of shape (..., m, k), or (..., k, m) with `transpose_a`.",
        ),
        (
            "b",
            "Of shape (..., k, n), or (..., n, k) with `transpose_b`: as many axes as `a`, at least three, and the same batch axes.",
        ),
        (
            "transpose_a",
            "Whether the last two axes of `a` are exchanged.",
        ),
        (
            "transpose_b",
            "Whether the last two axes of `b` are exchanged.",
        ),
        (
            "forward_stype",
            "Storage of the result: a product of dense arrays is dense.",
        ),
    ],
    returns: &[("ndarray", "Of shape (..., m, n).")],
    raises: &[("ValueError", "If the shapes do not fit.")],
    example: "
        >>> x, y = np.ones((2, 1, 3)), np.ones((2, 3, 1))
        >>> npx.batch_dot(x, y).shape, npx.batch_dot(x, y, transpose_a=True, transpose_b=True).shape
        ((2, 1, 1), (2, 3, 3))
    ",
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0), context.input(1));
        let batch = |x: &Array| Dims::from_slice(&x.shape()[..x.ndim().saturating_sub(2)]);
        if a.ndim() < 3 || a.ndim() != b.ndim() || batch(a) != batch(b) {
            return Err(context.shape_error(
                "`a` and `b` must have the same batch axes before their last two axes",
            ));
        }
        let maybe_transposed = |x: &Array, name: &str| match context.bool(name) {
            true => x.swap_last(),
            false => Ok(x.clone()),
        };
        context.done(maybe_transposed(a, "transpose_a")?.matmul(&maybe_transposed(b, "transpose_b")?)?)
    }),
    probe: Probe::calls(&[
        "f((2, 3, 4)), f((2, 4, 5))",
        "f((2, 4, 3)), f((2, 5, 4)), True, True",
    ])
    .against(
        "lambda a, b, s=False, t=False: np.matmul(a.swapaxes(-1, -2) if s else a, b.swapaxes(-1, -2) if t else b)",
    )
    .ulp(16),
    ..OpDef::COMPOSITE
};
