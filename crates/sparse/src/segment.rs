//! Reductions of segments: ranges of consecutive rows, given by offsets. For example, the stored elements of each row of a matrix are a segment.
#![allow(unsafe_code)]

use mxnet_core::cx::CallCx;
use mxnet_core::launch::elem;
use mxnet_core::opdef::one_of;
use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Inferred, Keep, KernelCx, OpDef, Param, Probe, Result, Types,
    invoke1,
};
use mxnet_kernels::sparse::{self, Fold, Pattern};
use mxnet_ops::elementwise::{comparison, select};
use mxnet_tensor::{DType, Dims};
use smallvec::SmallVec;

use crate::operand::{
    Ints, NAMES, check_integers, compute_dtype, integer_output, integers, num_rows, values, write,
};
use crate::pattern::CSR_ROWS;
use crate::place::gathered;

pub(crate) static OPS: &[&OpDef] = &[
    &SEGMENT_SUM,
    &SEGMENT_PROD,
    &SEGMENT_MAX,
    &SEGMENT_MIN,
    &SEGMENT_SPREAD,
    &SEGMENT_SOFTMAX,
    &SEGMENT_SOFTMAX_GRADIENT,
];

const PARAMS: &[Param] = &[Param::array("x"), Param::array("indptr")];

/// Sums of segments.
pub static SEGMENT_SUM: OpDef = OpDef {
    name: "segment_sum",
    params: PARAMS,
    doc: "Sum of the rows of each segment `x[indptr[i]:indptr[i + 1]]` (along axis 0), 0 for empty ones. Integers keep their dtype and wrap.",
    types: Types::Infer,
    infer: |cx| infer_fold(cx, 1),
    cpu: Cpu::Kernel(|cx| run(cx, Fold::Sum)),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let dx = spread(g.dy(0), g.input(1), g.shape(0)[0])?;
        Ok(SmallVec::from_iter([Some(dx), None]))
    }),
    cost: Cost::PerKiB(300),
    probe: Probe::calls(CALLS)
        .against("lambda x, p: numpy.stack([x[a:b].sum(0) for a, b in zip(p, p[1:])])")
        .ulp(4),
    ..OpDef::DEFAULT
};

const CALLS: &[&str] = &[
    "f((6,)), np.array([0, 2, 2, 6])",
    "f((6, 3)), np.array([0, 5, 6])",
    "f((0, 2)), np.array([0, 0])",
];

/// Products of segments.
pub static SEGMENT_PROD: OpDef = OpDef {
    name: "segment_prod",
    doc: "Product of the rows of each segment `x[indptr[i]:indptr[i + 1]]` (along axis 0), 1 for empty ones. The gradient is the product of \
          the other factors, also if factors are zero.",
    cpu: Cpu::Kernel(|cx| run(cx, Fold::Prod)),
    grad: Grad::Rule(Keep::inputs(0b11), |g| {
        let (x, indptr) = (g.input(0), g.input(1));
        let len = g.shape(0)[0];
        let none = Attrs::none();
        let zero = Array::constant(mxnet_tensor::Scalar::I64(0), x.dtype())?;
        let one = Array::constant(mxnet_tensor::Scalar::I64(1), x.dtype())?;
        let is_zero = x.binary(&comparison::EQUAL, &zero)?;
        // The product of all factors except zeros, and the number of zeros.
        let factors = invoke1(&select::WHERE, &[&is_zero, &one, x], &none)?;
        let product = invoke1(&SEGMENT_PROD, &[&factors, indptr], &none)?;
        let zeros = invoke1(&SEGMENT_SUM, &[&is_zero.astype(DType::I64)?, indptr], &none)?;
        let (product, zeros) = (spread(&product, indptr, len)?, spread(&zeros, indptr, len)?);
        let others = zeros.sub(&is_zero.astype(DType::I64)?)?;
        let has_none = others.binary(
            &comparison::EQUAL,
            &Array::constant(mxnet_tensor::Scalar::I64(0), DType::I64)?,
        )?;
        let slope = invoke1(
            &select::WHERE,
            &[&has_none, &product.div(&factors)?, &zero],
            &none,
        )?;
        let dx = spread(g.dy(0), indptr, len)?.mul(&slope.conj()?)?;
        Ok(SmallVec::from_iter([Some(dx), None]))
    }),
    probe: Probe::calls(CALLS)
        .against("lambda x, p: numpy.stack([x[a:b].prod(0) for a, b in zip(p, p[1:])])")
        .ulp(4),
    ..SEGMENT_SUM
};

/// Largest elements of segments.
pub static SEGMENT_MAX: OpDef = OpDef {
    name: "segment_max",
    doc: "Largest element of each segment `x[indptr[i]:indptr[i + 1]]` (along axis 0), 0 for empty ones, and its row, -1 for empty \
          ones. NaN is larger than all numbers; of equal elements the first one is taken.",
    infer: |cx| infer_fold(cx, 2),
    cpu: Cpu::Kernel(|cx| run(cx, Fold::Max)),
    grad: Grad::Rule(
        Keep {
            inputs: 0,
            outputs: 0b10,
        },
        |g| {
            let shape = Dims::from_slice(g.shape(0));
            let width: usize = shape[1..].iter().product();
            // Each column has its own maximum: positions in the flattened array.
            let at = flat_positions(g.output(1), width)?;
            let dy = g.dy(0).reshape(&[g.dy(0).len()])?;
            let length = mxnet_core::Value::Int(shape.iter().product::<usize>() as i64);
            let attrs: Attrs = [length].into_iter().collect();
            let dx = invoke1(&crate::place::SCATTER_OR_SKIP, &[&dy, &at], &attrs)?;
            Ok(SmallVec::from_iter([Some(dx.reshape(&shape)?), None]))
        },
    ),
    probe: Probe::calls(CALLS).against(
        "lambda x, p: tuple(numpy.stack(y) for y in zip(*[(x[a:b].max(0), a + x[a:b].argmax(0)) if a < b else (numpy.zeros(x.shape[1:]), numpy.full(x.shape[1:], -1)) for a, b in zip(p, p[1:])]))",
    ),
    ..SEGMENT_SUM
};

/// Smallest elements of segments.
pub static SEGMENT_MIN: OpDef = OpDef {
    name: "segment_min",
    doc: "Smallest element of each segment `x[indptr[i]:indptr[i + 1]]` (along axis 0), 0 for empty ones, and its row, -1 for empty \
          ones. NaN is smaller than all numbers; of equal elements the first one is taken.",
    cpu: Cpu::Kernel(|cx| run(cx, Fold::Min)),
    probe: Probe::calls(CALLS).against(
        "lambda x, p: tuple(numpy.stack(y) for y in zip(*[(x[a:b].min(0), a + x[a:b].argmin(0)) if a < b else (numpy.zeros(x.shape[1:]), numpy.full(x.shape[1:], -1)) for a, b in zip(p, p[1:])]))",
    ),
    ..SEGMENT_MAX
};

/// Repeats a row for each row of a segment.
pub static SEGMENT_SPREAD: OpDef = OpDef {
    name: "segment_spread",
    params: &[
        Param::array("x"),
        Param::array("indptr"),
        Param::required("length", mxnet_core::ParamKind::Int),
    ],
    doc: "Row i of `x`, repeated for each row of segment i; `length` rows in all. It is the gradient of `segment_sum`.",
    cpu: Cpu::Composite(|cx| {
        check_integers(cx, &[1])?;
        let rows = mxnet_core::creation::zeros(
            &[cx.int("length") as usize],
            DType::I64,
            cx.input(1).device(),
        )?;
        let rows = invoke1(&CSR_ROWS, &[&rows, cx.input(1)], &Attrs::none())?;
        cx.done(gathered(cx.input(0), &rows)?)
    }),
    probe: Probe::calls(&["f((3, 2)), np.array([0, 2, 2, 6]), 6"])
        .against("lambda x, p, n: numpy.repeat(x, numpy.diff(p), 0)"),
    ..OpDef::COMPOSITE
};

/// Softmax of segments.
pub static SEGMENT_SOFTMAX: OpDef = OpDef {
    name: "segment_softmax",
    doc: "Softmax of each segment `x[indptr[i]:indptr[i + 1]]` along axis 0, of the shape of `x`.",
    types: Types::Infer,
    infer: |cx| {
        check_integers(cx, &[1])?;
        if cx.shape(0).is_empty() || cx.dtype_of(0).is_complex() {
            return Err(cx.dtype_error("`x` must be real and have an axis"));
        }
        num_rows(cx, 1)?;
        one_of(Dims::from_slice(cx.shape(0)), float_dtype(cx.dtype_of(0)))
    },
    cpu: Cpu::Kernel(softmax),
    grad: Grad::Fused(
        Keep {
            inputs: 0b10,
            outputs: 0b1,
        },
        |g| {
            let inputs = [g.output(0), g.dy(0), g.input(1)];
            let dx = invoke1(&SEGMENT_SOFTMAX_GRADIENT, &inputs, &Attrs::none())?;
            Ok(SmallVec::from_iter([Some(dx), None]))
        },
        |g| {
            let (y, indptr) = (g.output(0), g.input(1));
            let weighted = g.dy(0).mul(y)?;
            let total = invoke1(&SEGMENT_SUM, &[&weighted, indptr], &Attrs::none())?;
            let total = spread(&total, indptr, g.shape(0)[0])?;
            let dx = weighted.sub(&y.mul(&total)?)?;
            Ok(SmallVec::from_iter([Some(dx), None]))
        },
    ),
    cost: Cost::PerKiB(900),
    probe: Probe::calls(CALLS)
        .against(
            "lambda x, p: numpy.concatenate([x[:0]] + [numpy.exp(x[a:b] - x[a:b].max(0)) / numpy.exp(x[a:b] - x[a:b].max(0)).sum(0) for a, b in zip(p, p[1:]) if a < b])",
        )
        .ulp(8),
    ..SEGMENT_SUM
};

/// Gradient of the softmax of segments.
pub static SEGMENT_SOFTMAX_GRADIENT: OpDef = OpDef {
    name: "segment_softmax_gradient",
    params: &[Param::array("y"), Param::array("dy"), Param::array("indptr")],
    doc: "`y * (dy - t)`, where `t` is the sum of `y * dy` over the segment: the gradient of a softmax of segments whose result was `y`.",
    infer: |cx| {
        check_integers(cx, &[2])?;
        num_rows(cx, 2)?;
        if cx.shape(0) != cx.shape(1) || cx.dtype_of(0) != cx.dtype_of(1) {
            return Err(cx.shape_error("`y` and `dy` must have the same shape and dtype"));
        }
        one_of(Dims::from_slice(cx.shape(0)), cx.dtype_of(0))
    },
    cpu: Cpu::Kernel(softmax_gradient),
    grad: Grad::Stop("the softmax of segments composes the gradient of its gradient of other operators"),
    probe: Probe::calls(&["f((6, 3)), f((6, 3)), np.array([0, 2, 2, 6])"])
        .against(
            "lambda y, dy, p: y * (dy - numpy.repeat(numpy.stack([(y * dy)[a:b].sum(0) for a, b in zip(p, p[1:])]), numpy.diff(p), 0))",
        )
        .ulp(16),
    ..SEGMENT_SOFTMAX
};

fn float_dtype(dtype: DType) -> DType {
    match dtype.is_float() {
        true => dtype,
        false => mxnet_core::default_dtype(mxnet_tensor::Kind::Float),
    }
}

/// Row `i` of `x` for each row of segment `i`; `length` is the number of rows of all segments.
fn spread(x: &Array, indptr: &Array, length: usize) -> Result<Array> {
    let attrs: Attrs = [mxnet_core::Value::Int(length as i64)]
        .into_iter()
        .collect();
    invoke1(&SEGMENT_SPREAD, &[x, indptr], &attrs)
}

/// Positions in a flattened array of rows of `width` elements, given the row for each column; negative for row -1.
fn flat_positions(rows: &Array, width: usize) -> Result<Array> {
    if rows.ndim() == 1 {
        return Ok(rows.clone());
    }
    let columns: Vec<i64> = (0..width as i64).collect();
    let columns = Array::from_slice(&columns, &[width])?.to_device(rows.device())?;
    let flat = rows.reshape(&[rows.shape()[0], width])?;
    // Row -1 must give a negative position: -width + column is negative.
    let width = Array::constant(mxnet_tensor::Scalar::I64(width as i64), DType::I64)?;
    let at = flat.mul(&width)?.add(&columns)?;
    at.reshape(&[at.len()])
}

fn infer_fold(cx: &CallCx, num_outputs: usize) -> Result<Inferred> {
    check_integers(cx, &[1])?;
    let Some((_, row)) = cx.shape(0).split_first() else {
        return Err(cx.shape_error("`x` must have an axis"));
    };
    if num_outputs == 2 && cx.dtype_of(0).is_complex() {
        return Err(cx.dtype_error("complex numbers have no largest or smallest"));
    }
    let mut shape = Dims::from_slice(&[num_rows(cx, 1)?]);
    shape.extend_from_slice(row);
    let outputs = [(shape.clone(), cx.dtype_of(0)), (shape, DType::I64)];
    cx.many(outputs.into_iter().take(num_outputs))
}

/// Offsets of segments as a pattern whose columns do not matter.
struct Segments<'a> {
    indptr: Ints<'a>,
    places: Vec<i64>,
}

fn segments<'a>(cx: &KernelCx<'a>, indptr: usize, len: usize) -> Result<Segments<'a>> {
    Ok(Segments {
        indptr: integers(cx.input(indptr), cx.threads)?,
        // Zeroed memory that nobody reads is never touched, so it is cheap.
        places: vec![0; len],
    })
}

impl Segments<'_> {
    fn pattern(&self, op: &'static str) -> Result<Pattern<'_>> {
        Pattern::new(&self.places, &self.indptr)
            .map_err(|fault| crate::operand::error(op, NAMES, fault, None))
    }
}

fn run(cx: &KernelCx, fold: Fold) -> Result<()> {
    let (x, out) = (cx.input(0), cx.output(0));
    let cut = segments(cx, 1, x.shape()[0])?;
    let rows = cut.pattern(cx.op.name)?;
    let compute = compute_dtype(out.dtype());
    let width = x.shape()[1..].iter().product();
    let x = values(x, compute, cx.threads)?;
    let arg = (cx.outputs.len() > 1).then(|| integer_output(cx.output(1)).as_mut_ptr());
    write(out, compute, cx.threads, |to| {
        // SAFETY: dense values of this dtype, a row for each of the segments' (the pattern was checked); outputs have a row for each segment.
        unsafe {
            sparse::fold_segments(
                cx.threads,
                elem(compute),
                fold,
                &rows,
                width,
                x.operand(),
                (to, arg),
            );
        }
        Ok(())
    })
}

fn softmax(cx: &KernelCx) -> Result<()> {
    let (x, out) = (cx.input(0), cx.output(0));
    let cut = segments(cx, 1, x.shape()[0])?;
    let rows = cut.pattern(cx.op.name)?;
    let compute = compute_dtype(out.dtype());
    let width = x.shape()[1..].iter().product();
    let x = values(x, compute, cx.threads)?;
    write(out, compute, cx.threads, |to| {
        // SAFETY: dense values of this real dtype, a row for each of the segments'; the output has as many.
        unsafe {
            sparse::softmax_segments(cx.threads, elem(compute), &rows, width, x.operand(), to)
        };
        Ok(())
    })
}

fn softmax_gradient(cx: &KernelCx) -> Result<()> {
    let (y, out) = (cx.input(0), cx.output(0));
    let cut = segments(cx, 2, y.shape()[0])?;
    let rows = cut.pattern(cx.op.name)?;
    let compute = compute_dtype(out.dtype());
    let width = y.shape()[1..].iter().product();
    let (y, dy) = (
        values(y, compute, cx.threads)?,
        values(cx.input(1), compute, cx.threads)?,
    );
    write(out, compute, cx.threads, |to| {
        // SAFETY: as above.
        unsafe {
            let operands = (y.operand(), dy.operand());
            sparse::softmax_segments_gradient(
                cx.threads,
                elem(compute),
                &rows,
                width,
                operands,
                to,
            );
        }
        Ok(())
    })
}
