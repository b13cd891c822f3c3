//! Elementwise operators: one expression per output, with C++ functions of `math.cuh`.

use std::collections::HashMap;
use std::sync::OnceLock;

use mxnet_core::{
    Cpu, Error, KernelContext, OpDef, Result, Types, Value, cpu, device_kernels, registry, types,
};
use mxnet_kernels::Elem;
use mxnet_kernels::map::InnerLoops;
use mxnet_tensor::{DType, DeviceKind};
use smallvec::SmallVec;

use super::map::{self, Function, Input};
use super::operand::{Operand, for_each, report};
use crate::launch::{Arg, launch};

/// Operators by name. The inputs `a`, `b`, `c` have the compute type `T`, or the type that the operator's inner loop on the CPU reads; numeric
/// attributes are `p0`, `p1`.
const FUNCTIONS: &[(&str, &[&str])] = &[
    // Arithmetic.
    ("add", &["add(a, b)"]),
    ("subtract", &["subtract(a, b)"]),
    ("multiply", &["multiply(a, b)"]),
    ("divide", &["divide(a, b)"]),
    ("floor_divide", &["floor_divide(a, b)"]),
    ("remainder", &["remainder(a, b)"]),
    ("fmod", &["fmod(a, b)"]),
    ("divmod", &["floor_divide(a, b)", "remainder(a, b)"]),
    ("negative", &["negative(a)"]),
    ("positive", &["a"]),
    ("absolute", &["absolute(a)"]),
    ("fabs", &["abs_of(a)"]),
    ("sign", &["sign(a)"]),
    ("reciprocal", &["reciprocal(a)"]),
    ("square", &["square(a)"]),
    ("conjugate", &["conjugate(a)"]),
    ("maximum", &["maximum(a, b)"]),
    ("minimum", &["minimum(a, b)"]),
    ("fmax", &["fmax(a, b)"]),
    ("fmin", &["fmin(a, b)"]),
    ("choose_elements", &["(bool)a ? b : c"]),
    ("bound", &["bound(a, b, c)"]),
    ("gcd", &["gcd(a, b)"]),
    ("lcm", &["lcm(a, b)"]),
    // Powers, exponentials, logarithms.
    ("power", &["power(a, b)"]),
    ("float_power", &["power(a, b)"]),
    ("sqrt", &["sqrt(a)"]),
    ("cbrt", &["cbrt_of(a)"]),
    ("rsqrt", &["rsqrt(a)"]),
    ("rcbrt", &["rcbrt(a)"]),
    ("exp", &["exp(a)"]),
    ("exp2", &["exp2(a)"]),
    ("expm1", &["expm1(a)"]),
    ("log", &["log(a)"]),
    ("log2", &["log2(a)"]),
    ("log10", &["log10(a)"]),
    ("log1p", &["log1p(a)"]),
    ("logaddexp", &["logaddexp(a, b)"]),
    ("logaddexp2", &["logaddexp2(a, b)"]),
    // Trigonometry.
    ("sin", &["sin(a)"]),
    ("cos", &["cos(a)"]),
    ("tan", &["tan(a)"]),
    ("arcsin", &["arcsin(a)"]),
    ("arccos", &["arccos(a)"]),
    ("arctan", &["arctan(a)"]),
    ("sinh", &["sinh(a)"]),
    ("cosh", &["cosh(a)"]),
    ("tanh", &["tanh(a)"]),
    ("tanh_grad", &["a * (1 - b * b)"]),
    ("arcsinh", &["arcsinh(a)"]),
    ("arccosh", &["arccosh(a)"]),
    ("arctanh", &["arctanh(a)"]),
    ("deg2rad", &["a * (T)(PI / 180)"]),
    ("rad2deg", &["a * (T)(180 / PI)"]),
    ("arctan2", &["atan2_of(a, b)"]),
    ("hypot", &["hypot_of(a, b)"]),
    ("phase", &["phase(a)"]),
    // Rounding and parts.
    ("floor", &["floor(a)"]),
    ("ceil", &["ceil(a)"]),
    ("trunc", &["trunc(a)"]),
    ("fix", &["trunc(a)"]),
    ("rint", &["rint(a)"]),
    ("round_ste", &["rint(a)"]),
    ("sign_ste", &["sign(a)"]),
    ("round_scaled", &["round_scaled(a, p0, p1)"]),
    ("modf", &["modf_fraction(a)", "trunc(a)"]),
    ("mantissa", &["mantissa(a)"]),
    ("exponent", &["exponent(a)"]),
    ("ldexp", &["ldexp(a, b)"]),
    ("copysign", &["copysign(a, b)"]),
    ("nextafter", &["nextafter(a, b)"]),
    ("spacing", &["spacing(a)"]),
    ("heaviside", &["heaviside(a, b)"]),
    // Comparisons, logic, bits.
    ("equal", &["equal(a, b)"]),
    ("not_equal", &["!equal(a, b)"]),
    ("less", &["less(a, b)"]),
    ("less_equal", &["less_equal(a, b)"]),
    ("greater", &["less(b, a)"]),
    ("greater_equal", &["less_equal(b, a)"]),
    ("logical_and", &["is_true(a) && is_true(b)"]),
    ("logical_or", &["is_true(a) || is_true(b)"]),
    ("logical_xor", &["is_true(a) != is_true(b)"]),
    ("logical_not", &["!is_true(a)"]),
    ("isnan", &["isnan(a)"]),
    ("isinf", &["isinf(a)"]),
    ("isfinite", &["isfinite(a)"]),
    ("signbit", &["is_negative(a)"]),
    ("bitwise_and", &["bitwise_and(a, b)"]),
    ("bitwise_or", &["bitwise_or(a, b)"]),
    ("bitwise_xor", &["bitwise_xor(a, b)"]),
    ("invert", &["invert(a)"]),
    ("left_shift", &["left_shift(a, b)"]),
    ("right_shift", &["right_shift(a, b)"]),
    ("bitwise_count", &["bitwise_count(a)"]),
    // Special functions.
    ("erf", &["erf_of(a)"]),
    ("erfc", &["erfc_of(a)"]),
    ("erfinv", &["(T)erfinv_of(a)"]),
    ("erfcinv", &["(T)erfcinv_of(a)"]),
    ("gamma_function", &["tgamma_of(a)"]),
    ("gammaln", &["(T)::lgamma((f64)a)"]),
    ("digamma", &["(T)digamma_of(a)"]),
    ("polygamma", &["(T)polygamma_of((int)p0, a)"]),
    ("real_sinc", &["sinc(a)"]),
    ("i0", &["(T)bessel<0>(a)"]),
    ("i1", &["(T)bessel<1>(a)"]),
    ("gammainc", &["(T)incomplete::gamma_both(a, b).lower"]),
    ("gammaincc", &["(T)incomplete::gamma_both(a, b).upper"]),
    (
        "gammaincinv",
        &["(T)incomplete::gamma_inverse(a, b, 1 - (f64)b)"],
    ),
    (
        "gammainccinv",
        &["(T)incomplete::gamma_inverse(a, 1 - (f64)b, b)"],
    ),
    ("gammainc_slope", &["(T)incomplete::gamma_slope(a, b)"]),
    ("gamma_density", &["(T)incomplete::gamma_density(a, b)"]),
    (
        "gamma_slope",
        &["(T)incomplete::gamma_quantile_slope(a, b, p0 != 0)"],
    ),
    ("betainc", &["(T)incomplete::beta_values(a, b, c).lower"]),
    ("betaincc", &["(T)incomplete::beta_values(a, b, c).upper"]),
    (
        "betaincinv",
        &["(T)incomplete::beta_inverse(a, b, c, 1 - (f64)c)"],
    ),
    (
        "betainccinv",
        &["(T)incomplete::beta_inverse(a, b, 1 - (f64)c, c)"],
    ),
    (
        "betainc_slope_a",
        &["(T)incomplete::beta_slope(a, b, c, true)"],
    ),
    (
        "betainc_slope_b",
        &["(T)incomplete::beta_slope(a, b, c, false)"],
    ),
    ("beta_density", &["(T)incomplete::beta_density(a, b, c)"]),
    // Neural networks.
    ("relu", &["relu(a)"]),
    ("relu_grad", &["b > 0 ? a : (T)0"]),
    ("sigmoid", &["sigmoid(a)"]),
    ("sigmoid_grad", &["a * (b * (1 - b))"]),
    ("log_sigmoid", &["-softplus(-a)"]),
    ("softplus", &["softplus(a)"]),
    ("softplus_grad", &["a * sigmoid(b)"]),
    ("softsign", &["a / (1 + abs_of(a))"]),
    ("gelu_erf", &["a * normal_cdf(a)"]),
    ("gelu_erf_grad", &["gelu_erf_grad(a, b)"]),
    ("gelu_tanh", &["gelu_tanh(a)"]),
    ("gelu_tanh_grad", &["gelu_tanh_grad(a, b)"]),
    ("silu", &["a * sigmoid(a)"]),
    ("silu_grad", &["silu_grad(a, b)"]),
    ("mish", &["mish(a)"]),
    ("elu", &["a > 0 ? a : (T)p0 * expm1_of(a)"]),
    ("elu_grad", &["b > 0 ? a : a * ((T)p0 * exp_of(b))"]),
    // Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    (
        "selu",
        &["(T)1.0507009873554805 * (a > 0 ? a : (T)1.6732632423543772 * expm1_of(a))"],
    ),
    ("leaky", &["a > 0 ? a : (T)p0 * a"]),
    ("leaky_grad", &["b > 0 ? a : (T)p0 * a"]),
    ("hard_sigmoid", &["unit((T)p0 * a + (T)p1)"]),
    ("hard_swish", &["a * unit((a + 3) / 6)"]),
];

/// The expressions of an operator.
fn results_of(op: &str) -> Option<&'static [&'static str]> {
    static BY_NAME: OnceLock<HashMap<&str, &[&str]>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| FUNCTIONS.iter().copied().collect());
    by_name.get(op).copied()
}

pub(crate) fn register(kind: DeviceKind) -> Result<()> {
    for (op, _) in FUNCTIONS {
        device_kernels::register(op, kind, 0, kernel)?;
    }
    Ok(())
}

/// The CPU inner loops of an elementwise operator, which define the types of its inputs and outputs.
fn rows_of(op: &OpDef) -> Result<&'static InnerLoops> {
    match op.cpu {
        Cpu::Map(rows) => Ok(rows),
        _ => Err(Error::internal(op.name, "not an elementwise operator")),
    }
}

fn dtype_of(elem: Elem) -> DType {
    DType::ALL[elem as usize]
}

/// The function of an operator with compute type `dtype`.
pub(super) fn function(op: &OpDef, dtype: DType) -> Result<Function<'static>> {
    let rows = rows_of(op)?;
    let results =
        results_of(op.name).ok_or_else(|| Error::internal(op.name, "has no CUDA expression"))?;
    let compute = cpu::row_elem(rows, dtype);
    Ok(Function {
        name: op.name,
        results,
        compute: dtype_of(compute),
        natives: (0..usize::from(rows.ins))
            .map(|i| dtype_of(rows.in_elem(i, compute)))
            .collect(),
        out_natives: (0..rows.outs)
            .map(|_| dtype_of(rows.out_elem(compute)))
            .collect(),
        counts: false,
    })
}

fn kernel(context: &KernelContext) -> Result<()> {
    let dtype = context
        .compute
        .ok_or_else(|| Error::internal(context.op.name, "the call has no compute dtype"))?;
    let function = function(context.op, dtype)?;
    if context.op.name == "power" && function.compute.is_integer() && function.compute.is_signed() {
        refuse_negative_exponents(context)?;
    }
    let shape = context.output(0).shape();
    let outs: SmallVec<[Operand; 2]> = context.outputs.iter().map(|y| Operand::of(y)).collect();
    let ins = (0..function.natives.len())
        .map(|i| Input::of(context, i, shape))
        .collect::<Result<SmallVec<[Input; 3]>>>()?;
    let params: SmallVec<[f64; 2]> = context
        .args
        .attrs
        .values()
        .iter()
        .filter_map(number)
        .collect();
    map::run(context, &function, shape, &outs, &ins, &params)
}

/// Checks the exponents of an integer power: the result fails if one is negative.
const EXPONENTS: &str = "
extern \"C\" __global__ void kernel(const mx::i64 *x, mx::u64 *slot, mx::u64 n) {
    for (mx::u64 i = mx::thread_index(); i < n; i += mx::num_threads())
        if (x[i] < 0) mx::report_fault(slot, x[i], 0, 0);
}
";

/// Negative powers of integers are not integers (except for 1 and -1), so they are errors.
fn refuse_negative_exponents(context: &KernelContext) -> Result<()> {
    let op = context.op.name;
    let error = move || {
        Error::value(op, "Integers to negative integer powers are not allowed.")
            .with_hint("make one of them a float")
    };
    if context.output(0).is_empty() {
        return Ok(());
    }
    if let Some(exponent) = context.number(1) {
        return if exponent.as_i64() < 0 {
            Err(error())
        } else {
            Ok(())
        };
    }
    let exponents = Operand::dense(context, 1, DType::I64)?;
    let slot = report(context, move |_| error())?;
    let n = exponents.len();
    let args = [Arg::Pointer(exponents.ptr), slot, Arg::U64(n as u64)];
    launch(
        context,
        "exponents",
        || EXPONENTS.to_owned(),
        for_each(n),
        &args,
    )
}

/// A numeric attribute.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Float(x) => Some(*x),
        Value::Int(x) => Some(*x as f64),
        Value::Bool(x) => Some(f64::from(u8::from(*x))),
        Value::Scalar(x) => Some(x.as_f64()),
        _ => None,
    }
}

/// The compute types of an operator.
pub(super) fn dtypes(op: &OpDef) -> impl Iterator<Item = DType> {
    let accepts = match op.types {
        Types::Promote { accepts, .. } | Types::Counted { accepts, .. } => accepts,
        _ => types::DTypes::ALL,
    };
    accepts.iter()
}

/// The operators with two arrays.
pub(super) fn binary() -> impl Iterator<Item = &'static OpDef> {
    let ops = FUNCTIONS
        .iter()
        .filter_map(|(name, _)| registry::find(name));
    ops.filter(|op| rows_of(op).is_ok_and(|rows| rows.ins == 2 && rows.outs == 1))
}

pub(crate) fn texts(all: &mut Vec<(String, String)>) {
    for (name, _) in FUNCTIONS {
        let Some(op) = registry::find(name) else {
            continue;
        };
        let num_params = rows_of(op).map_or(0, |rows| usize::from(rows.params));
        for (k, dtype) in dtypes(op).enumerate() {
            if let Ok(function) = function(op, dtype) {
                map::texts(&function, num_params, k == 0, all);
            }
        }
    }
    all.push(("exponents".to_owned(), EXPONENTS.to_owned()));
}
