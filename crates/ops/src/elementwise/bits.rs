//! `packbits` and `unpackbits`: booleans as bits of bytes.
#![allow(unsafe_code)]

use mxnet_kernels::Serial;
use mxnet_kernels::bits::{BitOrder, pack, unpack};
use mxnet_tensor::{DType, Dims, Tensor, normalize_axis};

use crate::args::{Param, ParamKind};
use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::Result;
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe, Surface, one_of};

pub(crate) static OPS: &[&OpDef] = &[&PACKBITS, &UNPACKBITS];

/// Packs booleans into bits of bytes, along any axis.
pub static PACKBITS: OpDef = OpDef {
    name: "packbits",
    surface: &[Surface::Np("packbits")],
    params: &[
        Param::array("a"),
        Param::optional("axis", ParamKind::Int),
        Param::choice("bitorder", &["big", "little"], "big"),
    ],
    doc: "Booleans as the bits of bytes.",
    about: &[
        (
            "a",
            "Integers or booleans; elements that are not 0 become set bits.",
        ),
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
        "uint8, with an eighth of the elements along `axis`, rounded up; missing bits are 0.",
    )],
    raises: &[(
        "TypeError",
        "If the elements are neither integers nor booleans.",
    )],
    example: "
        >>> np.packbits(np.array([1, 0, 1]))
        array([160], dtype=uint8)
    ",
    infer: |context| {
        let (mut shape, axis) = rows_of(context.shape(0), context.opt_int("axis"))?;
        if context.dtype_of(0).is_inexact() {
            return Err(context.dtype_error(format!(
                "expected an array of integers or booleans, found {}",
                context.dtype_of(0).name()
            )));
        }
        shape[axis] = shape[axis].div_ceil(8);
        one_of(shape, DType::U8)
    },
    cpu: Cpu::Kernel(|context| {
        let one_byte = match context.input(0).dtype() {
            dtype if dtype.size() == 1 => dtype,
            _ => DType::Bool,
        };
        by_rows(context, one_byte, |x, out, n, _| {
            let (rows, order) = (x.len() / n, order(context));
            // SAFETY: the rows are dense, one byte an element. The results have `rows` rows of ceil(n / 8) bytes and are not shared.
            unsafe {
                pack(
                    context.threads,
                    order,
                    rows,
                    n,
                    x.data_ptr(),
                    out.data_ptr(),
                )
            };
        })
    }),
    cost: Cost::PerKiB(60),
    grad: Grad::Stop("bits have no gradient"),
    probe: Probe::calls(&[
        "b((3, 19))",
        "b((3, 19)), 0",
        "b((2, 8, 3)), 1, 'little'",
        "b((2, 0))",
        "i((3, 9), 3), -1",
        "i((3, 9, 2), 3), 0, 'little'",
    ]),
    ..OpDef::DEFAULT
};

/// Unpacks bits of bytes into elements, along any axis.
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
            "The number of bits to keep along `axis`. If it exceeds the number of bits, zeros follow; if it is negative, that many bits are left out \
                at the end.",
        ),
        (
            "bitorder",
            "Whether the highest ('big') or the lowest bit comes first.",
        ),
    ],
    returns: &[(
        "ndarray",
        "uint8, 0 or 1, with eight elements for each byte along `axis`, or `count`.",
    )],
    raises: &[
        ("TypeError", "If the elements are not uint8."),
        (
            "ValueError",
            "If `count` leaves out more bits than there are.",
        ),
    ],
    example: "
        >>> np.unpackbits(np.array([160], dtype='uint8'), count=3)
        array([1, 0, 1], dtype=uint8)
    ",
    infer: |context| {
        let (mut shape, axis) = rows_of(context.shape(0), context.opt_int("axis"))?;
        if context.dtype_of(0) != DType::U8 {
            return Err(context.dtype_error(format!(
                "`a` must be uint8, found {}",
                context.dtype_of(0).name()
            )));
        }
        shape[axis] = kept(context, 8 * shape[axis])?;
        one_of(shape, DType::U8)
    },
    cpu: Cpu::Kernel(|context| {
        by_rows(context, DType::U8, |x, out, n, width| {
            let order = order(context);
            if width == 8 * n {
                // SAFETY: the rows are dense; the results have eight bytes for each input byte and are not shared.
                unsafe {
                    unpack(
                        context.threads,
                        order,
                        x.len(),
                        x.data_ptr(),
                        out.data_ptr(),
                    )
                };
                return;
            }
            // The first bits of each row; zeros where `count` exceeds the row.
            let (whole, rest) = (n.min(width / 8), width % 8);
            for row in 0..out.len() / width {
                // SAFETY: as above, row by row; only part of the last byte may be used.
                unsafe {
                    let from = x.data_ptr().add(row * n);
                    let to = out.data_ptr().add(row * width);
                    to.write_bytes(0, width);
                    unpack(&Serial, order, whole, from, to);
                    if whole < n && rest > 0 {
                        let mut last = [0_u8; 8];
                        unpack(&Serial, order, 1, from.add(whole), last.as_mut_ptr());
                        to.add(8 * whole)
                            .copy_from_nonoverlapping(last.as_ptr(), rest);
                    }
                }
            }
        })
    }),
    probe: Probe::calls(&[
        "i((3, 4), 256).astype('uint8')",
        "i((3, 4), 256).astype('uint8'), 0, 5",
        "i((2, 3, 2), 256).astype('uint8'), 1, -3, 'little'",
        "i((5,), 256).astype('uint8'), None, 50",
    ]),
    ..PACKBITS
};

/// Shape and axis along which the call packs: `None` flattens the array, and a 0-d array is a row of one element.
fn rows_of(shape: &[usize], axis: Option<i64>) -> Result<(Dims, usize)> {
    match axis {
        None => Ok((Dims::from_slice(&[shape.iter().product()]), 0)),
        Some(_) if shape.is_empty() => Ok((Dims::from_slice(&[1]), 0)),
        Some(axis) => Ok((
            Dims::from_slice(shape),
            normalize_axis(axis as isize, shape.len())?,
        )),
    }
}

/// Number of bits that `count` selects out of `n`.
fn kept(context: &CallContext, n: usize) -> Result<usize> {
    let Some(count) = context.opt_int("count") else {
        return Ok(n);
    };
    let keep = if count < 0 { n as i64 + count } else { count };
    usize::try_from(keep).map_err(|_| {
        context.value_error(format!(
            "-count larger than number of elements: {} of {n}",
            -count
        ))
    })
}

/// Calls `work` with the input's rows (dense, of `dtype`), the output, the length of an input row and of an output row. If the axis is not the
/// last one, `work` writes to a temporary that is copied to the output afterwards.
fn by_rows(
    context: &KernelContext,
    dtype: DType,
    work: impl FnOnce(&Tensor, &Tensor, usize, usize),
) -> Result<()> {
    let (x, out) = (context.input(0), context.output(0));
    if out.is_empty() {
        return Ok(());
    }
    let (shape, axis) = rows_of(x.shape(), context.opt_int("axis"))?;
    let (n, width) = (shape[axis], out.shape()[axis]);
    if shape[axis + 1..].iter().all(|&n| n == 1) {
        work(&operand::dense(x, dtype, context.threads)?, out, n, width);
        return Ok(());
    }
    let last = |t: &Tensor| Ok(t.with_layout(t.layout().move_axis(&[axis as isize], &[-1])?));
    let target: Tensor = last(out)?;
    let results = Tensor::empty(target.shape(), out.dtype(), out.device())?;
    let rows: Result<Tensor> = last(x);
    work(
        &operand::dense(&rows?, dtype, context.threads)?,
        &results,
        n,
        width,
    );
    cpu::copy(&results, &target, context.threads)
}

fn order(context: &KernelContext) -> BitOrder {
    if context.str("bitorder") == "big" {
        BitOrder::Big
    } else {
        BitOrder::Little
    }
}
