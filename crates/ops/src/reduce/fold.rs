//! Sums, products and other reductions with an associative function, over any axes.
#![allow(unsafe_code)]

use mxnet_kernels::reduce::{Reduce, Source, Target, reduce};
use mxnet_tensor::{Casting, DType, Dims, Kind, Scalar};
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::batching::Batch;
use crate::context::{CallContext, KernelContext};
use crate::error::{Error, Result};
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::operand::dense;
use crate::opdef::{
    Cost, Cpu, Form, FpErrors, Grad, Inferred, Keep, OpDef, Probe, Surface, one_of,
};
use crate::reduce::masked::empty;
use crate::reduce::{MASKED_ALL, MASKED_ANY, MASKED_MEAN, MASKED_PROD, MASKED_SUM};
use crate::tiles::{converts_first, result_strides};
use crate::{creation, memory_order, shape};

/// Fields that reductions with a `dtype` argument share.
pub(crate) const REDUCTION: OpDef = OpDef {
    about: &[
        ("initial", "Start value of the reduction."),
        ("dtype", "Dtype of the computation and of the result."),
    ],
    returns: &[("ndarray", "Of the shape of `a` without the axes.")],
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::optional("dtype", ParamKind::DType),
        Param::out(),
        Param::bool("keepdims", false),
    ],
    form: Form::Out,
    out_casting: Casting::Unsafe,
    order: Some(kept_order),
    cost: Cost::PerKiB(40),
    parallel: true,
    probe: Probe::calls(CALLS),
    batch: Batch::Axes("axis"),
    ..OpDef::DEFAULT
};

/// Default fields for reductions without a `dtype` argument.
pub(crate) const REDUCTION_WITHOUT_DTYPE: OpDef = OpDef {
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::out(),
        Param::bool("keepdims", false),
    ],
    ..REDUCTION
};

/// Argument lists that every reduction is tested with.
pub(crate) const CALLS: &[&str] = &[
    "f((3, 4))",
    "f((3, 4)), 0",
    "f((2, 3, 4)), (0, 2)",
    "f((2, 3, 4)), (-1, 0), keepdims=True",
    "f((2, 1, 3)), ()",
    "f(())",
    "i((3, 4), 5), 1",
    "b((3, 4)), 0",
];

/// Sum of the elements.
pub static SUM: OpDef = OpDef {
    name: "sum",
    surface: &[Surface::Np("sum"), Surface::Method("sum")],
    doc: "Sum of the elements over `axis` (all axes for None). Small integers and booleans are added in 64 bits.\n\nFloats are added in blocks of \
          fixed size: the result does not depend on the number of threads, and the rounding error grows with the logarithm of the length.",
    returns: &[(
        "ndarray",
        "Of the shape of `a` without the axes, in `dtype`; by default in the dtype of `a`, small integers in 64 bits.",
    )],
    example: "
        >>> np.sum([[1, 2], [3, 4]])
        array(10)
        >>> np.sum([[1, 2], [3, 4]], axis=0)
        array([4, 6])
        >>> np.sum([[1, 2], [3, 4]], axis=1, keepdims=True)
        array([[3],
               [7]])
    ",
    infer: |context| folded(context, accumulator),
    full_signature: Some(&MASKED_SUM),
    fp_errors: FpErrors::named("reduce"),
    reduces: Some(Reduce::Sum),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::NOTHING, |g| g.one(spread(g, g.dy(0))?)),
    ..REDUCTION
};

/// Product of the elements.
pub static PROD: OpDef = OpDef {
    name: "prod",
    surface: &[Surface::Np("prod"), Surface::Method("prod")],
    doc: "Product of the elements over `axis` (all axes for None). Small integers and booleans are multiplied in 64 bits.",
    returns: &[(
        "ndarray",
        "Of the shape of `a` without the axes, in `dtype`; by default in the dtype of `a`, small integers in 64 bits.",
    )],
    example: "
        >>> np.prod([1, 2, 3, 4])
        array(24)
    ",
    infer: |context| folded(context, accumulator),
    full_signature: Some(&MASKED_PROD),
    fp_errors: FpErrors::named("reduce"),
    reduces: Some(Reduce::Prod),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        // The slope of an element is the product of all others. It is computed without division, because elements may be 0.
        let (x, shape) = (g.input(0), g.shape(0));
        let axes = g.reduced_axes("axis")?;
        let order: SmallVec<[i64; 4]> = (0..shape.len())
            .filter(|a| !axes.contains(a))
            .chain(axes.iter().copied())
            .map(|a| a as i64)
            .collect();
        let moved = x.transpose(Some(&order))?;
        let kept: Dims = moved.shape()[..shape.len() - axes.len()]
            .iter()
            .copied()
            .collect();
        let mut flat = kept.clone();
        flat.push(axes.iter().map(|&a| shape[a]).product());
        let others = product_of_others(&moved.reshape(&flat)?)?.reshape(moved.shape())?;
        let mut back: SmallVec<[i64; 4]> = SmallVec::from_elem(0, order.len());
        for (to, &from) in order.iter().enumerate() {
            back[from as usize] = to as i64;
        }
        g.one(spread(g, g.dy(0))?.mul(&others.transpose(Some(&back))?.conj()?)?)
    }),
    ..REDUCTION
};

/// For each element of the last axis, the product of all others: neighbours are multiplied pairwise, the halved problem is solved recursively, and
/// each result is multiplied with the element's neighbour.
fn product_of_others(x: &Array) -> Result<Array> {
    let n = x.shape().last().copied().unwrap_or(1);
    if n <= 1 {
        return creation::ones(x.shape(), x.dtype(), x.device());
    }
    let lead = &x.shape()[..x.ndim() - 1];
    let with_last = |last: &[usize]| -> Dims { lead.iter().chain(last).copied().collect() };
    let x = if n % 2 == 0 {
        x.clone()
    } else {
        shape::concatenate(
            &[x, &creation::ones(&with_last(&[1]), x.dtype(), x.device())?],
            lead.len(),
        )?
    };
    let pairs = x.reshape(&with_last(&[n.div_ceil(2), 2]))?;
    let last = [pairs.ndim() as i64 - 1];
    let attrs: Attrs = [Value::from(&last[..]), Value::None, Value::Bool(false)]
        .into_iter()
        .collect();
    let outside = product_of_others(&invoke1(&PROD, &[&pairs], &attrs)?)?;
    let outside = outside.reshape(&with_last(&[n.div_ceil(2), 1]))?;
    let crossed = shape::flip(&pairs, &last)?
        .mul(&outside)?
        .reshape(&with_last(&[n.div_ceil(2) * 2]))?;
    shape::narrow(&crossed, lead.len(), 0, n)
}

/// Checks the axes of a mean. As in NumPy, a 0-d array has no axes for it, whereas sums accept 0 and -1.
pub(super) fn own_axes(context: &CallContext) -> Result<()> {
    if context.input(0).ndim() == 0
        && let Some(&axis) = context.opt_ints("axis").and_then(<[i64]>::first)
    {
        mxnet_tensor::normalize_axis(axis as isize, 0)?;
    }
    Ok(())
}

/// Arithmetic mean.
pub static MEAN: OpDef = OpDef {
    name: "mean",
    surface: &[Surface::Np("mean"), Surface::Method("mean")],
    doc: "Arithmetic mean of the elements over `axis` (all axes for None). Integers give the default float; an empty mean is NaN.",
    returns: &[(
        "ndarray",
        "Of the shape of `a` without the axes, in `dtype`; by default a float dtype.",
    )],
    example: "
        >>> np.mean([[1.0, 2.0], [3.0, 4.0]])
        array(2.5)
        >>> np.mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
        array([2., 3.])
    ",
    infer: |context| {
        own_axes(context)?;
        folded(context, averaged)
    },
    full_signature: Some(&MASKED_MEAN),
    warns: Some(empty),
    fp_errors: FpErrors::named("reduce"),
    reduces: Some(Reduce::Mean),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Rule(Keep::NOTHING, |g| {
        let n: usize = g
            .reduced_axes("axis")?
            .iter()
            .map(|&a| g.shape(0)[a])
            .product();
        g.one(spread(g, &g.dy(0).scale(1.0 / n as f64)?)?)
    }),
    // Positive, so that the sum does not cancel: its error is relative to the sum of magnitudes.
    probe: Probe::calls(CALLS).within(0.25..2.0),
    ..REDUCTION
};

/// Whether any element is true.
pub static ANY: OpDef = OpDef {
    name: "any",
    surface: &[Surface::Np("any"), Surface::Method("any")],
    doc: "Whether any element over `axis` (all axes for None) is nonzero. NaN is nonzero.",
    returns: &[("ndarray", "bool, of the shape of `a` without the axes.")],
    example: "
        >>> np.any([[False, True], [False, False]], axis=1)
        array([ True, False])
    ",
    infer: |context| folded(context, |_| DType::Bool),
    full_signature: Some(&MASKED_ANY),
    reduces: Some(Reduce::Any),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Stop("piecewise constant"),
    ..REDUCTION_WITHOUT_DTYPE
};

/// Whether all elements are true.
pub static ALL: OpDef = OpDef {
    name: "all",
    surface: &[Surface::Np("all"), Surface::Method("all")],
    doc: "Whether all elements over `axis` (all axes for None) are nonzero.",
    returns: &[("ndarray", "bool, of the shape of `a` without the axes.")],
    example: "
        >>> np.all([[True, True], [False, True]], axis=1)
        array([ True, False])
    ",
    infer: |context| folded(context, |_| DType::Bool),
    full_signature: Some(&MASKED_ALL),
    reduces: Some(Reduce::All),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Stop("piecewise constant"),
    ..REDUCTION_WITHOUT_DTYPE
};

/// Number of elements that are not zero.
pub static COUNT_NONZERO: OpDef = OpDef {
    name: "count_nonzero",
    surface: &[Surface::Np("count_nonzero")],
    params: &[
        Param::array("a"),
        Param::reduced("axis"),
        Param::bool("keepdims", false).keyword(),
    ],
    doc: "Number of elements over `axis` (all axes for None) that are not zero, int64.",
    returns: &[("ndarray", "int64, of the shape of `a` without the axes.")],
    example: "
        >>> np.count_nonzero([[0, 1], [2, 3]], axis=0)
        array([1, 2])
    ",
    form: Form::ParamsOnly,
    infer: |context| folded(context, |_| DType::I64),
    reduces: Some(Reduce::CountNonzero),
    cpu: Cpu::Kernel(reduce_kernel),
    grad: Grad::Stop("piecewise constant"),
    ..REDUCTION_WITHOUT_DTYPE
};

/// The dtype in which sums and products are returned.
pub(crate) fn accumulator(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Bool => mxnet_tensor::default_int(),
        Kind::Integer if dtype.is_signed() => DType::I64,
        Kind::Integer => DType::U64,
        _ => dtype,
    }
}

/// The dtype in which means are returned.
pub(crate) fn averaged(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Bool | Kind::Integer => mxnet_tensor::default_float(),
        _ => dtype,
    }
}

/// The array itself if its dtype is inexact, else converted to the default float.
pub(crate) fn inexact(x: &Array) -> Result<Array> {
    x.astype(averaged(x.dtype()))
}

/// Whether any element is true; waits for it.
pub(crate) fn is_any(x: &Array) -> Result<bool> {
    let attrs: Attrs = [Value::None, Value::Bool(false)].into_iter().collect();
    Ok(invoke1(&ANY, &[x], &attrs)?.item()? == Scalar::Bool(true))
}

/// The remaining axes, in the memory order of the operand.
fn kept_order(context: &CallContext) -> Option<Dims> {
    let order = memory_order::as_inputs(context)?;
    if context.bool("keepdims") {
        return Some(order);
    }
    let gone = context.axes("axis", 0).ok()?;
    let position = |axis: usize| axis - gone.iter().filter(|&&g| g < axis).count();
    Some(
        order
            .into_iter()
            .filter(|axis| !gone.contains(axis))
            .map(position)
            .collect(),
    )
}

/// If float16 or bfloat16 elements are reduced to a wider float, the dtype of that: the computation is in it, as in NumPy.
pub(crate) fn wider_out(context: &CallContext) -> Option<DType> {
    let to = context.outs.first().copied().flatten()?.dtype();
    let is_half = matches!(context.dtype_of(0), DType::F16 | DType::BF16);
    (is_half && matches!(to, DType::F32 | DType::F64)).then_some(to)
}

/// Shape and dtype of a reduction.
pub(crate) fn folded(context: &CallContext, natural: fn(DType) -> DType) -> Result<Inferred> {
    let axes = context.axes("axis", 0)?;
    let mut shape = Dims::new();
    for (i, &n) in context.shape(0).iter().enumerate() {
        if !axes.contains(&i) {
            shape.push(n);
        } else if context.bool("keepdims") {
            shape.push(1);
        }
    }
    let takes_dtype = context.params.iter().any(|p| p.name == "dtype");
    let asked = match takes_dtype {
        true => context.dtype("dtype").or_else(|| wider_out(context)),
        false => None,
    };
    one_of(shape, asked.unwrap_or_else(|| natural(context.dtype_of(0))))
}

/// The kernel of operators with [`OpDef::reduces`].
///
/// Floats with an integer `dtype` are converted before the reduction, as in NumPy.
pub(crate) fn reduce_kernel(context: &KernelContext) -> Result<()> {
    let op = (context.op.reduces)
        .ok_or_else(|| Error::internal(context.op.name, "`reduces` is not set"))?;
    let (x, to) = (context.input(0), context.output(0).dtype());
    if converts_first(op, x.dtype(), to) {
        let whole = dense(x, to, context.threads)?;
        let inputs = [Some(&whole)];
        return reduce_kernel(&KernelContext {
            inputs: &inputs,
            ..*context
        });
    }
    over(context, |source, reduced, target| {
        // SAFETY: 1. both layouts lie within their storages. 2. the output was allocated for this call, so it overlaps nothing.
        unsafe { reduce(context.threads, op, source, reduced, target) }
    })
}

/// Calls `kernel` with input 0, which of its axes are reduced, and output 0.
pub(crate) fn over(
    context: &KernelContext,
    kernel: impl FnOnce(&Source, &[bool], &Target),
) -> Result<()> {
    let (x, y) = (context.input(0), context.output(0));
    if context.is_none("axis") && x.layout().is_contiguous() {
        // A single row: no axes to sort or merge.
        let row = Source {
            ptr: x.data_ptr(),
            elem: elem(x.dtype()),
            shape: &[x.len()],
            strides: &[x.dtype().size() as isize],
        };
        let target = Target {
            ptr: y.data_ptr(),
            elem: elem(y.dtype()),
            strides: &[0],
        };
        kernel(&row, &[true], &target);
        return Ok(());
    }
    let axes = context.axes("axis", 0)?;
    let reduced: SmallVec<[bool; 8]> = (0..x.ndim()).map(|i| axes.contains(&i)).collect();
    let strides = result_strides(&reduced, &y.byte_strides());
    let source = Source {
        ptr: x.data_ptr(),
        elem: elem(x.dtype()),
        shape: x.shape(),
        strides: &x.byte_strides(),
    };
    let target = Target {
        ptr: y.data_ptr(),
        elem: elem(y.dtype()),
        strides: &strides,
    };
    kernel(&source, &reduced, &target);
    Ok(())
}

/// A reduced array, broadcast along the reduced axes.
pub(crate) fn spread(g: &GradContext, y: &Array) -> Result<Array> {
    unreduced(y, g.shape(0), g.opt_ints("axis"), g.bool("keepdims"))?.broadcast_to(g.shape(0))
}

/// A reduced array with the reduced axes inserted with length 1.
pub(crate) fn unreduced(
    y: &Array,
    shape: &[usize],
    axes: Option<&[i64]>,
    keepdims: bool,
) -> Result<Array> {
    if keepdims {
        return Ok(y.clone());
    }
    let ndim = shape.len() as i64;
    let full: Dims = (0..shape.len())
        .map(|i| match axes {
            None => 1,
            Some(axes)
                if axes
                    .iter()
                    .any(|&a| (if a < 0 { a + ndim } else { a }) == i as i64) =>
            {
                1
            }
            Some(_) => shape[i],
        })
        .collect();
    y.reshape(&full)
}
