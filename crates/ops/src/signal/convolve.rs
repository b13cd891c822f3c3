//! Convolution of two sequences, as a network's convolution over one channel.

use mxnet_tensor::{Kind, Scalar};
use num_complex::Complex;
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, Value};
use crate::cx::CompositeCx;
use crate::elementwise::special::IMAG_PART;
use crate::error::Result;
use crate::invoke::{invoke_with, only};
use crate::nn::CONVOLUTION;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::shape::{concatenate, flip, narrow, pad_with};
use crate::types::promoted;

const MODES: &[&str] = &["full", "same", "valid"];

/// Convolution of two sequences.
pub static CONVOLVE: OpDef = OpDef {
    name: "convolve",
    surface: &[Surface::Np("convolve")],
    params: &[
        Param::array("a"),
        Param::array("v"),
        Param::choice("mode", MODES, "full"),
    ],
    doc: "Convolution of two sequences of n and m elements: sums of products of one with the other reversed, at every shift.\n\n`mode` says which shifts: 'full' all n + m - 1 at which they \
          overlap, 'same' the middle max(n, m) of these, 'valid' those at which the shorter one lies within the longer one.",
    cpu: Cpu::Composite(|cx| {
        let (a, v) = operands(cx)?;
        // Convolution commutes; the shorter sequence is the one that slides.
        let (long, short) = if v.len() > a.len() { (v, a) } else { (a, v) };
        cx.done(sliding(&long, &flip(&short, &[0])?, cx.str("mode"))?)
    }),
    probe: Probe::calls(&[
        "f((5,)), f((3,))",
        "f((2,)), f((4,)), 'same'",
        "f((7,)), f((4,)), 'valid'",
        "c((4,)), c((3,))",
        "i((6,), 9), i((3,), 9), 'same'",
        "b((5,)), b((2,))",
        "f((1,)), 2.0",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// Correlation of two sequences.
pub static CORRELATE: OpDef = OpDef {
    name: "correlate",
    surface: &[Surface::Np("correlate")],
    params: &[
        Param::array("a"),
        Param::array("v"),
        Param::choice("mode", MODES, "valid"),
    ],
    doc: "Correlation of two sequences: sums of products of `a` with the conjugate of `v`, at every shift of `v`. `mode` as for `convolve`.",
    cpu: Cpu::Composite(|cx| {
        let (a, v) = operands(cx)?;
        if v.len() > a.len() {
            // c(k) of (a, v) is the conjugate of c(-k) of (v, a).
            let turned = sliding(&v, &a.conj()?, cx.str("mode"))?;
            return cx.done(flip(&turned, &[0])?.conj()?);
        }
        cx.done(sliding(&a, &v.conj()?, cx.str("mode"))?)
    }),
    probe: Probe::calls(&[
        "f((5,)), f((3,))",
        "f((3,)), f((5,)), 'full'",
        "f((2,)), f((4,)), 'same'",
        "c((4,)), c((3,)), 'full'",
        "c((3,)), c((4,)), 'same'",
        "i((6,), 9), i((3,), 9), 'full'",
    ])
    .ulp(16),
    ..OpDef::COMPOSITE
};

/// The two sequences, of one dtype.
fn operands(cx: &CompositeCx) -> Result<(Array, Array)> {
    let dtype = promoted(&[cx.opt(0), cx.opt(1)]);
    let one = |i: usize, name: &str| {
        let x = cx.input(i);
        if x.ndim() > 1 {
            let problem = format!("`{name}` must have 1 axis, found {}", x.ndim());
            return Err(cx.shape_error(problem));
        }
        if x.is_empty() {
            return Err(cx.value_error(format!("{name} cannot be empty")));
        }
        x.reshape(&[x.len()])?.astype(dtype)
    };
    Ok((one(0, "a")?, one(1, "v")?))
}

/// `y[k]`: the sum of `x[k + j - before] w[j]`, where `before` elements of the mode's shifts lie in front of `x`; `w` is not longer than `x`.
fn sliding(x: &Array, w: &Array, mode: &str) -> Result<Array> {
    let m = w.len();
    let (before, after) = match mode {
        "full" => (m - 1, m - 1),
        "same" => (m / 2, m - 1 - m / 2),
        _ => (0, 0),
    };
    let x = if before + after > 0 {
        pad_with(x, &[before as i64, after as i64], Scalar::I64(0))?
    } else {
        x.clone()
    };
    match x.dtype().kind() {
        Kind::Float => channels(&x.reshape(&[1, 1, x.len()])?, &w.reshape(&[1, 1, m])?),
        Kind::Complex => complex(&x, w),
        Kind::Bool | Kind::Integer => exact(&x, w),
    }
}

/// The network's convolution of one image; its channels joined are the result.
fn channels(x: &Array, w: &Array) -> Result<Array> {
    let attrs: Attrs = [
        Value::None,
        Value::None,
        Value::None,
        Value::None,
        Value::None,
        Value::Int(1),
        Value::Bool(true),
        Value::None,
    ]
    .into_iter()
    .collect();
    let y = only(
        &CONVOLUTION,
        invoke_with(&CONVOLUTION, &[Some(x), Some(w), None], &attrs)?,
    )?;
    y.reshape(&[y.len()])
}

/// Complex numbers as two channels, multiplied by the matrices ((re, -im), (im, re)).
fn complex(x: &Array, w: &Array) -> Result<Array> {
    let (n, m) = (x.len(), w.len());
    let parts =
        |x: &Array| -> Result<(Array, Array)> { Ok((x.real_part()?, x.unary(&IMAG_PART)?)) };
    let ((xr, xi), (wr, wi)) = (parts(x)?, parts(w)?);
    let rows: [&Array; 4] = [&wr, &wi.neg()?, &wi, &wr];
    let y = channels(
        &concatenate(&[&xr, &xi], 0)?.reshape(&[1, 2, n])?,
        &concatenate(&rows, 0)?.reshape(&[2, 2, m])?,
    )?;
    let len = y.len() / 2;
    let i = Array::weak_scalar(Scalar::C128(Complex::new(0.0, 1.0)))?;
    let (re, im) = (narrow(&y, 0, 0, len)?, narrow(&y, 0, len, 2 * len)?);
    re.add(&im.mul(&i)?)?.astype(x.dtype())
}

/// Integers and truth values: their products and sums are exact, or wrap, in their own dtype.
fn exact(x: &Array, w: &Array) -> Result<Array> {
    let len = x.len() - w.len() + 1;
    let mut terms: SmallVec<[Array; 1]> = SmallVec::new();
    for j in 0..w.len() {
        let term = narrow(x, 0, j, j + len)?.mul(&narrow(w, 0, j, j + 1)?)?;
        let sum = match terms.pop() {
            Some(sum) => sum.add(&term)?,
            None => term,
        };
        terms.push(sum);
    }
    only(&CONVOLVE, terms)
}
