//! Sums, products, maxima and minima of segments.
#![allow(unsafe_code)]

use mxnet_core::args::Param;
use mxnet_core::autograd::GradContext;
use mxnet_core::context::{CallContext, KernelContext};
use mxnet_core::launch::elem;
use mxnet_core::opdef::{Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, one_of};
use mxnet_core::{Array, Attrs, Result, invoke1};
use mxnet_kernels::segment::{Fold, fold};
use mxnet_ops::elementwise::comparison::EQUAL;
use mxnet_ops::elementwise::select::choose;
use mxnet_ops::nn::operand::{self, Staged};
use mxnet_tensor::{DType, Dims, Kind, Scalar};
use smallvec::smallvec;

use crate::expand::expand;
use crate::offsets::{Offsets, count, row_len, rows};

/// Fields that all reductions share.
const FOLD: OpDef = OpDef {
    params: &[Param::array("values"), Param::array("offsets")],
    probe: Probe::calls(&[
        "f((5, 2)), np.array([0, 2, 5])",
        "f((4,)), np.array([0, 1, 4])",
        "f((3, 2, 2)), np.array([0, 3])",
    ])
    .ulp(16),
    ..OpDef::DEFAULT
};

/// Sums.
pub static RAGGED_SUM: OpDef = OpDef {
    name: "ragged_sum",
    doc: "Sum of the rows of each segment, `(segments, ...)`; 0 for empty ones. Integers and booleans are summed as 64-bit integers. The order of \
          summation depends on the sizes only.",
    infer: |context| shape(context, Fold::Sum),
    cpu: Cpu::Kernel(|context| run(context, Fold::Sum)),
    grad: Grad::Rule(Keep::inputs(0b10), |g| {
        let dx = expand(g.dy(0), g.input(1), g.shape(0)[0])?;
        Ok(smallvec![Some(g.fitted(dx, 0)?), None])
    }),
    positions: &[1],
    ..FOLD
};

/// Products.
pub static RAGGED_PROD: OpDef = OpDef {
    name: "ragged_prod",
    doc: "Product of the rows of each segment, `(segments, ...)`; 1 for empty ones. Integers and booleans are multiplied as 64-bit integers.",
    infer: |context| shape(context, Fold::Product),
    cpu: Cpu::Kernel(|context| run(context, Fold::Product)),
    grad: Grad::Rule(Keep::INPUTS, product_slope),
    positions: &[1],
    ..FOLD
};

/// Maxima.
pub static RAGGED_MAX: OpDef = OpDef {
    name: "ragged_max",
    doc: "Maximum of each segment along axis 0, `(segments, ...)`; NaN if an element is NaN, the lowest value of the dtype for empty segments. \
          Equal maxima share the gradient.",
    infer: |context| shape(context, Fold::Max),
    cpu: Cpu::Kernel(|context| run(context, Fold::Max)),
    grad: Grad::Rule(Keep::ALL, shared),
    positions: &[1],
    ..FOLD
};

/// Minima.
pub static RAGGED_MIN: OpDef = OpDef {
    name: "ragged_min",
    doc: "Minimum of each segment along axis 0, `(segments, ...)`; NaN if an element is NaN, the highest value of the dtype for empty segments. \
          Equal minima share the gradient.",
    infer: |context| shape(context, Fold::Min),
    cpu: Cpu::Kernel(|context| run(context, Fold::Min)),
    grad: Grad::Rule(Keep::ALL, shared),
    positions: &[1],
    ..FOLD
};

fn shape(context: &CallContext, what: Fold) -> Result<Inferred> {
    rows(context, 0)?;
    let mut shape = Dims::from_slice(context.shape(0));
    shape[0] = count(context, 1)?;
    let dtype = context.dtype_of(0);
    let out = match (what, dtype.kind()) {
        (Fold::Sum | Fold::Product, Kind::Complex) => dtype,
        (_, Kind::Complex) => {
            return Err(context.dtype_error(format!("no kernel for dtype {}", dtype.name())));
        }
        (Fold::Sum | Fold::Product, Kind::Bool | Kind::Integer) => wide(dtype),
        _ => dtype,
    };
    one_of(shape, out)
}

/// The 64-bit integer dtype for sums and products of integers or booleans.
pub(crate) fn wide(dtype: DType) -> DType {
    match dtype.is_signed() || dtype == DType::Bool {
        true => DType::I64,
        false => DType::U64,
    }
}

fn run(context: &KernelContext, what: Fold) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    let dtype = match x.dtype().kind() {
        Kind::Float | Kind::Complex => operand::compute(x.dtype()),
        Kind::Bool | Kind::Integer => wide(x.dtype()),
    };
    let offsets = Offsets::read(context, 1, x.shape()[0])?;
    let x = operand::dense(x, dtype, context.threads)?;
    let out = Staged::new(out, dtype)?;
    let g = offsets.segments(row_len(x.shape()));
    // SAFETY: 1. the offsets are checked. 2. operands are dense, of `dtype`; the output has a row for each segment. 3. no overlap.
    unsafe {
        fold(
            context.threads,
            &g,
            what,
            elem(dtype),
            x.data_ptr(),
            out.ptr(),
        )
    };
    out.finish(context.threads)
}

/// Gradient of maxima and minima: elements equal to the extreme of their segment share its cotangent.
fn shared(g: &GradContext) -> Result<Grads> {
    let (x, offsets, total) = (g.input(0), g.input(1), g.shape(0)[0]);
    let is_extreme = x
        .binary(&EQUAL, &expand(g.output(0), offsets, total)?)?
        .astype(x.dtype())?;
    let ties = sum(&is_extreme, offsets)?;
    // Empty segments, and those with NaN, have no equal element: avoid division by zero.
    let ties = ties.maximum(&Array::constant(Scalar::F64(1.0), x.dtype())?)?;
    let share = expand(&g.dy(0).div(&ties)?, offsets, total)?;
    Ok(smallvec![Some(is_extreme.mul(&share)?), None])
}

/// Derivative of a product: the product of the other elements. With one zero in a segment only that element has a nonzero derivative, with more none.
fn product_slope(g: &GradContext) -> Result<Grads> {
    let (x, offsets, total) = (g.input(0), g.input(1), g.shape(0)[0]);
    let (zero, one) = (
        Array::constant(Scalar::F64(0.0), x.dtype())?,
        Array::constant(Scalar::F64(1.0), x.dtype())?,
    );
    let is_zero = x.binary(&EQUAL, &zero)?;
    let zeros = sum(&is_zero.astype(x.dtype())?, offsets)?;
    let factors = choose(&is_zero, &one, x)?;
    let product = invoke1(&RAGGED_PROD, &[&factors, offsets], &Attrs::none())?;
    let slope = expand(&product, offsets, total)?.div(&factors)?.conj()?;
    let slope = expand(g.dy(0), offsets, total)?.mul(&slope)?;
    // The zeros of the segment other than the element itself.
    let others = expand(&zeros, offsets, total)?.sub(&is_zero.astype(x.dtype())?)?;
    let dx = choose(&others.binary(&EQUAL, &zero)?, &slope, &zero)?;
    Ok(smallvec![Some(dx), None])
}

/// Sums of segments.
pub(crate) fn sum(x: &Array, offsets: &Array) -> Result<Array> {
    invoke1(&RAGGED_SUM, &[x, offsets], &Attrs::none())
}
