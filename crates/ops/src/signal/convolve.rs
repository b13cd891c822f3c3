//! Convolution of two sequences, as products of windows.

use mxnet_tensor::{Kind, Scalar};

use crate::Array;
use crate::args::{Attrs, Param, Value};
use crate::cx::CompositeCx;
use crate::error::Result;
use crate::interp;
use crate::invoke::{invoke_with, invoke1, only};
use crate::nn::CONVOLUTION;
use crate::opdef::{Cpu, OpDef, Probe, Surface};
use crate::shape::{SLIDING_WINDOWS, flip, pad_with};
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
    about: &[
        ("a", "First sequence, one axis."),
        ("v", "Second sequence, one axis."),
        ("mode", "Which shifts."),
    ],
    returns: &[("ndarray", "One axis.")],
    raises: &[("ValueError", "If a sequence is empty.")],
    example: "
        >>> np.convolve([1, 2, 3], [1, 1])
        array([1, 3, 5, 3])
        >>> np.convolve([1, 2, 3], [1, 1], 'valid')
        array([3, 5])
    ",
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
    about: &[
        ("a", "First sequence, one axis."),
        ("v", "Second sequence, one axis."),
        ("mode", "Which shifts."),
    ],
    returns: &[("ndarray", "One axis.")],
    raises: &[("ValueError", "If a sequence is empty.")],
    example: "
        >>> np.correlate([1, 2, 3], [0, 1])
        array([2, 3])
        >>> np.correlate([1, 2, 3], [0, 1], 'full')
        array([1, 2, 3, 0])
    ",
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
    if interp::is_recording() && x.dtype().kind() == Kind::Float {
        return as_network(&x, w);
    }
    // A view of all windows times a vector: at the speed of the matrix product, for every dtype.
    let windows: Attrs = [Value::from(&[m][..]), Value::from(&[0_usize][..])]
        .into_iter()
        .collect();
    invoke1(&SLIDING_WINDOWS, &[&x], &windows)?.matmul(w)
}

/// The same as a network's convolution of one image with one channel. Slower, but the windows' gradient would be as large as all of them.
fn as_network(x: &Array, w: &Array) -> Result<Array> {
    let (x, w) = (x.reshape(&[1, 1, x.len()])?, w.reshape(&[1, 1, w.len()])?);
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
    let y = invoke_with(&CONVOLUTION, &[Some(&x), Some(&w), None], &attrs)?;
    let y = only(&CONVOLUTION, y)?;
    y.reshape(&[y.len()])
}
