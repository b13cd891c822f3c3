//! Arrays with all elements equal, or undefined.

use mxnet_tensor::{DType, Device, Dims, Scalar, Tensor, default_float};

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::cx::{CallCx, KernelCx};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Cuda, Grad, Inferred, Onnx, OpDef, Probe, Surface, one_of};
use crate::types::default_dtype;
use crate::{Array, cpu};

/// What constants have in common.
const CONSTANT: OpDef = OpDef {
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["C"], "C"),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    infer: |cx| {
        one_of(
            dims(cx.op.name, cx.ints("shape"))?,
            cx.dtype("dtype").unwrap_or_else(default_float),
        )
    },
    grad: Grad::Stop("it depends on no array"),
    onnx: Onnx::Node {
        ty: "ConstantOfShape",
        since: 9,
    },
    cost: Cost::PerKiB(30),
    probe: Probe::calls(&[
        "(2, 3)",
        "()",
        "(0, 4)",
        "5",
        "(2,), 'int32'",
        "(2,), dtype='complex64'",
    ]),
    ..OpDef::DEFAULT
};

/// Zeros.
pub static ZEROS: OpDef = OpDef {
    name: "zeros",
    surface: &[Surface::Np("zeros")],
    doc: "Array of zeros. `dtype` defaults to the default float.",
    cpu: Cpu::Eager(|cx| {
        // Large blocks come zeroed from the system, untouched until they are used.
        let (shape, dtype) = (
            dims(cx.op.name, cx.ints("shape"))?,
            cx.dtype("dtype").unwrap_or_else(default_float),
        );
        cx.done(Array::from_tensor(Tensor::zeros(
            &shape,
            dtype,
            cx.device("device")
                .unwrap_or_else(crate::interp::current_device),
        )?))
    }),
    cuda: Cuda::Expr("0"),
    ..CONSTANT
};

/// Ones.
pub static ONES: OpDef = OpDef {
    name: "ones",
    surface: &[Surface::Np("ones")],
    doc: "Array of ones. `dtype` defaults to the default float.",
    cpu: Cpu::Kernel(|cx| filled(cx, Scalar::I64(1))),
    cuda: Cuda::Expr("1"),
    ..CONSTANT
};

/// Undefined elements.
pub static EMPTY: OpDef = OpDef {
    name: "empty",
    surface: &[Surface::Np("empty")],
    doc: "Array whose elements are undefined until they are written. `dtype` defaults to the default float.",
    cpu: Cpu::Kernel(|_| Ok(())),
    cuda: Cuda::Derived,
    cost: Cost::PerKiB(0),
    ..CONSTANT
};

/// One value everywhere.
pub static FULL: OpDef = OpDef {
    name: "full",
    surface: &[Surface::Np("full")],
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::required("fill_value", ParamKind::Scalar),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["C"], "C"),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Array filled with `fill_value`, a number. `dtype` defaults to that of the value.",
    infer: |cx| {
        let natural = || {
            cx.scalar("fill_value")
                .map_or(DType::F32, |v| default_dtype(v.kind()))
        };
        one_of(
            dims(cx.op.name, cx.ints("shape"))?,
            cx.dtype("dtype").unwrap_or_else(natural),
        )
    },
    cpu: Cpu::Kernel(|cx| filled(cx, cx.scalar("fill_value").unwrap_or(Scalar::I64(0)))),
    cuda: Cuda::Expr("value"),
    probe: Probe::calls(&["(2, 3), 1.5", "(), 7", "(0, 4), 1", "3, True"]),
    ..CONSTANT
};

/// What constants like another array have in common.
const LIKE: OpDef = OpDef {
    params: &[
        Param::array("a"),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["K", "C"], "K"),
        Param::bool("subok", true),
        Param::optional("shape", ParamKind::Ints),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    infer: like,
    grad: Grad::Stop("it depends on the shape only"),
    onnx: Onnx::Composite,
    probe: Probe::calls(&[
        "f((2, 3))",
        "i((2,), 5)",
        "f((2,)), 'int8'",
        "f((2, 3)), shape=(4,)",
    ]),
    ..CONSTANT
};

/// Zeros like another array.
pub static ZEROS_LIKE: OpDef = OpDef {
    name: "zeros_like",
    surface: &[Surface::Np("zeros_like")],
    doc: "Zeros with the shape and dtype of `a`, unless others are given.",
    cpu: Cpu::Kernel(|cx| filled(cx, Scalar::I64(0))),
    cuda: Cuda::Expr("0"),
    ..LIKE
};

/// Ones like another array.
pub static ONES_LIKE: OpDef = OpDef {
    name: "ones_like",
    surface: &[Surface::Np("ones_like")],
    doc: "Ones with the shape and dtype of `a`, unless others are given.",
    cpu: Cpu::Kernel(|cx| filled(cx, Scalar::I64(1))),
    cuda: Cuda::Expr("1"),
    ..LIKE
};

/// Undefined elements like another array.
pub static EMPTY_LIKE: OpDef = OpDef {
    name: "empty_like",
    surface: &[Surface::Np("empty_like")],
    doc: "Undefined elements with the shape and dtype of `a`, unless others are given.",
    cpu: Cpu::Kernel(|_| Ok(())),
    cuda: Cuda::Derived,
    ..LIKE
};

/// One value, like another array.
pub static FULL_LIKE: OpDef = OpDef {
    name: "full_like",
    surface: &[Surface::Np("full_like")],
    params: &[
        Param::array("a"),
        Param::required("fill_value", ParamKind::Scalar),
        Param::optional("dtype", ParamKind::DType),
        Param::choice("order", &["K", "C"], "K"),
        Param::bool("subok", true),
        Param::optional("shape", ParamKind::Ints),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "`fill_value`, a number, with the shape and dtype of `a`, unless others are given.",
    cpu: Cpu::Kernel(|cx| filled(cx, cx.scalar("fill_value").unwrap_or(Scalar::I64(0)))),
    cuda: Cuda::Expr("value"),
    probe: Probe::calls(&[
        "f((2, 3)), 2",
        "i((2,), 5), 3.7",
        "f((2,)), 1, shape=(2, 2)",
    ]),
    ..LIKE
};

fn like(cx: &CallCx) -> Result<Inferred> {
    let shape = match cx.opt_ints("shape") {
        Some(shape) => dims(cx.op.name, shape)?,
        None => Dims::from_slice(cx.shape(0)),
    };
    one_of(shape, cx.dtype("dtype").unwrap_or_else(|| cx.dtype_of(0)))
}

fn filled(cx: &KernelCx, value: Scalar) -> Result<()> {
    cpu::fill(cx.output(0), value, cx.threads);
    Ok(())
}

/// A shape from Python integers.
pub(crate) fn dims(op: &'static str, shape: &[i64]) -> Result<Dims> {
    shape
        .iter()
        .map(|&d| {
            usize::try_from(d).map_err(|_| {
                crate::Error::shape(
                    op,
                    format!("negative dimension {d} in shape {}", crate::Tuple(shape)),
                )
            })
        })
        .collect()
}

/// An array of `value`.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn full(shape: &[usize], value: Scalar, dtype: DType, device: Device) -> Result<Array> {
    let attrs: Attrs = [
        Value::from(shape),
        Value::Scalar(value),
        Value::DType(dtype),
        Value::Word("C"),
        Value::Device(device),
    ]
    .into_iter()
    .collect();
    invoke1(&FULL, &[], &attrs)
}

/// An array of zeros.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn zeros(shape: &[usize], dtype: DType, device: Device) -> Result<Array> {
    full(shape, Scalar::I64(0), dtype, device)
}

/// An array of ones.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn ones(shape: &[usize], dtype: DType, device: Device) -> Result<Array> {
    full(shape, Scalar::I64(1), dtype, device)
}
