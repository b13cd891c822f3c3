//! `lexsort`: sorting by several keys.
#![allow(unsafe_code)]

use mxnet_kernels::index::{Along, gather_along};
use mxnet_kernels::sort::{Order, argsort};
use mxnet_tensor::{DType, Dims, Tensor, normalize_axis};

use super::rows::rows;
use crate::Array;
use crate::args::{Attrs, Param};
use crate::context::{CallContext, KernelContext};
use crate::creation::zeros;
use crate::error::{Result, Tuple};
use crate::index::dense;
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe, Surface, one_of};
use crate::shape::moveaxis;

/// NumPy's `lexsort`.
pub static LEXSORT: OpDef = OpDef {
    name: "lexsort",
    surface: &[Surface::Np("lexsort")],
    params: &[Param::arrays("keys"), Param::int("axis", -1)],
    doc: "The int64 positions that sort by several keys along `axis`. The last key is the primary one; its equal elements are ordered by the key \
        before it, and so on.",
    about: &[
        (
            "keys",
            "Keys of one shape, or an array of them; the last one is the primary one.",
        ),
        ("axis", "Axis of the keys to sort along."),
    ],
    returns: &[("ndarray", "int64, of the shape of a key.")],
    raises: &[
        ("TypeError", "Without keys."),
        ("ValueError", "If the keys differ in shape."),
    ],
    example: "
        >>> surnames, names = np.array([2, 1, 2]), np.array([1, 5, 0])
        >>> np.lexsort((names, surnames))  # by surname, then by name
        array([1, 2, 0])
    ",
    cpu: Cpu::Composite(|context| {
        let ndim = same_shape(context)?.len();
        if ndim == 0 {
            // A 0-d array is sorted.
            return context.done(zeros(&[], DType::I64, context.input(0).device())?);
        }
        let axis = normalize_axis(context.int("axis") as isize, ndim)?;
        let keys = context.inputs.iter().flatten();
        if axis + 1 == ndim {
            let keys: Vec<&Array> = keys.copied().collect();
            return context.done(invoke1(&LEXSORT_ROWS, &keys, &Attrs::none())?);
        }
        let transposed = keys
            .map(|key| moveaxis(key, axis as i64, -1))
            .collect::<Result<Vec<Array>>>()?;
        let keys: Vec<&Array> = transposed.iter().collect();
        let order = invoke1(&LEXSORT_ROWS, &keys, &Attrs::none())?;
        context.done(moveaxis(&order, -1, axis as i64)?.contiguous()?)
    }),
    probe: Probe::calls(&[
        "(i((9,), 3), i((9,), 3))",
        "[i((2, 6), 2), i((2, 6), 3), f((2, 6))]",
        "(i((5, 3), 2), b((5, 3))), 0",
        "[f((4,))]",
        "(f(()), f(()))",
    ]),
    ..OpDef::COMPOSITE
};

/// Sorts each row by several keys.
pub static LEXSORT_ROWS: OpDef = OpDef {
    name: "lexsort_rows",
    params: &[Param::arrays("keys")],
    doc: "The int64 positions that sort the rows (last axis) by several keys, the last one first.",
    infer: |context| match same_shape(context)? {
        [] => Err(context.shape_error("0-d keys have no rows")),
        shape => one_of(Dims::from_slice(shape), DType::I64),
    },
    cpu: Cpu::Kernel(order_rows),
    grad: Grad::Stop("positions are integers"),
    cost: Cost::Of(|context| {
        let n = context.input(0).len() as u64;
        n * u64::from(n.max(2).ilog2()) * context.inputs.len() as u64
    }),
    probe: Probe::calls(&["[i((2, 6), 2), f((2, 6))]", "[f((0, 3))]"]).against("numpy.lexsort"),
    ..OpDef::DEFAULT
};

/// The shape of the keys; an error unless all have the same.
fn same_shape<'a>(context: &CallContext<'a>) -> Result<&'a [usize]> {
    if context.inputs.is_empty() {
        return Err(context.dtype_error("need at least one key"));
    }
    for i in 1..context.inputs.len() {
        if context.shape(i) != context.shape(0) {
            return Err(context.shape_error(format!(
                "all keys need to be the same shape, found {} and {}",
                Tuple(context.shape(0)),
                Tuple(context.shape(i))
            )));
        }
    }
    Ok(context.shape(0))
}

/// Sorts by each key in turn, the primary one last. The sorts are stable, so ties keep the order of the keys before.
fn order_rows(context: &KernelContext) -> Result<()> {
    let out = context.output(0);
    let shape = out.shape();
    let allocate = || Tensor::empty(shape, DType::I64, out.device());
    let (other, again) = (allocate()?, allocate()?);
    // Two buffers are used alternately; the last one written is the output.
    let (mut from, mut to) = (&other, out);
    if context.inputs.len().is_multiple_of(2) {
        std::mem::swap(&mut from, &mut to);
    }
    let sorted = |key: &Tensor, order: &Tensor| {
        // SAFETY: the key is dense; the order is dense int64 of its shape and not shared yet.
        unsafe {
            argsort(
                context.threads,
                Order::Ascending,
                &rows(key),
                order.data_ptr().cast(),
            )
        }
    };
    let taken = |x: &Tensor, order: &Tensor, to: &Tensor| {
        let what = Along {
            elem: elem(x.dtype()),
            shape,
            axis: shape.len().saturating_sub(1),
            indices: order.data_ptr().cast(),
            view_strides: &x.byte_strides(),
            dense_strides: &to.byte_strides(),
        };
        // SAFETY: 1. the order of a row holds positions within the row. 2. all three are dense and of one shape. 3. `to` overlaps neither input and
        // is written by nobody else.
        unsafe { gather_along(context.threads, &what, x.data_ptr(), to.data_ptr()) }
    };
    for i in 0..context.inputs.len() {
        let key = dense(context.input(i), context.threads)?;
        if i == 0 {
            sorted(&key, to);
        } else {
            let ordered = Tensor::empty(shape, key.dtype(), key.device())?;
            taken(&key, from, &ordered);
            sorted(&ordered, &again);
            taken(from, &again, to);
        }
        std::mem::swap(&mut from, &mut to);
    }
    Ok(())
}
