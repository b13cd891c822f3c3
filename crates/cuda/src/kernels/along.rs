//! Operators with an index or a number per element: `gather_along`, `scatter_along`, `chosen`, `resolve_indices`, `wrapped_indices`, `one_hot_rows`.

use mxnet_core::context::KernelContext;
use mxnet_core::device_kernels::register as add;
use mxnet_core::{Error, Result};
use mxnet_tensor::error::IndexError;
use mxnet_tensor::{DType, DeviceKind, Layout, Scalar, Strides, TensorError};

use super::index::{self, add_elements};
use super::operand::{
    self, Operand, PAIR, WALK, Walk, c_type, for_each, moved, pattern, report, source,
};
use crate::launch::{Arg, launch};

const ALONG: &str = include_str!("../text/along.cuh");

pub(super) fn register(kind: DeviceKind) -> Result<()> {
    add("gather_along", kind, 0, |context| {
        let (x, out, axis) = (
            Operand::input(context, 0)?,
            context.output(0),
            context.axis("axis", 0)?,
        );
        let indices = Operand::dense(context, 1, DType::I64)?;
        let (walk, size, stride) = others(&x, &out.layout().strides().into(), out.shape(), axis);
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Pointer(indices.ptr),
            Arg::Output(0),
            Arg::Bytes(walk.bytes()),
            Arg::I64(size),
            Arg::I64(stride),
            outside(context)?,
        ];
        run(context, "GATHER", moved(x.dtype), out.len(), &args)
    })?;
    add("scatter_along", kind, 0, |context| {
        let (out, axis) = (Operand::of(context.output(0)), context.axis("axis", 0)?);
        let (y, indices) = (
            Operand::dense(context, 0, out.dtype)?,
            Operand::dense(context, 1, DType::I64)?,
        );
        operand::fill(context, &out, Scalar::I64(0))?;
        let at = Operand::new(context, &y.shape, DType::I64)?;
        let (walk, size, stride) = others(&out, &y.strides, &y.shape, axis);
        let args = [
            Arg::Pointer(indices.ptr),
            Arg::Pointer(at.ptr),
            Arg::Bytes(walk.bytes()),
            Arg::I64(size),
            Arg::I64(stride),
            outside(context)?,
        ];
        run(context, "NUMBER", "u8", y.len(), &args)?;
        add_elements(context, &y, &at)
    })?;
    add("chosen", kind, 0, |context| {
        let out = Operand::of(context.output(0));
        let spread =
            |x: Operand<'_>| -> Result<Layout> { Ok(x.layout()?.broadcast_to(&out.shape)?) };
        let given = Operand::input(context, 0)?;
        let layout = spread(Operand::at(
            given.ptr,
            &given.shape,
            &given.strides,
            given.dtype,
        ))?;
        let numbers = Operand::at(given.ptr, layout.shape(), layout.strides(), DType::I64);
        let numbers = numbers.into_dense(context, DType::I64)?;
        let count = context.inputs.len() as i64 - 1;
        for own in 0..count {
            let x = Operand::input(context, own as usize + 1)?;
            let layout = x.layout()?.broadcast_to(&out.shape)?;
            let walk = Walk::new(&out.shape, layout.strides(), &out.strides);
            let faults = report(context, move |[found, count, _]| {
                let problem = format!(
                    "invalid entry in choice array: `a` must be in 0..{count}, found {found}"
                );
                Error::value("choose", problem)
            })?;
            let args = [
                Arg::Pointer(numbers.ptr),
                Arg::Pointer(x.ptr),
                Arg::Pointer(out.ptr),
                Arg::Bytes(walk.bytes()),
                Arg::I64(own),
                Arg::I64(count),
                faults,
            ];
            run(context, "CHOOSE", moved(out.dtype), out.len(), &args)?;
        }
        Ok(())
    })?;
    add("resolve_indices", kind, 0, |context| resolve(context, 0))?;
    add("wrapped_indices", kind, 0, |context| {
        resolve(context, if context.str("mode") == "wrap" { 1 } else { 2 })
    })?;
    add("one_hot_rows", kind, 0, |context| {
        let (x, out) = (Operand::dense(context, 0, DType::I64)?, context.output(0));
        let bits = |name| pattern(Scalar::F64(context.float(name)), out.dtype());
        let (on, off) = (bits("on_value"), bits("off_value"));
        let args = [
            Arg::Pointer(x.ptr),
            Arg::Output(0),
            Arg::I64(x.len() as i64),
            Arg::I64(context.int("depth")),
            Arg::Bytes(&on),
            Arg::Bytes(&off),
        ];
        run(context, "ONE_HOT", moved(out.dtype()), out.len(), &args)
    })
}

/// A walk over `shape` with the strides of `view` (0 along the indexed axis) and of the dense side; size and stride of the indexed axis.
fn others(view: &Operand, dense: &Strides, shape: &[usize], axis: usize) -> (Walk, i64, i64) {
    let mut strides = view.strides.clone();
    let stride = std::mem::replace(&mut strides[axis], 0);
    (
        Walk::new(shape, &strides, dense),
        view.shape[axis] as i64,
        stride as i64,
    )
}

fn outside(context: &KernelContext) -> Result<Arg<'static>> {
    let op = context.op.name;
    report(context, move |[size, at, _]| index::outside(op, at, size))
}

/// Launches the conversion of indices to positions on an axis.
fn resolve(context: &KernelContext, mode: i64) -> Result<()> {
    let (x, out) = (Operand::input(context, 0)?, Operand::of(context.output(0)));
    if x.is_empty() {
        return Ok(());
    }
    let walk = Walk::new(&x.shape, &x.strides, &out.strides);
    let axis = if mode == 0 {
        context.int("axis") as usize
    } else {
        0
    };
    let faults = report(context, move |[index, size, _]| {
        let (index, size) = (index as isize, size as usize);
        TensorError::from(IndexError::OutOfBounds { axis, index, size }).into()
    })?;
    let args = [
        Arg::Pointer(x.ptr),
        Arg::Pointer(out.ptr),
        Arg::Bytes(walk.bytes()),
        Arg::I64(context.int("size")),
        Arg::I64(mode),
        faults,
    ];
    run(context, "RESOLVE", c_type(x.dtype), x.len(), &args)
}

fn run(context: &KernelContext, function: &str, name: &str, n: usize, args: &[Arg]) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    launch(
        context,
        &key(function, name),
        || text(function, name),
        for_each(n),
        args,
    )
}

fn key(function: &str, name: &str) -> String {
    format!("along_{}:{name}", function.to_lowercase())
}

fn text(function: &str, name: &str) -> String {
    source(&[
        PAIR,
        WALK,
        operand::FAULT,
        &format!("typedef {name} T;\n#define {function}"),
        ALONG,
    ])
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    let mut push =
        |function: &str, name: &str| all.push((key(function, name), text(function, name)));
    for name in operand::MOVED {
        push("GATHER", name);
        push("CHOOSE", name);
        push("ONE_HOT", name);
    }
    push("NUMBER", "u8");
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
        push("RESOLVE", c_type(dtype));
    }
}
