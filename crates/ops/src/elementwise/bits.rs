//! Truth values as the bits of bytes: `packbits` and `unpackbits`, and the operators along the last axis that they are made of.
#![allow(unsafe_code)]

use mxnet_kernels::Elem;
use mxnet_kernels::bits::{BitOrder, pack, unpack};
use mxnet_kernels::cast::Cast;
use mxnet_tensor::{DType, Dims, Scalar};

use crate::args::{Param, ParamKind, Value};
use crate::cx::{CallCx, CompositeCx, KernelCx};
use crate::error::Result;
use crate::index::dense;
use crate::invoke::invoke1;
use crate::launch::{Pool, elem};
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, Inferred, OpDef, Probe, Short, Surface, one_of};
use crate::shape::{moveaxis, narrow, pad_with};
use crate::{Array, Outputs, quick};

pub(crate) static OPS: &[&OpDef] = &[&PACKBITS, &UNPACKBITS, &PACK_BITS, &UNPACK_BITS];

/// Bytes of bits, along any axis.
pub static PACKBITS: OpDef = OpDef {
    name: "packbits",
    surface: &[Surface::Np("packbits")],
    params: &[
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::choice("bitorder", &["big", "little"], "big"),
    ],
    doc: "Truth values as the bits of bytes.",
    about: &[
        ("a", "Integers or truth values; what is not 0 is a set bit."),
        (
            "axis",
            "The axis that is packed; None packs the flattened array.",
        ),
        (
            "bitorder",
            "Whether the first value is the highest ('big') or the lowest bit.",
        ),
    ],
    returns: &[(
        "ndarray",
        "uint8, an eighth of the elements along `axis`, rounded up; bits that are missing are 0.",
    )],
    raises: &[(
        "TypeError",
        "If the elements are neither integers nor truth values.",
    )],
    example: "
        >>> np.packbits(np.array([1, 0, 1]))
        array([160], dtype=uint8)
    ",
    short: Short::Along(|x, axis| match axis {
        None => pack_few(x),
        Some(_) => Ok(None),
    }),
    cpu: Cpu::Composite(|cx| along_axis(cx, &PACK_BITS, None)),
    grad: Grad::Stop("bits have no slope"),
    probe: Probe::calls(&[
        "b((3, 19))",
        "b((3, 19)), 0",
        "b((2, 8, 3)), 1, 'little'",
        "b((2, 0))",
        "i((3, 9), 3), -1",
    ]),
    ..OpDef::COMPOSITE
};

/// Bits of bytes, along any axis.
pub static UNPACKBITS: OpDef = OpDef {
    name: "unpackbits",
    surface: &[Surface::Np("unpackbits")],
    params: &[
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::optional("count", ParamKind::Int),
        Param::choice("bitorder", &["big", "little"], "big"),
    ],
    doc: "The bits of bytes, each as a byte that is 0 or 1.",
    about: &[
        ("a", "Bytes, uint8."),
        (
            "axis",
            "The axis that is unpacked; None unpacks the flattened array.",
        ),
        (
            "count",
            "The number of bits to keep along `axis`: zeros follow if it is larger than there are; a negative one is the number to leave out at \
             the end.",
        ),
        (
            "bitorder",
            "Whether the highest ('big') or the lowest bit comes first.",
        ),
    ],
    returns: &[("ndarray", "uint8.")],
    raises: &[
        ("TypeError", "If the elements are no uint8."),
        ("ValueError", "If `count` leaves out more than there are."),
    ],
    example: "
        >>> np.unpackbits(np.array([160], dtype='uint8'), count=3)
        array([1, 0, 1], dtype=uint8)
    ",
    short: Short::Along(|x, axis| match axis {
        None => unpack_few(x),
        Some(_) => Ok(None),
    }),
    cpu: Cpu::Composite(|cx| along_axis(cx, &UNPACK_BITS, cx.opt_int("count"))),
    probe: Probe::calls(&[
        "i((3, 4), 256).astype('uint8')",
        "i((3, 4), 256).astype('uint8'), 0, 5",
        "i((2, 3, 2), 256).astype('uint8'), 1, -3, 'little'",
        "i((5,), 256).astype('uint8'), None, 50",
    ]),
    ..PACKBITS
};

/// What an operator along the last axis makes of the axis of the call, with so many elements there as `count` asks for.
fn along_axis(cx: &CompositeCx, op: &'static OpDef, count: Option<i64>) -> Result<Outputs> {
    let x = cx.input(0);
    let (rows, axis) = match cx.opt_int("axis") {
        None => (x.reshape(&[x.len()])?, 0),
        // A number is a row of one.
        Some(_) if x.ndim() == 0 => (x.reshape(&[1])?, 0),
        Some(_) => {
            let axis = cx.axis("axis", 0)?;
            (moveaxis(x, axis as i64, -1)?, axis)
        }
    };
    let order = match cx.str("bitorder") {
        "little" => "little",
        _ => "big",
    };
    let mut bits = invoke1(op, &[&rows], &[Value::from(order)].into_iter().collect())?;
    let (last, n) = (bits.ndim() - 1, bits.shape()[bits.ndim() - 1]);
    if let Some(count) = count {
        let keep = if count < 0 { n as i64 + count } else { count };
        let keep = usize::try_from(keep).map_err(|_| {
            cx.value_error(format!(
                "-count larger than number of elements: {} of {n}",
                -count
            ))
        })?;
        bits = if keep <= n {
            narrow(&bits, last, 0, keep)?
        } else {
            let mut widths = vec![0; 2 * bits.ndim()];
            widths[2 * last + 1] = (keep - n) as i64;
            pad_with(&bits, &widths, Scalar::I64(0))?
        };
    }
    cx.done(moveaxis(&bits, -1, axis as i64)?.contiguous()?)
}

/// A few dense integers as bits.
fn pack_few(x: &Array) -> Result<Option<Array>> {
    /// Elements that are made truth values on the stack.
    const MOST: usize = 256;
    let n = x.len();
    if x.dtype().is_inexact() || n > MOST {
        return Ok(None);
    }
    quick::small(x, &[n.div_ceil(8)], DType::U8, |src, dst| {
        let mut truths = [0_u8; MOST];
        // SAFETY: `small` gives `n <= MOST` dense elements and room for an eighth as many bytes, which nobody else knows.
        unsafe {
            let src = if x.dtype().size() == 1 {
                src
            } else {
                Cast::new(elem(x.dtype()), Elem::Bool).row(src, truths.as_mut_ptr(), n);
                truths.as_ptr()
            };
            pack(&Pool, BitOrder::Big, 1, n, src, dst);
        }
        true
    })
}

/// The bits of a few dense bytes.
fn unpack_few(x: &Array) -> Result<Option<Array>> {
    if x.dtype() != DType::U8 {
        return Ok(None);
    }
    quick::small(x, &[8 * x.len()], DType::U8, |src, dst| {
        // SAFETY: `small` gives dense bytes and room for eight times as many, which nobody else knows.
        unsafe { unpack(&Pool, BitOrder::Big, x.len(), src, dst) };
        true
    })
}

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
