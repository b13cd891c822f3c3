//! Micro-kernels of convolutions over blocks of images: each computes a block of `rows x lanes` results in registers,
//! `out[r][l] = sum of a[i][r] * b[i][l]`.

use crate::isa::{Isa, isa};
use crate::real::Real;

/// Products after which a sum in a register is added to the result: shorter chains of additions round less.
const MAX_CHAIN: usize = 256;

/// The operands of one tap of the kernel: the addresses of `a` and of `b` in the first step of the sum.
#[derive(Clone, Copy)]
pub(super) struct Segment<T> {
    pub(super) a: *const T,
    pub(super) b: *const T,
}

/// A micro-kernel and the size of its block.
#[derive(Clone, Copy)]
pub(super) struct Micro<T> {
    pub(super) rows: usize,
    pub(super) lanes: usize,
    /// `(segments, steps of each, elements from one step of a to the next, result, elements from one row of the result to the next)`; the steps of `b`
    /// are `lanes` elements apart.
    pub(super) run: unsafe fn(&[Segment<T>], usize, usize, *mut T, usize),
}

/// Element types with micro-kernels.
pub(super) trait Blocked: Real {
    /// The micro-kernels of an instruction set that the processor supports: with the widest rows, and with rows of half as many lanes.
    fn micros_of(isa: Isa) -> [Micro<Self>; 2];

    /// The micro-kernel with the widest rows.
    fn micro() -> Micro<Self> {
        Self::micros_of(isa())[0]
    }

    /// The micro-kernel for a batch of `n` images. `None`: too many lanes would be empty.
    fn micro_for(n: usize) -> Option<Micro<Self>> {
        Self::micros_of(isa())
            .into_iter()
            .find(|micro| fills(n, micro.lanes))
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! micro {
    ($name:ident, $t:ty, $features:literal, $rows:literal x $lanes:literal, $zero:ident, $load:ident, $splat:ident, $fma:ident, $add:ident, $store:ident) => {
        /// # Safety
        /// The processor has the features. Every segment has `steps` steps of both operands; `out` has the rows of a block, `stride` elements apart.
        #[target_feature(enable = $features)]
        unsafe fn $name(
            segments: &[Segment<$t>],
            steps: usize,
            step: usize,
            out: *mut $t,
            stride: usize,
        ) {
            use std::arch::x86_64::*;
            let mut acc = [$zero(); $rows];
            let mut pending = 0;
            // SAFETY: the caller's promise.
            unsafe {
                for (r, &zeros) in acc.iter().enumerate() {
                    $store(out.add(r * stride), zeros);
                }
                for (i, &Segment { mut a, mut b }) in segments.iter().enumerate() {
                    for _ in 0..steps {
                        let lanes = $load(b);
                        for (r, acc) in acc.iter_mut().enumerate() {
                            *acc = $fma($splat(*a.add(r)), lanes, *acc);
                        }
                        a = a.wrapping_add(step);
                        b = b.wrapping_add($lanes);
                    }
                    pending += steps;
                    if pending >= MAX_CHAIN || i + 1 == segments.len() {
                        for (r, acc) in acc.iter_mut().enumerate() {
                            let out = out.add(r * stride);
                            $store(out, $add($load(out), *acc));
                            *acc = $zero();
                        }
                        pending = 0;
                    }
                }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
micro!(f32_avx512, f32, "avx512f", 16 x 16, _mm512_setzero_ps, _mm512_loadu_ps, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_add_ps, _mm512_storeu_ps);
#[cfg(target_arch = "x86_64")]
micro!(f32_avx512_half, f32, "avx512f,avx512vl,fma", 16 x 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_storeu_ps);
#[cfg(target_arch = "x86_64")]
micro!(f64_avx512_half, f64, "avx512f,avx512vl,fma", 16 x 4, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_storeu_pd);
#[cfg(target_arch = "x86_64")]
micro!(f64_avx512, f64, "avx512f", 16 x 8, _mm512_setzero_pd, _mm512_loadu_pd, _mm512_set1_pd, _mm512_fmadd_pd, _mm512_add_pd, _mm512_storeu_pd);
#[cfg(target_arch = "x86_64")]
micro!(f32_avx2, f32, "avx2,fma", 8 x 8, _mm256_setzero_ps, _mm256_loadu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps, _mm256_storeu_ps);
#[cfg(target_arch = "x86_64")]
micro!(f32_avx2_half, f32, "avx2,fma", 8 x 4, _mm_setzero_ps, _mm_loadu_ps, _mm_set1_ps, _mm_fmadd_ps, _mm_add_ps, _mm_storeu_ps);
#[cfg(target_arch = "x86_64")]
micro!(f64_avx2_half, f64, "avx2,fma", 8 x 2, _mm_setzero_pd, _mm_loadu_pd, _mm_set1_pd, _mm_fmadd_pd, _mm_add_pd, _mm_storeu_pd);
#[cfg(target_arch = "x86_64")]
micro!(f64_avx2, f64, "avx2,fma", 8 x 4, _mm256_setzero_pd, _mm256_loadu_pd, _mm256_set1_pd, _mm256_fmadd_pd, _mm256_add_pd, _mm256_storeu_pd);

/// The micro-kernel of other instruction sets, 8 x 4.
///
/// # Safety
/// Every segment has `steps` steps of both operands; `out` has the rows of a block, `stride` elements apart.
unsafe fn portable<T: Real>(
    segments: &[Segment<T>],
    steps: usize,
    step: usize,
    out: *mut T,
    stride: usize,
) {
    let mut acc = [[T::ZERO; 4]; 8];
    let mut pending = 0;
    // SAFETY: the caller's promise.
    unsafe {
        for (r, &zeros) in acc.iter().enumerate() {
            out.add(r * stride).cast::<[T; 4]>().write(zeros);
        }
        for (i, &Segment { mut a, mut b }) in segments.iter().enumerate() {
            for _ in 0..steps {
                let (rows, lanes) = (a.cast::<[T; 8]>().read(), b.cast::<[T; 4]>().read());
                for r in 0..8 {
                    for l in 0..4 {
                        acc[r][l] = rows[r].fma::<false>(lanes[l], acc[r][l]);
                    }
                }
                a = a.wrapping_add(step);
                b = b.wrapping_add(4);
            }
            pending += steps;
            if pending >= MAX_CHAIN || i + 1 == segments.len() {
                for (r, acc) in acc.iter_mut().enumerate() {
                    let out = out.add(r * stride).cast::<[T; 4]>();
                    let before = out.read();
                    out.write(std::array::from_fn(|l| before[l] + acc[l]));
                    *acc = [T::ZERO; 4];
                }
                pending = 0;
            }
        }
    }
}

macro_rules! blocked {
    ($t:ty, $avx512:ident $lanes512:literal $half512:ident, $avx2:ident $lanes2:literal $half2:ident) => {
        impl Blocked for $t {
            fn micros_of(isa: Isa) -> [Micro<$t>; 2] {
                let micro = |rows, lanes, run| Micro { rows, lanes, run };
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => [
                        micro(16, $lanes512, $avx512 as _),
                        micro(16, $lanes512 / 2, $half512 as _),
                    ],
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => [
                        micro(8, $lanes2, $avx2 as _),
                        micro(8, $lanes2 / 2, $half2 as _),
                    ],
                    _ => [micro(8, 4, portable::<$t> as _); 2],
                }
            }
        }
    };
}
blocked!(f32, f32_avx512 16 f32_avx512_half, f32_avx2 8 f32_avx2_half);
blocked!(f64, f64_avx512 8 f64_avx512_half, f64_avx2 4 f64_avx2_half);

/// Whether `n` fills blocks of `block` to three quarters.
pub(super) fn fills(n: usize, block: usize) -> bool {
    n * 4 >= n.next_multiple_of(block) * 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Values;

    fn every_micro_kernel_sums_its_segments<T: Blocked>() {
        for level in [Isa::Baseline, Isa::Avx2, Isa::Avx512] {
            if level > isa() {
                continue;
            }
            let [wide, half] = T::micros_of(level);
            for (Micro { rows, lanes, run }, taps, steps) in [
                (wide, 0, 5),
                (wide, 1, 1),
                (wide, 3, 7),
                (wide, 2, 300),
                (half, 0, 5),
                (half, 3, 7),
                (half, 2, 300),
            ] {
                let (step, stride) = (taps.max(1) * rows, lanes + 3);
                let mut values = Values(steps as u64);
                let (a, b): (Vec<T>, Vec<T>) = (
                    values.integers(steps * step),
                    values.integers(taps * steps * lanes),
                );
                let segments: Vec<_> = (0..taps)
                    .map(|tap| Segment {
                        a: a[tap * rows..].as_ptr(),
                        b: b[tap * steps * lanes..].as_ptr(),
                    })
                    .collect();
                let mut out = vec![T::from_f64(f64::NAN); rows * stride];
                // SAFETY: the processor has the features; the vectors hold all steps, and `out` the rows.
                unsafe { run(&segments, steps, step, out.as_mut_ptr(), stride) };
                for r in 0..rows {
                    for l in 0..lanes {
                        let want: f64 = (0..taps * steps)
                            .map(|i| {
                                let (tap, step_of) = (i / steps, i % steps);
                                a[step_of * step + tap * rows + r].to_f64()
                                    * b[i * lanes + l].to_f64()
                            })
                            .sum();
                        assert_eq!(
                            out[r * stride + l].to_f64(),
                            want,
                            "{level:?} {taps} {steps} {r} {l}"
                        );
                    }
                    assert!(out[r * stride + lanes..][..3].iter().all(|x| x.is_nan()));
                }
            }
        }
    }

    #[test]
    fn micro_kernels_of_f32() {
        every_micro_kernel_sums_its_segments::<f32>();
    }

    #[test]
    fn micro_kernels_of_f64() {
        every_micro_kernel_sums_its_segments::<f64>();
    }
}
