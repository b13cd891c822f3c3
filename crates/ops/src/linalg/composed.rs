//! Products composed of the matrix product: of vectors, over chosen axes, in chains and powers.

use mxnet_tensor::{DType, DeviceKind, Dims};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind};
use crate::context::CallContext;
use crate::creation;
use crate::elementwise::comparison::EQUAL;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::linalg::{CONJUGATED_DOT, INV, MATVEC_ALONG, VECDOT_ALONG, VECMAT_ALONG};
use crate::opdef::{Cpu, Form, FpErrors, OpDef, Probe, Surface, ZeroDimResult};

/// Sums over several axes of two arrays.
pub static TENSORDOT: OpDef = OpDef {
    name: "tensordot",
    zero_dim: ZeroDimResult::Array,
    params: &[
        Param::array("a"),
        Param::array("b"),
        Param::required("axes_a", ParamKind::Ints),
        Param::required("axes_b", ParamKind::Ints),
    ],
    doc: "Sum of products over `axes_a` of `a` and `axes_b` of `b`, pair by pair. The result has the other axes of `a`, then those of `b`.",
    cpu: Cpu::Composite(|context| {
        context.done(tensordot(
            context,
            context.ints("axes_a"),
            context.ints("axes_b"),
        )?)
    }),
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
    params: &[Param::array("a").strong(), Param::array("b").strong()],
    doc: "Sum of products over the last axes of both. The result has the other axes of `a`, then those of `b`. If one of them is 0-d, the \
        elementwise product.",
    about: &[
        ("a", "First operand."),
        ("b", "Second operand, with the same last axis."),
    ],
    returns: &[("ndarray", "Of shape `a.shape[:-1] + b.shape[:-1]`.")],
    raises: &[("ValueError", "If the last axes differ.")],
    example: "
        >>> np.inner([1, 2, 3], [4, 5, 6])
        array(32)
    ",
    fp_errors: FpErrors::named("dot"),
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0), context.input(1));
        if a.ndim() == 0 || b.ndim() == 0 {
            return context.done(a.mul(b)?);
        }
        if a.ndim() <= 2 && b.ndim() <= 2 && a.shape().last() == b.shape().last() {
            return context.done(a.matmul(&if b.ndim() == 2 {
                b.swap_last()?
            } else {
                b.clone()
            })?);
        }
        context.done(tensordot(context, &[-1], &[-1])?)
    }),
    probe: Probe::calls(&["f((3,)), f((3,))", "f((2, 3)), f((4, 3))", "f((2, 3)), 2.0"]).ulp(64),
    ..OpDef::COMPOSITE
};

/// Every product of two elements.
pub static OUTER: OpDef = OpDef {
    name: "outer",
    surface: &[Surface::Np("outer")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "Products of every element of `a` with every element of `b`, of shape (a.size, b.size).",
    about: &[("a", "First operand."), ("b", "Second operand.")],
    returns: &[("ndarray", "Of shape (a.size, b.size).")],
    example: "
        >>> np.outer([1, 2], [10, 20, 30])
        array([[10, 20, 30],
               [20, 40, 60]])
    ",
    form: Form::Out,
    fp_errors: FpErrors::named("multiply"),
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0), context.input(1));
        context.done(a.reshape(&[a.len(), 1])?.mul(&b.reshape(&[1, b.len()])?)?)
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
    about: &[
        ("a", "First operand; its conjugates are taken."),
        ("b", "Second operand, of as many elements."),
    ],
    returns: &[("ndarray", "0-d, of the promoted dtype.")],
    raises: &[(
        "ValueError",
        "If the operands have different numbers of elements.",
    )],
    example: "
        >>> np.vdot([1, 2j], [1, 2j])
        array(5.+0.j)
    ",
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0), context.input(1));
        if a.len() != b.len() {
            return Err(context.shape_error(format!(
                "`a` has {} elements, `b` {}",
                a.len(),
                b.len()
            )));
        }
        let flat = [a.reshape(&[a.len()])?, b.reshape(&[b.len()])?];
        let complex = a.dtype().is_complex() && a.dtype() == b.dtype();
        if complex && a.device().kind() == DeviceKind::Cpu {
            return context.done(invoke1(
                &CONJUGATED_DOT,
                &[&flat[0], &flat[1]],
                &Attrs::none(),
            )?);
        }
        context.done(flat[0].conj()?.matmul(&flat[1])?)
    }),
    probe: Probe::calls(&[
        "f((3,)), f((3,))",
        "f((2, 3)), f((3, 2))",
        "c((3,)), c((3,))",
        "c((40, 50)), c((50, 40))",
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
        Param::out(),
        Param::int("axis", -1).keyword(),
    ],
    form: Form::Out,
    full_signature: Some(&VECDOT_ALONG),
    core_signature: "(n),(n)->()",
    doc: "Sum of products of the conjugated elements of `x1` with those of `x2` along `axis`; the other axes broadcast.",
    about: &[("x1", "First operand; its conjugates are taken.")],
    returns: &[(
        "ndarray",
        "Of the shape to which the operands broadcast, without the axis.",
    )],
    raises: &[("ValueError", "If the shapes do not broadcast.")],
    example: "
        >>> np.vecdot([[1, 2], [3, 4]], [10, 1])
        array([12, 34])
    ",
    cpu: Cpu::Composite(|context| {
        let axis = context.int("axis");
        let end = |i: usize| -> Result<Array> {
            let x = context.input(i);
            if x.ndim() == 0 {
                return Err(context.shape_error("0-d operands have no axis to sum over"));
            }
            let at = context.axis("axis", i)?;
            if at + 1 == x.ndim() {
                return Ok(x.clone());
            }
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
            return Err(context.shape_error(format!("axis {axis} has sizes {n} and {m}")));
        }
        // (..., 1, n) @ (..., n, 1)
        let row: Dims = a.shape()[..a.ndim() - 1]
            .iter()
            .copied()
            .chain([1, n])
            .collect();
        let column: Dims = b.shape().iter().copied().chain([1]).collect();
        let a = if a.dtype().is_complex() { a.conj()? } else { a };
        let y = a.reshape(&row)?.matmul(&b.reshape(&column)?)?;
        let shape = Dims::from_slice(&y.shape()[..y.ndim() - 2]);
        context.done(y.reshape(&shape)?)
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

/// Matrices times vectors.
pub static MATVEC: OpDef = OpDef {
    name: "matvec",
    surface: &[Surface::Np("matvec")],
    params: &[Param::array("x1"), Param::array("x2"), Param::out()],
    full_signature: Some(&MATVEC_ALONG),
    core_signature: "(m,n),(n)->(m)",
    doc: "Products of matrices `x1` (..., m, n) with vectors `x2` (..., n): (..., m). Leading axes broadcast.",
    about: &[("x1", "Matrices (..., m, n)."), ("x2", "Vectors (..., n).")],
    returns: &[("ndarray", "Of shape (..., m).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> np.matvec([[1, 2], [3, 4]], [1, 10])
        array([21, 43])
    ",
    form: Form::Out,
    cpu: Cpu::Composite(|context| {
        at_least(context, &[2, 1])?;
        let (a, x) = (context.input(0), context.input(1));
        if x.ndim() == 1 {
            return context.done(a.matmul(x)?);
        }
        if a.ndim() == 2 && a.shape().last() == x.shape().last() {
            // A single matrix for all vectors: the vectors are the rows of the other factor.
            return context.done(x.matmul(&a.swap_last()?)?);
        }
        let column: Dims = x.shape().iter().copied().chain([1]).collect();
        let y = a.matmul(&x.reshape(&column)?)?;
        context.done(y.reshape(&y.shape()[..y.ndim() - 1])?)
    }),
    probe: Probe::calls(&[
        "f((2, 3)), f((3,))",
        "f((4, 2, 3)), f((3,))",
        "f((2, 3)), f((5, 1, 3))",
        "c((2, 3)), c((3,))",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// Vectors times matrices.
pub static VECMAT: OpDef = OpDef {
    name: "vecmat",
    surface: &[Surface::Np("vecmat")],
    params: &[Param::array("x1"), Param::array("x2"), Param::out()],
    full_signature: Some(&VECMAT_ALONG),
    core_signature: "(n),(n,m)->(m)",
    doc: "Products of conjugated vectors `x1` (..., n) with matrices `x2` (..., n, m): (..., m). Leading axes broadcast.",
    about: &[("x1", "Vectors (..., n)."), ("x2", "Matrices (..., n, m).")],
    returns: &[("ndarray", "Of shape (..., m).")],
    raises: &[("ValueError", "If the sizes do not fit.")],
    example: "
        >>> np.vecmat([1, 10], [[1, 2], [3, 4]])
        array([31, 42])
    ",
    form: Form::Out,
    cpu: Cpu::Composite(|context| {
        at_least(context, &[1, 2])?;
        let (x, a) = (context.input(0), context.input(1));
        let mut row = Dims::from_slice(x.shape());
        row.insert(x.ndim() - 1, 1);
        let y = x.conj()?.reshape(&row)?.matmul(a)?;
        let mut shape = Dims::from_slice(y.shape());
        shape.remove(y.ndim() - 2);
        context.done(y.reshape(&shape)?)
    }),
    probe: Probe::calls(&[
        "f((2,)), f((2, 3))",
        "f((2,)), f((4, 2, 3))",
        "f((5, 1, 2)), f((2, 3))",
        "c((2,)), c((2, 3))",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

fn at_least(context: &CallContext, axes: &[usize]) -> Result<()> {
    for (i, &wanted) in axes.iter().enumerate() {
        let found = context.shape(i).len();
        if found < wanted {
            let name = context.op.params[i].name;
            return Err(context.shape_error(format!(
                "`{name}` has {found} axes, needs at least {wanted}"
            )));
        }
    }
    Ok(())
}

/// Kronecker product.
pub static KRON: OpDef = OpDef {
    name: "kron",
    surface: &[Surface::Np("kron")],
    params: &[Param::array("a"), Param::array("b")],
    doc: "Kronecker product: each element of `a` is replaced by its product with `b`. The array with fewer axes gets leading axes of length 1.",
    about: &[("a", "First operand."), ("b", "Second operand.")],
    returns: &[(
        "ndarray",
        "As many axes as the operand with more; each length is the product of both.",
    )],
    example: "
        >>> np.kron([1, 10], [1, 2, 3])
        array([ 1,  2,  3, 10, 20, 30])
    ",
    cpu: Cpu::Composite(|context| {
        let (a, b) = (context.input(0), context.input(1));
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
        context.done(
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
    doc: "Product of two or more matrices, in the order with the fewest multiplications. The first and the last operand may be vectors.\n\nSource: \
          the chain order is found by dynamic programming over intervals.",
    about: &[("arrays", "The matrices.")],
    returns: &[("ndarray", "The product.")],
    raises: &[(
        "ValueError",
        "If there are fewer than two, or the sizes do not fit.",
    )],
    example: "
        >>> np.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 2)), np.eye(2)])
        array([[3., 3.],
               [3., 3.]])
    ",
    form: Form::Out,
    cpu: Cpu::Composite(|context| context.done(chain(context)?)),
    probe: Probe::calls(&[
        "[f((2, 3)), f((3, 4))]",
        "[f((4, 2)), f((2, 5)), f((5, 1)), f((1, 3))]",
        "[f((3,)), f((3, 2)), f((2,))]",
    ])
    .ulp(64),
    ..OpDef::COMPOSITE
};

/// Integer power of a matrix.
pub static MATRIX_POWER: OpDef = OpDef {
    name: "matrix_power",
    // `np.linalg.matrix_power` takes exponents beyond 64 bits, too, so it is a Python function that calls this operator.
    surface: &[],
    params: &[Param::array("a"), Param::required("n", ParamKind::Int)],
    doc: "The `n`-th power of square matrices (..., m, m), by repeated squaring; the identity for 0, powers of the inverse for negative `n`.",
    about: &[("a", "The matrices."), ("n", "The power.")],
    returns: &[("ndarray", "Of the shape of `a`.")],
    raises: &[(
        "LinAlgError",
        "If the matrices are not square, or singular and `n` is negative.",
    )],
    example: "
        >>> np.linalg.matrix_power([[1, 1], [0, 1]], 3)
        array([[1, 3],
               [0, 1]])
    ",
    cpu: Cpu::Composite(|context| {
        let a = context.input(0);
        let [.., m, k] = *a.shape() else {
            let problem = format!("matrices have at least 2 axes, found {}", a.ndim());
            return Err(context.linalg_error(problem));
        };
        if m != k {
            return Err(
                context.linalg_error(format!("the last two axes must be square, found {m} x {k}"))
            );
        }
        context.done(power(a, context.int("n"))?)
    }),
    probe: Probe::calls(&[
        "f((3, 3)), 0",
        "f((3, 3)), 1",
        "f((2, 3, 3)), 5",
        "f((3, 3)) + 5 * np.eye(3, dtype='float32'), -2",
    ])
    .against("np.linalg.matrix_power")
    .ulp(2000),
    ..OpDef::COMPOSITE
};

fn power(a: &Array, n: i64) -> Result<Array> {
    if n < 0 {
        return power(&a.unary(&INV)?, n.checked_neg().unwrap_or(i64::MAX));
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

fn chain(context: &CallContext) -> Result<Array> {
    let arrays: SmallVec<[&Array; 8]> = context.inputs.iter().flatten().copied().collect();
    let n = arrays.len();
    if n < 2 {
        return Err(context.value_error(format!("found {n} arrays, needs at least 2")));
    }
    let mut matrices: Vec<Array> = Vec::with_capacity(n);
    for (i, x) in arrays.iter().enumerate() {
        matrices.push(match x.ndim() {
            2 => (*x).clone(),
            1 if i == 0 => x.reshape(&[1, x.len()])?,
            1 if i == n - 1 => x.reshape(&[x.len(), 1])?,
            found => {
                return Err(context.shape_error(format!(
                    "array {i} has {found} axes, needs 2 (1 for the first and the last)"
                )));
            }
        });
    }
    for (i, pair) in matrices.windows(2).enumerate() {
        let (k, l) = (pair[0].shape()[1], pair[1].shape()[0]);
        if k != l {
            return Err(context.shape_error(format!(
                "array {i} has {k} columns, array {} has {l} rows",
                i + 1
            )));
        }
    }
    let shaped = |y: Array| -> Result<Array> {
        let mut shape = Dims::new();
        if arrays[0].ndim() == 2 {
            shape.push(y.shape()[0]);
        }
        if arrays[n - 1].ndim() == 2 {
            shape.push(y.shape()[1]);
        }
        if shape.len() == 2 {
            return Ok(y);
        }
        y.reshape(&shape)
    };
    if n == 2 {
        return shaped(matrices[0].matmul(&matrices[1])?);
    }
    let sizes: Vec<usize> = std::iter::once(matrices[0].shape()[0])
        .chain(matrices.iter().map(|m| m.shape()[1]))
        .collect();
    // cost[i][j]: fewest multiplications for the product of i..=j, which is split after cut[i][j].
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
    shaped(product(&matrices, &cut, 0, n - 1)?)
}

fn product(matrices: &[Array], cut: &[Vec<usize>], i: usize, j: usize) -> Result<Array> {
    if i == j {
        return Ok(matrices[i].clone());
    }
    let k = cut[i][j];
    product(matrices, cut, i, k)?.matmul(&product(matrices, cut, k + 1, j)?)
}

fn tensordot(context: &CallContext, axes_a: &[i64], axes_b: &[i64]) -> Result<Array> {
    let (a, b) = (context.input(0), context.input(1));
    if axes_a.len() != axes_b.len() {
        return Err(context.value_error(format!(
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
            return Err(context.shape_error(format!(
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

/// The identity matrix of size `n`, as booleans.
fn same_index(n: usize) -> Result<Array> {
    let along = creation::arange(n, DType::I64)?;
    along.reshape(&[n, 1])?.binary(&EQUAL, &along)
}
