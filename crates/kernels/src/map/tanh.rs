//! tanh of f32 with AVX-512: one of 32 polynomials per element, with coefficients looked up in registers, and no division.
//!
//! There are four intervals per octave from 1/16 to 16; the first one extends down to 0. The polynomials interpolate tanh in the Chebyshev nodes of
//! their interval (the first one is odd, so that its relative error is small). The expansion points are chosen such that tanh there is almost an f32.

use std::arch::x86_64::*;

/// Number of the first interval, counted in quarter octaves over all of f32.
const FIRST: i32 = (127 - 4) << 2;

/// From here on tanh rounds to 1.
const ONE: f32 = 9.010_914;

/// Coefficients of each interval.
#[rustfmt::skip]
static TABLES: [[f32; 32]; 7] = [
    // Expansion points of the polynomials.
    [0.0, 0.085925296, 0.101560496, 0.11719151, 0.1405984, 0.17188764, 0.20316914, 0.23441929, 0.28121307, 0.34375155, 0.40618768, 0.4688358, 0.56240565, 0.6874732, 0.8123744, 0.9374493, 1.1253259, 1.3747424, 1.625279, 1.8746567, 2.2495773, 2.749523, 3.2493773, 3.7507064, 4.500294, 5.4985805, 6.498972, 7.5014305, 8.5, 0.0, 0.0, 0.0],
    // tanh at the expansion points.
    [0.0, 0.08571445, 0.10121275, 0.11665794, 0.13967922, 0.17021458, 0.20041908, 0.23021765, 0.27402744, 0.3308225, 0.3852309, 0.43725818, 0.50976014, 0.5963563, 0.670898, 0.7340481, 0.8094135, 0.8797685, 0.9253863, 0.9540144, 0.97800773, 0.991852, 0.9969939, 0.998896, 0.99975336, 0.9999665, 0.99999547, 0.9999994, 0.99999994, 1.0, 1.0, 1.0],
    // First-order coefficients.
    [1.0, 0.992653, 0.989756, 0.98639095, 0.98048973, 0.971027, 0.9598322, 0.94699985, 0.92490894, 0.89055645, 0.85159713, 0.8088053, 0.7401446, 0.6443592, 0.5498958, 0.46117336, 0.3448498, 0.2260074, 0.14366017, 0.08985648, 0.04350087, 0.016229639, 0.0060031647, 0.002206776, 0.0004932307, 6.699462e-5, 9.059913e-6, 1.2201261e-6, 1.6559301e-7, 0.0, 0.0, 0.0],
    // Second-order coefficients.
    [0.0, -0.085084714, -0.100175925, -0.115070336, -0.13695404, -0.16528295, -0.19236869, -0.21801607, -0.2534504, -0.29461607, -0.3280615, -0.3536567, -0.37729588, -0.38426754, -0.3689241, -0.33852357, -0.2791286, -0.1988357, -0.13294172, -0.08572447, -0.0425426, -0.0160962, -0.0059845843, -0.00220413, -0.000492321, -6.688515e-5, -9.0453395e-6, -1.2181529e-6, -1.6531482e-7, 0.0, 0.0, 0.0],
    // Third-order coefficients.
    [-0.3333322, -0.32359135, -0.31977957, -0.3153731, -0.30770028, -0.2955421, -0.2813897, -0.26547545, -0.2388506, -0.19938652, -0.15748626, -0.1149625, -0.054384474, 0.014373804, 0.06421163, 0.094767965, 0.1109794, 0.09959264, 0.075135715, 0.051830277, 0.027108602, 0.010556224, 0.003965992, 0.0014662311, 0.00032834397, 4.4634602e-5, 6.0363577e-6, 8.127308e-7, 1.1043385e-7, 0.0, 0.0, 0.0],
    // Fourth-order coefficients.
    [0.0, 0.05609516, 0.065754406, 0.07514377, 0.088613026, 0.10537931, 0.12049581, 0.13376443, 0.14982997, 0.16406173, 0.16992542, 0.16807128, 0.15326993, 0.119449265, 0.07993759, 0.04337644, 0.0036484238, -0.021082934, -0.025119279, -0.02085682, -0.012398786, -0.005155693, -0.0019818929, -0.0007388396, -0.00017244596, -2.3463243e-5, -3.1738114e-6, -4.2746595e-7, -5.810323e-8, 0.0, 0.0, 0.0],
    // Fifth-order coefficients.
    [0.1328406, 0.12510762, 0.12192758, 0.11827461, 0.11195339, 0.10214395, 0.09097897, 0.07874677, 0.0590575, 0.031952824, 0.005923865, -0.017165111, -0.043507483, -0.061594207, -0.06268455, -0.05306602, -0.03202853, -0.009495421, 0.0014063526, 0.0046056462, 0.003978528, 0.0019131746, 0.00076951965, 0.00029223596, 6.790717e-5, 9.225234e-6, 1.2491414e-6, 1.6906466e-7, 2.24598e-8, 0.0, 0.0, 0.0],
];

/// The inner loop of tanh. Error below 1 ulp.
///
/// # Safety
/// Same as for [`InnerLoop`](super::InnerLoop); the CPU has AVX-512.
#[target_feature(
    enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
)]
pub(super) unsafe fn row(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: two pointers and strides, n elements at each pointer, one at a pointer of stride 0;
    // masks restrict loads and stores to these.
    unsafe {
        let (y, x) = (
            (*ptrs).cast::<f32>(),
            (*ptrs.add(1)).cast::<f32>().cast_const(),
        );
        let broadcast = *strides.add(1) == 0;
        let tables = TABLES.map(|t| {
            [
                _mm512_loadu_ps(t.as_ptr()),
                _mm512_loadu_ps(t.as_ptr().add(16)),
            ]
        });
        let mut i = 0;
        while i < n {
            let lanes: __mmask16 = if n - i >= 16 {
                0xffff
            } else {
                (1 << (n - i)) - 1
            };
            let v = if broadcast {
                _mm512_set1_ps(*x)
            } else {
                _mm512_maskz_loadu_ps(lanes, x.add(i))
            };
            let a = _mm512_abs_ps(v);
            // Interval number: exponent and two bits of the mantissa. NaN selects the last interval and stays NaN in the difference.
            let k = _mm512_srli_epi32::<21>(_mm512_castps_si512(a));
            let k = _mm512_sub_epi32(k, _mm512_set1_epi32(FIRST));
            let k = _mm512_max_epi32(k, _mm512_setzero_si512());
            let k = _mm512_min_epi32(k, _mm512_set1_epi32(31));
            macro_rules! look_up {
                ($j:literal) => {
                    _mm512_permutex2var_ps(tables[$j][0], k, tables[$j][1])
                };
            }
            let d = _mm512_sub_ps(a, look_up!(0));
            let p = _mm512_fmadd_ps(look_up!(6), d, look_up!(5));
            let p = _mm512_fmadd_ps(p, d, look_up!(4));
            let p = _mm512_fmadd_ps(p, d, look_up!(3));
            let p = _mm512_fmadd_ps(p, d, look_up!(2));
            let p = _mm512_fmadd_ps(p, d, look_up!(1));
            let one = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, _mm512_set1_ps(ONE));
            let p = _mm512_mask_mov_ps(p, one, _mm512_set1_ps(1.0));
            let sign = _mm512_and_ps(v, _mm512_set1_ps(-0.0));
            _mm512_mask_storeu_ps(y.add(i), lanes, _mm512_or_ps(p, sign));
            i += 16;
        }
    }
}
