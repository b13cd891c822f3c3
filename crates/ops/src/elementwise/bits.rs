//! Truth values as the bits of bytes. The axis is the last one: `packbits` and `unpackbits` bring it there.
#![allow(unsafe_code)]

use mxnet_kernels::bits::{BitOrder, pack, unpack};
use mxnet_tensor::{DType, Dims};

use crate::args::Param;
use crate::cx::{CallCx, KernelCx};
use crate::error::Result;
use crate::index::dense;
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, one_of};

pub(crate) static OPS: &[&OpDef] = &[&PACK_BITS, &UNPACK_BITS];

/// Bytes of bits.
pub static PACK_BITS: OpDef = OpDef {
    name: "pack_bits",
    params: &[
        Param::array("a"),
        Param::choice("bitorder", &["big", "little"], "big"),
    ],
    doc: "Truth values, or integers, which are true if they are not 0, as the bits of bytes along the last axis; bits that are missing are 0.",
    infer: |cx| {
        if cx.dtype_of(0).is_inexact() {
            return Err(cx.dtype_error(format!(
                "expected an array of integers or truth values, found {}",
                cx.dtype_of(0).name()
            )));
        }
        with_last(cx, |n| n.div_ceil(8))
    },
    cpu: Cpu::Kernel(|cx| {
        let x = cx.input(0);
        let one_byte = if x.dtype().size() == 1 {
            x.dtype()
        } else {
            DType::Bool
        };
        let x = operand::dense(x, one_byte, cx.threads)?;
        let n = x.shape().last().copied().unwrap_or(1);
        let rows = x.len().checked_div(n).unwrap_or(0);
        // SAFETY: the input is dense, of one byte an element; the output has `rows` rows of `n / 8` bytes, rounded up, allocated for this call.
        unsafe {
            pack(
                cx.threads,
                order(cx),
                rows,
                n,
                x.data_ptr(),
                cx.output(0).data_ptr(),
            )
        };
        Ok(())
    }),
    grad: Grad::Stop("bits have no slope"),
    cost: Cost::PerKiB(60),
    probe: Probe::calls(&[
        "b((3, 19))",
        "b((2, 8)), 'little'",
        "b((2, 0))",
        "b((7,))",
        "i((3, 9), 3)",
    ])
    .against("lambda a, bitorder='big': numpy.packbits(a, -1, bitorder)"),
    ..OpDef::DEFAULT
};

/// Bits of bytes.
pub static UNPACK_BITS: OpDef = OpDef {
    name: "unpack_bits",
    params: PACK_BITS.params,
    doc: "The bits of uint8 along the last axis, each as a byte that is 0 or 1.",
    infer: |cx| {
        if cx.dtype_of(0) != DType::U8 {
            return Err(cx.dtype_error(format!(
                "`a` must be uint8, found {}",
                cx.dtype_of(0).name()
            )));
        }
        with_last(cx, |n| 8 * n)
    },
    cpu: Cpu::Kernel(|cx| {
        let x = dense(cx.input(0), cx.threads)?;
        // SAFETY: the input is dense; the output has eight bytes for each of its bytes, allocated for this call.
        unsafe {
            unpack(
                cx.threads,
                order(cx),
                x.len(),
                x.data_ptr(),
                cx.output(0).data_ptr(),
            )
        };
        Ok(())
    }),
    probe: Probe::calls(&[
        "i((3, 4), 256).astype('uint8')",
        "i((5,), 256).astype('uint8'), 'little'",
    ])
    .against("lambda a, bitorder='big': numpy.unpackbits(a, -1, bitorder=bitorder)"),
    ..PACK_BITS
};

fn with_last(cx: &CallCx, length: fn(usize) -> usize) -> Result<Inferred> {
    let mut shape = Dims::from_slice(cx.shape(0));
    match shape.last_mut() {
        Some(n) => *n = length(*n),
        None => return Err(cx.shape_error("`a` must have an axis")),
    }
    one_of(shape, DType::U8)
}

fn order(cx: &KernelCx) -> BitOrder {
    if cx.str("bitorder") == "big" {
        BitOrder::Big
    } else {
        BitOrder::Little
    }
}
