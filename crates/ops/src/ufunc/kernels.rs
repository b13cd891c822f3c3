//! Operators that fold with any binary elementwise function, which an attribute names. They use the inner loops of that function.
#![allow(unsafe_code)]

use mxnet_kernels::Threads;
use mxnet_kernels::copy::copy_row;
use mxnet_kernels::map::{self, InnerLoops};
use mxnet_kernels::reduce::{Reduce, Source, Target, reduce};
use mxnet_kernels::segment::{self, Fold, Segments, folds};
use mxnet_tensor::{DType, Device, Dims, Layout, Tensor};
use smallvec::SmallVec;

use crate::args::{Param, ParamKind};
use crate::batching::Batch;
use crate::context::KernelContext;
use crate::cpu;
use crate::error::{Error, Result};
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe, one_of};
use crate::reduce::folded;
use crate::registry;

/// Default fields for these operators.
const GENERAL: OpDef = OpDef {
    grad: Grad::Stop("composed of calls of the function while a gradient is recorded"),
    cost: Cost::PerKiB(2000),
    ..OpDef::DEFAULT
};

/// Folds a function over axes (`reduce`).
pub static FOLD: OpDef = OpDef {
    name: "fold",
    params: &[
        Param::array("a"),
        Param::optional_array("where"),
        Param::required("function", ParamKind::Str),
        Param::reduced("axis"),
        Param::required("dtype", ParamKind::DType),
        Param::optional("initial", ParamKind::Scalar),
        Param::bool("keepdims", false),
    ],
    doc: "The elements over `axis` (all axes for None) folded by an elementwise function of two arrays, computed in `dtype`. It starts with \
          `initial`, or with the first element; elements where `where` is false are skipped.",
    infer: |context| {
        function(context.op.name, context.str("function"))?;
        folded(context, |dtype| dtype)
    },
    cpu: Cpu::Kernel(fold),
    probe: Probe::calls(&[
        "f((3, 4)), None, 'hypot', 0, 'float32'",
        "f((2, 3, 4)), None, 'fmax', (0, 2), 'float32'",
        "f((2, 300)), None, 'logaddexp', None, 'float32', None, True",
        "f((4, 3)), None, 'subtract', -1, 'float32', 2.0",
        "f((3, 4)), b((3, 4)), 'subtract', 0, 'float32', 1.5",
        "i((3, 70), 9), None, 'bitwise_xor', 0, 'int64'",
    ])
    .against(
        "lambda a, mask, function, axis, dtype, initial=None, keepdims=False: getattr(np, function).reduce(a, axis=axis, \
         keepdims=keepdims, **({} if mask is None else {'where': mask}), **({} if initial is None else {'initial': initial}))",
    ),
    batch: Batch::Axes("axis"),
    ..GENERAL
};

/// All intermediate results of a fold (`accumulate`).
pub static STEPS: OpDef = OpDef {
    name: "fold_steps",
    params: &[
        Param::array("a"),
        Param::required("function", ParamKind::Str),
        Param::int("axis", 0),
        Param::required("dtype", ParamKind::DType),
    ],
    doc: "Every step of folding the elements along `axis` by an elementwise function of two arrays, computed in `dtype`: the first element, the \
        result for the first two, and so on.",
    infer: |context| {
        function(context.op.name, context.str("function"))?;
        context.axis("axis", 0)?;
        one_of(
            Dims::from_slice(context.shape(0)),
            context.dtype("dtype").unwrap_or(context.dtype_of(0)),
        )
    },
    cpu: Cpu::Kernel(steps),
    probe: Probe::calls(&[
        "f((3, 4)), 'subtract', 0, 'float32'",
        "f((2, 3, 4)), 'hypot', -1, 'float32'",
        "f((0, 3)), 'hypot', 0, 'float32'",
        "i((3, 4), 9), 'bitwise_xor', 1, 'int64'",
    ])
    .against("lambda a, function, axis, dtype: getattr(np, function).accumulate(a, axis=axis)"),
    batch: Batch::Axes("axis"),
    ..GENERAL
};

/// Folds a function over segments of an axis (`reduceat`).
pub static SEGMENTS: OpDef = OpDef {
    name: "fold_segments",
    params: &[
        Param::array("a"),
        Param::required("function", ParamKind::Str),
        Param::required("starts", ParamKind::Ints),
        Param::int("axis", 0),
        Param::required("dtype", ParamKind::DType),
    ],
    doc: "Segments of `axis` folded by an elementwise function of two arrays, computed in `dtype`. Segment j runs from `starts[j]` to the next start \
        (or the end of the axis); if the next start is not larger, it is the single element at `starts[j]`.",
    infer: |context| {
        function(context.op.name, context.str("function"))?;
        let axis = context.axis("axis", 0)?;
        let mut shape = Dims::from_slice(context.shape(0));
        let (len, starts) = (shape[axis] as i64, context.ints("starts"));
        if let Some(bad) = starts.iter().find(|&&s| s < 0 || s >= len) {
            let name = context.str("function");
            let problem = format!("index {bad} out-of-bounds in {name}.reduceat [0, {len})");
            return Err(Error::index(context.op.name, problem));
        }
        shape[axis] = starts.len();
        one_of(shape, context.dtype("dtype").unwrap_or(context.dtype_of(0)))
    },
    cpu: Cpu::Kernel(segments),
    probe: Probe::calls(&[
        "f((5, 4)), 'add', (0, 3, 1), 0, 'float32'",
        "f((2, 6)), 'hypot', (0, 2, 2, 5), -1, 'float32'",
        "i((9,), 5), 'maximum', (0, 4), 0, 'int64'",
    ])
    .against("lambda a, function, starts, axis, dtype: getattr(np, function).reduceat(a, starts, axis=axis)"),
    ..GENERAL
};

/// The operator called `name`. An error unless it is a function of two arrays that can fold.
pub(super) fn function(
    op: &'static str,
    name: &str,
) -> Result<(&'static OpDef, &'static InnerLoops)> {
    if let Some(found) = registry::find(name)
        && let Cpu::Map(rows) = found.cpu
        && rows.ins == 2
        && rows.outs == 1
        && rows.params == 0
        && rows.in_elems.iter().all(Option::is_none)
    {
        return Ok((found, rows));
    }
    Err(Error::value(
        op,
        format!("`{name}` is no elementwise function of two arrays of one dtype"),
    ))
}

/// The function's inner loops, and the dtype of their dense operands: float16 and bfloat16 are folded in float32 and rounded once.
fn rows_for(context: &KernelContext) -> Result<(&'static InnerLoops, DType)> {
    let (_, rows) = function(context.op.name, context.str("function"))?;
    let dtype = context.output(0).dtype();
    let compute = cpu::row_elem(rows, dtype);
    let compute = DType::ALL[compute as usize];
    if !rows.supports(elem(compute)) || rows.out_elem(elem(compute)) != elem(compute) {
        let problem = format!("`{}` does not fold elements of {}", rows.name, dtype.name());
        return Err(Error::dtype(context.op.name, problem));
    }
    Ok((rows, compute))
}

/// Elements of `x`, converted, with the given axes first. They form the dense rows; the other axes form the columns.
struct Rowed {
    tensor: Tensor,
    rows: usize,
    width: usize,
}

impl Rowed {
    fn new(context: &KernelContext, x: &Tensor, first: &[usize], dtype: DType) -> Result<Rowed> {
        let order = axes_first(x.shape().len(), first);
        let view = x.with_layout(x.layout().transpose(Some(&order))?);
        let tensor = Tensor::empty(view.shape(), dtype, Device::cpu(0))?;
        cpu::copy(&view, &tensor, context.threads)?;
        let rows = first.iter().map(|&a| x.shape()[a]).product::<usize>();
        let width = view.shape()[first.len()..].iter().product();
        Ok(Rowed {
            tensor,
            rows,
            width,
        })
    }

    fn ptr(&self) -> *mut u8 {
        self.tensor.data_ptr()
    }

    /// Bytes of one row.
    fn row_bytes(&self) -> usize {
        self.width * self.tensor.dtype().size()
    }
}

fn axes_first(ndim: usize, first: &[usize]) -> SmallVec<[isize; 8]> {
    first
        .iter()
        .copied()
        .chain((0..ndim).filter(|a| !first.contains(a)))
        .map(|a| a as isize)
        .collect()
}

fn fold(context: &KernelContext) -> Result<()> {
    let (rows, compute) = rows_for(context)?;
    let axes = context.axes("axis", 0)?;
    let x = Rowed::new(context, context.input(0), &axes, compute)?;
    let mask = match context.opt(1) {
        Some(mask) => {
            let spread = mask.with_layout(mask.layout().broadcast_to(context.input(0).shape())?);
            Some(Rowed::new(context, &spread, &axes, DType::Bool)?)
        }
        None => None,
    };
    let result = Tensor::empty(&[x.width], compute, Device::cpu(0))?;
    let initial = context.scalar("initial");
    let any_order = function_reorders(context) && mask.is_none();
    match initial {
        Some(value) => cpu::fill(&result, value, context.threads),
        None if x.rows == 0 || mask.is_some() => {
            return Err(Error::value(
                context.op.name,
                "no start value: `initial` must be given where there are no elements or a mask",
            ));
        }
        None => {}
    }
    let skipped = usize::from(initial.is_none());
    // SAFETY: 1. `x`, `mask` and `result` are dense, of these lengths, and not shared. 2. `rows_for` checked the function's types.
    unsafe {
        if any_order && x.rows > 0 {
            map::fold_in_any_order(rows, elem(compute), x.ptr(), x.rows, x.width);
            if initial.is_none() {
                std::ptr::copy_nonoverlapping(x.ptr(), result.data_ptr(), x.row_bytes());
            } else {
                fold_into(rows, compute, x.ptr(), None, 1, x.width, &result);
            }
        } else {
            if initial.is_none() {
                std::ptr::copy_nonoverlapping(x.ptr(), result.data_ptr(), x.row_bytes());
            }
            fold_into(
                rows,
                compute,
                x.ptr().add(skipped * x.row_bytes()),
                mask.as_ref().map(|m| m.ptr()),
                x.rows - skipped.min(x.rows),
                x.width,
                &result,
            );
        }
    }
    let out = context.output(0);
    cpu::copy(
        &result,
        &out.with_layout(Layout::contiguous(&[x.width]).with_offset(out.layout().offset())),
        context.threads,
    )
}

/// # Safety
/// As for [`map::fold_rows`]; `result` has `width` elements of `compute`.
unsafe fn fold_into(
    rows: &'static InnerLoops,
    compute: DType,
    x: *const u8,
    mask: Option<*mut u8>,
    rows_len: usize,
    width: usize,
    result: &Tensor,
) {
    let mask = mask.map_or(std::ptr::null(), |m| m.cast_const());
    // SAFETY: the caller's promise.
    unsafe {
        map::fold_rows(
            rows,
            elem(compute),
            x,
            mask,
            rows_len,
            width,
            result.data_ptr(),
        )
    };
}

fn steps(context: &KernelContext) -> Result<()> {
    let (rows, compute) = rows_for(context)?;
    let axis = context.axis("axis", 0)?;
    let x = Rowed::new(context, context.input(0), &[axis], compute)?;
    let y = Tensor::empty(x.tensor.shape(), compute, Device::cpu(0))?;
    // SAFETY: 1. both are dense with these rows and do not overlap. 2. `rows_for` checked the function's types.
    unsafe { map::scan_rows(rows, elem(compute), x.ptr(), x.rows, x.width, y.data_ptr()) };
    let out = context.output(0);
    let order = axes_first(out.shape().len(), &[axis]);
    let view = out.with_layout(out.layout().transpose(Some(&order))?);
    cpu::copy(&y, &view, context.threads)
}

fn segments(context: &KernelContext) -> Result<()> {
    let (rows, compute) = rows_for(context)?;
    let axis = context.axis("axis", 0)?;
    let starts = context.ints("starts");
    let x = Rowed::new(context, context.input(0), &[axis], compute)?;
    let mut shape = Dims::from_slice(x.tensor.shape());
    shape[0] = starts.len();
    let y = Tensor::empty(&shape, compute, Device::cpu(0))?;
    let bytes = x.row_bytes();
    let known = match rows.name {
        "add" => Some(Fold::Sum),
        "multiply" => Some(Fold::Product),
        "maximum" => Some(Fold::Max),
        "minimum" => Some(Fold::Min),
        _ => None,
    };
    let increase = starts.windows(2).all(|pair| pair[0] < pair[1]);
    match known.filter(|&what| increase && !starts.is_empty() && folds(what, elem(compute))) {
        Some(what) => {
            let first = starts[0];
            let offsets: Vec<i64> = starts
                .iter()
                .map(|start| start - first)
                .chain([x.rows as i64 - first])
                .collect();
            let segments = Segments {
                offsets: &offsets,
                inner: x.width,
            };
            // SAFETY: the starts increase and lie within the axis, so the offsets end with the last row and each segment has rows; `y` has a row for each.
            unsafe {
                let from = x.ptr().add(first as usize * bytes);
                segment::fold(
                    context.threads,
                    &segments,
                    what,
                    elem(compute),
                    from,
                    y.data_ptr(),
                );
            }
        }
        None => {
            for (j, &start) in starts.iter().enumerate() {
                let start = start as usize;
                let end = starts.get(j + 1).map_or(x.rows, |&next| next as usize);
                let end = end.max(start + 1);
                // SAFETY: inference checked that every start lies within the axis, so rows `start..end` lie within `x`, and row `j` within `y`.
                unsafe {
                    let (from, to) = (x.ptr().add(start * bytes), y.data_ptr().add(j * bytes));
                    fold_segment(
                        context.threads,
                        rows,
                        compute,
                        from,
                        end - start,
                        x.width,
                        to,
                    );
                }
            }
        }
    }
    let out = context.output(0);
    let order = axes_first(out.shape().len(), &[axis]);
    let view = out.with_layout(out.layout().transpose(Some(&order))?);
    cpu::copy(&y, &view, context.threads)
}

/// Up to this many rows are folded one after another: the reduction kernel takes longer to set up.
const MAX_SERIAL_ROWS: usize = 8;

/// Folds one segment: with the reduction kernel if the function has one, which adds floats pairwise.
///
/// # Safety
/// `from` holds `len` (at least one) dense rows, `to` one.
unsafe fn fold_segment(
    threads: &dyn Threads,
    rows: &'static InnerLoops,
    compute: DType,
    from: *const u8,
    len: usize,
    width: usize,
    to: *mut u8,
) {
    let size = compute.size() as isize;
    let known = match rows.name {
        "add" if compute != DType::Bool => Some(Reduce::Sum),
        "multiply" if compute != DType::Bool => Some(Reduce::Prod),
        "maximum" => Some(Reduce::Max),
        "minimum" => Some(Reduce::Min),
        _ => None,
    };
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(op) = known.filter(|_| len > MAX_SERIAL_ROWS) {
            let source = Source {
                ptr: from,
                elem: elem(compute),
                shape: &[len, width],
                strides: &[width as isize * size, size],
            };
            let target = Target {
                ptr: to,
                elem: elem(compute),
                strides: &[0, size],
            };
            return reduce(threads, op, &source, &[true, false], &target);
        }
        let bytes = width * size as usize;
        copy_row(from, to, bytes);
        map::fold_rows(
            rows,
            elem(compute),
            from.add(bytes),
            std::ptr::null(),
            len - 1,
            width,
            to,
        );
    }
}

/// Whether the function that the call names may fold its elements in any order.
fn function_reorders(context: &KernelContext) -> bool {
    registry::find(context.str("function")).is_some_and(|op| op.fold.reorders)
}
