//! Rounding of scaled floats to 8-bit integers.

use mxnet_kernels::map;
use mxnet_tensor::DType;

use crate::args::Param;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe};
use crate::types::{DTypes, Lift, Out, Types};

pub(crate) static OPS: &[&OpDef] = &[&QUANTIZE_INT8, &QUANTIZE_UINT8];

/// Default fields for both.
const QUANTIZE: OpDef = OpDef {
    params: &[Param::array("x"), Param::array("factor")],
    about: &[("factor", "Levels in 1: 127 or 255 by the largest number.")],
    grad: Grad::Stop("piecewise constant"),
    cost: Cost::PerKiB(200),
    ..OpDef::BINARY
};

const fn types(out: DType) -> Types {
    Types::Promote {
        accepts: DTypes::FLOAT,
        lift: Lift::ToDefaultFloat,
        out: Out::Fixed(out),
    }
}

/// Signed 8-bit integers.
pub static QUANTIZE_INT8: OpDef = OpDef {
    name: "quantize_int8",
    doc: "`x * factor` rounded to the nearest integer, ties to even, from -127 to 127. NaN becomes -127.",
    cpu: Cpu::Map(&map::QUANTIZE_I8),
    types: types(DType::I8),
    probe: Probe::over(-150.0..150.0)
        .against("lambda x, f: np.clip(np.rint(x.astype(np.result_type(x, np.float32)) * f), -127, 127).astype(np.int8)")
        .ulp(0),
    ..QUANTIZE
};

/// Unsigned 8-bit integers.
pub static QUANTIZE_UINT8: OpDef = OpDef {
    name: "quantize_uint8",
    doc: "`x * factor` rounded to the nearest integer, ties to even, from 0 to 255. NaN becomes 0.",
    cpu: Cpu::Map(&map::QUANTIZE_U8),
    types: types(DType::U8),
    probe: Probe::over(-20.0..20.0)
        .against("lambda x, f: np.clip(np.rint(x.astype(np.result_type(x, np.float32)) * f), 0, 255).astype(np.uint8)")
        .ulp(0),
    ..QUANTIZE
};
