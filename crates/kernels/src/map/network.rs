//! Activation functions of neural networks and their gradients.

use super::OutElem::Same;
use super::math::{Float, normal_tail_near32, normal_tail32};
use super::row::{
    Binary, InnerLoop, InnerLoops, Level, Params, Unary, binary, binary_rows, unary, unary_rows,
};
use crate::elem::Elem;

unary_rows! {
    /// `max(x, 0)`; NaN stays NaN.
    RELU "relu", Same, cost 1, params 0, unary {
        [i8 i16 i32 i64] |x, _| -> T { x.max(0) }
        [u8 u16 u32 u64] |x, _| -> T { x }
        [f32 f64] |x, _| -> T { if (x > 0.0) | x.is_nan() { x } else { 0.0 } }
    }
    /// `1 / (1 + exp(-x))`.
    SIGMOID "sigmoid", Same, cost 5, params 0, unary {
        [f32 f64] |x, _| -> T { Float::sigmoid::<L>(x) }
    }
    /// `log(sigmoid(x))`.
    LOG_SIGMOID "log_sigmoid", Same, cost 10, params 0, unary {
        [f32 f64] |x, _| -> T { -Float::softplus::<L>(-x) }
    }
    /// `log(1 + exp(x))`.
    SOFTPLUS "softplus", Same, cost 10, params 0, unary {
        [f32 f64] |x, _| -> T { Float::softplus::<L>(x) }
    }
    /// `x / (1 + |x|)`.
    SOFTSIGN "softsign", Same, cost 2, params 0, unary {
        [f32 f64] |x, _| -> T { x / (1.0 + x.abs()) }
    }
    /// `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.
    GELU_TANH "gelu_tanh", Same, cost 7, params 0, unary {
        // (1 + tanh(u)) / 2 = sigmoid(2 u), which does not cancel below 0.
        [f32 f64] |x, _| -> T { x * Float::sigmoid::<L>(x * ((TWICE_ROOT * CUBIC) as T * (x * x) + TWICE_ROOT as T)) }
    }
    /// `x sigmoid(x)`.
    SILU "silu", Same, cost 5, params 0, unary {
        [f32 f64] |x, _| -> T { x * Float::sigmoid::<L>(x) }
    }
    /// `x tanh(softplus(x))`.
    MISH "mish", Same, cost 8, params 0, unary {
        // With e = exp(x): tanh(log(1 + e)) = (e^2 + 2 e) / (e^2 + 2 e + 2). From 20 on it is 1.
        [f32 f64] |x, _| -> T {
            let e = Float::exp::<L>(if x > 20.0 { 20.0 } else { x });
            let w = e * (e + 2.0);
            x * (w / (w + 2.0))
        }
    }
    /// `x` above 0, `alpha (exp(x) - 1)` below.
    ELU "elu", Same, cost 5, params 1, unary {
        [f32 f64] |x, p| -> T { if x > 0.0 { x } else { p[0] as T * Float::expm1::<L>(x) } }
    }
    /// The self-normalising ELU (Source: Klambauer et al., Self-Normalizing Neural Networks, 2017).
    SELU "selu", Same, cost 5, params 0, unary {
        [f32 f64] |x, _| -> T {
            SELU_SCALE as T * if x > 0.0 { x } else { SELU_ALPHA as T * Float::expm1::<L>(x) }
        }
    }
    /// `x` above 0, `slope x` below.
    LEAKY_RELU "leaky_relu", Same, cost 1, params 1, unary {
        [f32 f64] |x, p| -> T { if x > 0.0 { x } else { p[0] as T * x } }
    }
    /// `alpha x + beta` clipped to 0..=1.
    HARD_SIGMOID "hard_sigmoid", Same, cost 1, params 2, unary {
        [f32 f64] |x, p| -> T { unit(p[0] as T * x + p[1] as T) }
    }
    /// `x` times `(x + 3) / 6` clipped to 0..=1.
    HARD_SWISH "hard_swish", Same, cost 1, params 0, unary {
        [f32 f64] |x, _| -> T { x * unit((x + 3.0) / 6.0) }
    }
}

binary_rows! {
    /// `dy` where the second operand (relu's input or output) is above 0.
    RELU_GRAD "relu_grad", Same, cost 1, params 0, heavy true, binary {
        [f32 f64] |dy, x, _| -> T { if x > 0.0 { dy } else { 0.0 } }
    }
    /// `dy y (1 - y)` for `y = sigmoid(x)`.
    SIGMOID_GRAD "sigmoid_grad", Same, cost 1, params 0, heavy true, binary {
        [f32 f64] |dy, y, _| -> T { dy * (y * (1.0 - y)) }
    }
    /// `dy (1 - y^2)` for `y = tanh(x)`.
    TANH_GRAD "tanh_grad", Same, cost 1, params 0, heavy true, binary {
        [f32 f64] |dy, y, _| -> T { dy * (1.0 - y * y) }
    }
    /// `dy sigmoid(x)`: softplus's gradient.
    SOFTPLUS_GRAD "softplus_grad", Same, cost 6, params 0, heavy true, binary {
        [f32 f64] |dy, x, _| -> T { dy * Float::sigmoid::<L>(x) }
    }
    /// `dy (s + x s (1 - s))` for `s = sigmoid(x)`: silu's gradient.
    SILU_GRAD "silu_grad", Same, cost 6, params 0, heavy true, binary {
        [f32 f64] |dy, x, _| -> T {
            let s = Float::sigmoid::<L>(x);
            dy * (s * (1.0 + x * (1.0 - s)))
        }
    }
    /// The gradient of `gelu_tanh`.
    GELU_TANH_GRAD "gelu_tanh_grad", Same, cost 9, params 0, heavy true, binary {
        [f32 f64] |dy, x, _| -> T {
            let z = x * x;
            let s = Float::sigmoid::<L>(x * ((TWICE_ROOT * CUBIC) as T * z + TWICE_ROOT as T));
            let slope = x * ((3.0 * TWICE_ROOT * CUBIC) as T * z + TWICE_ROOT as T);
            dy * (s * (1.0 + slope * (1.0 - s)))
        }
    }
    /// The gradient of elu from its input: `dy` above 0, `dy alpha exp(x)` below.
    ELU_GRAD "elu_grad", Same, cost 5, params 1, heavy true, binary {
        [f32 f64] |dy, x, p| -> T { if x > 0.0 { dy } else { dy * (p[0] as T * Float::exp::<L>(x)) } }
    }
    /// `dy` above 0, `slope dy` below.
    LEAKY_RELU_GRAD "leaky_relu_grad", Same, cost 1, params 1, heavy true, binary {
        [f32 f64] |dy, x, p| -> T { if x > 0.0 { dy } else { p[0] as T * dy } }
    }
}

/// 2 sqrt(2 / pi).
const TWICE_ROOT: f64 = 1.595_769_121_605_730_7;
/// Coefficient of the cubic term in the tanh form of gelu (Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016).
const CUBIC: f64 = 0.044_715;
/// 1 / sqrt(2 pi).
const ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

/// `x` clipped to 0..=1; NaN stays NaN.
#[inline(always)]
fn unit<F: Float + From<u8>>(x: F) -> F {
    let (zero, one) = (F::from(0), F::from(1));
    let x = if x < zero { zero } else { x };
    if x > one { one } else { x }
}

/// Gelu with the error function, and its gradient.
struct Gelu;

macro_rules! gelu {
    ($($t:ty)*) => { $(
        impl Unary<$t> for Gelu {
            type Out = $t;
            const PARAMS: usize = 0;
            const HAS_SUBDOMAIN: bool = <$t as Normal>::HAS_NEAR;
            #[inline(always)]
            fn apply<L: Level>(x: $t, _: Params) -> $t {
                x * Normal::cdf::<L>(x)
            }
            #[inline(always)]
            fn is_in_subdomain(x: $t) -> bool {
                Normal::is_near(x)
            }
            #[inline(always)]
            fn apply_in_subdomain<L: Level>(x: $t, _: Params) -> $t {
                x * Normal::cdf_near::<L>(x)
            }
        }
        impl Binary<$t> for Gelu {
            type Rhs = $t;
            type Out = $t;
            const PARAMS: usize = 0;
            const HEAVY: bool = true;
            const HAS_SUBDOMAIN: bool = <$t as Normal>::HAS_NEAR;
            #[inline(always)]
            fn apply<L: Level>(dy: $t, x: $t, _: Params) -> $t {
                let density = ROOT_TWO_PI as $t * Float::exp::<L>(-0.5 * x * x);
                dy * (x * density + Normal::cdf::<L>(x))
            }
            #[inline(always)]
            fn is_in_subdomain<L: Level>(_: $t, x: $t) -> bool {
                Normal::is_near(x)
            }
            #[inline(always)]
            fn apply_in_subdomain<L: Level>(dy: $t, x: $t, _: Params) -> $t {
                let density = ROOT_TWO_PI as $t * Float::exp::<L>(-0.5 * x * x);
                dy * (x * density + Normal::cdf_near::<L>(x))
            }
        }
    )* };
}
gelu!(f32 f64);

/// `x Phi(x)` with the normal distribution function Phi, computed with the error function.
pub static GELU_ERF: InnerLoops = InnerLoops {
    name: "gelu_erf",
    outs: 1,
    ins: 1,
    out: Same,
    in_elems: [None; 3],
    params: 0,
    cost: 5,
    in_place: 0,
    get: |isa, elem| -> Option<InnerLoop> {
        match elem {
            Elem::F32 => Some(unary::<f32, Gelu>(isa)),
            Elem::F64 => Some(unary::<f64, Gelu>(isa)),
            _ => None,
        }
    },
};

/// `dy (Phi(x) + x phi(x))`: the gradient of `GELU_ERF`.
pub static GELU_ERF_GRAD: InnerLoops = InnerLoops {
    name: "gelu_erf_grad",
    ins: 2,
    cost: 10,
    get: |isa, elem| -> Option<InnerLoop> {
        match elem {
            Elem::F32 => Some(binary::<f32, Gelu>(isa)),
            Elem::F64 => Some(binary::<f64, Gelu>(isa)),
            _ => None,
        }
    },
    ..GELU_ERF
};

/// The normal distribution function.
trait Normal: Copy {
    /// Whether there is a cheaper function for arguments near 0.
    const HAS_NEAR: bool;
    fn cdf<L: Level>(self) -> Self;
    fn is_near(self) -> bool;
    /// `cdf` of numbers near 0, bit for bit.
    fn cdf_near<L: Level>(self) -> Self;
}

impl Normal for f64 {
    const HAS_NEAR: bool = false;
    #[inline(always)]
    fn is_near(self) -> bool {
        false
    }
    #[inline(always)]
    fn cdf_near<L: Level>(self) -> f64 {
        self.cdf::<L>()
    }
    #[inline(always)]
    fn cdf<L: Level>(self) -> f64 {
        let t = self * -std::f64::consts::FRAC_1_SQRT_2;
        // The derivative of the tail is about -2 t times the tail, so it amplifies the rounding error of t, which is corrected here. Beyond 30 the
        // tail is 0.
        let fall = if (t > 0.0) & (t < 30.0) {
            2.0 * t * rounded_off::<L>(-self, t)
        } else {
            0.0
        };
        0.5 * Float::erfc::<L>(t) * (1.0 - fall)
    }
}

/// The rounding error of `t`: y / sqrt(2) - t.
#[inline(always)]
fn rounded_off<L: Level>(y: f64, t: f64) -> f64 {
    const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;
    /// 1 / sqrt(2) - `ROOT`.
    const REST: f64 = -4.833_646_656_726_457e-17;
    // Splits a number into halves of 26 bits, whose products are exact.
    let halved = |v: f64| {
        let high = f64::from_bits(v.to_bits() & !0x07ff_ffff);
        (high, v - high)
    };
    let product = if L::FMA {
        y.mul_add(ROOT, -t)
    } else {
        let ((a, b), (c, d)) = (halved(y), halved(ROOT));
        ((a * c - t) + a * d + b * c) + b * d
    };
    product + y * REST
}

impl Normal for f32 {
    const HAS_NEAR: bool = true;
    #[inline(always)]
    fn is_near(self) -> bool {
        self.abs() < 4.0
    }
    #[inline(always)]
    fn cdf_near<L: Level>(self) -> f32 {
        let tail = normal_tail_near32::<L>(self.abs());
        if self > 0.0 { 1.0 - tail } else { tail }
    }
    #[inline(always)]
    fn cdf<L: Level>(self) -> f32 {
        let tail = if self.is_near() {
            normal_tail_near32::<L>(self.abs())
        } else {
            normal_tail32::<L>(self.abs())
        };
        if self > 0.0 { 1.0 - tail } else { tail }
    }
}
