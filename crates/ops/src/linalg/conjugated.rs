//! The inner product of complex vectors, the first one conjugated on the way.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;

use mxnet_kernels::gemm::{Epilogue, Matrix, Problem, gemm};
use mxnet_kernels::{Elem, Serial};
use mxnet_tensor::Dims;

use crate::args::Param;
use crate::autograd::GradCx;
use crate::cx::{CallCx, KernelCx};
use crate::eager::elem;
use crate::error::{Result, Tuple};
use crate::nn::operand;
use crate::opdef::{Cost, Cpu, Grad, Grads, Inferred, Keep, OpDef, Probe, one};
use crate::types::Types;

/// What `vdot` of complex vectors is made of: a conjugate of its own would be written, read again and thrown away.
pub static CONJUGATED_DOT: OpDef = OpDef {
    name: "conjugated_dot",
    params: &[Param::array("a"), Param::array("b")],
    doc: "Sum of products of the conjugated elements of the vector `a` with those of the vector `b`.",
    types: Types::NUMERIC,
    infer: no_axes,
    cpu: Cpu::Kernel(conjugated_dot),
    grad: Grad::Rule(Keep::INPUTS, |g: &GradCx| {
        let (a, b) = (g.input(0), g.input(1));
        let mut grads = Grads::new();
        grads.push(match g.wants(0) {
            true => Some(b.mul(&g.dy(0).conj()?)?),
            false => None,
        });
        grads.push(match g.wants(1) {
            true => Some(a.mul(g.dy(0))?),
            false => None,
        });
        Ok(grads)
    }),
    cost: Cost::Of(|cx| cx.shape(0).iter().product::<usize>() as u64 / 2),
    probe: Probe::calls(&[
        "c((3,)), c((3,))",
        "c((2500,)), c((2500,))",
        "c((0,)), c((0,))",
    ])
    .against("lambda a, b: np.vdot(a, b)")
    .ulp(64),
    ..OpDef::DEFAULT
};

fn no_axes(cx: &CallCx) -> Result<Inferred> {
    let (a, b) = (cx.shape(0), cx.shape(1));
    if a.len() != 1 || a != b {
        return Err(cx.shape_error(format!(
            "`a` has shape {} and `b` {}, two vectors of one length are needed",
            Tuple(a),
            Tuple(b)
        )));
    }
    one(Dims::new())
}

/// Elements conjugated at a time: with as many of the other operand they stay in the first-level cache.
const TILE: usize = 1024;

fn conjugated_dot(cx: &KernelCx) -> Result<()> {
    let out = cx.output(0);
    let dtype = out.dtype();
    let a = operand::dense(cx.input(0), dtype, cx.threads)?;
    let b = operand::dense(cx.input(1), dtype, cx.threads)?;
    let (elem, size, n) = (elem(dtype), dtype.size(), a.len());
    let mut tile = [MaybeUninit::<[u64; 2]>::uninit(); TILE];
    let tile = tile.as_mut_ptr().cast::<u8>();
    let step = size as isize;
    let conjugates = matches!(elem, Elem::C64 | Elem::C128);
    // The sign of the imaginary part, in two words: two elements of complex64 or one of complex128.
    let signs = match elem {
        Elem::C64 => [[0.0_f32, -0.0], [0.0, -0.0]].map(bits_of),
        _ => [0.0_f64, -0.0].map(f64::to_bits),
    };
    for first in (0..n.max(1)).step_by(TILE) {
        let len = TILE.min(n - first);
        let problem = Problem {
            elem,
            batch: &[],
            m: 1,
            n: 1,
            k: len,
            alpha: 1.0,
            beta: f64::from(u8::from(first > 0)),
        };
        let matrix = |ptr: *mut u8| Matrix {
            ptr,
            row_stride: step,
            col_stride: step,
            batch_strides: &[],
        };
        // SAFETY: `len` elements from `first` on lie inside both dense operands and, as none has more than 16 bytes, in the tile; the
        // result is one element, which only later tiles read; nothing overlaps.
        unsafe {
            let mut from = a.data_ptr().add(first * size);
            if conjugates {
                conjugate(from, tile, len * size / 8, &signs);
                from = tile;
            }
            let to = b.data_ptr().add(first * size);
            gemm(
                &Serial,
                &problem,
                &matrix(from),
                &matrix(to),
                &matrix(out.data_ptr()),
                &Epilogue::NONE,
            );
        }
    }
    Ok(())
}

fn bits_of(pair: [f32; 2]) -> u64 {
    let [re, im] = pair.map(f32::to_ne_bytes);
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&re);
    bytes[4..].copy_from_slice(&im);
    u64::from_ne_bytes(bytes)
}

/// Words with some signs turned, the two of `signs` in turn.
///
/// # Safety
/// `from` has `words` words and `to` room for as many, apart from each other.
unsafe fn conjugate(from: *const u8, to: *mut u8, words: usize, signs: &[u64; 2]) {
    let (from, to) = (from.cast::<u64>(), to.cast::<u64>());
    // SAFETY: `i` and `i + 1` are below `words`. Complex numbers of two f32 are aligned to four bytes only.
    let turn = |i: usize, sign: u64| unsafe {
        to.add(i).write(from.add(i).read_unaligned() ^ sign);
    };
    for i in (0..words / 2 * 2).step_by(2) {
        turn(i, signs[0]);
        turn(i + 1, signs[1]);
    }
    if words % 2 == 1 {
        turn(words - 1, signs[0]);
    }
}
