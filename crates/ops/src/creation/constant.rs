//! Arrays with all elements equal.

use mxnet_tensor::{DType, Device, Dims, Scalar};

use crate::args::{Attrs, Param, ParamKind, Value};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::opdef::{Cost, Cpu, Cuda, Grad, OpDef, Probe, one_of};
use crate::types::default_dtype;
use crate::{Array, cpu};

pub(crate) static OPS: &[&OpDef] = &[&FULL];

/// One value everywhere.
pub static FULL: OpDef = OpDef {
    name: "full",
    params: &[
        Param::required("shape", ParamKind::Ints),
        Param::required("fill_value", ParamKind::Scalar),
        Param::optional("dtype", ParamKind::DType),
        Param::optional("device", ParamKind::Device).keyword(),
    ],
    doc: "Array of shape `shape` filled with `fill_value`. `dtype` defaults to that of the value.",
    infer: |cx| {
        let dtype = cx
            .dtype("dtype")
            .or(cx.scalar("fill_value").map(|v| default_dtype(v.kind())))
            .unwrap_or(DType::F32);
        one_of(dims(cx.op.name, cx.ints("shape"))?, dtype)
    },
    cpu: Cpu::Kernel(|cx| {
        let value = cx.scalar("fill_value").unwrap_or(Scalar::I64(0));
        cpu::fill(cx.output(0), value, cx.threads);
        Ok(())
    }),
    cuda: Cuda::Expr("value"),
    grad: Grad::Stop("it depends on no array"),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&["(2, 3), 1.5", "(), 7", "(0, 4), 1"]),
    ..OpDef::DEFAULT
};

/// A shape from Python integers.
pub(crate) fn dims(op: &'static str, shape: &[i64]) -> Result<Dims> {
    shape
        .iter()
        .map(|&d| {
            usize::try_from(d).map_err(|_| {
                crate::Error::value(
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
