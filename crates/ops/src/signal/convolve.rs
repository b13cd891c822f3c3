//! Convolution and correlation of two sequences.
#![allow(unsafe_code)]

use mxnet_kernels::sequence::{Sliding, slide};
use mxnet_tensor::Dims;
use smallvec::SmallVec;

use crate::Array;
use crate::args::{Attrs, Param, ParamKind, Value};
use crate::autograd::GradContext;
use crate::context::{CallContext, KernelContext};
use crate::error::Result;
use crate::invoke::invoke1;
use crate::launch::elem;
use crate::nn::operand::{Staged, compute, dense};
use crate::opdef::{Cost, Cpu, Grad, Grads, Keep, OpDef, Probe, Surface, one_of};
use crate::shape::flip;
use crate::types::promoted;

const MODES: &[&str] = &["full", "same", "valid"];

/// Convolution of two sequences.
pub static CONVOLVE: OpDef = OpDef {
    name: "convolve",
    surface: &[Surface::Np("convolve")],
    params: &[
        Param::array("a").strong(),
        Param::array("v").strong(),
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
    cpu: Cpu::Kernel(|context| {
        let (n, m) = (context.input(0).len(), context.input(1).len());
        run(context, &Shifts::of(context.str("mode"), n, m, true))
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (a, v) = (flat(g.input(0))?, flat(g.input(1))?);
        gradients(
            g,
            &a,
            &v,
            &Shifts::of(g.str("mode"), a.len(), v.len(), true),
        )
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
    ..SHIFTED
};

/// Correlation of two sequences.
pub static CORRELATE: OpDef = OpDef {
    name: "correlate",
    surface: &[Surface::Np("correlate")],
    params: &[
        Param::array("a").strong(),
        Param::array("v").strong(),
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
    infer: |context| {
        if context.shape(0).is_empty() || context.shape(1).is_empty() {
            return Err(context.value_error("a and v must be sequences, found a number"));
        }
        (SHIFTED.infer)(context)
    },
    cpu: Cpu::Kernel(|context| {
        let (n, m) = (context.input(0).len(), context.input(1).len());
        run(context, &Shifts::of(context.str("mode"), n, m, false))
    }),
    grad: Grad::Rule(Keep::INPUTS, |g| {
        let (a, v) = (flat(g.input(0))?, flat(g.input(1))?);
        gradients(
            g,
            &a,
            &v,
            &Shifts::of(g.str("mode"), a.len(), v.len(), false),
        )
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
    ..SHIFTED
};

/// Sums of products of one sequence with shifted parts of another.
pub static SLIDING_DOT: OpDef = OpDef {
    name: "sliding_dot",
    params: &[
        Param::array("x"),
        Param::array("w"),
        Param::required("before", ParamKind::Int),
        Param::required("count", ParamKind::Int),
        Param::bool("reversed", false),
        Param::bool("conjugated", false),
    ],
    doc: "`y[k] = sum of x[k + j - before] * w[j]` over all j for which that element of `x` exists, for k below `count`; the elements of `w` are \
          taken from the last to the first if `reversed`, and conjugated if `conjugated`. Convolution, correlation and their gradients are of this \
          form, so the gradients of this operator are calls of it.",
    infer: |context| {
        sequences(context)?;
        let (before, count) = (context.int("before"), context.int("count"));
        if !(0..context.input(1).len() as i64).contains(&before) || count < 0 {
            return Err(context.value_error(format!(
                "`before` must be in 0..{}, found {before}; `count` must not be negative, found {count}",
                context.input(1).len()
            )));
        }
        one_of(Dims::from_slice(&[count as usize]), promoted(&[context.opt(0), context.opt(1)]))
    },
    cpu: Cpu::Kernel(|context| run(context, &Shifts::given(context))),
    grad: Grad::Rule(Keep::INPUTS, |g| gradients(g, &flat(g.input(0))?, &flat(g.input(1))?, &Shifts::given(g))),
    probe: Probe::calls(&[
        "f((5,)), f((3,)), 1, 5",
        "f((4,)), f((6,)), 3, 4, True",
        "c((5,)), c((2,)), 1, 6, False, True",
        "i((6,), 9), i((3,), 9), 0, 4, True, True",
    ])
    .against(
        "lambda x, w, before, count, reversed=False, conjugated=False: (lambda w: numpy.correlate(numpy.pad(x, (before, count + len(w))), w.conj(), 'valid')[:count])((w[::-1] if reversed else w).conj() if conjugated else (w[::-1] if reversed else w))",
    )
    .ulp(16),
    ..SHIFTED
};

/// Default fields for the operators of this file.
const SHIFTED: OpDef = OpDef {
    infer: |context| {
        sequences(context)?;
        let (n, m) = (context.input(0).len(), context.input(1).len());
        let shifts = Shifts::of(context.str("mode"), n, m, true);
        one_of(
            Dims::from_slice(&[shifts.count]),
            promoted(&[context.opt(0), context.opt(1)]),
        )
    },
    // With vector instructions a product takes about a quarter of a nanosecond.
    cost: Cost::Of(|context| {
        (context.input(0).len() as u64).saturating_mul(context.input(1).len() as u64) / 4
    }),
    ..OpDef::DEFAULT
};

/// The shifts of the second sequence.
pub(super) struct Shifts {
    /// Number of elements of the second sequence that lie before the first one at the first shift.
    pub before: usize,
    /// Number of shifts.
    pub count: usize,
    pub reversed: bool,
    pub conjugated: bool,
}

impl Shifts {
    /// The shifts of NumPy's `mode`, for sequences of `n` and `m` elements.
    fn of(mode: &str, n: usize, m: usize, is_convolution: bool) -> Shifts {
        let (least, most) = (n.min(m), n.max(m));
        let (start, count) = match mode {
            "full" => (0, n + m - 1),
            // The middle. For a correlation whose second sequence is longer, the middle of the mirrored result.
            "same" if m > n && !is_convolution => (least / 2, most),
            "same" => ((least - 1) / 2, most),
            _ => (least - 1, most - least + 1),
        };
        Shifts {
            before: m - 1 - start,
            count,
            reversed: is_convolution,
            conjugated: !is_convolution,
        }
    }

    /// The shifts in the attributes of [`SLIDING_DOT`].
    fn given(args: &crate::Args) -> Shifts {
        Shifts {
            before: args.int("before") as usize,
            count: args.int("count") as usize,
            reversed: args.bool("reversed"),
            conjugated: args.bool("conjugated"),
        }
    }
}

/// Checks that the arguments are two sequences.
pub(super) fn sequences(context: &CallContext) -> Result<()> {
    for (i, param) in context.op.array_params().enumerate() {
        let (x, name) = (context.input(i), param.name);
        if x.ndim() > 1 {
            return Err(
                context.shape_error(format!("`{name}` must have 1 axis, found {}", x.ndim()))
            );
        }
        if x.is_empty() {
            return Err(context.value_error(format!("{name} cannot be empty")));
        }
    }
    Ok(())
}

fn flat(x: &Array) -> Result<Array> {
    x.reshape(&[x.len()])
}

fn run(context: &KernelContext, shifts: &Shifts) -> Result<()> {
    let dtype = compute(context.output(0).dtype());
    let (x, w) = (
        dense(context.input(0), dtype, context.threads)?,
        dense(context.input(1), dtype, context.threads)?,
    );
    let out = Staged::new(context.output(0), dtype)?;
    let how = Sliding {
        elem: elem(dtype),
        before: shifts.before,
        reversed: shifts.reversed,
        conjugated: shifts.conjugated,
    };
    // SAFETY: 1. the operands are dense, in the compute dtype, which is not a 16-bit float. 2. the output is dense with `count` elements (inference).
    unsafe {
        slide(
            context.threads,
            &how,
            x.data_ptr(),
            x.len(),
            w.data_ptr(),
            w.len(),
            out.ptr(),
            shifts.count,
        );
    }
    out.finish(context.threads)
}

/// Calls [`SLIDING_DOT`].
pub(super) fn slid(x: &Array, w: &Array, shifts: &Shifts) -> Result<Array> {
    let attrs: Attrs = [
        Value::Int(shifts.before as i64),
        Value::Int(shifts.count as i64),
        Value::Bool(shifts.reversed),
        Value::Bool(shifts.conjugated),
    ]
    .into_iter()
    .collect();
    invoke1(&SLIDING_DOT, &[x, w], &attrs)
}

/// Gradients of `x` and `w`. An element of `x` gets a sum over the reversed weights; a weight gets a sum over `x`, along which the output's
/// cotangent slides.
fn gradients(g: &GradContext, x: &Array, w: &Array, shifts: &Shifts) -> Result<Grads> {
    let dy = g.dy(0);
    let mut grads: Grads = SmallVec::from_iter([None, None]);
    let back =
        |dx: Array, i: usize| -> Result<Array> { dx.reshape(g.shape(i))?.astype(g.dtype_of(i)) };
    if g.wants(0) {
        let mirrored = Shifts {
            before: w.len() - 1 - shifts.before,
            count: x.len(),
            reversed: !shifts.reversed,
            conjugated: !shifts.conjugated,
        };
        grads[0] = Some(back(slid(dy, w, &mirrored)?, 0)?);
    }
    if g.wants(1) {
        let along = Shifts {
            before: shifts.before,
            count: w.len(),
            reversed: false,
            conjugated: shifts.conjugated,
        };
        let x = if shifts.conjugated {
            x.clone()
        } else {
            x.conj()?
        };
        let dw = slid(&x, dy, &along)?;
        grads[1] = Some(back(
            if shifts.reversed {
                flip(&dw, &[0])?
            } else {
                dw
            },
            1,
        )?);
    }
    Ok(grads)
}
