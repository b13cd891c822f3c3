//! Accuracy of the elementary functions, and behaviour of operators at the edges of their domains.
//!
//! f32 results are compared with the f64 functions of `libm`, rounded; f64 results with values computed by mpmath in 1300 bits
//! and rounded to the nearest f64 (so half an ulp of each difference may be the reference's).

use mxnet_kernels::Elem;
use mxnet_kernels::isa::{Isa, isa, limit_isa, machine};
use mxnet_kernels::map::{self, InnerLoops};
use std::sync::{PoisonError, RwLock};

/// Held for reading by tests that compare results of two calls, for writing while the level changes, which is global.
static LEVEL: RwLock<()> = RwLock::new(());

fn one64(rows: &'static InnerLoops, x: &[f64]) -> Vec<f64> {
    let mut y = vec![0f64; x.len()];
    let params = [0.2, 0.5];
    // SAFETY: equally many elements on both sides.
    unsafe {
        map::run_row(
            rows,
            Elem::F64,
            x.len(),
            &[y.as_mut_ptr().cast(), x.as_ptr() as *mut u8],
            &[8, 8],
            &params,
        );
    }
    y
}

fn one32(rows: &'static InnerLoops, x: &[f32]) -> Vec<f32> {
    let mut y = vec![0f32; x.len()];
    let params = [0.2, 0.5];
    // SAFETY: equally many elements on both sides.
    unsafe {
        map::run_row(
            rows,
            Elem::F32,
            x.len(),
            &[y.as_mut_ptr().cast(), x.as_ptr() as *mut u8],
            &[4, 4],
            &params,
        );
    }
    y
}

/// Applies an operator with two operands of one element type and a result of another.
fn two<T: Copy, R: Copy + Default>(
    rows: &'static InnerLoops,
    elem: Elem,
    a: &[T],
    b: &[T],
) -> Vec<R> {
    let mut y = vec![R::default(); a.len()];
    let strides = [
        size_of::<R>() as isize,
        size_of::<T>() as isize,
        size_of::<T>() as isize,
    ];
    let ptrs = [
        y.as_mut_ptr().cast(),
        a.as_ptr() as *mut u8,
        b.as_ptr() as *mut u8,
    ];
    // SAFETY: equally many elements everywhere.
    unsafe { map::run_row(rows, elem, a.len(), &ptrs, &strides, &[]) };
    y
}

/// Error in units in the last place of `want`.
fn ulps64(got: f64, want: f64) -> f64 {
    if got == want || got.is_nan() && want.is_nan() {
        return 0.0;
    }
    let exponent = (want.abs().to_bits() >> 52).max(1);
    let ulp = if exponent > 52 {
        (exponent - 52) << 52
    } else {
        1 << (exponent - 1)
    };
    let ulp = f64::from_bits(ulp);
    (got - want).abs() / ulp
}

/// Error in units in the last place of the f32 nearest to `want`.
fn ulps32(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if got == near || got.is_nan() && near.is_nan() {
        return 0.0;
    }
    let exponent = (near.abs().to_bits() >> 23).max(1) as i32 - 127 - 23;
    (f64::from(got) - want).abs() / 2f64.powi(exponent)
}

type Table = &'static [(&'static InnerLoops, u32, &'static [(f64, f64)])];

/// Operator, allowed error in ulp, (argument, result).
#[rustfmt::skip]
#[allow(clippy::approx_constant, clippy::excessive_precision, reason = "arguments next to constants, results as printed by the oracle")]
static REFERENCE: Table = &[
    (&map::EXP, 2, &[(-745.0, 5e-324), (-708.5, 2.006132305331306e-308), (-1.0, 0.36787944117144233), (-1e-09, 0.999999999), (0.3465, 1.4141094938303624), (1.0, 2.718281828459045), (88.7, 3.325986980250579e38), (709.7, 1.6549840276802644e308)]),
    (&map::EXP2, 2, &[(-1074.0, 5e-324), (-0.5, 0.7071067811865476), (0.3, 1.2311444133449163), (1023.9, 1.6773070034857416e308), (12.125, 4466.7196729968955)]),
    (&map::EXPM1, 2, &[(-40.0, -1.0), (-0.41, -0.3363497498636806), (-1e-09, -9.999999995e-10), (1e-12, 1.0000000000005e-12), (0.36, 0.43332941456034024), (0.367276, 0.44379635192205175), (1.5, 3.481689070338065), (709.0, 8.218407461554972e307)]),
    (&map::LOG, 2, &[(5e-324, -744.4400719213812), (1e-310, -713.8013788281542), (0.5, -0.6931471805599453), (0.70710678, -0.3465735919580042), (0.999999, -1.000000500029089e-06), (1.000001, 9.999994999180668e-07), (1.4142135, 0.3465735461755332), (10.0, 2.302585092994046), (1e308, 709.1962086421661)]),
    (&map::LOG2, 2, &[(5e-324, -1074.0), (0.7, -0.5145731728297583), (0.999999, -1.4426957622784505e-06), (1.000001, 1.4426943194232382e-06), (1.4142135, 0.49999993637074397), (3.0, 1.584962500721156), (8.0, 3.0), (1e300, 996.5784284662087)]),
    (&map::LOG10, 2, &[(1e-310, -310.0), (0.7, -0.1549019599857432), (1.000001, 4.3429426472042774e-07), (2.0, 0.3010299956639812), (1000.0, 3.0), (1e22, 22.0)]),
    (&map::LOG1P, 2, &[(-0.9999999, -16.118095651484676), (-0.5, -0.6931471805599453), (-0.29, -0.3424903089467759), (-1e-10, -1.00000000005e-10), (1e-300, 1e-300), (0.414, 0.346422567474381), (0.5, 0.4054651081081644), (1e17, 39.14394658089878), (1e300, 690.7755278982137)]),
    (&map::SIN, 2, &[(1e-310, 1e-310), (0.5, 0.479425538604203), (0.785398, 0.7071066656470943), (1.5707963267948966, 1.0), (3.141592653589793, 1.2246467991473532e-16), (355.0, -3.014435335948845e-05), (100000.0, 0.03574879797201651), (999999.5, -0.756251087561678), (1e22, -0.8522008497671888), (1.7e308, -0.5952560848632077)]),
    (&map::COS, 2, &[(0.5, 0.8775825618903728), (0.785398, 0.7071068967259818), (1.5707963267948966, 6.123233995736766e-17), (4.71238898038469, -1.8369701987210297e-16), (355.0, -0.999999999545659), (100000.0, -0.9993608074382124), (999999.5, 0.654281508650351), (1e22, 0.523214785395139)]),
    (&map::TAN, 2, &[(0.5, 0.5463024898437905), (0.785398, 0.9999996732051568), (1.5707963267948966, 1.633123935319537e16), (3.141592653589793, -1.2246467991473532e-16), (355.0, 3.0144353373184265e-05), (1e22, -1.6287782256068988)]),
    (&map::ARCSIN, 2, &[(1e-10, 1e-10), (0.3, 0.3046926540153975), (0.4999, 0.5234833093929496), (0.5, 0.5235987755982989), (0.7, 0.775397496610753), (0.999999, 1.5693821131146521), (-1.0, -1.5707963267948966)]),
    (&map::ARCCOS, 2, &[(-1.0, 3.141592653589793), (-0.6, 2.214297435588181), (1e-10, 1.5707963266948965), (0.3, 1.2661036727794992), (0.5, 1.0471975511965979), (0.999999, 0.0014142136802445852)]),
    (&map::ARCTAN, 2, &[(1e-10, 1e-10), (0.3, 0.2914567944778671), (0.41421356, 0.3926990796731608), (0.4255, 0.40229407570227754), (0.9, 0.7328151017865066), (1.1, 0.8329812666744317), (2.4142, 1.1780952589230935), (10000000000.0, 1.5707963266948965), (1e300, 1.5707963267948966)]),
    (&map::SINH, 2, &[(1e-10, 1e-10), (0.5, 0.5210953054937474), (0.999, 1.173658700352452), (1.0001, 1.175355507583546), (1.1397, 1.4029577467254812), (20.0, 242582597.70489514), (710.4, 1.6663642832806496e308)]),
    (&map::COSH, 2, &[(1e-10, 1.0), (0.5, 1.1276259652063807), (1.0, 1.5430806348152437), (20.0, 242582597.70489514), (710.4, 1.6663642832806496e308)]),
    (&map::TANH, 2, &[(1e-10, 1e-10), (0.1, 0.09966799462495582), (0.226, 0.22222929302401978), (0.3999, 0.37986339512578776), (0.4, 0.3799489622552249), (0.55, 0.5005202111902353), (2.0, 0.9640275800758169), (19.0, 0.9999999999999999)]),
    (&map::ARCSINH, 2, &[(1e-10, 1e-10), (0.3, 0.29567304756342244), (0.92, 0.8236590904324106), (3.0, 1.8184464592320668), (10000000000.0, 23.7189981105004), (1e17, 39.837093761458725), (1e300, 691.4686750787737)]),
    (&map::ARCCOSH, 2, &[(1.0000001, 0.0004472135919037347), (1.007, 0.11825268321321776), (1.5, 0.9624236501192069), (20.0, 3.6882538673612966), (1e300, 691.4686750787737)]),
    (&map::ARCTANH, 2, &[(1e-10, 1e-10), (0.06, 0.06007215592103162), (0.5, 0.5493061443340549), (0.999999, 7.254328619247669)]),
    (&map::ERF, 2, &[(1e-300, 1.1283791670955126e-300), (0.1, 0.1124629160182849), (0.5, 0.5204998778130465), (0.9999, 0.8426592780487595), (1.0, 0.8427007929497149), (1.5, 0.9661051464753108), (3.0, 0.9999779095030014), (5.9, 0.9999999999999999)]),
    (&map::ERFC, 4, &[(-3.0, 1.9999779095030015), (-0.5, 1.5204998778130465), (0.25, 0.7236736098317631), (1.0, 0.15729920705028513), (2.0, 0.004677734981047266), (10.0, 2.088487583762545e-45), (26.0, 5.663192408856143e-296)]),
    (&map::ERFINV, 2, &[(1e-12, 8.86226925452758e-13), (0.1, 0.08885599049425769), (0.5, 0.4769362762044699), (0.84, 0.9935356283473041), (0.999999, 3.458910737275499), (0.9999999999999999, 5.8635847487551676)]),
    (&map::SIGMOID, 2, &[(-744.0, 1e-323), (-30.0, 9.357622968839299e-14), (-1.37, 0.20261984643113043), (0.0, 0.5), (1.0, 0.7310585786300049), (36.0, 0.9999999999999998)]),
    (&map::SOFTPLUS, 2, &[(-744.0, 1e-323), (-30.0, 9.357622968839737e-14), (-2.07, 0.11883650874096047), (0.0, 0.6931471805599453), (1.0, 1.3132616875182228), (36.0, 36.0)]),
    (&map::CBRT, 2, &[(1e-320, 2.1544266950262728e-107), (0.1, 0.4641588833612779), (2.0, 1.2599210498948732), (27.0, 3.0), (1e300, 1e100)]),
    (&map::GAMMA, 8, &[(1e-300, 9.999999999999999e299), (0.5, 1.772453850905516), (3.0, 2.0), (10.5, 1133278.3889487856), (170.0, 4.269068009004705e304)]),
    (&map::LGAMMA, 4, &[(1e-10, 23.025850929882736), (0.5, 0.5723649429247001), (10.5, 13.940625219403763), (10000000000.0, 220258509288.81058), (1e300, 6.897755278982137e302)]),
    (&map::DIGAMMA, 4, &[(1e-10, -10000000000.577215), (0.5, -1.9635100260214235), (3.0, 0.9227843350984671), (12.5, 2.4851956512749123), (10000000000.0, 23.025850929890456), (-1.5, 0.7031566406452432)]),
    (&map::RSQRT, 2, &[(5e-324, 4.4989137945431964e161), (0.3, 1.8257418583505538), (66.78, 0.12237051636905873), (1e308, 1e-154)]),
];

type Table2 = &'static [(&'static InnerLoops, &'static [(f64, f64, f64)])];

/// Operator, (first, second, result).
#[rustfmt::skip]
#[allow(clippy::approx_constant, clippy::excessive_precision, reason = "results as printed by the oracle")]
static REFERENCE2: Table2 = &[
    (&map::POWER, &[(2.0, 0.5, 1.4142135623730951), (0.9999999, 1000000000.0, 3.720057571493637e-44), (1.0000001, -7000000000.0, 9.860017608596047e-305), (10.0, 308.0, 1e308), (10.0, -320.0, 1e-320), (1e-320, 0.5, 9.99994433575849e-161), (3.3, -2.7, 0.03981185029612345), (0.71, 2000.0, 3.2862260814833832e-298)]),
    (&map::ARCTAN2, &[(1.0, 2.0, 0.4636476090008061), (-2.0, 1.0, -1.1071487177940904), (0.6, -2.8747594019084444, 2.935833304803743), (1e-300, -1.0, 3.141592653589793), (1e300, 1e300, 0.7853981633974483)]),
    (&map::HYPOT, &[(3.0, 4.0, 5.0), (1e300, 1e300, 1.4142135623730952e300), (1e-310, 1e-310, 1.4142135623731e-310), (1.0, 1e-09, 1.0)]),
    (&map::LOGADDEXP, &[(1.0, 2.0, 2.313261687518223), (-1000.0, -1001.0, -999.6867383124818), (100000.0, 0.0, 100000.0)]),
];

/// The error bounds hold at every level up to the machine's. A single test runs all levels, because the level is global.
#[test]
fn functions_are_accurate_at_every_instruction_set() {
    let _changes = LEVEL.write().unwrap_or_else(PoisonError::into_inner);
    for level in [Isa::Baseline, Isa::Avx2, Isa::Avx512] {
        if level > machine() {
            continue;
        }
        limit_isa(level);
        doubles_are_accurate();
        singles_are_accurate();
        powers_of_singles_are_accurate();
        angles_of_singles_are_accurate();
        cube_roots_of_doubles_are_accurate();
        strange_arguments_have_their_results();
    }
    limit_isa(machine());
    assert_eq!(isa(), machine());
}

fn doubles_are_accurate() {
    for (rows, bound, points) in REFERENCE {
        // Padded with ordinary values, so that the points run through the vector loop and not only through its tail.
        let mut x: Vec<f64> = points.iter().map(|p| p.0).collect();
        x.resize(64, 1.0);
        let y = one64(rows, &x);
        for (&(x, want), &got) in points.iter().zip(&y) {
            let error = ulps64(got, want);
            assert!(
                error <= f64::from(*bound),
                "{}({x:e}) = {got:e}, {error} ulp from {want:e} ({:?})",
                rows.name,
                isa()
            );
        }
    }
    for (rows, points) in REFERENCE2 {
        let mut a: Vec<f64> = points.iter().map(|p| p.0).collect();
        let mut b: Vec<f64> = points.iter().map(|p| p.1).collect();
        a.resize(64, 1.0);
        b.resize(64, 1.0);
        let y: Vec<f64> = two(rows, Elem::F64, &a, &b);
        for (&(a, b, want), &got) in points.iter().zip(&y) {
            let error = ulps64(got, want);
            assert!(
                error <= 2.0,
                "{}({a:e}, {b:e}) = {got:e}, {error} ulp from {want:e} ({:?})",
                rows.name,
                isa()
            );
        }
    }
}

/// Cube roots at every exponent of f64, against correctly rounded ones.
fn cube_roots_of_doubles_are_accurate() {
    let x: Vec<f64> = (0..=u64::MAX)
        .step_by(460_000_000_000_007)
        .map(f64::from_bits)
        .collect();
    for (&x, &got) in x.iter().zip(&one64(&map::CBRT, &x)) {
        let want = libm::cbrt(x);
        assert!(
            got == want || ulps64(got, want) <= 1.0,
            "cbrt({x:e}) = {got:e}, not {want:e} ({:?})",
            isa()
        );
    }
}

/// Every exponent of f32 with several mantissas, both signs.
fn walk32() -> Vec<f32> {
    (0..=u32::MAX)
        .step_by(104_729)
        .map(f32::from_bits)
        .collect()
}

fn singles_are_accurate() {
    type Case = (&'static InnerLoops, fn(f64) -> f64, f64);
    let cases: &[Case] = &[
        (&map::EXP, libm::exp, 1.0),
        (&map::EXP2, libm::exp2, 1.2),
        (&map::EXPM1, libm::expm1, 2.0),
        (&map::LOG, libm::log, 1.0),
        (&map::LOG2, libm::log2, 1.5),
        (&map::LOG10, libm::log10, 1.5),
        (&map::LOG1P, libm::log1p, 1.5),
        (&map::SIN, libm::sin, 1.5),
        (&map::COS, libm::cos, 1.6),
        (&map::TAN, libm::tan, 3.0),
        (&map::ARCSIN, libm::asin, 1.5),
        (&map::ARCCOS, libm::acos, 1.5),
        (&map::ARCTAN, libm::atan, 2.0),
        (&map::SINH, libm::sinh, 2.0),
        (&map::COSH, libm::cosh, 2.0),
        (&map::TANH, libm::tanh, 2.0),
        (&map::ARCSINH, libm::asinh, 3.0),
        (&map::ARCCOSH, libm::acosh, 3.0),
        (&map::ARCTANH, libm::atanh, 3.0),
        (&map::ERF, libm::erf, 1.5),
        (&map::ERFC, libm::erfc, 0.6),
        (&map::CBRT, libm::cbrt, 0.6),
        (&map::SQRT, libm::sqrt, 0.5),
        (&map::SIGMOID, |x| 1.0 / (1.0 + libm::exp(-x)), 2.5),
        (
            &map::SOFTPLUS,
            |x| {
                if x > 0.0 {
                    x + libm::log1p(libm::exp(-x))
                } else {
                    libm::log1p(libm::exp(x))
                }
            },
            2.0,
        ),
    ];
    let mut wrong = Vec::new();
    let mut x = walk32();
    x.extend((0..40_000).map(|i| (i as f32 - 20_000.0) / 1777.0));
    for (rows, reference, bound) in cases {
        for (&x, &got) in x.iter().zip(&one32(rows, &x)) {
            let error = ulps32(got, reference(f64::from(x)));
            if error > *bound {
                wrong.push(format!(
                    "{}({x:e}) = {got:e}, {error} ulp off ({:?})",
                    rows.name,
                    isa()
                ));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Numbers from 0 up to 1, always the same ones.
fn uniform_numbers() -> impl FnMut() -> f64 {
    let mut state = 1_u64;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn angles_of_singles_are_accurate() {
    let mut ends = vec![
        0.0,
        f32::MIN_POSITIVE,
        1e-45,
        1.0,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
    ];
    ends.extend(ends.clone().iter().map(|x| -x));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for &y in &ends {
        for &x in &ends {
            a.push(y);
            b.push(x);
        }
    }
    let mut uniform = uniform_numbers();
    for i in 0..400_000 {
        // Magnitudes near each other, at all angles; and all magnitudes.
        let size = match i % 3 {
            0 => 1.0,
            1 => libm::exp2(276.0 * uniform() - 149.0),
            _ => libm::exp2(10.0 * uniform()),
        };
        let angle = uniform() * std::f64::consts::TAU;
        a.push((size * libm::sin(angle)) as f32);
        b.push((size * libm::cos(angle)) as f32);
    }
    for ((&y, &x), &got) in a.iter().zip(&b).zip(&two(&map::ARCTAN2, Elem::F32, &a, &b)) {
        let exact = libm::atan2(f64::from(y), f64::from(x));
        let error = ulps32(got, exact);
        assert!(
            error <= 2.0 && (exact.is_nan() || got.is_sign_negative() == exact.is_sign_negative()),
            "arctan2({y:e}, {x:e}) = {got:e}, {error} ulp off ({:?})",
            isa()
        );
    }
}

/// Plain arguments alone (which have their own loop), and with one other argument per chunk: the results must be equal bit for bit.
fn powers_of_singles_are_accurate() {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut uniform = uniform_numbers();
    for i in 0..200_000 {
        // Near 1; of any magnitude; and with exponents that give results of any magnitude.
        let x = match i % 3 {
            0 => 0.5 + uniform(),
            1 => libm::exp2(250.0 * uniform() - 125.0),
            _ => libm::exp2(-149.0 * uniform()),
        } as f32;
        let most = 150.0 / libm::log2(f64::from(x)).abs().max(1e-4);
        a.push(x);
        b.push(((2.0 * uniform() - 1.0) * if i % 2 == 0 { most } else { 3.0 }) as f32);
    }
    let positive: Vec<f32> = two(&map::POWER, Elem::F32, &a, &b);
    for ((&x, &y), &got) in a.iter().zip(&b).zip(&positive) {
        let error = ulps32(got, libm::pow(f64::from(x), f64::from(y)));
        assert!(
            error <= 0.51,
            "{x:e}^{y:e} = {got:e}, {error} ulp off ({:?})",
            isa()
        );
    }
    for i in (0..a.len()).step_by(100) {
        (a[i], b[i]) = (-2.0, 3.0);
    }
    let mixed: Vec<f32> = two(&map::POWER, Elem::F32, &a, &b);
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|&x| f64::from(x)).collect() };
    let (wide_a, wide_b) = (wide(&a), wide(&b));
    let mixed64: Vec<f64> = two(&map::POWER, Elem::F64, &wide_a, &wide_b);
    for i in 0..a.len() {
        let same = if i % 100 == 0 { -8.0 } else { positive[i] };
        assert!(
            mixed[i].to_bits() == same.to_bits(),
            "{}^{} = {}, not {same}",
            a[i],
            b[i],
            mixed[i]
        );
        let error = ulps32(mixed[i], mixed64[i]);
        assert!(
            error <= 0.51,
            "{}^{}: {error} ulp from the f64 power",
            a[i],
            b[i]
        );
    }
}

fn strange_arguments_have_their_results() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases: &[(&InnerLoops, f64, f64)] = &[
        (&map::EXP, inf, inf),
        (&map::EXP, -inf, 0.0),
        (&map::EXP, nan, nan),
        (&map::EXP, 710.0, inf),
        (&map::EXP, -746.0, 0.0),
        (&map::EXP2, 1024.0, inf),
        (&map::EXPM1, -inf, -1.0),
        (&map::EXPM1, 710.0, inf),
        (&map::LOG, 0.0, -inf),
        (&map::LOG, -1.0, nan),
        (&map::LOG, inf, inf),
        (&map::LOG2, 1024.0, 10.0),
        (&map::LOG10, 1000.0, 3.0),
        (&map::LOG1P, -1.0, -inf),
        (&map::LOG1P, -1.5, nan),
        (&map::LOG1P, inf, inf),
        (&map::SIN, inf, nan),
        (&map::COS, -inf, nan),
        (&map::TANH, inf, 1.0),
        (&map::TANH, -inf, -1.0),
        (&map::TANH, nan, nan),
        (&map::SINH, -inf, -inf),
        (&map::COSH, -inf, inf),
        (&map::ARCSIN, 1.5, nan),
        (&map::ARCCOS, 1.0, 0.0),
        (&map::ARCTAN, inf, std::f64::consts::FRAC_PI_2),
        (&map::ARCCOSH, 0.5, nan),
        (&map::ARCCOSH, -1e10, nan),
        (&map::ARCTANH, -1.0, -inf),
        (&map::ARCTANH, 2.0, nan),
        (&map::ERF, inf, 1.0),
        (&map::ERFC, 40.0, 0.0),
        (&map::ERFINV, -1.0, -inf),
        (&map::ERFINV, 1.1, nan),
        (&map::SIGMOID, -inf, 0.0),
        (&map::SIGMOID, inf, 1.0),
        (&map::SOFTPLUS, inf, inf),
        (&map::LOG_SIGMOID, -1e4, -1e4),
        (&map::RELU, nan, nan),
        (&map::RELU, -3.0, 0.0),
        (&map::HARD_SIGMOID, 1.0, 0.7),
        (&map::HARD_SIGMOID, 10.0, 1.0),
        (&map::LEAKY_RELU, -1.0, -0.2),
        (&map::SIGN, -2.0, -1.0),
        (&map::SIGN, nan, nan),
        (&map::RINT, 2.5, 2.0),
        (&map::GAMMA, -1.0, nan),
    ];
    for &(rows, x, want) in cases {
        let got = one64(rows, &[x; 40])[0];
        assert!(
            got == want || got.is_nan() && want.is_nan(),
            "{}({x}) = {got}, not {want} ({:?})",
            rows.name,
            isa()
        );
    }
    // Odd functions keep the sign of zero.
    for rows in [
        &map::SIN,
        &map::TAN,
        &map::TANH,
        &map::EXPM1,
        &map::LOG1P,
        &map::ARCSIN,
        &map::ARCTAN,
        &map::ERF,
        &map::SINH,
    ] {
        assert!(
            one64(rows, &[-0.0; 20])[3].is_sign_negative(),
            "{}(-0.0)",
            rows.name
        );
        assert!(
            one32(rows, &[-0.0; 40])[3].is_sign_negative(),
            "{}(-0.0f32)",
            rows.name
        );
    }
    let power: &[(f64, f64, f64)] = &[
        (-2.0, 3.0, -8.0),
        (-2.0, 2.0, 4.0),
        (-2.0, 0.5, nan),
        (-0.0, 3.0, -0.0),
        (-0.0, -3.0, -inf),
        (0.0, -2.0, inf),
        (0.0, 0.0, 1.0),
        (nan, 0.0, 1.0),
        (1.0, nan, 1.0),
        (nan, 1.0, nan),
        (-1.0, inf, 1.0),
        (0.5, inf, 0.0),
        (0.5, -inf, inf),
        (-inf, 3.0, -inf),
        (-inf, -3.0, -0.0),
        (inf, -1.0, 0.0),
        (-3.0, 1e300, inf),
        (10.0, 2.0, 100.0),
    ];
    for &(a, b, want) in power {
        let got = two::<f64, f64>(&map::POWER, Elem::F64, &[a; 20], &[b; 20])[2];
        let same = got == want && got.is_sign_negative() == want.is_sign_negative();
        assert!(
            same || got.is_nan() && want.is_nan(),
            "{a}^{b} = {got}, not {want}"
        );
        let got = two::<f32, f32>(&map::POWER, Elem::F32, &[a as f32; 20], &[b as f32; 20])[2];
        let same = f64::from(got) == want && got.is_sign_negative() == want.is_sign_negative();
        assert!(
            same || got.is_nan() && want.is_nan(),
            "{a}^{b} = {got} in f32, not {want}"
        );
    }
}

#[test]
fn integers_divide_as_python_does() {
    let (a, b) = (
        [7i32, -7, 7, -7, 5, i32::MIN, 0, 6],
        [2i32, 2, -2, -2, 0, -1, 3, -3],
    );
    assert_eq!(
        two::<i32, i32>(&map::FLOOR_DIVIDE, Elem::I32, &a, &b),
        [3, -4, -4, 3, 0, i32::MIN, 0, -2]
    );
    assert_eq!(
        two::<i32, i32>(&map::REMAINDER, Elem::I32, &a, &b),
        [1, 1, -1, -1, 0, 0, 0, 0]
    );
    assert_eq!(
        two::<i32, i32>(&map::FMOD, Elem::I32, &a, &b),
        [1, -1, 1, -1, 0, 0, 0, 0]
    );
    let (mut q, mut r) = ([0i32; 8], [0i32; 8]);
    let ptrs = [
        q.as_mut_ptr().cast(),
        r.as_mut_ptr().cast(),
        a.as_ptr() as *mut u8,
        b.as_ptr() as *mut u8,
    ];
    // SAFETY: eight elements everywhere.
    unsafe { map::run_row(&map::DIVMOD, Elem::I32, 8, &ptrs, &[4; 4], &[]) };
    assert_eq!(
        (q, r),
        (
            [3, -4, -4, 3, 0, i32::MIN, 0, -2],
            [1, 1, -1, -1, 0, 0, 0, 0]
        )
    );
}

#[test]
fn floats_divide_as_python_does() {
    let (a, b) = (
        [7.5, -7.5, 7.5, 1.0, -1.0, 1e300, 5.0, 6.0],
        [2.0, 2.0, -2.0, 0.1, 0.1, 3.0, f64::INFINITY, 0.0],
    );
    let q: Vec<f64> = two(&map::FLOOR_DIVIDE, Elem::F64, &a, &b);
    let r: Vec<f64> = two(&map::REMAINDER, Elem::F64, &a, &b);
    assert_eq!(q[..5], [3.0, -4.0, -4.0, 9.0, -10.0]);
    assert_eq!(r[..3], [1.5, 0.5, -0.5]);
    assert_eq!(r[3], 1.0 % 0.1);
    assert_eq!(r[5], 1e300 % 3.0);
    assert_eq!((q[6], r[6]), (0.0, 5.0));
    assert!(q[7] == f64::INFINITY && r[7].is_nan());
    let f: Vec<f64> = two(
        &map::FMOD,
        Elem::F64,
        &[-7.5, 7.5, 1e18, -0.0],
        &[2.0, -2.0, 7.0, 3.0],
    );
    assert_eq!(f, [-1.5, 1.5, 1e18 % 7.0, 0.0]);
    assert!(f[3].is_sign_negative());
}

#[test]
fn integers_wrap_shift_and_count() {
    assert_eq!(
        two::<i8, i8>(&map::ADD, Elem::I8, &[127, -128], &[1, -1]),
        [-128, 127]
    );
    assert_eq!(
        two::<i8, i8>(&map::POWER, Elem::I8, &[2, 3, -1, 5], &[7, 5, -3, -1]),
        [-128, 243u8 as i8, -1, 0]
    );
    assert_eq!(
        two::<u64, u64>(&map::POWER, Elem::U64, &[3], &[41]),
        [3u64.wrapping_pow(41)]
    );
    assert_eq!(
        two::<i16, i16>(&map::LEFT_SHIFT, Elem::I16, &[1, 1, 1, 1], &[15, 16, -1, 3]),
        [i16::MIN, 0, 0, 8]
    );
    assert_eq!(
        two::<i16, i16>(
            &map::RIGHT_SHIFT,
            Elem::I16,
            &[-8, -8, 8, 8],
            &[1, 99, 99, 2]
        ),
        [-4, -1, 0, 2]
    );
    assert_eq!(
        two::<i64, i64>(
            &map::GCD,
            Elem::I64,
            &[12, -18, 0, i64::MIN],
            &[18, 12, 5, 2]
        ),
        [6, 6, 5, 2]
    );
    assert_eq!(
        two::<u8, u8>(&map::LCM, Elem::U8, &[4, 0], &[6, 3]),
        [12, 0]
    );
}

#[test]
fn maximum_propagates_and_fmax_ignores_nan() {
    let (a, b) = (
        [1f32, f32::NAN, 3.0, f32::NAN],
        [2f32, 2.0, f32::NAN, f32::NAN],
    );
    let bits = |v: Vec<f32>| -> Vec<Option<f32>> {
        v.into_iter().map(|x| (!x.is_nan()).then_some(x)).collect()
    };
    assert_eq!(
        bits(two(&map::MAXIMUM, Elem::F32, &a, &b)),
        [Some(2.0), None, None, None]
    );
    assert_eq!(
        bits(two(&map::MINIMUM, Elem::F32, &a, &b)),
        [Some(1.0), None, None, None]
    );
    assert_eq!(
        bits(two(&map::FMAX, Elem::F32, &a, &b)),
        [Some(2.0), Some(2.0), Some(3.0), None]
    );
    assert_eq!(
        bits(two(&map::FMIN, Elem::F32, &a, &b)),
        [Some(1.0), Some(2.0), Some(3.0), None]
    );
    assert_eq!(two::<f32, u8>(&map::LESS, Elem::F32, &a, &b), [1, 0, 0, 0]);
    assert_eq!(
        two::<f32, u8>(&map::NOT_EQUAL, Elem::F32, &a, &b),
        [1, 1, 1, 1]
    );
}

#[test]
fn complex_functions_invert_each_other_and_keep_their_cuts() {
    let apply = |rows: &'static InnerLoops, z: [f64; 2]| -> [f64; 2] {
        let (mut y, z) = ([[0.0; 2]; 4], [z; 4]);
        // SAFETY: four elements on both sides.
        unsafe {
            map::run_row(
                rows,
                Elem::C128,
                4,
                &[y.as_mut_ptr().cast(), z.as_ptr() as *mut u8],
                &[16, 16],
                &[],
            )
        };
        y[3]
    };
    let pairs = [
        (&map::EXP, &map::LOG),
        (&map::SIN, &map::ARCSIN),
        (&map::COS, &map::ARCCOS),
        (&map::TAN, &map::ARCTAN),
        (&map::SINH, &map::ARCSINH),
        (&map::COSH, &map::ARCCOSH),
        (&map::TANH, &map::ARCTANH),
        (&map::SQUARE, &map::SQRT),
        (&map::EXPM1, &map::LOG1P),
    ];
    for (forward, back) in pairs {
        for z in [
            [0.3, 0.4],
            [-0.7, 0.2],
            [1.5, -0.6],
            [-2.0, -1.1],
            [0.01, 3.0],
        ] {
            let [re, im] = apply(forward, apply(back, z));
            // Two functions with errors of about an ulp each, and condition numbers below 10 at these points.
            let off = (re - z[0]).hypot(im - z[1]) / z[0].hypot(z[1]);
            assert!(
                off < 40.0 * f64::EPSILON,
                "{}({}({z:?})) = {re}, {im}",
                forward.name,
                back.name
            );
        }
    }
    assert_eq!(apply(&map::SQRT, [-4.0, 0.0]), [0.0, 2.0]);
    assert_eq!(apply(&map::SQRT, [-4.0, -0.0]), [0.0, -2.0]);
    assert_eq!(apply(&map::LOG, [-1.0, 0.0]), [0.0, std::f64::consts::PI]);
    let [re, im] = apply(&map::ARCSIN, [2.0, 0.0]);
    assert!(
        (re - std::f64::consts::FRAC_PI_2).abs() < 1e-15
            && (im - 1.316_957_896_924_816_6).abs() < 1e-15,
        "{re} {im}"
    );
    let quotient: Vec<[f64; 2]> = two(
        &map::DIVIDE,
        Elem::C128,
        &[[1e300, 1e300]],
        &[[1e300, -1e300]],
    );
    assert_eq!(quotient, [[0.0, 1.0]]);
    let power: Vec<[f64; 2]> = two(
        &map::POWER,
        Elem::C128,
        &[[1.0, 1.0], [0.0, 0.0]],
        &[[2.0, 0.0], [0.0, 0.0]],
    );
    assert_eq!(power, [[0.0, 2.0], [1.0, 0.0]]);
}

#[test]
fn gelu_matches_its_definition() {
    for i in -400..400 {
        let x = f64::from(i) / 50.0;
        let exact = 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        let tanh = x / (1.0 + libm::exp(-1.595_769_121_605_730_7 * (x + 0.044_715 * x * x * x)));
        let (y, z) = (
            one32(&map::GELU_ERF, &[x as f32; 20])[1],
            one32(&map::GELU_TANH, &[x as f32; 20])[1],
        );
        // The relative error of the tail is that of the exponent, which x^2 magnifies.
        let bound = (4.0 + 2.0 * x * x) * f64::from(f32::EPSILON);
        let x32 = f64::from(x as f32);
        let input = (x32 - x).abs() * 2.0 * (1.0 + x * x) / x.abs().max(1e-3);
        assert!(
            (f64::from(y) - exact).abs() <= (bound + input) * exact.abs(),
            "gelu_erf({x}) = {y}, not {exact}"
        );
        assert!(
            (f64::from(z) - tanh).abs() <= (4.0 * bound + 4.0 * input) * tanh.abs(),
            "gelu_tanh({x}) = {z}, not {tanh}"
        );
    }
}

#[test]
fn gelu_of_an_element_does_not_depend_on_its_neighbours() {
    let _same = LEVEL.read().unwrap_or_else(PoisonError::into_inner);
    let x: Vec<f32> = (-900..900).map(|i| i as f32 / 200.0).collect();
    // Chunks of numbers near 0 use a cheaper function; one number far away prevents that.
    let near: Vec<f32> = x.iter().copied().filter(|x| x.abs() < 4.0).collect();
    let alone: Vec<f32> = (near.iter())
        .map(|&x| one32(&map::GELU_ERF, &[x, 9.0])[0])
        .collect();
    assert_eq!(one32(&map::GELU_ERF, &near), alone);
    for (&x, &y) in near.iter().zip(&alone) {
        let x = f64::from(x);
        let exact = 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
        // As above: the relative error of the exponent, which x^2 magnifies.
        let bound = (4.0 + 2.0 * x * x) * f64::from(f32::EPSILON);
        assert!(
            (f64::from(y) - exact).abs() <= bound * exact.abs(),
            "gelu_erf({x}) = {y}, not {exact}"
        );
    }
    let ones = vec![1f32; near.len()];
    let slopes: Vec<f32> = two(&map::GELU_ERF_GRAD, Elem::F32, &ones, &near);
    for (&x, &slope) in near.iter().zip(&slopes) {
        let alone: Vec<f32> = two(&map::GELU_ERF_GRAD, Elem::F32, &[1.0, 1.0], &[x, 9.0]);
        assert_eq!(slope, alone[0], "gelu_erf_grad({x})");
    }
}

#[test]
fn where_selects_and_clip_limits() {
    let (c, a, b) = ([1u8, 0, 2, 0], [1u16, 2, 3, 4], [5u16, 6, 7, 8]);
    let mut y = [0u16; 4];
    let ptrs = [
        y.as_mut_ptr().cast(),
        c.as_ptr() as *mut u8,
        a.as_ptr() as *mut u8,
        b.as_ptr() as *mut u8,
    ];
    // SAFETY: four elements everywhere.
    unsafe { map::run_row(&map::WHERE, Elem::F16, 4, &ptrs, &[2, 1, 2, 2], &[]) };
    assert_eq!(y, [1, 6, 3, 8]);
    let x = [-1f32, 0.5, 9.0, f32::NAN];
    let (low, high, mut y) = (0f32, 1f32, [0f32; 4]);
    let ptrs = [
        y.as_mut_ptr().cast(),
        x.as_ptr() as *mut u8,
        (&raw const low) as *mut u8,
        (&raw const high) as *mut u8,
    ];
    // SAFETY: four elements, or one if the stride is 0.
    unsafe { map::run_row(&map::CLIP, Elem::F32, 4, &ptrs, &[4, 4, 0, 0], &[]) };
    assert!(y[..3] == [0.0, 0.5, 1.0] && y[3].is_nan());
}
