//! The example of `docs/extending.md`: an operator is added and used. `tests/docs/test_extending.py` compares both texts.

use mxnet_core::{
    Array, Attrs, Cost, Cpu, Grad, Keep, OpDef, Param, Probe, Result, Surface, Types, autograd,
    invoke1, registry,
};
use mxnet_kernels::Elem;
use mxnet_kernels::map::{InnerLoops, OutElem};
use mxnet_ops as _; // its operators are what `Array`'s methods call

/// `log(cosh(x))` of `n` elements, which must not overflow for large ones.
///
/// # Safety
///
/// `ptrs` has an output and an input of `n` float64; `strides` has their strides in bytes.
unsafe fn log_cosh_row(ptrs: *const *mut u8, strides: *const isize, n: usize, _params: *const f64) {
    for i in 0..n.cast_signed() {
        // SAFETY: the caller guarantees that element i of both operands is there.
        unsafe {
            let x = (*ptrs.add(1)).offset(i * *strides.add(1)).cast::<f64>();
            let y = (*ptrs).offset(i * *strides).cast::<f64>();
            *y = (*x).abs() + (-2.0 * (*x).abs()).exp().ln_1p() - std::f64::consts::LN_2;
        }
    }
}

static LOG_COSH_ROWS: InnerLoops = InnerLoops {
    name: "log_cosh",
    outs: 1,
    ins: 1,
    out: OutElem::Same,
    in_elems: [None; 3],
    params: 0,
    cost: 20, // times that of a float32 addition
    in_place: 0,
    get: |_isa, elem| (elem == Elem::F64).then_some(log_cosh_row as _),
};

const LOG_COSH: OpDef = OpDef {
    name: "log_cosh",
    surface: &[Surface::Npx("log_cosh")],
    doc: "Logarithm of the hyperbolic cosine of every element.",
    types: Types::REAL_FLOAT, // integers promote to the default float first
    cpu: Cpu::Map(&LOG_COSH_ROWS),
    grad: Grad::Rule(Keep::INPUTS, |g| g.slopes(&[&|| g.input(0).tanh()])),
    cost: Cost::PerKiB(2000),
    probe: Probe::over(-4.0..4.0).against("numpy.log(numpy.cosh(x))"),
    ..OpDef::UNARY
};

const LOG_COSH_LOSS: OpDef = OpDef {
    name: "log_cosh_loss",
    params: &[Param::array("prediction"), Param::array("label")],
    doc: "Mean of `log(cosh(prediction - label))` over all elements.",
    cpu: Cpu::Composite(|context| {
        let difference = context.input(0).sub(context.input(1))?;
        let op = registry::find("log_cosh").ok_or_else(|| {
            mxnet_core::Error::internal(context.op.name, "`log_cosh` is not registered")
        })?;
        context.done(difference.unary(op)?.mean(None, false)?)
    }),
    ..OpDef::COMPOSITE
};

#[test]
fn the_operators_of_the_guide_compute_and_have_gradients() -> Result<()> {
    let log_cosh = registry::add(LOG_COSH)?;
    let loss = registry::add(LOG_COSH_LOSS)?;

    let values = [-800.0, -1.0, 0.0, 2.0_f64];
    let mut x = Array::from_slice(&values, &[2, 2])?;
    let y = invoke1(log_cosh, &[&x.transpose(None)?], &Attrs::none())?.to_vec::<f64>()?;
    let expected = [
        800.0 - 2.0_f64.ln(),
        0.0,
        1.0_f64.cosh().ln(),
        2.0_f64.cosh().ln(),
    ];
    for (found, wanted) in y.iter().zip(expected) {
        assert!(
            (found - wanted).abs() <= 4.0 * f64::EPSILON * wanted.max(1.0),
            "{found} {wanted}"
        );
    }

    autograd::attach_grad(&mut x, autograd::GradReq::Write)?;
    let label = Array::from_slice(&[0.0_f64; 4], &[2, 2])?;
    let total = {
        let _scope = mxnet_core::mode::Scope::enter(true, true);
        invoke1(loss, &[&x, &label], &Attrs::none())?
    };
    autograd::backward(&[&total], &[None], autograd::Retain::No, true)?;
    let gradient = autograd::gradient_of(&x).map(|leaf| leaf.gradient().to_vec::<f64>());
    let slopes = values.map(|x| x.tanh() / 4.0);
    for (found, wanted) in gradient.transpose()?.unwrap_or_default().iter().zip(slopes) {
        assert!(
            (found - wanted).abs() <= 2.0 * f64::EPSILON,
            "{found} {wanted}"
        );
    }
    Ok(())
}
