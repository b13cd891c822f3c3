//! Products with the arguments `axes`, `keepdims`, `dtype`, `casting` and `order`.
//!
//! Each is the form of a product with its full signature (`OpDef::full_signature`), composed of operators. Calls without these arguments use the
//! product itself.

use mxnet_tensor::{DType, Dims, normalize_axes, normalize_axis};
use smallvec::SmallVec;

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::context::CompositeContext;
use crate::error::Result;
use crate::invoke::invoke1;
use crate::linalg::{MATMUL, MATVEC, VECDOT, VECMAT};
use crate::opdef::{Cpu, Form, OpDef, Probe};
use crate::ufunc::deliver::{CASTING, ORDER, SUBOK, delivered, operand_in};
use crate::{Array, Outputs};

/// NumPy's `signature` argument. There is one loop for each dtype, with the same dtype for operands and result.
const SIGNATURE: Param = Param::optional("signature", ParamKind::Words).keyword();

/// Default fields for these operators.
const ALONG: OpDef = OpDef {
    params: &[
        Param::array("x1"),
        Param::array("x2"),
        Param::out(),
        Param::optional("axes", ParamKind::AxesOfEach).keyword(),
        Param::optional("axis", ParamKind::Int).keyword(),
        Param::bool("keepdims", false).keyword(),
        Param::optional("dtype", ParamKind::DType).keyword(),
        CASTING,
        ORDER,
        SUBOK,
        SIGNATURE,
    ],
    about: &[
        (
            "axes",
            "For each operand and for the result, the core axes.",
        ),
        (
            "axis",
            "One axis of both operands, where they share a single one.",
        ),
        ("keepdims", "Whether that axis is kept with length 1."),
        ("dtype", "Dtype of the computation and of the result."),
        (
            "signature",
            "The same as `dtype`, as a type of each operand and of the result: 'dd->d'.",
        ),
        (
            "casting",
            "Which conversions of operands and of the result are allowed.",
        ),
    ],
    form: Form::Out,
    ..OpDef::COMPOSITE
};

/// Matrix products along chosen axes.
pub static MATMUL_ALONG: OpDef = OpDef {
    name: "matmul_along",
    doc: "`axes` names the axes of the matrices of both operands and of the result, by default [(-2, -1), (-2, -1), (-2, -1)]. `dtype` is the dtype \
        of the computation and of the result. `axis` and `keepdims` are only for products of vectors: they raise ValueError.",
    cpu: Cpu::Composite(|context| along(context, &MATMUL, [2, 2, 2])),
    probe: Probe::calls(&[
        "f((2, 3)), f((4, 3)), axes=[(0, 1), (1, 0), (0, 1)]",
        "f((3, 5, 2)), f((4, 5, 2)), axes=[(0, 2), (2, 0), (-1, 0)]",
        "f((2, 3)), f((3, 4)), dtype='float64'",
        "f((2, 3)), f((3, 4)), order='F', casting='safe'",
        "i((2, 3), 9), i((3, 4), 9), dtype='int16', casting='unsafe'",
        "f((2, 3)), f((3, 4)), signature='dd->d'",
    ])
    .against("np.matmul")
    .ulp(16),
    ..ALONG
};

/// Matrices times vectors along chosen axes.
pub static MATVEC_ALONG: OpDef = OpDef {
    name: "matvec_along",
    doc: "`axes` names the axes of the matrices, of the vectors and of the result, by default [(-2, -1), -1, -1]. `dtype` is the dtype of the \
        computation and of the result. `axis` and `keepdims` raise ValueError.",
    cpu: Cpu::Composite(|context| along(context, &MATVEC, [2, 1, 1])),
    probe: Probe::calls(&["f((3, 5, 2)), f((3, 5)), axes=[(2, 0), 0, 0]"])
        .against("np.matvec")
        .ulp(16),
    ..ALONG
};

/// Vectors times matrices along chosen axes.
pub static VECMAT_ALONG: OpDef = OpDef {
    name: "vecmat_along",
    doc: "`axes` names the axes of the vectors, of the matrices and of the result, by default [-1, (-2, -1), -1]. `dtype` is the dtype of the \
        computation and of the result. `axis` and `keepdims` raise ValueError.",
    cpu: Cpu::Composite(|context| along(context, &VECMAT, [1, 2, 1])),
    probe: Probe::calls(&["f((3, 5)), f((2, 3, 5)), axes=[0, (1, 0), 0]"])
        .against("np.vecmat")
        .ulp(16),
    ..ALONG
};

/// Sums of products along chosen axes.
pub static VECDOT_ALONG: OpDef = OpDef {
    name: "vecdot_along",
    params: &[
        Param::array("x1"),
        Param::array("x2"),
        Param::out(),
        Param::int("axis", -1).keyword(),
        Param::optional("axes", ParamKind::AxesOfEach).keyword(),
        Param::bool("keepdims", false).keyword(),
        Param::optional("dtype", ParamKind::DType).keyword(),
        CASTING,
        ORDER,
        SUBOK,
        SIGNATURE,
    ],
    doc: "`axes` names an axis of each operand, instead of `axis` of both; `keepdims` keeps it with length 1. `dtype` is the dtype of the \
        computation and of the result.",
    cpu: Cpu::Composite(|context| along(context, &VECDOT, [1, 1, 0])),
    probe: Probe::calls(&[
        "f((3, 4)), f((4, 3)), axes=[0, 1]",
        "f((3, 4)), f((3, 4)), axis=0, keepdims=True",
        "f((3, 4)), f((4,)), dtype='float64'",
    ])
    .against("np.vecdot")
    .ulp(16),
    ..ALONG
};

/// `op` on operands whose core axes are moved to the end first. `cores`: number of core axes of each operand and of the result.
fn along(context: &CompositeContext, op: &'static OpDef, cores: [usize; 3]) -> Result<Outputs> {
    let of_vectors = cores == [1, 1, 0];
    if !of_vectors && (!context.is_none("axis") || context.bool("keepdims")) {
        return Err(context.value_error(
            "`axis` and `keepdims` are for products whose operands share a single axis; `axes` names several",
        ));
    }
    let dtype = requested_dtype(context)?;
    let mut lists = split_axes(context.ints("axes"));
    if context.is_none("axes") {
        lists = if of_vectors {
            vec![SmallVec::from_slice(&[context.int("axis")]); 2]
        } else {
            (0..2)
                .map(|i| last_axes(cores[i].min(context.input(i).ndim())))
                .collect()
        };
    } else if of_vectors && context.int("axis") != -1 {
        return Err(context.value_error("give `axes` or `axis`, not both"));
    } else if lists.len() != 3 && (lists.len(), cores[2]) != (2, 0) {
        return Err(context.value_error(format!(
            "`axes` needs an entry for each operand and one for the result, found {}",
            lists.len()
        )));
    }
    let mut operands: SmallVec<[Array; 2]> = SmallVec::new();
    // Matrix products treat a 1-d operand as a matrix that lacks one axis.
    let mut missing = 0;
    for i in 0..2 {
        let x = match dtype {
            Some(dtype) => operand_in(context, i, context.input(i), dtype)?,
            None => context.input(i).clone(),
        };
        let core = cores[i].min(x.ndim().max(1));
        missing += cores[i] - core;
        let own = core_axes(context, &lists[i], core, x.ndim(), "operand", i)?;
        let order: SmallVec<[i64; 4]> = (0..x.ndim())
            .filter(|axis| !own.contains(axis))
            .chain(own.iter().copied())
            .map(|axis| axis as i64)
            .collect();
        operands.push(x.transpose(Some(&order))?);
    }
    let attrs: Attrs = if of_vectors {
        [Value::Int(-1)].into_iter().collect()
    } else {
        Attrs::none()
    };
    let y = invoke1(op, &[&operands[0], &operands[1]], &attrs)?;
    let done = |y: Array| context.done(delivered(context, y, None)?);
    if of_vectors && context.bool("keepdims") {
        let mut shape = Dims::from_slice(y.shape());
        shape.insert(normalize_axis(lists[0][0] as isize, y.ndim() + 1)?, 1);
        return done(y.reshape(&shape)?);
    }
    let core = cores[2].saturating_sub(missing);
    let axis_indices = match lists.get(2) {
        Some(list) => core_axes(context, list, core, y.ndim(), "result", 0)?,
        None => return done(y),
    };
    // The last axes go to their given positions, the others fill the remaining positions in order.
    let (mut rest, mut cores) = (0..y.ndim() - core, y.ndim() - core..y.ndim());
    let mut from: SmallVec<[i64; 4]> = SmallVec::from_elem(0, y.ndim());
    for &axis_index in &axis_indices {
        from[axis_index] = cores.next().unwrap_or(0) as i64;
    }
    for (axis_index, from) in from.iter_mut().enumerate() {
        if !axis_indices.contains(&axis_index) {
            *from = rest.next().unwrap_or(0) as i64;
        }
    }
    // A new array is in C order, wherever the product's axes were moved.
    done(y.transpose(Some(&from))?.contiguous()?)
}

/// The dtype given by `dtype` or `signature`.
fn requested_dtype(context: &CompositeContext) -> Result<Option<DType>> {
    if context.is_none("signature") {
        return Ok(context.dtype("dtype"));
    }
    if !context.is_none("dtype") {
        return Err(context.dtype_error("cannot specify both 'signature' and 'dtype'"));
    }
    let text = context.str("signature");
    let names: SmallVec<[&str; 3]> = match text.split_once("->") {
        // One character for each operand and for the result.
        Some((operands, result)) => operands
            .char_indices()
            .map(|(at, c)| &operands[at..at + c.len_utf8()])
            .chain([result])
            .collect(),
        None => text.split(',').collect(),
    };
    let dtypes: Option<SmallVec<[DType; 3]>> =
        names.iter().map(|name| DType::from_name(name)).collect();
    match dtypes.as_deref() {
        Some(&[a, b, c]) if a == b && b == c => Ok(Some(a)),
        Some([_, _, _]) => Err(context.dtype_error(format!(
            "No loop matching the specified signature and casting was found: '{text}' names several types"
        ))),
        _ => Err(context.value_error(format!(
            "`signature` is a type-string of 2 typecodes before and 1 after the -> sign, or a tuple of 3, found '{text}'"
        ))),
    }
}

/// The last `count` axes.
fn last_axes(count: usize) -> SmallVec<[i64; 2]> {
    (-(count as i64)..0).collect()
}

/// Splits the flat value of a `ParamKind::AxesOfEach` argument (for each entry its length, then its axes) into lists.
fn split_axes(mut flat: &[i64]) -> Vec<SmallVec<[i64; 2]>> {
    let mut lists = Vec::new();
    while let [len, rest @ ..] = flat {
        let (own, others) = rest.split_at(*len as usize);
        lists.push(own.into());
        flat = others;
    }
    lists
}

/// The axes of an entry; an error unless it has the required number.
fn core_axes(
    context: &CompositeContext,
    list: &[i64],
    core: usize,
    ndim: usize,
    of: &str,
    i: usize,
) -> Result<Dims> {
    if list.len() != core {
        return Err(context.value_error(format!(
            "`axes` names {} axes of {of} {i}, must name {core}",
            list.len()
        )));
    }
    let axes: SmallVec<[isize; 2]> = list.iter().map(|&axis| axis as isize).collect();
    Ok(normalize_axes(&axes, ndim)?)
}
