//! Elementwise operators.

use mxnet_core::{Error, KernelCx, Result, variants};
use mxnet_tensor::{DType, DeviceKind};

use crate::launch::{Arg, Grid, launch};

const ADD_KEY: &str = "add:f32:contiguous";

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    variants::register("add", kind, 0, add)
}

pub(crate) fn texts(texts: &mut Vec<(String, String)>) {
    texts.push((ADD_KEY.to_owned(), add_text()));
}

fn add_text() -> String {
    r#"
extern "C" __global__ void kernel(const float* x, const float* y, float* out, i64 len) {
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < len; i += (i64)gridDim.x * blockDim.x)
        out[i] = x[i] + y[i];
}
"#
    .to_owned()
}

fn add(cx: &KernelCx) -> Result<()> {
    let out = cx.output(0);
    let operands = [cx.input(0), cx.input(1), out];
    let is_served = (operands.iter().enumerate()).all(|(i, x)| {
        x.dtype() == DType::F32
            && x.layout().is_contiguous()
            && x.shape() == out.shape()
            && (i == 2 || cx.number(i).is_none())
    });
    if !is_served {
        let problem = format!("no kernel for these operands on {}", cx.device);
        return Err(Error::device(cx.op.name, problem));
    }
    let len = out.len() as i64;
    let args = [Arg::Input(0), Arg::Input(1), Arg::Output(0), Arg::I64(len)];
    launch(cx, ADD_KEY, add_text, Grid::of_len(out.len()), &args)
}
