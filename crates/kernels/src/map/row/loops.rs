//! The loops: a function of one element applied to rows, compiled for each instruction set.

use std::mem::MaybeUninit;

use super::{Base, Binary, Binary2, Fused, InnerLoop, Level, Params, Ternary, Unary, Unary2};
use crate::isa::Isa;

/// # Safety
/// `params` holds `count` numbers.
#[inline(always)]
unsafe fn load_params(params: *const f64, count: usize) -> Params {
    let mut p = [0.0; 2];
    for (i, slot) in p.iter_mut().enumerate().take(count) {
        // SAFETY: i < count, and the caller passes `count` numbers.
        *slot = unsafe { *params.add(i) };
    }
    p
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn unary_body<L: Level, T: Copy, O: Unary<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: two pointers, two strides, `O::PARAMS` numbers; n elements at each pointer, or one if its stride is 0.
    unsafe {
        let p = load_params(params, O::PARAMS);
        let y = (*ptrs).cast::<O::Out>();
        let x = (*ptrs.add(1)).cast::<T>().cast_const();
        if *strides.add(1) == 0 {
            let value = O::apply::<L>(*x, p);
            let value = if O::HAS_CORRECTION && O::needs_correction(*x) {
                O::correct(*x, value)
            } else {
                value
            };
            for i in 0..n {
                *y.add(i) = value;
            }
        } else if O::IN_PLACE && y.cast::<T>().cast_const() == x {
            let x = x.cast_mut();
            for i in 0..n {
                x.add(i).cast::<O::Out>().write(O::apply::<L>(*x.add(i), p));
            }
        } else if O::HAS_SUBDOMAIN {
            for at in (0..n).step_by(SPREAD) {
                let m = SPREAD.min(n - at);
                let (x, y) = (x.add(at), y.add(at));
                let mut all_in_subdomain = true;
                for i in 0..m {
                    all_in_subdomain &= O::is_in_subdomain(*x.add(i));
                }
                if all_in_subdomain {
                    for i in 0..m {
                        *y.add(i) = O::apply_in_subdomain::<L>(*x.add(i), p);
                    }
                } else {
                    for i in 0..m {
                        *y.add(i) = O::apply::<L>(*x.add(i), p);
                    }
                }
            }
        } else {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*x.add(i), p);
            }
            if O::HAS_CORRECTION {
                let mut any = false;
                for i in 0..n {
                    any |= O::needs_correction(*x.add(i));
                }
                if any {
                    correct_row::<T, O>(y, x, n);
                }
            }
        }
    }
}

/// Second pass: replaces the results of arguments that need `correct`.
///
/// # Safety
/// `y` and `x` are valid for `n` elements.
#[cold]
#[inline(never)]
unsafe fn correct_row<T: Copy, O: Unary<T>>(y: *mut O::Out, x: *const T, n: usize) {
    for i in 0..n {
        // SAFETY: i < n.
        unsafe {
            if O::needs_correction(*x.add(i)) {
                *y.add(i) = O::correct(*x.add(i), *y.add(i));
            }
        }
    }
}

/// Elements in a tile for a broadcast operand, and in a chunk that is checked for lying in the subdomain.
const SPREAD: usize = 256;

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn binary_body<L: Level, T: Copy, O: Binary<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: three pointers and strides, n elements at each pointer, one if the stride is 0.
    // The tiles are filled up to the length that is read from them.
    unsafe {
        let p = load_params(params, O::PARAMS);
        let y = (*ptrs).cast::<O::Out>();
        let a = (*ptrs.add(1)).cast::<T>().cast_const();
        let b = (*ptrs.add(2)).cast::<O::Rhs>().cast_const();
        let (one_a, one_b) = (*strides.add(1) == 0, *strides.add(2) == 0);
        if one_a && one_b {
            let value = O::apply::<L>(*a, *b, p);
            for i in 0..n {
                *y.add(i) = value;
            }
        } else if O::IN_PLACE
            && (!one_a && y.cast_const().cast() == a || !one_b && y.cast_const().cast() == b)
        {
            binary_in_place::<L, T, O>(y, a, b, [one_a, one_b], n, p);
        } else if O::HEAVY {
            let mut tile_a = [MaybeUninit::<T>::uninit(); SPREAD];
            let mut tile_b = [MaybeUninit::<O::Rhs>::uninit(); SPREAD];
            if one_a {
                tile_a.fill(MaybeUninit::new(*a));
            }
            if one_b {
                tile_b.fill(MaybeUninit::new(*b));
            }
            let step = if one_a || one_b || O::HAS_SUBDOMAIN {
                SPREAD
            } else {
                n
            };
            let mut at = 0;
            while at < n {
                let m = step.min(n - at);
                let a = if one_a {
                    tile_a.as_ptr().cast::<T>()
                } else {
                    a.add(at)
                };
                let b = if one_b {
                    tile_b.as_ptr().cast::<O::Rhs>()
                } else {
                    b.add(at)
                };
                let y = y.add(at);
                at += m;
                if O::HAS_SUBDOMAIN {
                    let mut all_in_subdomain = true;
                    for i in 0..m {
                        all_in_subdomain &= O::is_in_subdomain::<L>(*a.add(i), *b.add(i));
                    }
                    if all_in_subdomain && one_a {
                        // Lets the compiler hoist what depends only on this operand.
                        let a = *a;
                        for i in 0..m {
                            *y.add(i) = O::apply_in_subdomain::<L>(a, *b.add(i), p);
                        }
                        continue;
                    }
                    if all_in_subdomain {
                        for i in 0..m {
                            *y.add(i) = O::apply_in_subdomain::<L>(*a.add(i), *b.add(i), p);
                        }
                        continue;
                    }
                }
                for i in 0..m {
                    *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), p);
                }
            }
        } else if one_a {
            let a = *a;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(a, *b.add(i), p);
            }
        } else if one_b {
            let b = *b;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), b, p);
            }
        } else {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), p);
            }
        }
    }
}

/// The loops of [`binary_body`] in which the output `y` is one of the inputs, or both. All of the operator's types are equal.
///
/// # Safety
/// Same as for [`InnerLoop`]; `one` says which inputs are single values, not both; an input that is none is the output.
#[inline(always)]
unsafe fn binary_in_place<L: Level, T: Copy, O: Binary<T>>(
    y: *mut O::Out,
    a: *const T,
    b: *const O::Rhs,
    one: [bool; 2],
    n: usize,
    p: Params,
) {
    let is_a = !one[0] && y.cast_const().cast() == a;
    let is_b = !one[1] && y.cast_const().cast() == b;
    // SAFETY: guaranteed by the caller; an element is read before it is written, through the pointer that writes it.
    unsafe {
        let (ya, yb) = (y.cast::<T>(), y.cast::<O::Rhs>());
        if one[0] {
            let a = *a;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(a, *yb.add(i), p);
            }
        } else if one[1] {
            let b = *b;
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*ya.add(i), b, p);
            }
        } else if is_a && is_b {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*ya.add(i), *yb.add(i), p);
            }
        } else if is_a {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*ya.add(i), *b.add(i), p);
            }
        } else {
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), *yb.add(i), p);
            }
        }
    }
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn ternary_body<L: Level, T: Copy, O: Ternary<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: four pointers and strides, n elements at each pointer, one if the stride is 0.
    // The tiles are filled up to the length that is read from them.
    unsafe {
        let y = (*ptrs).cast::<O::Out>();
        let a = (*ptrs.add(1)).cast::<O::First>().cast_const();
        let b = (*ptrs.add(2)).cast::<T>().cast_const();
        let c = (*ptrs.add(3)).cast::<T>().cast_const();
        let (one_a, one_b, one_c) = (
            *strides.add(1) == 0,
            *strides.add(2) == 0,
            *strides.add(3) == 0,
        );
        if one_b && one_c && !one_a {
            // The usual case (clip bounds): both stay in registers.
            let (b, c) = (*b, *c);
            if O::IN_PLACE && y.cast_const().cast() == a {
                let a = y.cast::<O::First>();
                for i in 0..n {
                    *y.add(i) = O::apply::<L>(*a.add(i), b, c);
                }
                return;
            }
            for i in 0..n {
                *y.add(i) = O::apply::<L>(*a.add(i), b, c);
            }
            return;
        }
        let mut tile_a = [MaybeUninit::<O::First>::uninit(); SPREAD];
        let mut tile_b = [MaybeUninit::<T>::uninit(); SPREAD];
        let mut tile_c = [MaybeUninit::<T>::uninit(); SPREAD];
        let fill = n.min(SPREAD);
        if one_a {
            tile_a[..fill].fill(MaybeUninit::new(*a));
        }
        if one_b {
            tile_b[..fill].fill(MaybeUninit::new(*b));
        }
        if one_c {
            tile_c[..fill].fill(MaybeUninit::new(*c));
        }
        let step = if one_a || one_b || one_c { SPREAD } else { n };
        let mut at = 0;
        while at < n {
            let m = step.min(n - at);
            let a = if one_a {
                tile_a.as_ptr().cast::<O::First>()
            } else {
                a.add(at)
            };
            let b = if one_b {
                tile_b.as_ptr().cast::<T>()
            } else {
                b.add(at)
            };
            let c = if one_c {
                tile_c.as_ptr().cast::<T>()
            } else {
                c.add(at)
            };
            let y = y.add(at);
            at += m;
            if O::IN_PLACE && y.cast_const().cast() == a {
                let a = y.cast::<O::First>();
                for i in 0..m {
                    *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), *c.add(i));
                }
                continue;
            }
            for i in 0..m {
                *y.add(i) = O::apply::<L>(*a.add(i), *b.add(i), *c.add(i));
            }
        }
    }
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn binary2_body<L: Level, T: Copy, O: Binary2<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: four pointers and strides, n elements at each pointer, one if the stride is 0.
    unsafe {
        let q = (*ptrs).cast::<T>();
        let r = (*ptrs.add(1)).cast::<T>();
        let a = (*ptrs.add(2)).cast::<T>().cast_const();
        let b = (*ptrs.add(3)).cast::<T>().cast_const();
        let step_a = usize::from(*strides.add(2) != 0);
        let step_b = usize::from(*strides.add(3) != 0);
        for i in 0..n {
            (*q.add(i), *r.add(i)) = O::apply::<L>(*a.add(i * step_a), *b.add(i * step_b));
        }
    }
}

/// # Safety
/// Same as for [`InnerLoop`].
#[inline(always)]
unsafe fn unary2_body<L: Level, T: Copy, O: Unary2<T>>(
    ptrs: *const *mut u8,
    strides: *const isize,
    n: usize,
    _params: *const f64,
) {
    // SAFETY: the contract of `InnerLoop`: three pointers and strides, n elements at each pointer, one if the stride is 0.
    unsafe {
        let first = (*ptrs).cast::<T>();
        let second = (*ptrs.add(1)).cast::<T>();
        let x = (*ptrs.add(2)).cast::<T>().cast_const();
        let step = usize::from(*strides.add(2) != 0);
        for i in 0..n {
            (*first.add(i), *second.add(i)) = O::apply::<L>(*x.add(i * step));
        }
    }
}

/// Defines for one loop body: a function per instruction set, and the two functions that choose among them.
macro_rules! dispatch {
    ($all:ident, $body:ident, $op:ident, $base:ident, $avx2:ident, $avx512:ident) => {
        /// # Safety
        /// Same as for [`InnerLoop`].
        unsafe fn $base<T: Copy, O: $op<T>>(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64) {
            // SAFETY: same contract.
            unsafe { $body::<Base, T, O>(ptrs, strides, n, params) }
        }

        /// # Safety
        /// Same as for [`InnerLoop`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
        unsafe fn $avx2<T: Copy, O: $op<T>>(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64) {
            // SAFETY: same contract.
            unsafe { $body::<Fused, T, O>(ptrs, strides, n, params) }
        }

        /// # Safety
        /// Same as for [`InnerLoop`].
        #[cfg(target_arch = "x86_64")]
        #[target_feature(
            enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
        )]
        unsafe fn $avx512<T: Copy, O: $op<T>>(ptrs: *const *mut u8, strides: *const isize, n: usize, params: *const f64) {
            // SAFETY: same contract.
            unsafe { $body::<Fused, T, O>(ptrs, strides, n, params) }
        }

        /// The inner loop for an instruction set.
        #[cfg(target_arch = "x86_64")]
        pub(crate) fn $all<T: Copy, O: $op<T>>(isa: Isa) -> InnerLoop {
            match isa {
                Isa::Baseline => $base::<T, O>,
                Isa::Avx2 => $avx2::<T, O>,
                Isa::Avx512 => $avx512::<T, O>,
            }
        }

        /// The inner loop for an instruction set.
        #[cfg(not(target_arch = "x86_64"))]
        pub(crate) fn $all<T: Copy, O: $op<T>>(_: Isa) -> InnerLoop {
            $base::<T, O>
        }
    };
}
dispatch!(
    unary,
    unary_body,
    Unary,
    unary_base,
    unary_avx2,
    unary_avx512
);
dispatch!(
    binary,
    binary_body,
    Binary,
    binary_base,
    binary_avx2,
    binary_avx512
);
dispatch!(
    ternary,
    ternary_body,
    Ternary,
    ternary_base,
    ternary_avx2,
    ternary_avx512
);
dispatch!(
    unary2,
    unary2_body,
    Unary2,
    unary2_base,
    unary2_avx2,
    unary2_avx512
);
dispatch!(
    binary2,
    binary2_body,
    Binary2,
    binary2_base,
    binary2_avx2,
    binary2_avx512
);

/// The same inner loop for every instruction set, for unary functions that do not vectorise.
pub(crate) fn unary_one<T: Copy, O: Unary<T>>(_: Isa) -> InnerLoop {
    unary_base::<T, O>
}

/// As [`unary_one`], for binary functions.
pub(crate) fn binary_one<T: Copy, O: Binary<T>>(_: Isa) -> InnerLoop {
    binary_base::<T, O>
}
